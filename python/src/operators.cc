// operators.hpp.
#include "tenon/operators.hpp"

#include "bindings.h"

namespace tenon::python {

static nb::dict AttributesOf(const OperatorNode& node) {
  nb::dict out;
  for (const std::string& name : node.attributes()) {
    out[name.c_str()] = std::visit([](const auto& value) -> nb::object { return nb::cast(value); },
                                   node.attribute(name).data());
  }
  return out;
}

// An exception of the user's function: what it says, then where it was raised.
static Error CauseFirst(nb::python_error& error) {
  const nb::gil_scoped_acquire own;
  const std::string kind = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string says = nb::cast<std::string>(nb::str(error.value()));
  std::string trace = error.what();
  while (!trace.empty() && trace.back() == '\n') trace.pop_back();
  return Error("ValueError", kind + ": " + says + "\n" + trace);
}

void BindOperators(nb::module_& m) {
  nb::class_<OperatorNode>(m, "OperatorNode",
                           "A node of an operator of one's own, while a model is compiled.")
      .def_prop_ro("name", &OperatorNode::name, "As messages have it.")
      .def_prop_ro("inputs", &OperatorNode::inputs,
                   "Placeholders of the node's inputs; sizes that are open are variables.")
      .def_prop_ro("attributes", &AttributesOf, "Numbers, texts and lists of them, by name.")
      .def_prop_ro("num_outputs", &OperatorNode::num_outputs, "How many results the model names.")
      .def("__repr__", [](const OperatorNode& node) { return "<node '" + node.name() + "'>"; });
  m.def("register_operator",
        [](const std::string& domain, const std::string& name, OperatorDefinition define) {
          RegisterOperator(domain, name, [define = std::move(define)](const OperatorNode& node) {
            try {
              return define(node);
            } catch (nb::python_error& error) {
              throw CauseFirst(error);
            }
          });
        });
  m.def("register_operator_functions",
        [](const std::string& domain, const std::string& name, const IrModule& functions) {
          RegisterOperator(domain, name, functions);
        });
  m.def("remove_operator", &RemoveOperator);
}

}  // namespace tenon::python
