// Steps on maps. What comes out of a map is a row, of which the rest is made as of any tensor:
// CastMap is a step that gives the row, and a Cast.
#include <fmt/format.h>

#include "frontend/onnx/program_importer.h"

namespace tenon::onnx {
namespace {

constexpr auto kTextElem = static_cast<int32_t>(ElemType::kString);
constexpr auto kInt64Elem = static_cast<int32_t>(ElemType::kInt64);
constexpr auto kFloatElem = static_cast<int32_t>(ElemType::kFloat);

void AppendVarint(uint64_t word, std::string* out) {
  for (; word >= 0x80; word >>= 7) *out += static_cast<char>(word | 0x80);
  *out += static_cast<char>(word);
}

ValueType RowOf(int32_t elem_type, KnownSize size) {
  return ValueType::Tensor(elem_type, {KnownSize{1, ""}, std::move(size)});
}

// The type of a map's values, which are numbers or strings.
Expected<int32_t> ElementOf(const ValueType& map) {
  TN_RETURN_IF_ERROR(ExpectKind(map, ValueType::Kind::kMap, 0));
  if (map.element().IsTensor()) return map.element().elem_type;
  return MakeError(fmt::format("expected a map of numbers or strings, but got {}", map.ToString()));
}

}  // namespace

std::string_view ProgramImporter::AddConstant(const At& at, std::string_view role,
                                              TensorProto tensor) {
  const std::string_view name =
      Keep(fmt::format("{}.{}", at.node.outputs.empty() ? "" : at.node.outputs[0], role));
  Named constant;
  constant.constant = &tensors_.emplace_back(std::move(tensor));
  at.frame.names.here[name] = constant;
  return name;
}

std::string_view ProgramImporter::KeysOf(const At& at, const AttributeProto& list) {
  if (!list.strings.empty())
    return AddConstant(at, "keys",
                       *OfStrings(list.strings, {static_cast<int64_t>(list.strings.size())}));
  std::string varints;
  for (int64_t key : list.ints) AppendVarint(static_cast<uint64_t>(key), &varints);
  TensorProto keys;
  keys.dims = {static_cast<int64_t>(list.ints.size())};
  keys.data_type = kInt64Elem;
  if (!varints.empty()) keys.int64_data.push_back(Keep(std::move(varints)));
  return AddConstant(at, "keys", std::move(keys));
}

// What a map's row has for keys that the map lacks: 0, for which nothing need be said, or a text.
std::string_view ProgramImporter::AddDefault(const At& at, int32_t elem_type,
                                             std::string_view text) {
  return elem_type == kTextElem ? AddConstant(at, "default", *OfStrings({&text, 1}, {})) : "";
}

// A map for each row, of the keys in the attribute.
Status ProgramImporter::PlanZipMap(const At& at) {
  TN_ASSIGN_OR_RETURN(const Named rows, Value(at, 0));
  TN_RETURN_IF_ERROR(ExpectKind(rows.type, ValueType::Kind::kTensor, 0));
  const AttributeProto* names = FindAttribute(at.node, "classlabels_strings");
  const AttributeProto* numbers = FindAttribute(at.node, "classlabels_int64s");
  if (!names == !numbers)
    return MakeError("expected either classlabels_strings or classlabels_int64s");
  NodeProto& node = nodes_.emplace_back(at.node);
  node.inputs = {KeysOf(at, names ? *names : *numbers), at.node.inputs[0]};
  ValueType map = ValueType::Of(ValueType::Kind::kMap, WithoutRank(Scalar(rows.type.elem_type)));
  map.elem_type = names ? kTextElem : kInt64Elem;
  return Emit({node, at.frame}, TN_STEP_ZIP_MAP, {ValueType::Of(ValueType::Kind::kSequence, map)});
}

// The values of the keys in the attribute, 0 or "" for those that the map lacks.
Status ProgramImporter::PlanDictVectorizer(const At& at) {
  TN_ASSIGN_OR_RETURN(const Named map, Value(at, 0));
  TN_ASSIGN_OR_RETURN(const int32_t elem_type, ElementOf(map.type));
  const AttributeProto* names = FindAttribute(at.node, "string_vocabulary");
  const AttributeProto* numbers = FindAttribute(at.node, "int64_vocabulary");
  if (!names == !numbers) return MakeError("expected either string_vocabulary or int64_vocabulary");
  if (map.type.elem_type != (names ? kTextElem : kInt64Elem))
    return MakeError(fmt::format("expected a map with {} as keys, but got {}",
                                 names ? "strings" : "int64", map.type.ToString()));
  const AttributeProto& keys = names ? *names : *numbers;
  const size_t count = names ? keys.strings.size() : keys.ints.size();
  NodeProto& node = nodes_.emplace_back(at.node);
  node.inputs = {at.node.inputs[0], KeysOf(at, keys), AddDefault(at, elem_type, "")};
  return Emit({node, at.frame}, TN_STEP_MAP_ROW,
              {RowOf(elem_type, {static_cast<int64_t>(count), ""})});
}

// All values in the order of keys, or those of the keys 0, 1, … with 0 for those that there are
// not.
Status ProgramImporter::PlanCastMap(const At& at) {
  TN_ASSIGN_OR_RETURN(const Named map, Value(at, 0));
  TN_ASSIGN_OR_RETURN(const int32_t elem_type, ElementOf(map.type));
  if (map.type.elem_type != kInt64Elem)
    return MakeError(
        fmt::format("expected a map with int64 as keys, but got {}", map.type.ToString()));
  const AttributeProto* to = FindAttribute(at.node, "cast_to");
  const AttributeProto* form = FindAttribute(at.node, "map_form");
  const std::string_view cast = to ? to->s : "TO_FLOAT";
  const bool sparse = form && form->s == "SPARSE";
  if (cast != "TO_FLOAT" && cast != "TO_STRING" && cast != "TO_INT64")
    return MakeError(
        fmt::format("expected cast_to to be TO_FLOAT, TO_STRING or TO_INT64, but got '{}'", cast));
  if (form && !sparse && form->s != "DENSE")
    return MakeError(fmt::format("expected map_form to be DENSE or SPARSE, but got '{}'", form->s));
  NodeProto row;
  row.inputs = {at.node.inputs[0]};
  row.outputs = {Keep(fmt::format("{}.row", at.node.outputs.empty() ? "" : at.node.outputs[0]))};
  KnownSize size;
  if (sparse) {
    constexpr int64_t kMost = 1 << 24;
    TN_ASSIGN_OR_RETURN(size.value, Int(at, "max_map", 1));
    if (size.value < 1 || size.value > kMost)
      return MakeError(fmt::format("expected max_map in 1..{}, but got {}", kMost, size.value));
    AttributeProto keys;
    for (int64_t k = 0; k < size.value; ++k) keys.ints.push_back(k);
    row.inputs.push_back(KeysOf(at, keys));
    row.inputs.push_back(AddDefault(at, elem_type, "0"));
  }
  TN_RETURN_IF_ERROR(Emit({row, at.frame}, sparse ? TN_STEP_MAP_ROW : TN_STEP_MAP_VALUES,
                          {RowOf(elem_type, size)}));
  NodeProto& node = nodes_.emplace_back();
  node.name = at.node.name;
  node.op_type = "Cast";
  node.inputs = row.outputs;
  node.outputs = at.node.outputs;
  AttributeProto& type = node.attributes.emplace_back();
  type.name = "to";
  type.type = AttrProtoType::kInt;
  type.i = cast == "TO_FLOAT" ? kFloatElem : cast == "TO_STRING" ? kTextElem : kInt64Elem;
  return PlanInstead(at, node);
}

}  // namespace tenon::onnx
