// tensorize: a nest that computes what an intrinsic does becomes a call of it.
//
// Both are outlined: what comes from around them goes, and equal code becomes equal text. Then they
// are compared without what is not computation (names, declarations, where operands lie, the order
// of dimensions and those of one element), and how the operands lie is compared on its own.
//
//   for i.1 in 0..4, j.1 in 0..4, k.1 in 0..4 {
//     block C(vi: spatial in 0..8 = i.0 * 4 + i.1, …) { C[vi, vj] = C[vi, vj] + A[vi, vk] * … }
//   }
//
// becomes with tensorize("i.1", "mma"), where @mma is declared as such a nest over 4 x 4 x 4,
//
//   block C.tile(vi.0: spatial = i.0, vj.0: spatial = j.0, vk.0: reduce = k.0) {
//     reads A[vi.0 * 4..+4, vk.0 * 4..+4], B[…], C[…]; writes C[vi.0 * 4..+4, vj.0 * 4..+4]
//     call @mma(A[vi.0 * 4..+4, vk.0 * 4..+4], B[…], C[…]; 8, 12, 12)
//   }
//
// with the strides of the buffers as its dims.

#include <algorithm>

#include "dependence/strides.h"
#include "intrin/tile_intrinsic.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/primitive/blockize.h"
#include "schedule/primitive/primitives.h"
#include "support/strings.h"

namespace tenon::primitive {

namespace {

// A nest as outline writes it, and the call that replaces it.
struct Outlined {
  Func callee;
  Ref<const CallFunc> call;
};

Expected<Outlined> OutlineOf(const Module& module, const Func& func, const std::string& loop) {
  Module copy = module;
  State state{&copy, func};
  TN_ASSIGN_OR_RETURN(Names name, OutlineExactly(state, loop, "tile"));
  Outlined out{copy.Find(name[0]), nullptr};
  PreOrder(state.func->body, [&](const NodeRef& n) {
    if (const auto* call = As<CallFunc>(n); call != nullptr && call->callee == name[0]) {
      out.call = Cast<CallFunc>(n);
    }
    return true;
  });
  TN_CHECK(out.call != nullptr);
  return out;
}

// The module without functions that were outlined before, so that none is found equal.
Module WithoutOutlined(const Module& module) {
  Module out;
  for (const auto& [name, func] : module.funcs) {
    if (!func->attrs.Has("outlined")) out.Add(func);
  }
  return out;
}

// The values that the call gives to the callee's dims and scalars.
VarMap ArgumentsOf(const Outlined& o) {
  VarMap out;
  const PrimFunc& f = *o.callee;
  for (size_t i = 0; i < o.call->scalars.size(); ++i) {
    const Var& v = i < f.dims.size() ? f.dims[i] : f.scalars[i - f.dims.size()];
    out[v.get()] = o.call->scalars[i];
  }
  return out;
}

// The outermost of the block's variables that an index is made of.
size_t FirstVariable(const Expr& index, const Block& block) {
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (!IsOne(block.iters[i]->extent) && UsesVar(index, block.iters[i]->var.get())) return i;
  }
  return block.iters.size();
}

// The indices of the buffer's first access, and the block that it is in.
struct FirstAccess {
  std::vector<Expr> indices;
  const Block* block = nullptr;
};
FirstAccess FirstAccessOf(const Stmt& body, const Buffer& buffer) {
  FirstAccess found;
  PreOrder(body, [&](const NodeRef& outer) {
    const auto* block = As<Block>(outer);
    if (!block) return IsA<StmtNode>(outer) && !found.block;
    PreOrder(block->body, [&](const NodeRef& n) {
      const auto* load = As<Load>(n);
      const auto* store = As<Store>(n);
      if (found.block) return false;
      if (load && load->buffer == buffer) found = {load->indices, block};
      if (store && store->buffer == buffer) found = {store->indices, block};
      return true;
    });
    return false;
  });
  return found;
}

// The dimensions of more than one element of a function's buffer, ordered by the variables that run
// along them: B[k, j] of one nest and B[j, k] of another are the same operand.
std::vector<size_t> LongDims(const PrimFunc& func, const Buffer& buffer,
                             const std::vector<Expr>& shape) {
  std::vector<size_t> out;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!IsOne(shape[d])) out.push_back(d);
  }
  const FirstAccess access = FirstAccessOf(func.body, buffer);
  if (!access.block) return out;
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) {
    return FirstVariable(access.indices[a], *access.block) <
           FirstVariable(access.indices[b], *access.block);
  });
  return out;
}

template <class T>
std::vector<T> Picked(const std::vector<T>& all, const std::vector<size_t>& places) {
  std::vector<T> out;
  for (size_t i : places) out.push_back(all[i]);
  return out;
}

// A buffer that stands for another, which has further dimensions of one element.
struct Squeezed {
  Buffer buffer;
  std::vector<size_t> dims;
};
using SqueezedMap = std::unordered_map<const BufferNode*, Squeezed>;

// Regions keep their buffers.
Stmt Squeeze(const Stmt& body, const SqueezedMap& buffers) {
  return PostOrderRewrite(body, [&](const NodeRef& n) -> NodeRef {
    if (const auto* load = As<Load>(n)) {
      auto it = buffers.find(load->buffer.get());
      if (it == buffers.end()) return n;
      return Load::Make(it->second.buffer, Picked(load->indices, it->second.dims), load->mask);
    }
    if (const auto* store = As<Store>(n)) {
      auto it = buffers.find(store->buffer.get());
      if (it == buffers.end()) return n;
      return Store::Make(it->second.buffer, Picked(store->indices, it->second.dims), store->value,
                         store->mask);
    }
    return n;
  });
}

// What the block computes; variables that have one value are put in.
Ref<const Block> PlainBlock(const Block& block) {
  Block plain;
  plain.name = "block";
  VarMap fixed;
  for (const IterVar& v : block.iters) {
    if (IsOne(v->extent)) {
      fixed[v->var.get()] = v->min;
    } else {
      plain.iters.push_back(v);
    }
  }
  if (block.where) plain.where = Substitute(block.where, fixed);
  if (block.init) plain.init = Substitute(block.init, fixed);
  plain.body = Substitute(block.body, fixed);
  return Block::Make(std::move(plain));
}

struct Form {
  Func func;
  std::vector<std::vector<size_t>> dims;  // of each buffer, those that are left in their order
};

// Constant sizes are put in; buffers keep type and shape alone, blocks what they compute.
Form Computation(const Outlined& o) {
  VarMap constants;
  for (const auto& [var, value] : ArgumentsOf(o)) {
    if (AsInt(value)) constants[var] = value;
  }
  PrimFunc out;
  out.name = "computation";
  out.func_kind = FuncKind::kDevice;
  out.num_outputs = o.callee->num_outputs;
  SqueezedMap buffers;
  Form form;
  for (const Buffer& b : o.callee->buffers) {
    std::vector<Expr> shape;
    for (const Expr& e : b->shape) shape.push_back(Simplify(Substitute(e, constants)));
    form.dims.push_back(LongDims(*o.callee, b, shape));
    out.buffers.push_back(BufferNode::Make("b", b->dtype, Picked(shape, form.dims.back())));
    buffers[b.get()] = {out.buffers.back(), form.dims.back()};
  }
  // Buffers first: those of the callee have the dims in their shapes.
  Stmt body = Substitute(Squeeze(o.callee->body, buffers), constants);
  out.body = MapStmts(body, [](const Stmt& s) -> Stmt {
    if (const auto* loop = As<For>(s)) {
      return For::Make(loop->var, loop->min, loop->extent, ForKind::kSerial, loop->body);
    }
    const auto* block = As<Block>(s);
    return block == nullptr ? s : Stmt(PlainBlock(*block));
  });
  for (const Var& v : o.callee->scalars) {
    if (UsesVar(out.body, v.get())) out.scalars.push_back(v);
  }
  form.func = PrimFunc::Make(std::move(out));
  return form;
}

// The freest mode in which all blocks may compute, or the strictest that one asks for.
FpMode StrictestMode(const Stmt& stmt) {
  FpMode mode = FpMode::kReassoc;
  PreOrder(stmt, [&](const NodeRef& n) {
    if (const auto* block = As<Block>(n)) mode = std::min(mode, block->fp);
    return IsA<StmtNode>(n);
  });
  return mode;
}

FpMode FreestMode(const Stmt& stmt) {
  FpMode mode = FpMode::kStrict;
  PreOrder(stmt, [&](const NodeRef& n) {
    if (const auto* block = As<Block>(n)) mode = std::max(mode, block->fp);
    return IsA<StmtNode>(n);
  });
  return mode;
}

bool HasGuards(const Stmt& stmt) {
  bool found = false;
  PreOrder(stmt, [&](const NodeRef& n) {
    const auto* block = As<Block>(n);
    found = found || IsA<If>(n) || (block && block->where);
    return IsA<StmtNode>(n) && !found;
  });
  return found;
}

// Compares one nest with one intrinsic. Neither is changed; what they must agree on is checked
// before the call is made.
class Matcher {
 public:
  /// `placed`: operands whose layout is found out later; `blocks` are those of the nest, for
  /// messages.
  Matcher(const Func& intrinsic, const Names& placed, const Outlined& mine, const Outlined& theirs,
          std::string blocks)
      : intrinsic_(intrinsic),
        placed_(placed),
        mine_(mine),
        theirs_(theirs),
        blocks_(std::move(blocks)),
        values_(ArgumentsOf(mine)) {}

  // The call of the intrinsic that stands for the nest.
  Expected<Stmt> Run() {
    if (mine_.callee->buffers.size() != theirs_.callee->buffers.size()) {
      return OfNest("it touches " + std::to_string(mine_.callee->buffers.size()) +
                    " buffers, intrinsic " + intrinsic_->name + " " +
                    std::to_string(theirs_.callee->buffers.size()));
    }
    std::string where;
    here_ = Computation(mine_);
    there_ = Computation(theirs_);
    if (!StructuralEqual(here_.func, there_.func, &where)) {
      Diagnostic d = OfNest("it does not compute what intrinsic " + intrinsic_->name + " does");
      const std::string operand = OtherOperand(*here_.func, *there_.func);
      d.notes.push_back(operand.empty() ? "they differ at " + where : operand);
      if (HasGuards(mine_.callee->body)) {
        d.notes.push_back(
            "the nest has conditions, since a size is no multiple of the tile; pad_einsum rounds "
            "sizes up");
      }
      return d;
    }
    if (FreestMode(intrinsic_->body) > StrictestMode(mine_.callee->body)) {
      return OfNest("intrinsic " + intrinsic_->name +
                    " rounds otherwise than the block's fp mode permits");
    }
    for (const Buffer& param : intrinsic_->buffers) {
      TN_RETURN_IF_ERROR(AddOperand(param));
    }
    BindScalars();
    return MakeCall();
  }

 private:
  Diagnostic OfNest(const std::string& reason) const { return OfBlock(blocks_, reason); }

  // The first operand of another type or shape.
  std::string OtherOperand(const PrimFunc& here, const PrimFunc& there) const {
    auto text = [](const BufferNode& b) { return ToString(MakeRef<BufferNode>(b)).substr(3); };
    for (size_t i = 0; i < here.buffers.size(); ++i) {
      const std::string mine = text(*here.buffers[i]), theirs = text(*there.buffers[i]);
      if (mine == theirs) continue;
      std::string out = "operand " + theirs_.call->buffers[i]->buffer->name;
      out += " of the intrinsic is " + theirs + ", what the nest touches of ";
      out += mine_.call->buffers[i]->buffer->name + " is " + mine;
      return out;
    }
    return "";
  }

  Status AddOperand(const Buffer& param) {
    for (size_t i = 0; i < theirs_.call->buffers.size(); ++i) {
      if (theirs_.call->buffers[i]->buffer != param) continue;
      const Region& region = mine_.call->buffers[i];
      TN_RETURN_IF_ERROR(CheckOperand(param, i, region));
      regions_.push_back(region);
      return Ok();
    }
    return Because("intrinsic " + intrinsic_->name + " does not use its operand " + param->name);
  }

  // Buffer i of both functions.
  Status CheckOperand(const Buffer& param, size_t i, const Region& region) {
    const std::string& name = region->buffer->name;
    if (param->layout) return Because("operand " + param->name + " has a layout of its own");
    if (param->scope != Scope::kGlobal && param->scope != region->buffer->scope) {
      return Because("buffer " + name + " is in " + Name(region->buffer->scope) + ", operand " +
                     param->name + " of intrinsic " + intrinsic_->name + " in " +
                     Name(param->scope));
    }
    if (std::count(placed_.begin(), placed_.end(), param->name) > 0) return Ok();
    const std::vector<size_t>& dims = here_.dims[i];
    const std::vector<Expr> wanted = Picked(StridesOf(*param), there_.dims[i]);
    const std::vector<Expr> here = Picked(StridesOf(*mine_.callee->buffers[i]), dims);
    TN_CHECK(here.size() == wanted.size());  // their computations are equal
    for (size_t d = 0; d < wanted.size(); ++d) {
      Expr stride = Simplify(Substitute(here[d], values_));
      const auto* var = As<VarNode>(wanted[d]);
      if (var != nullptr && !bound_.count(var)) {
        bound_[var] = stride;
        continue;
      }
      Expr want = Simplify(Substitute(wanted[d], bound_));
      if (StructuralEqual(want, stride)) continue;
      return Because("elements of " + name + " are " + ToString(NodeRef(stride)) +
                     " apart in dimension " + std::to_string(dims[d]) + " of the tile, intrinsic " +
                     intrinsic_->name + " expects " + ToString(NodeRef(want)));
    }
    return Ok();
  }

  // What both computations take from outside, in the order in which they met it.
  void BindScalars() {
    const VarMap theirs = ArgumentsOf(theirs_);
    for (size_t i = 0; i < there_.func->scalars.size(); ++i) {
      const auto* param = As<VarNode>(theirs.at(there_.func->scalars[i].get()));
      if (param) bound_[param] = values_.at(here_.func->scalars[i].get());
    }
  }

  Expected<Stmt> MakeCall() const {
    std::vector<Expr> scalars;
    std::vector<Var> params = intrinsic_->dims;
    params.insert(params.end(), intrinsic_->scalars.begin(), intrinsic_->scalars.end());
    for (const Var& v : params) {
      auto it = bound_.find(v.get());
      if (it == bound_.end()) {
        return Because("what " + v->name + " of intrinsic " + intrinsic_->name +
                       " is does not follow from its operands' strides");
      }
      scalars.push_back(it->second);
    }
    return CallFunc::Make(intrinsic_->name, regions_, std::move(scalars));
  }

  const Func& intrinsic_;
  const Names& placed_;
  const Outlined& mine_;
  const Outlined& theirs_;
  const std::string blocks_;
  Form here_, there_;  // what the two compute
  VarMap values_, bound_;
  std::vector<Region> regions_;
};

Func WithoutNotes(const Func& func) {
  PrimFunc fields = *func;
  fields.target = {};
  fields.attrs = {};
  return PrimFunc::Make(std::move(fields));
}

struct IntrinsicFuncs {
  Func pattern;  // what a nest is compared with
  Func meaning;  // what is called instead
};

// A function of the module, or a row of the table.
Expected<IntrinsicFuncs> FindIntrinsic(const Module& module, const std::string& name) {
  if (const TileIntrinsic* row = BuiltinTileIntrinsics().Find(name)) {
    IntrinsicFuncs out;
    TN_ASSIGN_OR_RETURN(out.pattern, PatternOf(*row));
    TN_ASSIGN_OR_RETURN(out.meaning, MeaningOf(*row));
    Func other = module.Find(name);
    if (!other || StructuralEqual(WithoutNotes(other), out.meaning)) return out;
    return Because("the module's function " + name + " is another than the intrinsic of that name");
  }
  Func func = module.Find(name);
  if (func && func->func_kind == FuncKind::kDevice) return IntrinsicFuncs{func, func};
  Diagnostic d = Because("no intrinsic is named " + QuoteJson(name));
  Names known;
  for (const TileIntrinsic& row : BuiltinTileIntrinsics().rows()) known.push_back(row.name);
  for (const auto& [other, f] : module.funcs) {
    if (f->func_kind == FuncKind::kDevice) known.push_back(other);
  }
  // Of its kind: "ptx.wgmma." for "ptx.wgmma.m64n256k16.f16".
  const size_t first = name.find('.');
  const size_t end = first == std::string::npos ? first : name.find('.', first + 1);
  Names kin;
  for (const std::string& other : known) {
    if (end != std::string::npos && other.starts_with(name.substr(0, end + 1)))
      kin.push_back(other);
  }
  std::string near = NearestWord(name, kin.empty() ? known : kin);
  if (!near.empty()) d.notes.push_back("did you mean " + near + "?");
  return d;
}

// The function with its operands in fragments, and tiles in shared memory, as what they look like.
Func WithoutLayouts(const Func& func, Names* placed) {
  BufferMap plain;
  PrimFunc fields = *func;
  for (Buffer& b : fields.buffers) {
    if (!IsFragment(*b) && !IsTile(*b)) continue;
    placed->push_back(b->name);
    auto param = MakeRef<BufferNode>(*b);
    param->layout = nullptr;
    plain[b.get()] = param;
    b = param;
  }
  if (plain.empty()) return func;
  fields.body = SubstituteBuffers(fields.body, plain);
  return PrimFunc::Make(std::move(fields));
}

Expected<Outlined> PatternAsNest(const Func& intrinsic) {
  const auto* loop = As<For>(intrinsic->body);
  if (loop == nullptr) return Because("intrinsic " + intrinsic->name + " is not one loop nest");
  Module module;
  module.Add(intrinsic);
  return OutlineOf(module, intrinsic, loop->var->name);
}

// What a pipelined nest has besides what it computes: the number of the iteration in its accesses
// becomes a variable of the block, and guards that say which iterations run it go around, where
// they tell what is touched.
State Unpiped(const State& s, const std::string& name, Expr* guard) {
  Body body(s.func);
  const Place* loop = body.FindLoop(name);
  const auto blocks = loop ? body.BlocksUnder(loop->stmt.get()) : std::vector<const Place*>{};
  if (blocks.size() != 1 || blocks[0]->inner || blocks[0]->block()->init) return s;
  std::unordered_set<const VarNode*> inside;
  for (const For* l : blocks[0]->LoopsInside(loop->stmt.get())) inside.insert(l->var.get());
  inside.insert(loop->loop()->var.get());
  Block block = *blocks[0]->block();
  for (const IterVar& v : block.iters) inside.insert(v->var.get());
  Expr stays;
  for (const Expr& c : Conjuncts(block.where)) {
    Expr* to = UsesAnyVar(c, inside) ? &stays : guard;
    *to = AndAlso(*to, c);
  }
  block.where = stays;
  for (const For* around : loop->Loops()) {
    if (!UsesVar(block.body, around->var.get())) continue;
    const bool spatial = BindsLoop(block, IterKind::kSpatial, around);
    const bool reduce = BindsLoop(block, IterKind::kReduce, around);
    const IterKind kind = spatial  ? IterKind::kSpatial
                          : reduce ? IterKind::kReduce
                                   : IterKind::kOrdered;
    Var v = VarNode::Make(body.NewVarName("v" + around->var->name));
    const VarMap own{{around->var.get(), v}};
    block.body = Substitute(block.body, own);
    for (Region& r : block.reads) r = Substitute(r, own);
    for (Region& r : block.writes) r = Substitute(r, own);
    block.iters.push_back(IterVarNode::Make(v, kind, around->min, around->extent, around->var));
  }
  State out = s;
  Stmt nest = Edit(loop->stmt, {{blocks[0]->stmt.get(), Stmt(Block::Make(std::move(block)))}});
  out.SetBody(Edit(body.root(), {{loop->stmt.get(), *guard ? If::Make(*guard, nest) : nest}}));
  return out;
}

}  // namespace

Result Tensorize(State& given, const std::string& name, const std::string& intrinsic_name) {
  Expr guard;
  State s = Unpiped(given, name, &guard);
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* loop, body.NeedLoop(name));
  TN_ASSIGN_OR_RETURN(IntrinsicFuncs intrinsic, FindIntrinsic(*s.module, intrinsic_name));
  Names placed;
  intrinsic.pattern = WithoutLayouts(intrinsic.pattern, &placed);
  TN_ASSIGN_OR_RETURN(Blockized made, MakeBlock(&body, *loop, ".tile", true));
  TN_ASSIGN_OR_RETURN(Outlined mine, OutlineOf(WithoutOutlined(*s.module), s.func, name));
  TN_ASSIGN_OR_RETURN(Outlined theirs, PatternAsNest(intrinsic.pattern));
  Names blocks;
  for (const Place* p : body.BlocksUnder(loop->stmt.get())) blocks.push_back(p->block()->name);
  TN_ASSIGN_OR_RETURN(Stmt call,
                      Matcher(intrinsic.pattern, placed, mine, theirs, Join(blocks, ", ")).Run());
  made.block.body = Substitute(call, made.inner);
  made.block.where = AndAlso(guard, made.block.where);
  std::string block = made.block.name;
  given.module->Add(intrinsic.meaning);
  const Stmt place = guard ? loop->path.back() : loop->stmt;
  given.SetBody(Edit(body.root(), {{place.get(), Block::Make(std::move(made.block))}}));
  return Names{block};
}

}  // namespace tenon::primitive
