#include "api/operators.h"

#include <mutex>

#include "api/ir_data.h"
#include "tenon/operators.hpp"

namespace tenon::inline v0 {

struct OperatorNodeData {
  onnx::CustomNode node;
  std::vector<te::Tensor> inputs;
};

namespace {

struct Registry {
  std::mutex mutex;
  onnx::CustomOperators operators;
};

// Never destroyed: a thread may compile while the process ends.
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

// Placeholders for a node's inputs, and what their variables stand for.
class Placeholders {
 public:
  te::Tensor Add(const graph::TensorType& type) {
    std::vector<te::Expr> shape;
    for (const inner::Expr& size : type.dims) {
      const std::optional<int64_t> number = AsInt(size);
      shape.push_back(number ? te::Expr(*number) : te::Expr(VarFor(size)));
    }
    return te::Placeholder(shape, ToPublic(type.dtype), "x" + std::to_string(count_++));
  }

 private:
  te::Var VarFor(const inner::Expr& size) {
    for (const auto& [known, var] : vars_) {
      if (graph::ProveEqual(known, size)) return var;
    }
    vars_.emplace_back(size, te::Var("n" + std::to_string(vars_.size())));
    return vars_.back().second;
  }

  std::vector<std::pair<inner::Expr, te::Var>> vars_;
  int count_ = 0;
};

// The node without attributes that the functions have no scalar for: who made them knows those.
onnx::CustomNode ForScalars(const inner::Module& functions, const onnx::CustomNode& node) {
  onnx::CustomNode out = node;
  out.attributes = {};
  for (const auto& [name, f] : functions.funcs) {
    for (const inner::Var& scalar : f->scalars) {
      if (const AttrValue* value = node.attributes.Find(scalar->name))
        out.attributes.Set(scalar->name, *value);
    }
  }
  return out;
}

Expected<onnx::CustomBody> Defined(const OperatorDefinition& define, const onnx::CustomNode& node) {
  auto data = std::make_shared<OperatorNodeData>();
  data->node = node;
  Placeholders placeholders;
  try {
    for (const graph::TensorType& type : node.inputs)
      data->inputs.push_back(placeholders.Add(type));
    const IrModule functions = define(OperatorNode(std::move(data)));
    const inner::Module& module = functions.data().module;
    return driver::BodyOf(module, ForScalars(module, node));
  } catch (const std::exception& error) {
    return MakeError(error.what());
  }
}

void Register(const std::string& domain, const std::string& name, onnx::CustomOperator op) {
  if (name.empty()) ThrowValue("an operator needs a name");
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.operators[{domain == "ai.onnx" ? "" : domain, name}] = std::move(op);
}

template <class T>
T Attribute(const OperatorNodeData& data, const std::string& name, const char* what,
            std::optional<T> fallback) {
  const AttrValue* value = data.node.attributes.Find(name);
  if (!value && fallback) return *fallback;
  if (!value) ThrowValue(fmt::format("the node has no attribute '{}'", name));
  if (const T* typed = std::get_if<T>(value)) return *typed;
  ThrowValue(fmt::format("expected the attribute '{}' to be {}", name, what));
}

}  // namespace

std::string OperatorNode::name() const { return data_->node.name; }
std::vector<te::Tensor> OperatorNode::inputs() const { return data_->inputs; }
int OperatorNode::num_outputs() const { return static_cast<int>(data_->node.num_outputs); }

std::vector<std::string> OperatorNode::attributes() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : data_->node.attributes) names.push_back(name);
  return names;
}

bool OperatorNode::Has(const std::string& attribute) const {
  return data_->node.attributes.Has(attribute);
}

Value OperatorNode::attribute(const std::string& name) const {
  const AttrValue* value = data_->node.attributes.Find(name);
  if (!value) ThrowValue(fmt::format("the node has no attribute '{}'", name));
  return Value(*value);
}

int64_t OperatorNode::Int(const std::string& attribute, std::optional<int64_t> fallback) const {
  return Attribute<int64_t>(*data_, attribute, "an integer", fallback);
}

double OperatorNode::Float(const std::string& attribute, std::optional<double> fallback) const {
  const AttrValue* value = data_->node.attributes.Find(attribute);
  if (const auto* whole = value ? std::get_if<int64_t>(value) : nullptr)
    return static_cast<double>(*whole);
  return Attribute<double>(*data_, attribute, "a number", fallback);
}

std::string OperatorNode::String(const std::string& attribute,
                                 std::optional<std::string> fallback) const {
  return Attribute<std::string>(*data_, attribute, "a text", std::move(fallback));
}

std::vector<int64_t> OperatorNode::Ints(const std::string& attribute) const {
  return Attribute<std::vector<int64_t>>(*data_, attribute, "a list of integers", {});
}

std::vector<double> OperatorNode::Floats(const std::string& attribute) const {
  return Attribute<std::vector<double>>(*data_, attribute, "a list of numbers", {});
}

std::vector<std::string> OperatorNode::Strings(const std::string& attribute) const {
  return Attribute<std::vector<std::string>>(*data_, attribute, "a list of texts", {});
}

void RegisterOperator(const std::string& domain, const std::string& name,
                      OperatorDefinition define) {
  if (!define) ThrowValue(fmt::format("operator '{}' needs a definition", name));
  Register(domain, name, [define = std::move(define)](const onnx::CustomNode& node) {
    return Defined(define, node);
  });
}

void RegisterOperator(const std::string& domain, const std::string& name,
                      const IrModule& functions) {
  const inner::Module& module = functions.data().module;
  Take(driver::CheckOperator(module));
  Register(domain, name,
           [module](const onnx::CustomNode& node) { return driver::BodyOf(module, node); });
}

bool RemoveOperator(const std::string& domain, const std::string& name) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  return registry.operators.erase({domain == "ai.onnx" ? "" : domain, name}) != 0;
}

onnx::CustomOperators RegisteredOperators() {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  return registry.operators;
}

}  // namespace tenon::inline v0
