#include "frontend/onnx/custom_operators.h"

#include "frontend/onnx/op_context.h"

namespace tenon::onnx {

static Expected<AttrValue> PlainAttribute(OpContext& c, const AttributeProto& attribute) {
  const std::string name(attribute.name);
  switch (attribute.type) {
    case AttrProtoType::kInt: return AttrValue(attribute.i);
    case AttrProtoType::kFloat: return AttrValue(double{attribute.f});
    case AttrProtoType::kString: return AttrValue(std::string(attribute.s));
    case AttrProtoType::kInts: return AttrValue(attribute.ints);
    case AttrProtoType::kFloats:
      return AttrValue(std::vector<double>(attribute.floats.begin(), attribute.floats.end()));
    case AttrProtoType::kStrings:
      return AttrValue(
          std::vector<std::string>(attribute.strings.begin(), attribute.strings.end()));
    default: break;
  }
  return c.Error(
      "expected attribute '{}' of an operator of one's own to be a number, a text or a "
      "list of them",
      name);
}

const CustomOperator* FindCustom(const CustomOperators& all, std::string_view domain,
                                 std::string_view name) {
  if (all.empty()) return nullptr;
  const auto it = all.find({std::string(domain), std::string(name)});
  return it == all.end() ? nullptr : &it->second;
}

Status ImportCustom(OpContext& c, const CustomOperator& op) {
  CustomNode node;
  node.name = c.name();
  node.num_outputs = c.num_outputs();
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.num_inputs(); ++i) {
    if (!c.Has(i)) return c.Error("an operator of one's own has no inputs that are left out");
    node.inputs.push_back(c.Type(i));
    inputs.push_back(c.In(i));
  }
  for (const AttributeProto& attribute : c.node.attributes) {
    TN_ASSIGN_OR_RETURN(AttrValue value, PlainAttribute(c, attribute));
    node.attributes.Set(std::string(attribute.name), std::move(value));
    c.NoteRead(attribute);
  }
  TN_ASSIGN_OR_RETURN(const CustomBody body, op(node));
  if (body.results.size() < c.num_outputs())
    return c.Error("expected {} results, but the function has {}", c.num_outputs(),
                   body.results.size());
  for (const Expr& condition : body.conditions) c.b.Require(condition);
  std::vector<std::string> dtypes;
  std::vector<int64_t> ranks;
  std::vector<Expr> sizes;
  for (const TensorType& type : body.results) {
    dtypes.push_back(type.dtype.ToString());
    ranks.push_back(type.rank());
    sizes.insert(sizes.end(), type.dims.begin(), type.dims.end());
  }
  Attrs attrs;
  attrs.Set("body", body.body);
  attrs.Set("dtypes", std::move(dtypes));
  attrs.Set("ranks", std::move(ranks));
  TN_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                      c.EmitAll(OpKind::kCall, body.results.size(), std::move(inputs),
                                std::move(attrs), {{"sizes", std::move(sizes)}}));
  for (size_t i = 0; i < c.num_outputs(); ++i) {
    if (c.Wants(i)) TN_RETURN_IF_ERROR(c.SetOutput(i, results[i]));
  }
  return Ok();
}

}  // namespace tenon::onnx
