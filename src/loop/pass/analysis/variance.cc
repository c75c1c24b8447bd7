#include "loop/pass/analysis/variance.h"

#include "ir/visit.h"
#include "loop/pass/analysis/access.h"

namespace tenon {

Variance::Variance(const Var& var, const Stmt& body, const Module* module) : module_(module) {
  differing_.insert(var.get());
  size_t before = 0;
  do {  // memory that differs is read by what stands before it too, in a loop around both
    before = differing_.size();
    Scan(body, false);
  } while (differing_.size() != before);
}

bool Variance::Differs(const NodeRef& node) const {
  bool found = false;
  PreOrder(node, [&](const NodeRef& n) {
    if (IsA<BufferNode>(n)) return false;  // as what a store writes, it has no say
    found |= Has(n.get());
    if (const auto* load = As<Load>(n)) found |= Has(load->buffer.get());
    if (const auto* region = As<RegionNode>(n)) found |= Has(region->buffer.get());
    if (const auto* atomic = As<Atomic>(n)) found |= Has(atomic->buffer.get());
    return !found;
  });
  return found;
}

bool Variance::TakesApart(const StmtNode& stmt) const {
  const Node* node = &stmt;
  if (const auto* s = As<If>(node)) return Differs(s->condition);
  if (const auto* s = As<While>(node)) return Differs(s->condition);
  if (const auto* s = As<For>(node)) return Differs(s->min) || Differs(s->extent);
  return false;
}

void Variance::Scan(const Stmt& stmt, bool apart) {
  apart |= TakesApart(*stmt);
  switch (stmt->kind) {
    case NodeKind::kSeq:
      for (const Stmt& s : As<Seq>(stmt)->stmts) Scan(s, apart);
      return;
    case NodeKind::kFor: {
      const auto* loop = As<For>(stmt);
      if (TakesApart(*stmt)) differing_.insert(loop->var.get());
      return Scan(loop->body, apart);
    }
    case NodeKind::kIf:
      Scan(As<If>(stmt)->then_body, apart);
      if (As<If>(stmt)->else_body) Scan(As<If>(stmt)->else_body, apart);
      return;
    case NodeKind::kLet:
      if (Differs(As<Let>(stmt)->value)) differing_.insert(As<Let>(stmt)->var.get());
      return Scan(As<Let>(stmt)->body, apart);
    case NodeKind::kBind:
      if (Differs(As<Bind>(stmt)->data)) differing_.insert(As<Bind>(stmt)->buffer.get());
      return Scan(As<Bind>(stmt)->body, apart);
    case NodeKind::kAlloc: return Scan(As<Alloc>(stmt)->body, apart);
    case NodeKind::kWhile: return Scan(As<While>(stmt)->body, apart);
    case NodeKind::kBlock: return Scan(As<Block>(stmt)->body, apart);
    default:
      if (apart || Differs(stmt)) ScanWritten(stmt);
  }
}

// Everything that a statement touches but loads counts as written.
void Variance::ScanWritten(const Stmt& stmt) {
  if (const auto* store = As<Store>(stmt)) differing_.insert(store->buffer.get());
  if (const auto* call = As<CallFunc>(stmt); call && module_) {
    const Accesses all = AccessesOf(stmt, *module_, [](const Buffer&) { return true; });
    differing_.insert(all.writes.begin(), all.writes.end());
    return;
  }
  PreOrder(stmt, [&](const NodeRef& n) {
    if (const auto* region = As<RegionNode>(n)) differing_.insert(region->buffer.get());
    if (const auto* atomic = As<Atomic>(n)) differing_.insert(atomic->buffer.get());
    const auto* call = As<Call>(n);
    const bool address = call && call->intrinsic == Intrinsic::kBufferData;
    if (const auto* load = address ? As<Load>(call->args[0]) : nullptr)
      differing_.insert(load->buffer.get());
    return !IsA<BufferNode>(n);
  });
}

Expr FlatIndex(const BufferNode& buffer, const std::vector<Expr>& indices, Analyzer* analyzer) {
  Expr out = IndexConst(0);
  for (size_t i = 0; i < indices.size(); ++i) out = out * buffer.shape[i] + indices[i];
  return analyzer->Simplify(out);
}

int64_t SmallestPart(const std::vector<Expr>& indices, const Var& v) {
  int64_t least = 0;
  for (const Expr& e : indices) {
    PreOrder(e, [&](const NodeRef& n) {
      const auto* b = As<Binary>(n);
      if (!b || (b->op != BinaryOp::kDiv && b->op != BinaryOp::kMod)) return true;
      const auto c = b->lhs == v ? AsInt(b->rhs) : std::nullopt;
      if (c && *c > 1 && (least == 0 || *c < least)) least = *c;
      return true;
    });
  }
  return least;
}

namespace {

// A number as a quotient and a remainder.
struct Split {
  Iteration quotient, remainder;
  std::vector<Expr> indices;
};

Split SplitBy(int64_t part, int64_t extent, const Iteration& x, const std::vector<Expr>& indices,
              Analyzer* analyzer) {
  Split out{{VarNode::Make(x.var->name + ".outer", DType::Index()), IndexConst(extent / part)},
            {VarNode::Make(x.var->name + ".inner", DType::Index()), IndexConst(part)},
            {}};
  for (const Iteration* i : {&out.quotient, &out.remainder})
    analyzer->Bind(i->var, IndexConst(0), i->extent);
  const VarMap parts{{x.var.get(), Expr(out.quotient.var) * part + Expr(out.remainder.var)}};
  for (const Expr& e : indices) out.indices.push_back(analyzer->Simplify(Substitute(e, parts)));
  return out;
}

// As ElementTells, by parts of the numbers that the indices tell one by one.
bool PartsTell(const BufferNode& buffer, const std::vector<Expr>& a, const Iteration& x,
               const std::vector<Expr>& b, const Iteration& y, Analyzer* analyzer) {
  const auto n = AsInt(analyzer->Simplify(x.extent)), m = AsInt(analyzer->Simplify(y.extent));
  const int64_t part = SmallestPart(a, x.var);
  if (!n || n != m || part == 0 || *n <= part || *n % part != 0) return false;
  const Split p = SplitBy(part, *n, x, a, analyzer), q = SplitBy(part, *n, y, b, analyzer);
  return ElementTells(buffer, p.indices, p.quotient, q.indices, q.quotient, analyzer) &&
         ElementTells(buffer, p.indices, p.remainder, q.indices, q.remainder, analyzer);
}

}  // namespace

bool ElementTells(const BufferNode& buffer, const std::vector<Expr>& a, const Iteration& x,
                  const std::vector<Expr>& b, const Iteration& y, Analyzer* analyzer) {
  if (a.empty() || a.size() != b.size()) return false;
  std::vector<std::pair<Expr, Expr>> pairs;
  for (size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
  pairs.emplace_back(FlatIndex(buffer, a, analyzer), FlatIndex(buffer, b, analyzer));
  for (const auto& [i, j] : pairs) {
    auto affine = DetectAffine(i, {x.var});
    auto step = affine ? AsInt(analyzer->Simplify(affine->coefficients[0])) : std::nullopt;
    if (!step || *step <= 0) continue;
    auto tell = [&](const Expr& p, const Expr& q) {
      return analyzer->CanProveEqual(p, x.var) && analyzer->CanProveEqual(q, y.var);
    };
    const Expr p = i / *step, q = j / *step;
    if (tell(p, q)) return true;
    auto n = AsInt(analyzer->Simplify(x.extent));
    if (n && *n > 0 && tell(p % *n, q % *n)) return true;
  }
  return PartsTell(buffer, a, x, b, y, analyzer);
}

}  // namespace tenon
