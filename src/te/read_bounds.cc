// Reads that are outside a tensor whatever its contents: told when the schedule is made, by tensor
// and index, rather than found by a run.
#include <fmt/format.h>

#include <optional>
#include <unordered_set>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "te/program.h"

namespace tenon::te {

namespace {

/// A loop's variable with the values that it takes.
struct Loop {
  Var var;
  Expr min, last;
};

// The loads that are certain to happen: not those that a select may leave out.
void CertainLoads(const Expr& value, std::vector<Ref<const Load>>* out) {
  PreOrder(value, [&](const NodeRef& n) {
    if (const auto* select = As<Select>(n)) {
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
  Reads(const TensorNode& tensor, const ScanNode* scan) : t_(tensor) {
    for (size_t i = 0; i < t_.axes.size(); ++i) {
      // A scan's first rows are there before.
      Expr min = scan && i == scan->axis ? scan->first : IndexConst(0);
      AddLoop(t_.axes[i], min, t_.shape[i]);
    }
    for (const Axis& a : t_.reduce_axes) AddLoop(a.var, IndexConst(0), a.extent);
    if (t_.steps && t_.steps->axis == StepsNode::kNoAxis)
      AddLoop(t_.steps->step.var, IndexConst(0), t_.steps->step.extent);
    if (!t_.scatter) return;
    for (const Axis& a : t_.scatter->apart) AddLoop(a.var, IndexConst(0), a.extent);
    AddLoop(t_.scatter->step.var, IndexConst(0), t_.scatter->step.extent);
  }

  Status Check() {
    if (is_empty_) return Ok();
    std::vector<Expr> values = t_.tuple     ? t_.tuple->values
                               : t_.steps   ? std::vector{t_.steps->first, t_.steps->next}
                               : t_.scatter ? CertainOf(*t_.scatter)
                                            : std::vector{t_.value};
    std::vector<Ref<const Load>> loads;
    for (const Expr& v : values) CertainLoads(v, &loads);
    for (const auto& load : loads) TN_RETURN_IF_ERROR(CheckLoad(*load));
    return Ok();
  }

 private:
  // What steps make of their places is read where the steps change something.
  static std::vector<Expr> CertainOf(const ScatterNode& scatter) {
    if (scatter.where) return {scatter.where};
    std::vector<Expr> values = scatter.place;
    values.push_back(scatter.next);
    return values;
  }

  void AddLoop(const Var& var, const Expr& min, const Expr& end) {
    loops_.push_back({var, min, Simplify(end - 1)});
    vars_.push_back(var);
    // Where a loop does not run, nothing is read.
    is_empty_ |= analyzer_.CanProve(Lt(loops_.back().last, min));
    analyzer_.Assume(Le(min, loops_.back().last));
  }

  // The largest (or smallest) value of an index that is a sum of multiples of loops, which it
  // takes. Null where it is not.
  Expr Extreme(const Expr& index, bool largest) {
    std::optional<AffineForm> form = DetectAffine(index, vars_);
    if (!form) return nullptr;
    Expr sum = form->base;
    for (size_t i = 0; i < loops_.size(); ++i) {
      std::optional<int64_t> c = AsInt(form->coefficients[i]);
      if (!c) return nullptr;
      if (*c != 0)
        sum = sum + IndexConst(*c) * ((*c > 0) == largest ? loops_[i].last : loops_[i].min);
    }
    return analyzer_.Simplify(sum);
  }

  Status CheckLoad(const Load& load) {
    for (size_t d = 0; d < load.indices.size(); ++d) {
      Expr least = Extreme(load.indices[d], false), most = Extreme(load.indices[d], true);
      if (!least || !most) continue;
      const Expr& extent = load.buffer->shape[d];
      if (analyzer_.CanProve(Lt(least, IndexConst(0)))) return Outside(load, d, least);
      if (analyzer_.CanProve(Le(extent, most))) return Outside(load, d, most);
    }
    return Ok();
  }

  Diagnostic Outside(const Load& load, size_t d, const Expr& value) const {
    const std::string& name = t_.tuple ? t_.tuple->name : t_.name;
    return MakeError(fmt::format(
        "compute '{}': it reads '{}' outside: index {} of {} takes the value {}, but the dim has "
        "{} elements; te.select leaves reads out",
        name, load.buffer->name, d, ToString(NodeRef(Ref<const Load>(&load))),
        ToString(NodeRef(value)), ToString(NodeRef(load.buffer->shape[d]))));
  }

  const TensorNode& t_;
  std::vector<Loop> loops_;
  std::vector<Var> vars_;
  Analyzer analyzer_;
  bool is_empty_ = false;
};

}  // namespace

Status CheckReads(const std::vector<Tensor>& outputs) {
  std::unordered_set<const ScanNode*> scans;
  for (const TensorRef& t : ProducersFirst(outputs)) {
    if (t->computed && !t->scan) TN_RETURN_IF_ERROR(Reads(*t, nullptr).Check());
    if (!t->scan || !scans.insert(t->scan.get()).second) continue;
    for (const TensorRef& init : t->scan->init) TN_RETURN_IF_ERROR(Reads(*init, nullptr).Check());
    for (const TensorRef& step : t->scan->steps) {
      TN_RETURN_IF_ERROR(Reads(*step, t->scan.get()).Check());
    }
  }
  return Ok();
}

}  // namespace tenon::te
