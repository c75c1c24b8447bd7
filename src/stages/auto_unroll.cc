#include "stages/auto_unroll.h"

#include "ir/visit.h"

namespace tenon::stages {

namespace {

/// Counts steps, and notes which loops are to be unrolled.
class Steps {
 public:
  explicit Steps(int64_t most) : most_(most) {}

  // Of a statement written out; none where a loop in it stays.
  std::optional<int64_t> Of(const Stmt& stmt) {
    if (!stmt) return 0;
    if (const auto* loop = As<For>(stmt)) return OfLoop(*loop);
    if (IsA<Store>(stmt) || IsA<CallFunc>(stmt) || IsA<Evaluate>(stmt)) return 1;
    std::optional<int64_t> sum = 0;
    struct Children final : ChildVisitor {
      Children(Steps* s, std::optional<int64_t>* out) : steps(s), sum(out) {}
      void VisitChild(const NodeRef& child, FieldRole role) override {
        if (role == FieldRole::kBinds || !IsA<StmtNode>(child)) return;
        const std::optional<int64_t> own = steps->Of(Cast<StmtNode>(child));
        *sum = own && *sum ? std::optional(**sum + *own) : std::nullopt;
      }
      Steps* steps;
      std::optional<int64_t>* sum;
    } children(this, &sum);
    stmt->VisitChildren(children);
    return sum;
  }

  const std::vector<std::string>& unrolled() const { return unrolled_; }

 private:
  std::optional<int64_t> OfLoop(const For& loop) {
    const std::optional<int64_t> inside = Of(loop.body), extent = AsInt(loop.extent);
    if (!inside || !extent || loop.for_kind == ForKind::kVectorized) return inside;
    if (loop.for_kind != ForKind::kSerial && loop.for_kind != ForKind::kUnrolled) return {};
    int64_t steps = 0;
    if (__builtin_mul_overflow(*inside, *extent, &steps)) return {};
    if (loop.for_kind == ForKind::kUnrolled) return steps;
    if (steps > most_) return {};
    unrolled_.push_back(loop.var->name);
    return steps;
  }

  int64_t most_;
  std::vector<std::string> unrolled_;
};

}  // namespace

void AutoUnroll(const std::string& loop, int64_t max_steps, Schedule* schedule) {
  Steps steps(max_steps);
  PreOrder(schedule->func()->body, [&](const NodeRef& n) {
    const auto* f = As<For>(n);
    if (!f || f->var->name != loop) return !IsA<ExprNode>(n);
    steps.Of(Cast<StmtNode>(n));
    return false;
  });
  for (const std::string& name : steps.unrolled()) schedule->Unroll(name);
}

}  // namespace tenon::stages
