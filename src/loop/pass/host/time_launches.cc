#include "loop/pass/host/time_launches.h"

#include "loop/pass/packed_abi.h"
#include "loop/rewrite.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in a file made of them

namespace {

constexpr const char* kRowAttr = "time_row";

Expr Table() { return Text(std::string("@") + kLaunchTimes); }

// Gives rows to the launches of one function after another.
class Numbering final : public ScopedRewriter {
 public:
  std::vector<std::string> kernels, nodes;

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* launch = As<Launch>(stmt);
    if (!launch) return Children(stmt);
    Attrs attrs = launch->attrs;
    attrs.Set(kRowAttr, static_cast<int64_t>(kernels.size()));
    kernels.push_back(launch->kernel);
    nodes.push_back(attrs.GetString("node"));
    return Launch::Make(launch->kernel, launch->buffers, launch->scalars, launch->place,
                        std::move(attrs));
  }
};

// func @NAME(out times: i64[n, 2]), for the target of the host functions.
Func TimesFunction(const std::string& name, const TargetRef& target, const Numbering& rows) {
  const Expr count = IndexConst(static_cast<int64_t>(rows.kernels.size()));
  const Buffer times = BufferNode::Make("times", DType::Int(64), {count, IndexConst(2)});
  PrimFunc f;
  f.name = name;
  f.func_kind = FuncKind::kHost;
  f.target = target;
  f.buffers = {times};
  f.num_outputs = 1;
  f.attrs = {{"exported", true}};
  f.attrs.Set(kLaunchKernelsAttr, rows.kernels);
  f.attrs.Set(kLaunchNodesAttr, rows.nodes);
  f.body = Evaluate::Make(CallC("tn_core_launch_times",
                                {Table(), AddressOf(times), CastExpr::Make(DType::Int(64), count)},
                                DType::Handle()));
  return PrimFunc::Make(std::move(f));
}

}  // namespace

bool IsTimed(const Launch& launch) { return launch.attrs.Has(kRowAttr); }

Stmt Timed(const Launch& launch, const std::string& clock, Stmt work, const Expr& counts) {
  const Var begin = VarNode::Make(clock, DType::Int(64));
  Stmt took =
      Evaluate::Make(CallC("tn_core_launch_took",
                           {Table(), I64(launch.attrs.GetInt(kRowAttr)), begin}, DType::Handle()));
  if (counts) took = If::Make(counts, took, nullptr);
  return Let::Make(begin, CallC("tn_core_now", {}, DType::Int(64)),
                   Seq::Make({std::move(work), took}));
}

Module TimeLaunches(const Module& module, const PassContext&) {
  Module out = module;
  Numbering rows;
  std::string name;
  TargetRef target;
  for (const auto& [unused, func] : module.funcs) {
    if (func->func_kind != FuncKind::kHost || !func->attrs.Has(kTimedAttr)) continue;
    PrimFunc fields(*func);
    fields.body = rows.Rewrite(func->body);
    name = func->attrs.GetString(kTimedAttr);
    target = func->target;
    out.Add(PrimFunc::Make(std::move(fields)));
  }
  if (!name.empty()) out.Add(TimesFunction(name, target, rows));
  return out;
}

}  // namespace tenon
