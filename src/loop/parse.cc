#include "loop/parse.h"

#include "loop/parse_impl.h"

namespace tenon {

Expected<Module> ParseModule(std::string_view text, const std::string& file) {
  return LoopParser(text, file).WholeModule();
}

Expected<Func> ParseFunc(std::string_view text, const std::string& file) {
  TN_ASSIGN_OR_RETURN(Module module, ParseModule(text, file));
  if (module.funcs.size() != 1) {
    return MakeError(fmt::format("expected one function but got {}", module.funcs.size()), {file});
  }
  return module.funcs.begin()->second;
}

Expected<Module> LoopParser::WholeModule() {
  Module module;
  while (errors_.size() < kMaxErrors && Peek().kind != TokenKind::kEnd) {
    const Token start = Peek();
    try {
      TakeModuleItem(&module);
    } catch (const Abort&) {
      Leave(0);
      wraps_ = 0;
      // The next function starts a line; what stands between belongs to the broken one.
      if (Peek().line == start.line && Peek().column == start.column) Take();
      while (Peek().kind != TokenKind::kEnd && !(Peek().starts_line && At("func"))) Take();
    }
  }
  if (!errors_.empty()) return errors_;
  return module;
}

void LoopParser::TakeModuleItem(Module* module) {
  const Token at = Peek();
  if (Accept("module")) {
    if (!module->attrs.empty() || !module->funcs.empty()) {
      Fail(at, "expected the module's attributes once, before its functions");
    }
    module->attrs = TakeAttrs();
    return;
  }
  if (!At("func")) FailExpected("'func'");
  Func f = TakeFunc();
  if (module->Find(f->name)) Fail(at, fmt::format("the function '{}' is defined twice", f->name));
  module->Add(std::move(f));
}

// ---- functions ----

std::string LoopParser::TakeFuncName() {
  Expect("@", "before the name of a function");
  const Token at = Peek();
  std::string name = TakeWord("the name of a function");
  if (name.empty()) Fail(at, "expected the name of a function but got an empty string");
  return name;
}

TargetRef LoopParser::TakeTarget() {
  const Token at = Peek();
  auto target = TargetRef::Parse(TakeString("the target as a string"));
  if (!target) Fail(at, target.errors()[0].message);
  return *target;
}

Func LoopParser::TakeFunc() {
  const size_t mark = Enter();
  PrimFunc f;
  Take();  // func
  f.name = TakeFuncName();
  TakeDims(&f);
  TakeParams(&f);
  if (Accept("kind")) f.func_kind = TakeEnum("the kind of a function", FuncKind::kPacked);
  if (Accept("target")) f.target = TakeTarget();
  if (AtAttrs()) f.attrs = TakeAttrs();
  f.body = TakeBody("before the body of a function");
  Leave(mark);
  return PrimFunc::Make(std::move(f));
}

// m: 1..=4096 step 8 | m: 1.. | m
void LoopParser::TakeDimRange(DimRange* range) {
  range->lo = TakeInt("the smallest size");
  if (Accept("..=")) {
    range->hi = TakeInt("the largest size");
  } else {
    Expect("..", "or '..=' in a range of sizes");
  }
  if (Accept("step")) range->step = TakeInt("the step of sizes");
}

void LoopParser::TakeDims(PrimFunc* f) {
  if (!Accept("<")) return;
  List(">", "after the dims of a function", [&] {
    const Token at = Peek();
    Var dim = VarNode::Make(TakeName("a dim"));
    Declare(at, dim->name, dim);
    DimRange range;
    if (Accept(":")) TakeDimRange(&range);
    f->dims.push_back(dim);
    f->dim_lo.push_back(range.lo);
    f->dim_hi.push_back(range.hi);
    f->dim_step.push_back(range.step);
  });
}

// True, and past the parameter, when a buffer's type follows: an element type and a bracket.
bool LoopParser::SkipBufferParam() {
  const bool buffer = Peek().kind == TokenKind::kWord && DType::Parse(Peek().text) && At("[", 1);
  if (!buffer) return false;
  int depth = 0;
  while (Peek().kind != TokenKind::kEnd && (depth > 0 || !(At(",") || At(")")))) {
    if (At("(") || At("[")) ++depth;
    if (At(")") || At("]")) --depth;
    Take();
  }
  return true;
}

// Scalars stand after the buffers whose strides they may be, so the list is read twice: scalars
// first.
void LoopParser::TakeParams(PrimFunc* f) {
  Expect("(", "before the parameters of a function");
  const Bookmark params = Here();
  List(")", "after the parameters of a function", [&] {
    if (At("out") && !At(":", 1)) Take();
    const Token at = Peek();
    const std::string name = TakeName("a parameter");
    Expect(":", "after the name of a parameter");
    if (SkipBufferParam()) return;
    Var scalar = VarNode::Make(name, TakeType());
    Declare(at, name, scalar);
    f->scalars.push_back(scalar);
  });
  GoTo(params);
  size_t scalars = 0;
  List(")", "after the parameters of a function", [&] {
    const Token at = Peek();
    const bool out = At("out") && !At(":", 1);
    if (out) Take();
    const Token name_at = Peek();
    const std::string name = TakeName("a parameter");
    Expect(":", "after the name of a parameter");
    const bool buffer = DType::Parse(Peek().text) && At("[", 1);
    if (!buffer) {
      TakeType();
      ++scalars;
      if (out) Fail(at, fmt::format("'{}' is a scalar: expected a buffer after 'out'", name));
      return;
    }
    if (scalars > 0) Fail(at, fmt::format("expected the buffer '{}' before the scalars", name));
    if (!out && f->num_outputs > 0)
      Fail(at, fmt::format("expected 'out': '{}' follows an output", name));
    f->num_outputs += out;
    Buffer b = TakeBufferType(name);
    Declare(name_at, name, b);
    f->buffers.push_back(std::move(b));
  });
}

}  // namespace tenon
