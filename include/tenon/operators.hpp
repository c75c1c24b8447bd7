// Operators of one's own, for nodes of models that no operator set defines. C++20; link
// Tenon::compiler.
//
//   RegisterOperator("my.domain", "Swish", [](const OperatorNode& node) {
//     te::Tensor x = node.inputs()[0];
//     double beta = node.Float("beta", 1.0);
//     te::Tensor y = te::Compute(x.shape(), [&](te::Var i, te::Var j) {
//       return x(i, j) * te::Sigmoid(x(i, j) * beta);
//     }, "y");
//     return CreateFunc({x, y});
//   });
//   CompileModel("model.onnx", "model.so");
//
// What is registered holds for every model that is compiled from then on, in this process. An
// operator depends on its inputs alone. Errors are thrown as tenon::Error.
#ifndef TENON_OPERATORS_HPP_
#define TENON_OPERATORS_HPP_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/ir.hpp"
#include "tenon/te.hpp"

namespace tenon {
inline namespace v0 {

struct OperatorNodeData;

/// A node of the operator while a model that has it is compiled.
class TN_API OperatorNode {
 public:
  explicit OperatorNode(std::shared_ptr<const OperatorNodeData> data) : data_(std::move(data)) {}
  /// As messages have it.
  std::string name() const;
  /// Placeholders of the node's inputs. A size that is open is a variable; equal sizes are the same
  /// one.
  std::vector<te::Tensor> inputs() const;
  /// How many results the model names.
  int num_outputs() const;

  // ---- Attributes. Without a fallback the attribute must be there; it must have the type. ----
  std::vector<std::string> attributes() const;
  bool Has(const std::string& attribute) const;
  /// Whatever it is.
  Value attribute(const std::string& name) const;
  int64_t Int(const std::string& attribute, std::optional<int64_t> fallback = {}) const;
  /// Of an integer, too.
  double Float(const std::string& attribute, std::optional<double> fallback = {}) const;
  std::string String(const std::string& attribute, std::optional<std::string> fallback = {}) const;
  std::vector<int64_t> Ints(const std::string& attribute) const;
  std::vector<double> Floats(const std::string& attribute) const;
  std::vector<std::string> Strings(const std::string& attribute) const;

 private:
  std::shared_ptr<const OperatorNodeData> data_;
};

/// Gives the function that computes a node: its parameters are the inputs, then the results. Its
/// loops run as somebody has said (Lower of a schedule gives such functions) or, of CreateFunc, as
/// the compiler thinks best. It may call C functions (te::Extern): a library that is compiled finds
/// them in the process that loads it.
using OperatorDefinition = std::function<IrModule(const OperatorNode& node)>;

/// Operator `name` of `domain` ("" is ONNX's own). It comes before one that Tenon has, and before
/// one registered earlier.
TN_API void RegisterOperator(const std::string& domain, const std::string& name,
                             OperatorDefinition define);
/// The same by functions that are there: of those that no other calls, the first by name that takes
/// a node's inputs, by number, types and ranks. A scalar of a function is the attribute of its
/// name.
TN_API void RegisterOperator(const std::string& domain, const std::string& name,
                             const IrModule& functions);
/// Forgets it; false where there is none.
TN_API bool RemoveOperator(const std::string& domain, const std::string& name);

}  // namespace v0
}  // namespace tenon

#endif  // TENON_OPERATORS_HPP_
