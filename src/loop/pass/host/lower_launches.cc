#include "loop/pass/host/lower_launches.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/arguments.h"
#include "loop/pass/host/time_launches.h"
#include "loop/pass/packed_abi.h"
#include "loop/pass/stmt_list.h"
#include "loop/rewrite.h"
#include "loop/threads.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in a file made of them

namespace {

constexpr size_t kAxes = 6;  // of the runtime's extents: blocks along x, y, z, then threads

// Where the runtime has the extent of the axis: a cluster's blocks are blocks.
size_t PlaceOf(ThreadAxis axis) {
  const auto along = static_cast<size_t>(Info(axis).dim);
  return IsBlockAxis(axis) ? along : 3 + along;
}

Buffer Slots(const std::string& name, size_t count) {
  Expr size = IndexConst(static_cast<int64_t>(std::max<size_t>(count, 1)));
  return BufferNode::Make(name, DType::Int(64), {size}, Scope::kLocal, nullptr, {}, kSlotBytes);
}

int64_t SlotAt(size_t i) { return static_cast<int64_t>(i) * kSlotBytes; }

// The address of a region's first element.
Expr FirstOf(const RegionNode& region) {
  std::vector<Expr> first;
  for (const Range& range : region.ranges) first.push_back(range->min);
  return Call::Make(Intrinsic::kBufferData, {Load::Make(region.buffer, std::move(first))},
                    DType::Handle());
}

// Of the launch: blocks along x, y, z, then threads.
std::vector<Expr> ExtentsOf(const PrimFunc& kernel, const std::vector<Expr>& scalars) {
  VarMap values;
  const size_t dims = kernel.dims.size();
  for (size_t i = 0; i < dims; ++i) values[kernel.dims[i].get()] = scalars[i];
  for (size_t i = 0; i < kernel.scalars.size(); ++i) {
    values[kernel.scalars[i].get()] = scalars[dims + i];
  }
  std::vector<Expr> out(kAxes, IndexConst(1));
  for (const For* loop : PeelThreads(kernel).axes) {
    Expr& extent = out[PlaceOf(loop->thread)];
    const Expr own = Substitute(loop->extent, values);
    extent = IsOne(extent) ? own : extent * own;
  }
  return out;
}

// Goes over one host function. kernels_ are in the order of the device code's table, and the place
// of a kernel there is its number at run time.
class Lowering final : public ScopedRewriter {
 public:
  Lowering(const Func& func, const Module& module)
      : kernels_(DeviceKernels(module)), names_(*func) {}

  int64_t waits() const { return waits_; }
  int64_t waits_in_loops() const { return waits_in_loops_; }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const bool repeats = IsA<For>(stmt) || IsA<While>(stmt);
    loops_ += repeats;
    const Stmt out = Lowered(stmt);
    loops_ -= repeats;
    return out;
  }

  Stmt Lowered(const Stmt& stmt) {
    const auto* launch = As<Launch>(stmt);
    if (!launch) return WithFetches(Children(stmt));
    if (launch->place != Place::Device(0)) return stmt;
    const auto kernel = std::find_if(kernels_.begin(), kernels_.end(),
                                     [&](const Func& k) { return k->name == launch->kernel; });
    if (kernel == kernels_.end() || !IsBound(**kernel)) return stmt;
    Stmt call = CallOf(*launch, **kernel, kernel - kernels_.begin());
    if (!IsTimed(*launch)) return call;
    return Timed(*launch, names_.Fresh("begin"), Seq::Make({call, WaitFor(*launch)}), nullptr);
  }

  Stmt CallOf(const Launch& launch, const PrimFunc& kernel, int64_t number) {
    const size_t buffers = launch.buffers.size(), count = buffers + launch.scalars.size();
    StmtList list;
    auto make = [&](const char* name, size_t size) {
      Buffer buffer = Slots(names_.Fresh(launch.kernel + "." + name), size);
      list.Open([buffer](Stmt body) { return Alloc::Make(buffer, std::move(body)); });
      return AddressOf(buffer);
    };
    const Expr extents = make("extents", kAxes);
    const Expr values = make("values", count), args = make("args", count);
    const std::vector<Expr> axes = ExtentsOf(kernel, launch.scalars);
    for (size_t i = 0; i < kAxes; ++i) list.Add(StoreAt(extents, SlotAt(i), axes[i]));
    for (size_t i = 0; i < count; ++i) {
      Expr value = i < buffers ? FirstOf(*launch.buffers[i]) : launch.scalars[i - buffers];
      list.Add(StoreAt(values, SlotAt(i), std::move(value)));
      list.Add(StoreAt(args, SlotAt(i), At(values, SlotAt(i))));
    }
    Expr call =
        CallC("tn_core_device_launch",
              {Text(std::string("@") + kDeviceCode), I32(number), extents, args}, DType::Int(32));
    list.Add(Evaluate::Make(call));
    return list.Close();
  }

  // A byte of the launch's last buffer comes when the launch is over; where that has none, there is
  // nothing to wait for.
  Stmt WaitFor(const Launch& launch) {
    const RegionNode& last = *launch.buffers.back();
    const Buffer got =
        BufferNode::Make(names_.Fresh("fetched"), DType::UInt(8), {IndexConst(1)}, Scope::kLocal);
    Expr elements = IndexConst(1);
    for (const Range& range : last.ranges) elements = elements * range->extent;
    const Expr fetch =
        CallC("tn_core_device_fetch", {AddressOf(got), FirstOf(last), I64(1)}, DType::Int(32));
    return Alloc::Make(got, If::Make(Gt(elements, IndexConst(0)), Evaluate::Make(fetch), nullptr));
  }

  // What a statement reads of the device's memory comes to the host's before it.
  Stmt WithFetches(const Stmt& stmt) {
    StmtList list;
    const auto fetched = [&](const Expr& e) { return Fetched(e, &list); };
    Stmt out;
    if (const auto* let = As<Let>(stmt)) {
      out = Let::Make(let->var, fetched(let->value), let->body);
    } else if (const auto* branch = As<If>(stmt)) {
      out = If::Make(fetched(branch->condition), branch->then_body, branch->else_body);
    } else if (const auto* store = As<Store>(stmt)) {
      out = Store::Make(store->buffer, store->indices, fetched(store->value), store->mask);
    } else {
      return stmt;
    }
    list.Add(std::move(out));
    return list.Close();
  }

  Expr Fetched(const Expr& e, StmtList* list) {
    return PostOrderRewrite(e, [&](const NodeRef& n) -> NodeRef {
      const auto* load = As<Load>(n);
      if (!load || load->buffer->scope == Scope::kLocal) return n;
      const Buffer got =
          BufferNode::Make(names_.Fresh("fetched"), load->dtype, {IndexConst(1)}, Scope::kLocal);
      list->Open([got](Stmt body) { return Alloc::Make(got, std::move(body)); });
      const Expr from = Call::Make(Intrinsic::kBufferData,
                                   {Load::Make(load->buffer, load->indices)}, DType::Handle());
      list->Add(
          Evaluate::Make(CallC("tn_core_device_fetch",
                               {AddressOf(got), from, I64(load->dtype.Bytes())}, DType::Int(32))));
      ++waits_;
      if (loops_ > 0) ++waits_in_loops_;
      return Load::Make(got, {IndexConst(0)});
    });
  }

  const std::vector<Func> kernels_;
  NameSupply names_;
  int64_t waits_ = 0, waits_in_loops_ = 0;
  int loops_ = 0;
};

bool Loads(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    found |= IsA<Load>(n);
    return !found;
  });
  return found;
}

bool Acts(const NodeRef& n) {
  const auto* call = As<Call>(n);
  return IsA<Load>(n) || IsA<Store>(n) || IsA<While>(n) || IsA<CallFunc>(n) ||
         (call && call->intrinsic == Intrinsic::kExtern);
}

// Whether a function's launches follow from its dims and the addresses that it is given, and are
// more than one. Loads outside of regions would read what lies in tensors; what a caller passes by
// value may be another number in each call.
bool Repeats(const PrimFunc& func) {
  int64_t launches = 0;
  bool follows = true;
  for (const Var& v : func.scalars) {
    follows &= v->name == kDeviceId || v->name == kDeviceWeights || IsArena(v);
  }
  PreOrder(func.body, [&](const NodeRef& n) {
    const auto* launch = As<Launch>(n);
    if (launch) {
      follows &= launch->place == Place::Device(0);
      ++launches;
      for (const Expr& s : launch->scalars) follows &= !Loads(s);
      return false;
    }
    const auto* loop = As<For>(n);
    if (loop) ++launches;  // of what is in it, or else of nothing
    follows &= !Acts(n);
    return true;
  });
  return follows && launches > 1;
}

}  // namespace

std::vector<Func> DeviceKernels(const Module& module) {
  std::vector<Func> out;
  for (const auto& [name, func] : module.funcs) {
    if (func->func_kind == FuncKind::kKernel && func->IsForDevice()) out.push_back(func);
  }
  return out;
}

Module LowerLaunches(const Module& module, const PassContext&) {
  return MapFuncs(module, [&](const Func& func) {
    if (func->func_kind != FuncKind::kHost || !func->attrs.Has(kDeviceTypeAttr)) return func;
    PrimFunc fields = *func;
    Lowering lowering(func, module);
    fields.body = lowering.Rewrite(func->body);
    if (lowering.waits() > 0) fields.attrs.Set(kWaitsAttr, lowering.waits());
    if (lowering.waits_in_loops() > 0)
      fields.attrs.Set(kWaitsInLoopsAttr, lowering.waits_in_loops());
    if (!func->attrs.Has(kTimedAttr) && Repeats(*func)) fields.attrs.Set(kRepeatsAttr, true);
    return PrimFunc::Make(std::move(fields));
  });
}

}  // namespace tenon
