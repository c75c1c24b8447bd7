// Statements as parse_stmt.cc reads them.
//
// A statement takes a line, or is put on the line of what holds it where that holds nothing else.
// Loops in a row that are plain (serial, no attributes) share one `for`; the rest of a list behind
// let, alloc and bind goes on at the same indentation, and braces are written only where the scope
// ends before the list does:
//
//   for i in 0..2, j in 0..8 {
//     alloc t: f32[4] in local {
//       t[0] = 1f32
//     }
//     let y = i * 2
//     v[y] = 0f32
//   }
//
// Bounds do not see the loop's variable and bindings not the block's, so names are declared exactly
// where the reader will declare them; else a name inside could hide what a bound means.

#include "loop/print.h"

#include <fmt/format.h>

#include "support/check.h"
#include "support/strings.h"

namespace tenon {

namespace {

// Writes statements. indent_ is that of the statement being written; names in scope are those that
// the reader will have in scope there.
class LoopPrinter : public IrPrinter {
 public:
  void Any(const NodeRef& node);
  void PrintFunc(const PrimFunc& f);

 private:
  void Line() { out_ += "\n" + std::string(static_cast<size_t>(indent_) * 2, ' '); }
  void Body(const Stmt& s);
  void InlineBody(const Stmt& s);
  void Statements(const Stmt& s);
  void Statement(const Stmt& s, bool last);
  template <class T>
  void Scoped(const T& s, const NodeRef& declared, const std::string& name, bool last);
  void Head(const Let& s);
  void Head(const Alloc& s);
  void Head(const Bind& s);
  void Print(const For& s);
  void Print(const If& s);
  void Print(const Store& s);
  void Print(const Block& s);
  void Print(const Launch& s);
  void Print(const CallFunc& s);
  void Print(const Assert& s);
  void Print(const Barrier& s);
  void Print(const Roles& s);
  void Print(const Atomic& s);
  void LoopAxis(const For& s);
  void Iter(const IterVarNode& iter);
  void BlockFlags(const Block& s);
  void Regions(const char* what, const std::vector<Region>& regions);
  void Arguments(const std::vector<Region>& buffers, const std::vector<Expr>& scalars);
  void Dims(const PrimFunc& f);
  void Params(const PrimFunc& f);
  void PrintAttrs(const Attrs& attrs) {
    if (!attrs.empty()) out_ += " " + attrs.ToString();
  }

  int indent_ = 0;
  std::unordered_map<const VarNode*, const For*> loops_;  // in scope
};

void LoopPrinter::Any(const NodeRef& node) {
  if (const auto* f = As<PrimFunc>(node)) {
    PrintFunc(*f);
  } else if (IsA<StmtNode>(node)) {
    Statements(Stmt(static_cast<const StmtNode*>(node.get())));
    if (!out_.empty()) out_.erase(0, 1);  // every statement starts with a line break
  } else if (const auto* iter = As<IterVarNode>(node)) {
    Iter(*iter);
  } else {
    PrintNode(node);
  }
}

// ---- functions ----

void LoopPrinter::Dims(const PrimFunc& f) {
  if (f.dims.empty()) return;
  out_ += "<";
  for (size_t i = 0; i < f.dims.size(); ++i) {
    const DimRange range = f.dim_range(i);
    out_ += (i ? ", " : "") + NameOf(f.dims[i], f.dims[i]->name);
    if (range == DimRange{}) continue;
    out_ += fmt::format(": {}..", range.lo);
    if (range.hi != -1) out_ += fmt::format("={}", range.hi);
    if (range.step != 1) out_ += fmt::format(" step {}", range.step);
  }
  out_ += ">";
}

void LoopPrinter::Params(const PrimFunc& f) {
  out_ += "(";
  const char* separator = "";
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    out_ += separator;
    if (static_cast<int64_t>(i) >= static_cast<int64_t>(f.buffers.size()) - f.num_outputs) {
      out_ += "out ";
    }
    PrintBufferDecl(*f.buffers[i]);
    separator = ", ";
  }
  for (const Var& v : f.scalars) {
    out_ += separator + NameOf(v, v->name) + ": " + v->dtype.ToString();
    separator = ", ";
  }
  out_ += ")";
}

void LoopPrinter::PrintFunc(const PrimFunc& f) {
  const size_t mark = Enter();
  for (const Var& v : f.dims) Declare(v, v->name);
  for (const Buffer& b : f.buffers) Declare(b, b->name);
  for (const Var& v : f.scalars) Declare(v, v->name);
  out_ += "func @" + WordText(f.name);
  Dims(f);
  Params(f);
  if (f.func_kind != FuncKind::kKernel) out_ += fmt::format(" kind {}", Name(f.func_kind));
  if (f.target) out_ += " target " + QuoteJson(f.target.text());
  PrintAttrs(f.attrs);
  out_ += " ";
  Body(f.body);
  out_ += "\n";
  Leave(mark);
}

// ---- statements ----

void LoopPrinter::Body(const Stmt& s) {
  const size_t mark = Enter();
  out_ += "{";
  ++indent_;
  Statements(s);
  --indent_;
  Line();
  out_ += "}";
  Leave(mark);
}

// `{ statement }` on one line where the statement itself takes one.
void LoopPrinter::InlineBody(const Stmt& s) {
  if (!IsA<Store>(s) && !IsA<Evaluate>(s)) {
    Body(s);
    return;
  }
  out_ += "{ ";
  const size_t begin = out_.size();
  Statement(s, /*last=*/true);
  const size_t text = out_.find_first_not_of("\n ", begin);
  out_.erase(begin, text - begin);
  out_ += " }";
}

void LoopPrinter::Statements(const Stmt& s) {
  const auto* seq = As<Seq>(s);
  if (!seq) {
    Statement(s, /*last=*/true);
    return;
  }
  for (size_t i = 0; i < seq->stmts.size(); ++i) {
    Statement(seq->stmts[i], i + 1 == seq->stmts.size());
  }
}

// let, alloc and bind hold the rest of their scope as their body: the last of a list goes on at the
// same indentation.
template <class T>
void LoopPrinter::Scoped(const T& s, const NodeRef& declared, const std::string& name, bool last) {
  const size_t mark = Enter();
  Declare(declared, name);
  Head(s);
  if (last) {
    Statements(s.body);  // the enclosing braces end the scope
    return;
  }
  out_ += " ";
  Body(s.body);
  Leave(mark);
}

void LoopPrinter::Head(const Let& s) {
  out_ += "let " + NameOf(s.var, s.var->name) + " = ";
  PrintExpr(s.value);
}

void LoopPrinter::Head(const Alloc& s) {
  out_ += "alloc ";
  PrintBufferDecl(*s.buffer);
}

void LoopPrinter::Head(const Bind& s) {
  out_ += "bind ";
  PrintBufferDecl(*s.buffer);
  out_ += " = ";
  PrintExpr(s.data);
}

void LoopPrinter::Statement(const Stmt& s, bool last) {
  Line();
  if (!s) {
    out_ += "<null>";
    return;
  }
  switch (s->kind) {
    case NodeKind::kSeq: return Body(s);  // only in a list that Seq::Make did not flatten
    case NodeKind::kFor: return Print(*As<For>(s));
    case NodeKind::kIf: return Print(*As<If>(s));
    case NodeKind::kWhile:
      out_ += "while ";
      PrintExpr(As<While>(s)->condition);
      out_ += " ";
      return Body(As<While>(s)->body);
    case NodeKind::kLet: return Scoped(*As<Let>(s), As<Let>(s)->var, As<Let>(s)->var->name, last);
    case NodeKind::kAlloc:
      return Scoped(*As<Alloc>(s), As<Alloc>(s)->buffer, As<Alloc>(s)->buffer->name, last);
    case NodeKind::kBind:
      return Scoped(*As<Bind>(s), As<Bind>(s)->buffer, As<Bind>(s)->buffer->name, last);
    case NodeKind::kStore: return Print(*As<Store>(s));
    case NodeKind::kBlock: return Print(*As<Block>(s));
    case NodeKind::kEvaluate: return PrintExpr(As<Evaluate>(s)->call);
    case NodeKind::kCallFunc: return Print(*As<CallFunc>(s));
    case NodeKind::kLaunch: return Print(*As<Launch>(s));
    case NodeKind::kCopy:
      out_ += "copy ";
      PrintRegion(*As<Copy>(s)->dst);
      out_ += " from ";
      return PrintRegion(*As<Copy>(s)->src);
    case NodeKind::kAssert: return Print(*As<Assert>(s));
    case NodeKind::kReturn:
      out_ += "return";
      if (As<Return>(s)->value) {
        out_ += " ";
        PrintExpr(As<Return>(s)->value);
      }
      return;
    case NodeKind::kSync: out_ += fmt::format("sync {}", Name(As<Sync>(s)->level)); return;
    case NodeKind::kBarrier: return Print(*As<Barrier>(s));
    case NodeKind::kRoles: return Print(*As<Roles>(s));
    case NodeKind::kAtomic: return Print(*As<Atomic>(s));
    default: TN_UNREACHABLE();  // the kinds that are no statements
  }
}

// ---- loops and branches ----

void LoopPrinter::LoopAxis(const For& s) {
  // The bounds do not see the loop's variable, so they are written before it is declared.
  std::string before = std::move(out_);
  out_.clear();
  PrintRange(s.min, s.extent, /*point=*/false);
  std::string range = std::exchange(out_, std::move(before));
  Declare(s.var, s.var->name);
  loops_[s.var.get()] = &s;
  out_ += NameOf(s.var, s.var->name);
  if (!s.var->dtype.IsIndex()) out_ += ": " + s.var->dtype.ToString();
  out_ += " in " + range;
}

static bool IsPlainLoop(const For& s) { return s.for_kind == ForKind::kSerial && s.attrs.empty(); }

void LoopPrinter::Print(const For& s) {
  const size_t mark = Enter();
  out_ += "for ";
  LoopAxis(s);
  const For* inner = &s;
  while (IsPlainLoop(*inner) && IsA<For>(inner->body) && IsPlainLoop(*As<For>(inner->body))) {
    inner = As<For>(inner->body);
    out_ += ", ";
    LoopAxis(*inner);
  }
  if (inner->for_kind != ForKind::kSerial) out_ += fmt::format(" {}", Name(inner->for_kind));
  if (inner->for_kind == ForKind::kThread) out_ += " " + WordText(Name(inner->thread));
  PrintAttrs(inner->attrs);
  out_ += " ";
  Body(inner->body);
  Leave(mark);
}

void LoopPrinter::Print(const If& s) {
  const If* at = &s;
  for (;;) {
    out_ += "if ";
    PrintExpr(at->condition);
    out_ += " ";
    Body(at->then_body);
    if (!at->else_body) return;
    out_ += " else ";
    if (!IsA<If>(at->else_body)) break;
    at = As<If>(at->else_body);
  }
  Body(at->else_body);
}

void LoopPrinter::Print(const Store& s) {
  PrintAccess(s.buffer, s.indices, s.mask);
  out_ += " = ";
  PrintExpr(s.value);
}

// ---- blocks ----

void LoopPrinter::Iter(const IterVarNode& iter) {
  out_ += NameOf(iter.var, iter.var->name) + ": " + Name(iter.iter_kind);
  if (!iter.var->dtype.IsIndex()) out_ += " " + iter.var->dtype.ToString();
  auto it = loops_.find(As<VarNode>(iter.binding));
  const bool as_loop = it != loops_.end() && StructuralEqual(it->second->min, iter.min) &&
                       StructuralEqual(it->second->extent, iter.extent);
  if (!as_loop) {
    out_ += " in ";
    PrintRange(iter.min, iter.extent, /*point=*/false);
  }
  out_ += " = ";
  PrintExpr(iter.binding);
}

void LoopPrinter::BlockFlags(const Block& s) {
  if (s.where) {
    out_ += " where ";
    PrintExpr(s.where);
  }
  if (s.fp != FpMode::kStrict) out_ += fmt::format(" fp: {}", Name(s.fp));
  if (s.at != Level::kThread) out_ += fmt::format(" at: {}", Name(s.at));
  if (s.async) out_ += " async";
  if (s.opaque) out_ += " opaque";
  if (!s.exact) out_ += " conservative";
  if (!s.reducer.empty()) out_ += " reducer: " + WordText(s.reducer);
  PrintAttrs(s.attrs);
}

void LoopPrinter::Regions(const char* what, const std::vector<Region>& regions) {
  out_ += what;
  for (size_t i = 0; i < regions.size(); ++i) {
    out_ += i ? ", " : " ";
    PrintRegion(*regions[i]);
  }
}

void LoopPrinter::Print(const Block& s) {
  const size_t mark = Enter();
  out_ += "block " + WordText(s.name) + "(";
  // A binding sees the loops outside, not the block's variables; their names are all taken first,
  // so that none hides what a binding means.
  for (const IterVar& iter : s.iters) Declare(iter->var, iter->var->name);
  for (size_t i = 0; i < s.iters.size(); ++i) {
    if (i) out_ += ", ";
    Iter(*s.iters[i]);
  }
  out_ += ")";
  BlockFlags(s);
  out_ += " {";
  ++indent_;
  if (!s.reads.empty() || !s.writes.empty()) {
    Line();
    if (!s.reads.empty()) Regions("reads", s.reads);
    if (!s.reads.empty() && !s.writes.empty()) out_ += "; ";
    if (!s.writes.empty()) Regions("writes", s.writes);
  }
  if (s.init) {
    Line();
    out_ += "init ";
    InlineBody(s.init);
  }
  Statements(s.body);
  --indent_;
  Line();
  out_ += "}";
  Leave(mark);
}

// ---- calls and the rest ----

void LoopPrinter::Arguments(const std::vector<Region>& buffers, const std::vector<Expr>& scalars) {
  out_ += "(";
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (i) out_ += ", ";
    PrintRegion(*buffers[i]);
  }
  if (!scalars.empty()) {
    out_ += buffers.empty() ? "; " : "; ";
    PrintList(scalars);
  }
  out_ += ")";
}

void LoopPrinter::Print(const CallFunc& s) {
  out_ += "call @" + WordText(s.callee);
  Arguments(s.buffers, s.scalars);
}

void LoopPrinter::Print(const Launch& s) {
  out_ += "launch @" + WordText(s.kernel);
  Arguments(s.buffers, s.scalars);
  out_ += " on " + WordText(s.place.ToString());
  PrintAttrs(s.attrs);
}

void LoopPrinter::Print(const Assert& s) {
  out_ += "assert ";
  PrintExpr(s.condition);
  out_ += ", " + QuoteJson(s.error_kind);
  for (const Expr& part : s.parts) {
    out_ += ", ";
    PrintExpr(part);
  }
}

void LoopPrinter::Print(const Barrier& s) {
  out_ += fmt::format("{} ", Name(s.op));
  PrintAccess(s.buffer, s.indices, nullptr);
  if (s.value) {
    out_ += ", ";
    PrintExpr(s.value);
  }
}

void LoopPrinter::Print(const Roles& s) {
  out_ += "roles {";
  ++indent_;
  for (size_t i = 0; i < s.names.size(); ++i) {
    Line();
    out_ += fmt::format("role {} size {} ", WordText(s.names[i]), s.sizes[i]);
    if (s.registers[i] != 0) out_ += fmt::format("registers {} ", s.registers[i]);
    Body(s.bodies[i]);
  }
  --indent_;
  Line();
  out_ += "}";
}

void LoopPrinter::Print(const Atomic& s) {
  out_ += fmt::format("atomic {} ", Info(s.op).text);
  PrintAccess(s.buffer, s.indices, nullptr);
  out_ += ", ";
  PrintExpr(s.value);
  out_ += fmt::format(" {} at {}", Name(s.order), Name(s.scope));
}

}  // namespace

std::string Print(const NodeRef& node) {
  LoopPrinter printer;
  printer.Any(node);
  return printer.Take();
}

std::string Print(const Module& module) {
  std::string out;
  if (!module.attrs.empty()) out += "module " + module.attrs.ToString() + "\n\n";
  for (const auto& [name, f] : module.funcs) {
    if (!out.empty() && !out.ends_with("\n\n")) out += "\n";
    out += Print(f);
  }
  return out;
}

}  // namespace tenon
