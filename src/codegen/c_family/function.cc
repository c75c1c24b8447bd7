// One function as text, and its control flow.
//
// Statements are written as they come, a line each; the IR's names are kept where the language lets
// them be, and a name is free again where its braces end. What differs between C, CUDA and OpenCL
// is asked of tables (language.h): how a barrier, a thread's place on an axis, a qualifier is
// written; a null entry is a construct that the language does not have, and an error that names it.
//
//   for bx in 0..(n + 511) / 512 thread blockIdx.x {
//     for tx in 0..128 thread threadIdx.x {
//       let i = bx * 512 + tx * 4
//       if i < n { … }
//
// becomes
//
//   extern "C" __global__ __launch_bounds__(128) void add(…, int64_t n_64) {
//     const int32_t n = (int32_t)n_64;
//     const int32_t bx = (int32_t)blockIdx.x;
//     const int32_t tx = (int32_t)threadIdx.x;
//     const int32_t i = bx * 512 + tx * 4;
//     if (i < n) { … }
//
// Indices come in with 64 bits and are computed with what the function was found to need.

#include "codegen/c_family/function.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>

#include "codegen/abi.h"
#include "codegen/c_family/exchanged.h"
#include "loop/edit.h"
#include "loop/facts.h"
#include "loop/threads.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon::codegen {

namespace {

constexpr size_t kMostColumns = 100;

bool EndsInReturn(Stmt s) {
  for (;;) {
    if (const auto* seq = As<Seq>(s)) {
      if (seq->stmts.empty()) return false;
      s = Stmt(seq->stmts.back());
    } else if (const auto* let = As<Let>(s)) {
      s = Stmt(let->body);
    } else if (const auto* alloc = As<Alloc>(s)) {
      s = Stmt(alloc->body);
    } else if (const auto* bind = As<Bind>(s)) {
      s = Stmt(bind->body);
    } else {
      return IsA<Return>(s);
    }
  }
}

}  // namespace

const std::set<const BufferNode*>& WrittenBuffers::Of(const PrimFunc& func) {
  auto [place, fresh] = known_.try_emplace(&func);
  if (!fresh) return place->second;
  std::set<const BufferNode*> written;
  PreOrder(func.body, [&](const NodeRef& n) {
    if (const auto* s = As<Store>(n)) written.insert(s->buffer.get());
    if (const auto* s = As<Atomic>(n)) written.insert(s->buffer.get());
    if (const auto* s = As<Copy>(n)) written.insert(s->dst->buffer.get());
    if (const auto* c = As<Call>(n); c && c->intrinsic == Intrinsic::kBufferData) {
      if (const auto* load = As<Load>(c->args[0])) written.insert(load->buffer.get());
    }
    if (const auto* s = As<CallFunc>(n)) {
      Func callee = module_.Find(s->callee);
      for (size_t i = 0; i < s->buffers.size(); ++i) {
        const bool reads =
            callee && i < callee->buffers.size() && !Of(*callee).contains(callee->buffers[i].get());
        if (!reads) written.insert(s->buffers[i]->buffer.get());
      }
    }
    return true;
  });
  if (func.attrs.Has("plain")) {
    // It passes addresses on, by a closure; what its callee does is known from the signature.
    const size_t inputs = func.buffers.size() - static_cast<size_t>(func.num_outputs);
    for (size_t i = 0; i < inputs; ++i) written.erase(func.buffers[i].get());
  }
  return known_[&func] = std::move(written);
}

SourceFunction::SourceFunction(SourceModule& module, const PrimFunc& func, const Language& language,
                               Helpers* helpers, WrittenBuffers* written, FunctionForm form)
    : module_(module),
      func_(func),
      language_(language),
      written_(*written),
      names_(language.reserved_words),
      values_(language, helpers),
      exprs_(module, func, values_, names_),
      form_(std::move(form)) {
  values_.SetIndexBits(form_.index_bits);
  FindUses();
  BindParams();
}

void SourceFunction::FindUses() {
  PreOrder(func_.body, [&](const NodeRef& n) {
    if (IsA<BufferNode>(n)) return false;  // its shape is not looked at
    if (IsA<VarNode>(n)) used_.insert(n.get());
    if (const auto* load = As<Load>(n)) used_.insert(load->buffer.get());
    if (const auto* region = As<RegionNode>(n)) used_.insert(region->buffer.get());
    if (const auto* atomic = As<Atomic>(n)) used_.insert(atomic->buffer.get());
    // What is called keeps its name: nothing here may hide it.
    const auto* call = As<CallFunc>(n);
    if (const Func callee = call ? module_.Find(call->callee) : nullptr)
      names_.Reserve(module_.NameOf(*callee));
    const auto* of_c = As<Call>(n);
    if (of_c && of_c->intrinsic == Intrinsic::kExtern) {
      if (const auto* name = As<StringConst>(of_c->args[0])) names_.Reserve(name->value);
    }
    return true;
  });
}

std::string SourceFunction::PointerTo(const Buffer& buffer) {
  const bool writes = written_.Of(func_).contains(buffer.get());
  const std::string space = exprs_.IsBound(buffer) ? exprs_.SpaceOf(buffer) : "";
  return (writes ? "" : "const ") + space + values_.MemoryTypeName(buffer->dtype) + "*";
}

void SourceFunction::BindParams() {
  const bool distinct = func_.attrs.Get<bool>("noalias", false);
  // The function's own name stays what it is inside, for calls of itself and for people.
  if (form_.name.empty()) form_.name = module_.NameOf(func_);
  names_.Reserve(form_.name);
  const auto exchanged = ExchangedBuffers(func_);
  for (size_t i = 0; i < func_.buffers.size(); ++i) {
    const Buffer& b = func_.buffers[i];
    if (BindTensorMap(b)) continue;
    const std::string name = Declare(b->name);
    const bool restricted = distinct && !exchanged.contains(b.get());
    exprs_.BindBuffer(b.get(), {name, /*is_private=*/false, distinct, 0,
                                form_.spaces.empty() ? "" : form_.spaces[i]});
    const std::string word = restricted ? std::string(language_.restrict_word) + " " : "";
    params_.push_back(fmt::format("{} {}{}", PointerTo(b), word, name));
  }
  Learn(func_, &exprs_.facts());
  for (size_t i = 0; i < func_.dims.size(); ++i) {
    exprs_.BindVar(func_.dims[i].get(), BindIndex(func_.dims[i]));
  }
  for (const Var& v : func_.scalars) BindScalar(v);
}

// Which buffers lie where the parameter points: those of stages, in a kernel that has no such
// memory on its machine.
static std::string MemoryBehind(const PrimFunc& func, const VarNode& var) {
  std::vector<std::string> names;
  PreOrder(func.body, [&](const NodeRef& n) {
    const auto* bind = As<Bind>(n);
    if (bind && UsesVar(bind->data, &var)) names.push_back("'" + bind->buffer->name + "'");
    return !IsA<ExprNode>(n);
  });
  if (names.empty()) return "";
  return fmt::format(
      ", by which the kernel would have {} in global memory for itself: bind loops "
      "around it to blocks, or give it the scope local or shared",
      Join(names, ", "));
}

// A bool takes a byte of a kernel's parameters.
void SourceFunction::BindScalar(const Var& var) {
  if (var->dtype.IsIndex()) return exprs_.BindVar(var.get(), BindIndex(var));
  const bool in_memory = language_.gpu && func_.func_kind == FuncKind::kKernel;
  const std::string type =
      in_memory ? values_.MemoryTypeName(var->dtype) : values_.TypeName(var->dtype);
  if (type.empty()) {
    Unsupported("parameters of type " + var->dtype.ToString() + MemoryBehind(func_, *var));
  }
  const std::string name = Declare(var->name);
  params_.push_back(type + " " + name);
  exprs_.BindVar(var.get(), name);
}

// The signature's indices have 64 bits whatever the function computes with.
std::string SourceFunction::BindIndex(const Var& var) {
  const std::string name = Declare(var->name);
  const bool narrows = form_.index_bits < 64 && used_.contains(var.get());
  const std::string param = narrows ? Declare(var->name + "_64") : name;
  params_.push_back(std::string(language_.TypeName(DType::Index())) + " " + param);
  const std::string type = values_.TypeName(DType::Index());
  if (narrows) narrowed_.push_back(fmt::format("const {0} {1} = ({0}){2};", type, name, param));
  return name;
}

std::string SourceFunction::Signature(size_t before) {
  const std::string head =
      std::string(ReturnsStatus(func_) ? "int32_t " : "void ") + form_.name + "(";
  if (params_.empty()) return head + "void)";
  std::string line = head + Join(params_, ", ") + ")";
  if (line.size() + before <= kMostColumns) return line;
  std::string out = head;
  size_t column = out.size() + before;
  for (size_t i = 0; i < params_.size(); ++i) {
    const std::string piece = params_[i] + (i + 1 < params_.size() ? "," : ")");
    if (column + piece.size() + 1 > kMostColumns) {
      out += "\n    ";
      column = 4;
    } else if (i > 0) {
      out += " ";
      ++column;
    }
    out += piece;
    column += piece.size();
  }
  return out;
}

std::string SourceFunction::Emit(const std::string& qualifiers) {
  out_ = qualifiers + (qualifiers.empty() ? "" : " ") +
         Signature(std::max<size_t>(10, qualifiers.size() + 1)) + " {\n";
  auto unused = [&](const Node* node, const std::string& name) {
    if (!used_.contains(node)) Line(fmt::format("(void){};", name));
  };
  for (const Buffer& b : func_.buffers) {
    if (!written_.Of(func_).contains(b.get())) unused(b.get(), exprs_.NameOf(b));
  }
  for (const Var& v : func_.dims) unused(v.get(), exprs_.NameOf(v));
  for (const Var& v : func_.scalars) unused(v.get(), exprs_.NameOf(v));
  for (const std::string& line : narrowed_) Line(line);
  FetchTensorMaps();
  exprs_.SetFpMode(fp_);
  if (language_.gpu && language_.gpu->shared_first && func_.func_kind == FuncKind::kKernel)
    DeclareShared();
  const TileIntrinsic* row = IntrinsicOf(func_);
  if (row != nullptr && language_.gpu) {
    EmitWarpOperation(*row->EmissionOf(Emission::Kind::kCuda));
    return out_ + "}\n";
  }
  if (row != nullptr) BeginTileIntrinsic(*row->EmissionOf(Emission::Kind::kC));
  EmitStmt(func_.body);
  if (ReturnsStatus(func_) && !EndsInReturn(func_.body)) Line("return 0;");
  return out_ + "}\n";
}

// The operation where the compiler knows it, else its meaning, which follows. (Not behind #else:
// helpers that are used there alone would be reported as unused.)
void SourceFunction::BeginTileIntrinsic(const Emission& emission) {
  fmt::dynamic_format_arg_store<fmt::format_context> names;
  for (const Buffer& b : func_.buffers) names.push_back(exprs_.NameOf(b));
  out_ += fmt::format("#if defined({})\n", emission.macro);
  Line(fmt::vformat(emission.text, names));
  Line("return;");
  out_ += "#endif\n";
}

void SourceFunction::EmitWarpOperation(const Emission& emission) {
  fmt::dynamic_format_arg_store<fmt::format_context> names;
  for (const Buffer& b : func_.buffers) names.push_back(exprs_.NameOf(b));
  for (const Var& v : func_.dims) names.push_back(exprs_.NameOf(v));
  for (const Var& v : func_.scalars) names.push_back(exprs_.NameOf(v));
  Line(fmt::vformat(emission.text, names));
}

// ---- lines and scopes ----

void SourceFunction::Line(const std::string& text) {
  out_ += std::string(static_cast<size_t>(2 * indent_), ' ') + text + "\n";
}

void SourceFunction::OpenBlock(const std::string& head) {
  Line(head.empty() ? "{" : head + " {");
  ++indent_;
  scopes_.emplace_back();
}

void SourceFunction::CloseBlock(const std::string& tail) {
  for (const std::string& name : scopes_.back().names) names_.Give(name);
  scopes_.pop_back();
  --indent_;
  Line(tail);
}

std::string SourceFunction::Declare(const std::string& wanted) {
  std::string name = names_.Take(wanted);
  scopes_.back().names.push_back(name);
  return name;
}

// ---- control ----

void SourceFunction::EmitStmt(const Stmt& s) {
  switch (s->kind) {
    case NodeKind::kSeq: return EmitSeq(*As<Seq>(s));
    case NodeKind::kFor: return EmitFor(*As<For>(s));
    case NodeKind::kIf: return EmitIf(*As<If>(s));
    case NodeKind::kWhile: return EmitWhile(*As<While>(s));
    case NodeKind::kLet: return EmitLet(*As<Let>(s));
    case NodeKind::kAlloc: return EmitAlloc(*As<Alloc>(s));
    case NodeKind::kBind: return EmitBind(*As<Bind>(s));
    case NodeKind::kStore: {
      const auto& store = *As<Store>(s);
      std::vector<Expr> roots = store.indices;
      roots.insert(roots.end(), {store.value, store.mask});
      Begin(roots);
      exprs_.EmitStore(store.buffer, store.indices, store.value, store.mask);
      return Flush();
    }
    case NodeKind::kBlock: return EmitBlock(*As<Block>(s));
    case NodeKind::kEvaluate: return EmitEvaluate(*As<Evaluate>(s));
    case NodeKind::kCallFunc: return EmitCall(*As<CallFunc>(s));
    case NodeKind::kCopy: return EmitCopy(*As<Copy>(s));
    case NodeKind::kAssert: return EmitAssert(*As<Assert>(s));
    case NodeKind::kReturn: return EmitReturn(*As<Return>(s));
    case NodeKind::kSync: return EmitSync(As<Sync>(s)->level);
    case NodeKind::kAtomic: return EmitAtomic(*As<Atomic>(s));
    case NodeKind::kBarrier: return EmitBarrier(*As<Barrier>(s));
    case NodeKind::kRoles: return EmitRoles(*As<Roles>(s));
    default: return Unsupported(std::string(Name(s->kind)) + " in code generation");
  }
}

// An allocation that is not the last has a block of its own, so that the next takes its place.
void SourceFunction::EmitSeq(const Seq& s) {
  for (const Stmt& x : s.stmts) {
    const bool own_block = IsA<Alloc>(x) && x.get() != s.stmts.back().get();
    if (own_block) OpenBlock("");
    EmitStmt(x);
    if (own_block) CloseBlock();
  }
}

void SourceFunction::EmitSync(Level level) {
  if (language_.gpu && level == Level::kCta) return Line(language_.gpu->sync_cta);
  if (language_.gpu && level == Level::kWarp && language_.gpu->sync_warp)
    return Line(language_.gpu->sync_warp);
  if (language_.gpu && level == Level::kCluster && language_.gpu->sync_cluster)
    return Line(language_.gpu->sync_cluster);
  if (language_.gpu && level == Level::kGrid && language_.gpu->sync_grid)
    return Line(language_.gpu->sync_grid);
  const bool on_cpu = level == Level::kWorker || level == Level::kTeam;
  if (level == Level::kThread || (on_cpu && !language_.gpu)) return;
  Unsupported(std::string("sync ") + Name(level) + " in code generation");
}

// A launch's blocks along a dimension are those of its clusters, one cluster after the other.
std::string SourceFunction::PlaceOnAxis(const For& s, const char* text) const {
  if (!IsBlockAxis(s.thread)) return text;
  const int dim = Info(s.thread).dim;
  for (const For* loop : PeelThreads(func_).axes) {
    if (!IsClusterAxis(loop->thread) || Info(loop->thread).dim != dim) continue;
    return fmt::format("({} {} {})", text, IsClusterAxis(s.thread) ? '%' : '/',
                       AsInt(loop->extent).value_or(1));
  }
  return text;
}

void SourceFunction::EmitThreadFor(const For& s) {
  for (const AxisSpelling& row : language_.gpu->axes) {
    if (s.thread != row.axis) continue;
    const std::string name = Declare(s.var->name), type = values_.TypeName(s.var->dtype);
    Line(fmt::format("const {0} {1} = ({0}){2};", type, name, PlaceOnAxis(s, row.text)));
    exprs_.BindVar(s.var.get(), name);
    Learn(s, &exprs_.facts());
    return EmitStmt(s.body);
  }
  Unsupported(std::string("the thread axis ") + Name(s.thread) + " in code generation");
}

// As many as a thread can have, of 32 bits.
static constexpr int64_t kThreadRegisters = 255;

static bool FitsRegisters(const BufferNode& b) {
  if (!IsThreadArray(b.scope)) return false;
  int64_t bytes = b.dtype.Bytes();
  for (const Expr& extent : b.shape) {
    bytes *= std::min(AsInt(extent).value_or(1), kThreadRegisters * 4 + 1);
    if (bytes > kThreadRegisters * 4) return false;
  }
  return true;
}

// Registers have no addresses: what indexes them must be a constant once loops are unrolled. What
// they cannot hold lies in memory, and its loops stay loops.
bool SourceFunction::IndexesRegisters(const For& s) const {
  constexpr int64_t kMostCalls = 32;  // of one that is in the loop: long ones count versions
  const int64_t extent = AsInt(s.extent).value_or(INT64_MAX);
  if (!language_.unroll || extent > kThreadRegisters * 4) return false;
  bool found = false;
  auto names = [&](const Buffer& b, const std::vector<Expr>& indices) {
    if (!FitsRegisters(*b)) return;
    for (const Expr& e : indices) {
      PreOrder(e, [&](const NodeRef& n) { return !(found |= n.get() == s.var.get()); });
    }
  };
  PreOrder(s.body, [&](const NodeRef& n) {
    if (const auto* load = As<Load>(n)) names(load->buffer, load->indices);
    if (const auto* store = As<Store>(n)) names(store->buffer, store->indices);
    const auto* region = extent <= kMostCalls ? As<RegionNode>(n) : nullptr;
    if (region) {
      for (const Range& r : region->ranges) names(region->buffer, {r->min});
    }
    return !found;
  });
  return found;
}

// Whether the loop has a barrier inside and, as its last statement, a branch.
static bool HasBarrierAndEndsInBranch(const For& s) {
  const Stmt* last = &s.body;
  while (true) {
    if (const auto* seq = As<Seq>(*last)) {
      last = &seq->stmts.back();
    } else if (const auto* alloc = As<Alloc>(*last)) {
      last = &alloc->body;
    } else if (const auto* let = As<Let>(*last)) {
      last = &let->body;
    } else {
      break;
    }
  }
  if (!IsA<If>(*last)) return false;
  return AnyStmt(s.body, [](const NodeRef& n) {
    const auto* sync = As<Sync>(n);
    return sync && sync->level == Level::kCta;
  });
}

void SourceFunction::EmitFor(const For& s) {
  if (s.for_kind == ForKind::kThread && language_.gpu) return EmitThreadFor(s);
  if (s.for_kind != ForKind::kSerial) {
    return Unsupported(std::string(Name(s.for_kind)) + " loop " + s.var->name +
                       " in code generation");
  }
  Begin({s.min, s.extent});
  const bool from_zero = IsZero(s.min);
  SourceText first = exprs_.Emit(s.min, /*once=*/!from_zero);
  SourceText end = exprs_.Emit(s.extent, /*once=*/true);
  if (!from_zero) end = values_.Binary(BinaryOp::kAdd, s.var->dtype, first, end, false);
  Flush();
  Learn(s, &exprs_.facts());
  const std::string name = names_.Take(s.var->name);
  exprs_.BindVar(s.var.get(), name);
  if (IndexesRegisters(s)) Line(language_.unroll);
  OpenBlock(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1})", values_.TypeName(s.var->dtype),
                        name, first.text, end.As(Binding::kAdd)));
  scopes_.back().names.push_back(name);
  EmitStmt(s.body);
  if (language_.gpu && language_.gpu->barrier_ends_loop && HasBarrierAndEndsInBranch(s))
    EmitSync(Level::kCta);
  CloseBlock();
}

void SourceFunction::EmitIf(const If& s) {
  Begin({s.condition});
  SourceText condition = exprs_.Emit(s.condition);
  Flush();
  OpenBlock(fmt::format("if ({})", condition.text));
  EmitStmt(s.then_body);
  if (s.else_body) {
    CloseBlock("} else {");
    ++indent_;
    scopes_.emplace_back();
    EmitStmt(s.else_body);
  }
  CloseBlock();
}

void SourceFunction::EmitWhile(const While& s) {
  exprs_.Begin(indent_ + 1, {s.condition});
  SourceText condition = exprs_.Emit(s.condition);
  const std::string lines = exprs_.TakeLines();
  OpenBlock(lines.empty() ? fmt::format("while ({})", condition.text) : "for (;;)");
  if (!lines.empty()) {
    out_ += lines;
    Line(fmt::format("if (!{}) break;", condition.As(Binding::kUnary)));
  }
  EmitStmt(s.body);
  CloseBlock();
}

void SourceFunction::DefineVar(const Var& var, const Expr& value) {
  Begin({value});
  const std::string type = values_.TypeName(value->dtype);
  if (value->dtype.IsVector()) {
    const std::string name = Declare(var->name);
    exprs_.Line(fmt::format("{} {}[{}];", type, name, value->dtype.lanes));
    exprs_.EmitLanes(value, name);
    Flush();
    exprs_.BindVar(var.get(), name);
  } else {
    SourceText v = exprs_.Emit(value);
    Flush();
    const std::string name = Declare(var->name);
    Line(fmt::format("{} {} = {};", value->dtype.IsHandle() ? type + " const" : "const " + type,
                     name, v.text));
    exprs_.BindVar(var.get(), name);
  }
  if (!used_.contains(var.get())) Line(fmt::format("(void){};", exprs_.NameOf(var)));
  if (var->dtype.IsIndex()) LearnValue(var, value, &exprs_.facts());
}

void SourceFunction::EmitLet(const Let& s) {
  DefineVar(s.var, s.value);
  EmitStmt(s.body);
}

// A marker is a block whose variables, if any, only name values; the fp mode is that of the
// innermost block.
void SourceFunction::EmitBlock(const Block& s) {
  if (s.init || s.where || s.async) return Unsupported("block " + s.name + " in code generation");
  for (const IterVar& v : s.iters) DefineVar(v->var, v->binding);
  const FpMode outer = fp_;
  fp_ = s.fp;
  exprs_.SetFpMode(fp_);
  EmitStmt(s.body);
  fp_ = outer;
  exprs_.SetFpMode(fp_);
}

void SourceFunction::EmitReturn(const Return& s) {
  if (!ReturnsStatus(func_)) return Line("return;");
  Begin({s.value});
  const std::string value = s.value ? exprs_.Emit(s.value).text : "0";
  Flush();
  Line(fmt::format("return {};", value));
}

}  // namespace tenon::codegen
