// Statements. A list of them survives errors: what cannot be read is skipped up to the next
// statement.
//
// A statement is known by its first word, but for stores, which begin with a buffer; a buffer may
// be called `for`, so what is indexed is a store. let, alloc and bind hold the rest of their list
// without braces: their makers wait in the list as functions (Item::wrap), and the list is folded
// from its end once it is complete.
//
//   alloc t: f32[4] in local
//   t[0] = 1
//   let y = i * 2
//   v[y] = t[0]
//
// is Alloc(t, Seq(t[0] = 1, Let(y, v[y] = t[0]))). A name whose declaration failed is poisoned: its
// uses are no further errors.

#include <algorithm>

#include "loop/parse_impl.h"

namespace tenon {

namespace {

// lets, allocs and binds hold the rest of their list, so each is one level for every walk over the
// tree.
constexpr int kMaxWraps = 2048;

}  // namespace

// ---- lists ----

Stmt LoopParser::TakeBody(std::string_view where) {
  Nest nest(this);
  Expect("{", where);
  const size_t mark = Enter();
  Stmt body = TakeStatements();
  Leave(mark);
  Expect("}", "after statements");
  return body;
}

Stmt LoopParser::TakeStatements() {
  std::vector<Item> items;
  const int wraps = wraps_;
  while (Peek().kind != TokenKind::kEnd && !At("}")) {
    const Token start = Peek();
    const size_t mark = Enter();
    try {
      items.push_back(TakeStatement());
      EndStatement();
    } catch (const Abort&) {
      Leave(mark);
      if (errors_.size() >= kMaxErrors) throw;
      SkipStatement(start);
    }
  }
  wraps_ = wraps;
  return Fold(std::move(items));
}

// From the last to the first: a wrap takes all that came after it.
Stmt LoopParser::Fold(std::vector<Item> items) {
  std::vector<Stmt> tail;  // reversed
  auto rest = [&] {
    std::reverse(tail.begin(), tail.end());
    return Seq::Make(std::exchange(tail, {}));
  };
  for (auto it = items.rbegin(); it != items.rend(); ++it) {
    tail.push_back(it->wrap ? it->wrap(rest()) : std::move(it->stmt));
  }
  return rest();
}

void LoopParser::EndStatement() {
  if (Accept(";") || Peek().starts_line || At("}") || Peek().kind == TokenKind::kEnd) return;
  FailExpected("the end of the statement");
}

// To the next line outside any braces that open on the way, or to the end of the enclosing list.
void LoopParser::SkipStatement(const Token& start) {
  int depth = 0;
  for (bool first = true;; first = false) {
    const Token& token = Peek();
    const bool moved = !first || token.line != start.line || token.column != start.column;
    if (token.kind == TokenKind::kEnd) return;
    if (depth == 0 && (At("}") || (token.starts_line && moved))) return;
    if (At("{")) ++depth;
    if (At("}")) --depth;
    Take();
  }
}

LoopParser::Item LoopParser::TakeStatement() {
  using Method = Stmt (LoopParser::*)();
  using Wrapper = Item (LoopParser::*)();
  static constexpr std::pair<std::string_view, Wrapper> kWrappers[] = {
      {"let", &LoopParser::TakeLet},
      {"alloc", &LoopParser::TakeAlloc},
      {"bind", &LoopParser::TakeBind}};
  static constexpr std::pair<std::string_view, Method> kStatements[] = {
      {"for", &LoopParser::TakeFor},       {"if", &LoopParser::TakeIf},
      {"while", &LoopParser::TakeWhile},   {"block", &LoopParser::TakeBlock},
      {"call", &LoopParser::TakeCall},     {"launch", &LoopParser::TakeLaunch},
      {"copy", &LoopParser::TakeCopy},     {"assert", &LoopParser::TakeAssert},
      {"return", &LoopParser::TakeReturn}, {"sync", &LoopParser::TakeSync},
      {"arrive", &LoopParser::TakeArrive}, {"expect", &LoopParser::TakeExpect},
      {"wait", &LoopParser::TakeWait},     {"roles", &LoopParser::TakeRoles},
      {"atomic", &LoopParser::TakeAtomic}};
  // A buffer may have the name of a statement: what is indexed is a store.
  if (Peek().kind == TokenKind::kName || At("[", 1)) return {TakeStore(), {}};
  for (const auto& [word, take] : kWrappers) {
    if (At(word)) return (this->*take)();
  }
  for (const auto& [word, take] : kStatements) {
    if (At(word)) return {(this->*take)(), {}};
  }
  if (Peek().kind == TokenKind::kWord && (At("(", 1) || At("<", 1))) return {TakeEvaluate(), {}};
  FailExpected("a statement");
}

// ---- let, alloc, bind ----

LoopParser::Item LoopParser::Scoped(const Token& at, const std::string& name, const NodeRef& node,
                                    std::function<Stmt(Stmt)> wrap) {
  if (At("{")) {
    const size_t mark = Enter();
    Declare(at, name, node);
    Stmt body = TakeBody("before the scope of a name");
    Leave(mark);
    return {wrap(std::move(body)), {}};
  }
  if (++wraps_ > kMaxWraps)
    FailLimit(at, fmt::format("expected at most {} names nested", kMaxWraps));
  Declare(at, name, node);
  return {nullptr, std::move(wrap)};
}

LoopParser::Item LoopParser::TakeLet() {
  Take();
  const Token at = Peek();
  const std::string name = TakeName("a variable");
  try {
    Expect("=", "after the name of a let");
    Expr value = TakeExpr();
    Var var = VarNode::Make(name, value->dtype);
    return Scoped(at, name, var, [=](Stmt body) { return Let::Make(var, value, std::move(body)); });
  } catch (const Abort&) {
    Poison(name);
    throw;
  }
}

LoopParser::Item LoopParser::TakeAlloc() {
  Take();
  const Token at = Peek();
  const std::string name = TakeName("a buffer");
  try {
    Expect(":", "after the name of a buffer");
    Buffer buffer = TakeBufferType(name);
    return Scoped(at, name, buffer,
                  [=](Stmt body) { return Alloc::Make(buffer, std::move(body)); });
  } catch (const Abort&) {
    Poison(name);
    throw;
  }
}

LoopParser::Item LoopParser::TakeBind() {
  Take();
  const Token at = Peek();
  const std::string name = TakeName("a buffer");
  try {
    Expect(":", "after the name of a buffer");
    Buffer buffer = TakeBufferType(name);
    Expect("=", "and the data of a buffer that is bound");
    Expr data = TakeExpr(DType::Handle(), "data of a buffer");
    return Scoped(at, name, buffer,
                  [=](Stmt body) { return Bind::Make(buffer, data, std::move(body)); });
  } catch (const Abort&) {
    Poison(name);
    throw;
  }
}

// ---- loops and branches ----

Stmt LoopParser::TakeFor() {
  struct Axis {
    Var var;
    Range range;
  };
  Nest nest(this);
  const size_t mark = Enter();
  Take();
  std::vector<Axis> axes;
  std::vector<std::unique_ptr<Nest>> levels;  // each loop of the list is a level of the tree
  const Token at = Peek();
  do {
    levels.push_back(std::make_unique<Nest>(this));
    const Token name_at = Peek();
    const std::string name = TakeName("a loop");
    DType type = DType::Index();
    if (Accept(":")) type = TakeType();
    Expect("in", "after the name of a loop");
    Range range = TakeRange(type, /*point=*/false);
    Var var = VarNode::Make(name, type);
    Declare(name_at, name, var);
    loops_[var.get()] = {range->min, range->extent};
    axes.push_back({var, range});
  } while (Accept(","));
  ForKind kind = ForKind::kSerial;
  if (Peek().kind == TokenKind::kWord) kind = TakeEnum("the kind of a loop", ForKind::kThread);
  const ThreadAxis thread = kind == ForKind::kThread ? TakeThreadAxis() : ThreadAxis::kNone;
  Attrs attrs;
  if (AtAttrs()) attrs = TakeAttrs();
  if (axes.size() > 1 && (kind != ForKind::kSerial || !attrs.empty())) {
    Fail(at, "expected a 'for' of its own for a loop that is not plainly serial");
  }
  Stmt body = TakeBody("before the body of a loop");
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    body = For::Make(it->var, it->range->min, it->range->extent, kind, body, attrs, thread);
  }
  Leave(mark);
  return body;
}

Stmt LoopParser::TakeIf() {
  Nest nest(this);
  Take();
  Expr condition = TakeExpr(DType::Bool(), "condition of if");
  Stmt then_body = TakeBody("before the body of an if");
  Stmt else_body;
  if (At("else") && (At("{", 1) || At("if", 1))) {
    Take();
    else_body = At("if") ? TakeIf() : TakeBody("before the body of an else");
  }
  return If::Make(condition, then_body, else_body);
}

Stmt LoopParser::TakeWhile() {
  Take();
  Expr condition = TakeExpr(DType::Bool(), "condition of while");
  return While::Make(condition, TakeBody("before the body of a while"));
}

// ---- stores and the like ----

// The value of a store: of the buffer's type; a literal also gets the access's lanes.
Expr LoopParser::TakeStored(const Access& access) {
  const DType type = access.buffer->dtype;
  const Token at = Peek();
  Expr value = Settle(TakeOperand(), type.WithLanes(access.lanes.lanes, access.lanes.scalable));
  if (value->dtype.Element() != type) {
    Fail(at, fmt::format("store to '{}': expected {} but got {}", access.buffer->name,
                         type.ToString(), value->dtype.ToString()));
  }
  return value;
}

Stmt LoopParser::TakeStore() {
  Access access = TakeAccess();
  Expect("=", "after the place of a store");
  Expr value = TakeStored(access);
  return Store::Make(access.buffer, std::move(access.indices), std::move(value), access.mask);
}

Stmt LoopParser::TakeEvaluate() {
  const Token at = Peek();
  Expr e = TakeExpr();
  if (!IsA<Call>(e)) Fail(at, "expected a statement but got an expression that is no call");
  return Evaluate::Make(std::move(e));
}

Stmt LoopParser::TakeCopy() {
  Take();
  Region dst = TakeRegion();
  Expect("from", "after the destination of a copy");
  return Copy::Make(std::move(dst), TakeRegion());
}

Stmt LoopParser::TakeAssert() {
  Take();
  Expr condition = TakeExpr(DType::Bool(), "condition of assert");
  Expect(",", "and the kind of the error");
  std::string kind = TakeString("the kind of the error as a string");
  std::vector<Expr> parts;
  while (Accept(",")) parts.push_back(TakeExpr());
  return Assert::Make(condition, std::move(kind), std::move(parts));
}

Stmt LoopParser::TakeReturn() {
  Take();
  const bool bare = Peek().starts_line || At(";") || At("}") || Peek().kind == TokenKind::kEnd;
  return Return::Make(bare ? Expr() : TakeExpr());
}

Stmt LoopParser::TakeSync() {
  Take();
  return Sync::Make(TakeEnum("a level", Level::kTeam));
}

Stmt LoopParser::TakeBarrier(BarrierOp op) {
  const Token at = Take();
  Access access = TakeAccess();
  if (access.mask) Fail(at, "expected an element of a barrier without a mask");
  Expr value;
  if (op != BarrierOp::kArrive) {
    Expect(",", op == BarrierOp::kWait ? "and the phase of a wait" : "and the count of an expect");
    value = TakeExpr();
  }
  return Barrier::Make(op, access.buffer, std::move(access.indices), std::move(value));
}

Stmt LoopParser::TakeAtomic() {
  const Token at = Take();
  const BinaryOp op = TakeBinaryOp();
  Access access = TakeAccess();
  if (access.mask) Fail(at, "expected the place of an atomic without a mask");
  Expect(",", "and the operand of an atomic");
  Expr value = TakeStored(access);
  const MemoryOrder order = TakeEnum("the order of an atomic", MemoryOrder::kAcqRel);
  Expect("at", "and the scope of an atomic");
  const Level scope = TakeEnum("a level", Level::kTeam);
  return Atomic::Make(op, access.buffer, std::move(access.indices), std::move(value), order, scope);
}

// ---- calls ----

// (regions; scalars)
void LoopParser::TakeArguments(std::vector<Region>* buffers, std::vector<Expr>* scalars) {
  Expect("(", "before arguments");
  if (!At(";") && !At(")")) {
    do {
      buffers->push_back(TakeRegion());
    } while (Accept(","));
  }
  if (Accept(";")) {
    *scalars = TakeExprs(")", "after arguments");
  } else {
    Expect(")", "after arguments");
  }
}

Stmt LoopParser::TakeCall() {
  Take();
  std::string callee = TakeFuncName();
  std::vector<Region> buffers;
  std::vector<Expr> scalars;
  TakeArguments(&buffers, &scalars);
  return CallFunc::Make(std::move(callee), std::move(buffers), std::move(scalars));
}

Stmt LoopParser::TakeLaunch() {
  Take();
  std::string kernel = TakeFuncName();
  std::vector<Region> buffers;
  std::vector<Expr> scalars;
  TakeArguments(&buffers, &scalars);
  Expect("on", "and the place of a launch");
  const Place place = TakePlace();
  Attrs attrs;
  if (AtAttrs()) attrs = TakeAttrs();
  return Launch::Make(std::move(kernel), std::move(buffers), std::move(scalars), place,
                      std::move(attrs));
}

// roles { role name size n registers r { … } … }
Stmt LoopParser::TakeRoles() {
  Nest nest(this);
  Take();
  std::vector<std::string> names;
  std::vector<int64_t> sizes, registers;
  std::vector<Stmt> bodies;
  Expect("{", "before roles");
  while (Accept("role")) {
    names.push_back(TakeWord("the name of a role"));
    Expect("size", "after the name of a role");
    sizes.push_back(TakeInt("the size of a role"));
    registers.push_back(Accept("registers") ? TakeInt("a number of registers") : 0);
    bodies.push_back(TakeBody("before the body of a role"));
  }
  Expect("}", "after roles");
  return Roles::Make(std::move(names), std::move(sizes), std::move(registers), std::move(bodies));
}

// ---- blocks ----

// vi: spatial = i | vk: reduce i32 in 0..k = ko * 4 + ki
IterVar LoopParser::TakeIter() {
  const std::string name = TakeName("a block variable");
  Expect(":", "after the name of a block variable");
  const IterKind kind = TakeEnum("the kind of a block variable", IterKind::kOrdered);
  DType type = DType::Index();
  if (Peek().kind == TokenKind::kWord && !At("in")) type = TakeType();
  Range domain;
  if (Accept("in")) domain = TakeRange(type, /*point=*/false);
  Expect("=", "and what a block variable is bound to");
  const Token at = Peek();
  Expr binding = TakeExpr(type, "binding of a block variable");
  if (!domain) {
    auto it = loops_.find(binding.get());
    if (it == loops_.end()) {
      Fail(at,
           fmt::format("expected 'in' and the domain of '{}', which is not bound to a loop alone",
                       name));
    }
    domain = RangeNode::Make(it->second.min, it->second.extent);
  }
  return IterVarNode::Make(VarNode::Make(name, type), kind, domain->min, domain->extent, binding);
}

void LoopParser::TakeBlockFlags(Block* block) {
  if (Accept("where")) block->where = TakeExpr(DType::Bool(), "where");
  for (;;) {
    if (Accept("fp")) {
      Expect(":", "after 'fp'");
      block->fp = TakeEnum("an fp mode", FpMode::kReassoc);
    } else if (Accept("at")) {
      Expect(":", "after 'at'");
      block->at = TakeEnum("a level", Level::kTeam);
    } else if (Accept("reducer")) {
      Expect(":", "after 'reducer'");
      block->reducer = TakeWord("the name of a reducer");
    } else if (Accept("async")) {
      block->async = true;
    } else if (Accept("opaque")) {
      block->opaque = true;
    } else if (Accept("conservative")) {
      block->exact = false;
    } else {
      break;
    }
  }
  if (AtAttrs()) block->attrs = TakeAttrs();
}

std::vector<Region> LoopParser::TakeRegions() {
  std::vector<Region> regions;
  do {
    regions.push_back(TakeRegion());
  } while (Accept(","));
  return regions;
}

Stmt LoopParser::TakeBlock() {
  Nest nest(this);
  const size_t mark = Enter();
  Block block;
  Take();
  const Token at = Peek();
  block.name = TakeWord("the name of a block");
  if (block.name.empty()) Fail(at, "expected the name of a block but got an empty string");
  Expect("(", "before the variables of a block");
  std::vector<Token> places;
  List(")", "after the variables of a block", [&] {
    places.push_back(Peek());
    block.iters.push_back(TakeIter());
  });
  // A binding means the loops outside, so the block's variables are visible from here on only.
  for (size_t i = 0; i < places.size(); ++i) {
    const Var& var = block.iters[i]->var;
    Declare(places[i], var->name, var);
  }
  TakeBlockFlags(&block);
  Expect("{", "before the body of a block");
  if (At("reads") && !At("[", 1)) {
    Take();
    block.reads = TakeRegions();
    EndStatement();
  }
  if (At("writes") && !At("[", 1)) {
    Take();
    block.writes = TakeRegions();
    EndStatement();
  }
  if (At("init") && At("{", 1)) {
    Take();
    block.init = TakeBody("before the initial value of a block");
  }
  block.body = TakeStatements();
  Expect("}", "after the body of a block");
  Leave(mark);
  return Block::Make(std::move(block));
}

}  // namespace tenon
