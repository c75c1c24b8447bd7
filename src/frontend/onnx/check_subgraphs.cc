#include "frontend/onnx/check_subgraphs.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/tensor.h"
#include "support/strings.h"

namespace tenon::onnx {
namespace {

class SubgraphChecker {
 public:
  SubgraphChecker(const std::shared_ptr<const graph::WeightFile>& file,
                  const ImportOptions& options)
      : file_(file), external_(options.external_data_dir, options.linked_data_dir) {}

  // The graphs in a graph's attributes; `inside`: it is one itself, whose tensors are looked at.
  void Visit(const GraphProto& g, bool inside) {
    for (size_t n = 0; n < g.nodes.size(); ++n) {
      const NodeProto& node = g.nodes[n];
      for (const AttributeProto& a : node.attributes) {
        for (const TensorProto& t : a.tensor)
          if (inside) Read(t, DescribeNode(node, n));
        if (a.graph.empty()) continue;
        const size_t before = errors_.size();
        VisitInner(a.graph[0]);
        for (size_t e = before; e < errors_.size(); ++e) {
          errors_[e].notes.push_back(
              fmt::format("in attribute {} of {}", a.name, DescribeNode(node, n)));
        }
      }
    }
  }

  Status Done() && { return errors_.empty() ? Ok() : Status(std::move(errors_)); }

 private:
  void VisitInner(const GraphProto& g) {
    for (const TensorProto& t : g.initializers) Read(t, "initializer " + graph::Quoted(t.name));
    // Whether a graph around it has a name is for who knows those that are made on the way.
    const auto order = OrderNodes(g, file_->path, [](std::string_view) { return true; });
    if (!order) errors_.insert(errors_.end(), order.errors().begin(), order.errors().end());
    Visit(g, true);
  }

  void Read(const TensorProto& t, const std::string& item) {
    if (t.data_type == static_cast<int32_t>(ElemType::kString)) return;  // steps read those
    const Expected<Tensor> tensor = ReadTensor(t, file_, &external_);
    if (tensor) return;
    for (Diagnostic d : tensor.errors()) {
      d.loc.file = file_->path;
      d.loc.item = item;
      errors_.push_back(std::move(d));
    }
  }

  const std::shared_ptr<const graph::WeightFile>& file_;
  ExternalData external_;
  Diagnostics errors_;
};

}  // namespace

Status CheckSubgraphs(const GraphProto& main, const std::shared_ptr<const graph::WeightFile>& file,
                      const ImportOptions& options) {
  SubgraphChecker checker(file, options);
  checker.Visit(main, false);
  return std::move(checker).Done();
}

}  // namespace tenon::onnx
