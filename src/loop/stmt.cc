// The makers of statements.
//
// A maker checks what its struct promises and that none of its parts is missing, and else takes
// what it gets: statements are not simplified by being made. Two things are brought to one form,
// since everything that walks statements relies on them: a list holds no list and not just one
// statement
//
//   Seq::Make({a, Seq::Make({b, c})})      makes   Seq(a, b, c)
//   Seq::Make({a})                         makes   a
//
// and a loop has a thread axis if, and only if, it is over threads.

#include "loop/stmt.h"

#include "ir/node_fields.h"
#include "support/check.h"

namespace tenon {

const char* Name(ForKind kind) {
  switch (kind) {
    case ForKind::kSerial: return "serial";
    case ForKind::kParallel: return "parallel";
    case ForKind::kVectorized: return "vectorized";
    case ForKind::kUnrolled: return "unrolled";
    case ForKind::kThread: return "thread";
  }
  return "?";
}
const char* Name(IterKind kind) {
  switch (kind) {
    case IterKind::kSpatial: return "spatial";
    case IterKind::kReduce: return "reduce";
    case IterKind::kOrdered: return "ordered";
  }
  return "?";
}
const char* Name(FpMode mode) {
  switch (mode) {
    case FpMode::kStrict: return "strict";
    case FpMode::kContract: return "contract";
    case FpMode::kReassoc: return "reassoc";
  }
  return "?";
}
const char* Name(Level level) {
  switch (level) {
    case Level::kThread: return "thread";
    case Level::kWarp: return "warp";
    case Level::kWarpgroup: return "warpgroup";
    case Level::kCta: return "cta";
    case Level::kCluster: return "cluster";
    case Level::kGrid: return "grid";
    case Level::kWorker: return "worker";
    case Level::kTeam: return "team";
  }
  return "?";
}
const char* Name(MemoryOrder order) {
  switch (order) {
    case MemoryOrder::kRelaxed: return "relaxed";
    case MemoryOrder::kAcquire: return "acquire";
    case MemoryOrder::kRelease: return "release";
    case MemoryOrder::kAcqRel: return "acq_rel";
  }
  return "?";
}
const char* Name(BarrierOp op) {
  switch (op) {
    case BarrierOp::kArrive: return "arrive";
    case BarrierOp::kExpect: return "expect";
    case BarrierOp::kWait: return "wait";
  }
  return "?";
}

Stmt Seq::Make(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (const auto* seq = As<Seq>(s)) {
      flat.insert(flat.end(), seq->stmts.begin(), seq->stmts.end());
    } else {
      flat.push_back(std::move(s));
    }
  }
  if (flat.size() == 1) return flat[0];
  auto n = MakeRef<Seq>();
  n->stmts = std::move(flat);
  return n;
}

Stmt For::Make(Var var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs attrs,
               ThreadAxis thread) {
  TN_CHECK(var && min && extent && body);
  TN_CHECK(var->dtype == min->dtype && var->dtype == extent->dtype);
  TN_CHECK((kind == ForKind::kThread) == (thread != ThreadAxis::kNone));
  auto n = MakeRef<For>();
  n->var = std::move(var);
  n->min = std::move(min);
  n->extent = std::move(extent);
  n->for_kind = kind;
  n->thread = thread;
  n->attrs = std::move(attrs);
  n->body = std::move(body);
  return n;
}

Stmt If::Make(Expr condition, Stmt then_body, Stmt else_body) {
  TN_CHECK(condition && condition->dtype == DType::Bool() && then_body);
  auto n = MakeRef<If>();
  n->condition = std::move(condition);
  n->then_body = std::move(then_body);
  n->else_body = std::move(else_body);
  return n;
}

Stmt While::Make(Expr condition, Stmt body) {
  TN_CHECK(condition && condition->dtype == DType::Bool() && body);
  auto n = MakeRef<While>();
  n->condition = std::move(condition);
  n->body = std::move(body);
  return n;
}

Stmt Let::Make(Var var, Expr value, Stmt body) {
  TN_CHECK(var && value && body && var->dtype == value->dtype);
  auto n = MakeRef<Let>();
  n->var = std::move(var);
  n->value = std::move(value);
  n->body = std::move(body);
  return n;
}

Stmt Alloc::Make(Buffer buffer, Stmt body) {
  TN_CHECK(buffer && body);
  auto n = MakeRef<Alloc>();
  n->buffer = std::move(buffer);
  n->body = std::move(body);
  return n;
}

Stmt Bind::Make(Buffer buffer, Expr data, Stmt body) {
  TN_CHECK(buffer && data && data->dtype.IsHandle() && body);
  auto n = MakeRef<Bind>();
  n->buffer = std::move(buffer);
  n->data = std::move(data);
  n->body = std::move(body);
  return n;
}

Stmt Store::Make(Buffer buffer, std::vector<Expr> indices, Expr value, Expr mask) {
  TN_CHECK(buffer && value && value->dtype.Element() == buffer->dtype, "store of {} to {}: {}",
           value->dtype.ToString(), buffer->name, buffer->dtype.ToString());
  auto n = MakeRef<Store>();
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  n->value = std::move(value);
  n->mask = std::move(mask);
  return n;
}

IterVar IterVarNode::Make(Var var, IterKind kind, Expr min, Expr extent, Expr binding) {
  TN_CHECK(var && min && extent && binding);
  auto n = MakeRef<IterVarNode>();
  n->var = std::move(var);
  n->iter_kind = kind;
  n->min = std::move(min);
  n->extent = std::move(extent);
  n->binding = std::move(binding);
  return n;
}

Ref<const Block> Block::Make(Block fields) {
  TN_CHECK(!fields.name.empty() && fields.body);
  return MakeRef<Block>(std::move(fields));
}

Stmt Evaluate::Make(Expr call) {
  TN_CHECK(IsA<Call>(call));
  auto n = MakeRef<Evaluate>();
  n->call = std::move(call);
  return n;
}

Stmt CallFunc::Make(std::string callee, std::vector<Region> buffers, std::vector<Expr> scalars) {
  auto n = MakeRef<CallFunc>();
  n->callee = std::move(callee);
  n->buffers = std::move(buffers);
  n->scalars = std::move(scalars);
  return n;
}

Stmt Launch::Make(std::string kernel, std::vector<Region> buffers, std::vector<Expr> scalars,
                  Place place, Attrs attrs) {
  auto n = MakeRef<Launch>();
  n->kernel = std::move(kernel);
  n->buffers = std::move(buffers);
  n->scalars = std::move(scalars);
  n->place = place;
  n->attrs = std::move(attrs);
  return n;
}

Stmt Copy::Make(Region dst, Region src) {
  TN_CHECK(dst && src);
  auto n = MakeRef<Copy>();
  n->dst = std::move(dst);
  n->src = std::move(src);
  return n;
}

Stmt Assert::Make(Expr condition, std::string error_kind, std::vector<Expr> parts) {
  TN_CHECK(condition && condition->dtype == DType::Bool());
  auto n = MakeRef<Assert>();
  n->condition = std::move(condition);
  n->error_kind = std::move(error_kind);
  n->parts = std::move(parts);
  return n;
}

Stmt Return::Make(Expr value) {
  auto n = MakeRef<Return>();
  n->value = std::move(value);
  return n;
}

Stmt Sync::Make(Level level) {
  auto n = MakeRef<Sync>();
  n->level = level;
  return n;
}

Stmt Barrier::Make(BarrierOp op, Buffer buffer, std::vector<Expr> indices, Expr value) {
  TN_CHECK(buffer && (op == BarrierOp::kArrive) == !value);
  auto n = MakeRef<Barrier>();
  n->op = op;
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  n->value = std::move(value);
  return n;
}

Stmt Roles::Make(std::vector<std::string> names, std::vector<int64_t> sizes,
                 std::vector<int64_t> registers, std::vector<Stmt> bodies) {
  TN_CHECK(names.size() == bodies.size() && sizes.size() == bodies.size() &&
           registers.size() == bodies.size());
  auto n = MakeRef<Roles>();
  n->names = std::move(names);
  n->sizes = std::move(sizes);
  n->registers = std::move(registers);
  n->bodies = std::move(bodies);
  return n;
}

Stmt Atomic::Make(BinaryOp op, Buffer buffer, std::vector<Expr> indices, Expr value,
                  MemoryOrder order, Level scope) {
  auto n = MakeRef<Atomic>();
  n->op = op;
  n->buffer = std::move(buffer);
  n->indices = std::move(indices);
  n->value = std::move(value);
  n->order = order;
  n->scope = scope;
  return n;
}

Block::Block() = default;
Block::Block(const Block&) = default;
Block::Block(Block&&) noexcept = default;
Block::~Block() = default;

template class NodeOf<IterVarNode, NodeKind::kIterVar>;
#define TN_STMT(name) template class NodeOf<name, NodeKind::k##name, StmtNode>;
#include "ir/stmt_kinds.def"
#undef TN_STMT

}  // namespace tenon
