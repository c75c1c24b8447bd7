// Scans: which tensors a row takes, and that they are what a scan can be made of.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "te/te.h"

namespace tenon::te {

namespace {

// One scan being checked. needs_ says of every tensor visited whether a row takes it (a state, or
// what is computed from one); those that a row computes are in the scan's steps, producers first.
class ScanBuilder {
 public:
  explicit ScanBuilder(ScanNode* scan) : n_(*scan) {}

  Status Run() {
    const size_t count = n_.state.size();
    if (count == 0 || n_.init.size() != count || n_.update.size() != count) {
      return Wrong(
          fmt::format("expected one init and one update for each state, got {} and {} for {}",
                      n_.init.size(), n_.update.size(), count));
    }
    for (size_t k = 0; k < count; ++k) TN_RETURN_IF_ERROR(CheckParts(k));
    n_.first = n_.init[0]->shape[n_.axis];
    for (size_t k = 0; k < count; ++k) TN_RETURN_IF_ERROR(CheckShapes(k));
    for (const TensorRef& init : n_.init) {
      Visit(init);
      if (needs_.at(init.get())) {
        return Wrong(fmt::format("'{}' needs a state, which is not there before the first rows",
                                 init->name));
      }
    }
    for (const TensorRef& update : n_.update) Visit(update);
    for (const TensorRef& step : n_.steps) TN_RETURN_IF_ERROR(CheckStep(*step));
    return Ok();
  }

  /// What must be there before the scan.
  std::vector<TensorRef> Inputs() const {
    std::vector<TensorRef> inputs;
    auto take = [&](const TensorNode& part) {
      for (const TensorRef& input : part.inputs) {
        if (Has(n_.state, input) || Has(n_.steps, input) || Has(inputs, input)) continue;
        inputs.push_back(input);
      }
    };
    for (const TensorRef& t : n_.init) take(*t);
    for (const TensorRef& t : n_.steps) take(*t);
    return inputs;
  }

 private:
  static bool Has(const std::vector<TensorRef>& list, const TensorRef& t) {
    return std::find(list.begin(), list.end(), t) != list.end();
  }
  Diagnostic Wrong(const std::string& reason) const {
    return MakeError(fmt::format("scan '{}': {}", n_.name, reason));
  }

  Status CheckParts(size_t k) const {
    const TensorNode& state = *n_.state[k];
    if (state.computed) return Wrong(fmt::format("the state '{}' is no placeholder", state.name));
    if (state.shape.empty()) return Wrong("the state has no dims");
    if (n_.axis >= state.shape.size()) {
      return Wrong(fmt::format("'{}' has {} dims, so there is no axis {}", state.name,
                               state.shape.size(), n_.axis));
    }
    for (const TensorRef& t : {n_.init[k], n_.update[k]}) {
      if (t->computed && !t->tuple && !t->scan && !t->steps && !t->scatter &&
          t->dtype == state.dtype && t->shape.size() == state.shape.size()) {
        continue;
      }
      return Wrong(
          fmt::format("'{}' is not a computed tensor of the state's rank and type", t->name));
    }
    return Ok();
  }

  Status CheckShapes(size_t k) const {
    const TensorNode &init = *n_.init[k], &update = *n_.update[k], &state = *n_.state[k];
    for (size_t d = 0; d < state.shape.size(); ++d) {
      const Expr first = init.shape[d], whole = state.shape[d], next = update.shape[d];
      const auto rows = AsInt(first), all = AsInt(whole);
      const bool fits =
          d == n_.axis ? !rows || !all || *rows <= *all : StructuralEqual(first, whole);
      if (fits && StructuralEqual(next, whole)) continue;
      return Wrong(fmt::format(
          "dim {} of the state is {}, of the first rows '{}' {} and of the update '{}' {}; "
          "expected the same, but for the number of first rows, which is not more",
          d, ToString(whole), init.name, ToString(first), update.name, ToString(next)));
    }
    if (StructuralEqual(init.shape[n_.axis], n_.first) &&
        StructuralEqual(state.shape[n_.axis], n_.state[0]->shape[n_.axis])) {
      return Ok();
    }
    return Wrong("the states differ in their number of rows, or of first rows");
  }

  // Finds what a row takes, everything between a state and an update, producers first.
  void Visit(const TensorRef& root) {
    std::vector<std::pair<TensorRef, size_t>> stack{{root, 0}};
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (needs_.count(node.get())) {
        stack.pop_back();
      } else if (Has(n_.state, node)) {
        needs_[node.get()] = true;
      } else if (next < node->inputs.size()) {
        TensorRef input = node->inputs[next++];
        stack.emplace_back(std::move(input), 0);
      } else {
        bool needs = Has(n_.update, node);
        for (const TensorRef& input : node->inputs) needs |= needs_.at(input.get());
        needs_[node.get()] = needs;
        if (needs) n_.steps.push_back(node);
        stack.pop_back();
      }
    }
  }

  Status CheckStep(const TensorNode& t) const {
    if (t.tuple || t.scan || !t.value) {
      return Wrong(fmt::format("'{}' reads a state, but is not computed alone", t.name));
    }
    const bool has_rows =
        t.shape.size() > n_.axis && StructuralEqual(t.shape[n_.axis], n_.state[0]->shape[n_.axis]);
    if (!has_rows) {
      return Wrong(fmt::format("'{}' reads a state, so dim {} of it has as many rows as the state",
                               t.name, n_.axis));
    }
    Status status = Ok();
    const Var& row = t.axes[n_.axis];
    Analyzer analyzer;
    PreOrder(t.value, [&](const NodeRef& node) {
      const auto* load = As<Load>(node);
      if (load != nullptr && status) status = CheckRead(t, row, *load, &analyzer);
      return node->kind != NodeKind::kBuffer;
    });
    return status;
  }

  // Of a state: an earlier row. Of an update: its own row, or an earlier one. Of what is between
  // them, which has no first rows: its own row.
  Status CheckRead(const TensorNode& reader, const Var& row, const Load& load,
                   Analyzer* analyzer) const {
    auto reads = [&](const TensorRef& t) { return t->buffer == load.buffer; };
    auto any = [&](const std::vector<TensorRef>& list) {
      return std::any_of(list.begin(), list.end(), reads);
    };
    const Expr& index = load.indices[n_.axis];
    bool wrong = false;
    if (any(n_.state)) {
      wrong = analyzer->CanProve(Ge(index, row));
    } else if (any(n_.update)) {
      wrong = analyzer->CanProve(Gt(index, row));
    } else if (any(n_.steps)) {
      wrong = !analyzer->CanProve(Eq(index, row));
    }
    if (!wrong) return Ok();
    return Wrong(fmt::format(
        "'{}' reads row {} of '{}' while it computes row {}: of a state an earlier row is there, "
        "of a tensor between a state and an update this one",
        reader.name, ToString(NodeRef(index)), load.buffer->name, row->name));
  }

  ScanNode& n_;
  std::unordered_map<const TensorNode*, bool> needs_;
};

std::vector<TensorRef> NodesOf(const std::vector<Tensor>& tensors) {
  std::vector<TensorRef> out;
  for (const Tensor& t : tensors) out.push_back(t.node());
  return out;
}

}  // namespace

Expected<std::vector<Tensor>> Scan(std::string name, std::vector<Tensor> init,
                                   std::vector<Tensor> update, std::vector<Tensor> state,
                                   size_t axis) {
  auto scan = MakeRef<ScanNode>();
  scan->name = std::move(name);
  scan->axis = axis;
  scan->init = NodesOf(init);
  scan->update = NodesOf(update);
  scan->state = NodesOf(state);
  ScanBuilder builder(scan.get());
  TN_RETURN_IF_ERROR(builder.Run());
  const bool several = state.size() > 1;
  for (size_t k = 0; k < state.size(); ++k) {
    const std::string own = several ? fmt::format("{}.v{}", scan->name, k) : scan->name;
    scan->buffers.push_back(BufferNode::Make(own, state[k].dtype(), state[k].shape()));
  }
  const std::vector<TensorRef> inputs = builder.Inputs();
  std::vector<Tensor> out;
  for (const Buffer& b : scan->buffers) {
    auto n = MakeRef<TensorNode>();
    n->name = b->name;
    n->dtype = b->dtype;
    n->shape = b->shape;
    n->buffer = b;
    n->computed = true;
    n->inputs = inputs;
    n->scan = scan;
    out.emplace_back(n);
  }
  return out;
}

}  // namespace tenon::te
