// Reads that are outside a tensor whatever its contents: told when the schedule is made, by tensor
// and index, rather than found by a run.
#include <algorithm>

#include "api/bridge.h"
#include "api/schedule_data.h"
#include "arith/analyzer.h"

namespace tenon::inline v0 {

namespace {

using inner::te::TensorNode;

/// A loop's variable with the values that it takes.
struct Loop {
  inner::Var var;
  inner::Expr min, last;
};

// The loads that are certain to happen: not those that a select may leave out.
void CertainLoads(const inner::Expr& value, std::vector<Ref<const Load>>* out) {
  PreOrder(value, [&](const NodeRef& n) {
    if (const auto* select = As<inner::Select>(n)) {
      CertainLoads(select->condition, out);
      return false;
    }
    if (As<Load>(n)) out->push_back(Cast<Load>(n));
    return n->kind != NodeKind::kBuffer;
  });
}

// The loads of one computed tensor. loops_ and vars_ go together; the analyzer knows of every loop
// that it has an iteration, so what is proved is about reads that happen.
class Reads {
 public:
  /// `scan`: the one that a row of the tensor is a step of.
  Reads(const TensorNode& tensor, const inner::te::ScanNode* scan) : t_(tensor) {
    for (size_t i = 0; i < t_.axes.size(); ++i) {
      // A scan's first rows are there before.
      inner::Expr min = scan && i == scan->axis ? scan->first : IndexConst(0);
      AddLoop(t_.axes[i], min, t_.shape[i]);
    }
    for (const inner::te::Axis& a : t_.reduce_axes) AddLoop(a.var, IndexConst(0), a.extent);
  }

  void Check() {
    std::vector<inner::Expr> values = t_.tuple ? t_.tuple->values : std::vector{t_.value};
    std::vector<Ref<const Load>> loads;
    for (const inner::Expr& v : values) CertainLoads(v, &loads);
    for (const auto& load : loads) CheckLoad(*load);
  }

 private:
  void AddLoop(const inner::Var& var, const inner::Expr& min, const inner::Expr& end) {
    loops_.push_back({var, min, Simplify(end - 1)});
    vars_.push_back(var);
    // Where a loop does not run, nothing is read.
    analyzer_.Assume(Le(min, loops_.back().last));
  }

  // The largest (or smallest) value of an index that is a sum of multiples of loops, which it
  // takes. Null where it is not.
  inner::Expr Extreme(const inner::Expr& index, bool largest) {
    std::optional<AffineForm> form = DetectAffine(index, vars_);
    if (!form) return nullptr;
    inner::Expr sum = form->base;
    for (size_t i = 0; i < loops_.size(); ++i) {
      std::optional<int64_t> c = AsInt(form->coefficients[i]);
      if (!c) return nullptr;
      if (*c != 0)
        sum = sum + IndexConst(*c) * ((*c > 0) == largest ? loops_[i].last : loops_[i].min);
    }
    return analyzer_.Simplify(sum);
  }

  void CheckLoad(const Load& load) {
    for (size_t d = 0; d < load.indices.size(); ++d) {
      inner::Expr least = Extreme(load.indices[d], false), most = Extreme(load.indices[d], true);
      if (!least || !most) continue;
      const inner::Expr& extent = load.buffer->shape[d];
      if (analyzer_.CanProve(Lt(least, IndexConst(0)))) Fail(load, d, least);
      if (analyzer_.CanProve(Le(extent, most))) Fail(load, d, most);
    }
  }

  [[noreturn]] void Fail(const Load& load, size_t d, const inner::Expr& value) {
    const std::string& name = t_.tuple ? t_.tuple->name : t_.name;
    ThrowValue(
        fmt::format("compute '{}': it reads '{}' outside: index {} of {} takes the value {}, but "
                    "the dim has {} "
                    "elements; te.select leaves reads out",
                    name, load.buffer->name, d, inner::Text(Ref<const Load>(&load)),
                    inner::Text(value), inner::Text(load.buffer->shape[d])));
  }

  const TensorNode& t_;
  std::vector<Loop> loops_;
  std::vector<inner::Var> vars_;
  Analyzer analyzer_;
};

}  // namespace

void CheckReads(const std::vector<te::Operation>& order) {
  std::map<const TensorNode*, const inner::te::ScanNode*> scans;
  for (const te::Operation& op : order) {
    const TensorNode& t = *op.node()->outputs[0].node();
    if (!t.scan) continue;
    for (const inner::te::TensorRef& step : t.scan->steps) scans[step.get()] = t.scan.get();
  }
  for (const te::Operation& op : order) {
    const TensorNode& t = *op.node()->outputs[0].node();
    if (!t.computed || t.scan || op.node()->extern_body) continue;
    auto scan = scans.find(&t);
    Reads(t, scan == scans.end() ? nullptr : scan->second).Check();
  }
}

}  // namespace tenon::inline v0
