#include "values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>

#include "device.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/json.h"
#include "support/strings.h"
#include "tenon/ffi_values.hpp"
#include "verbs.h"

namespace tenon::tools {

namespace {

constexpr size_t kMaxDims = 64;

struct TypeRow {
  const char* name;
  tn_dl_data_type type;
};
constexpr TypeRow kTypes[] = {
    {"float32", {TN_DL_FLOAT, 32, 1}}, {"float64", {TN_DL_FLOAT, 64, 1}},
    {"float16", {TN_DL_FLOAT, 16, 1}}, {"bfloat16", {TN_DL_BFLOAT, 16, 1}},
    {"int8", {TN_DL_INT, 8, 1}},       {"int16", {TN_DL_INT, 16, 1}},
    {"int32", {TN_DL_INT, 32, 1}},     {"int64", {TN_DL_INT, 64, 1}},
    {"uint8", {TN_DL_UINT, 8, 1}},     {"uint16", {TN_DL_UINT, 16, 1}},
    {"uint32", {TN_DL_UINT, 32, 1}},   {"uint64", {TN_DL_UINT, 64, 1}},
    {"bool", {TN_DL_BOOL, 8, 1}},
};

// ---- Texts ----

void AppendUtf8(uint32_t point, std::string* out) {
  auto put = [&](uint32_t byte) { *out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12);
    } else {
      put(0xf0 | (point >> 18 & 7));
      put(0x80 | (point >> 12 & 0x3f));
    }
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

// The code points of valid UTF-8.
std::vector<uint32_t> CodePoints(std::string_view text) {
  std::vector<uint32_t> out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      out.push_back(byte);
    else if (byte >= 0xc0)
      out.push_back(byte >= 0xf0 ? byte & 7U : byte >= 0xe0 ? byte & 15U : byte & 31U);
    else if (!out.empty())
      out.back() = out.back() << 6 | (byte & 0x3fU);
  }
  return out;
}

// Elements end where only NULs follow, as NumPy has it.
std::vector<std::string> TextsOf(const Tensor& tensor) {
  const tn_dl_data_type type = tensor.dtype();
  const size_t width = type.lanes, unit = type.bits / 8;
  std::vector<std::string> out(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto* begin = tensor.bytes().data() + i * width * unit;
    std::vector<uint32_t> points(width, 0);
    for (size_t k = 0; k < width; ++k) std::memcpy(&points[k], begin + k * unit, unit);
    while (!points.empty() && points.back() == 0) points.pop_back();
    for (uint32_t point : points) {
      if (unit == 1)
        out[i] += static_cast<char>(point);
      else
        AppendUtf8(point, &out[i]);
    }
  }
  return out;
}

Expected<Tensor> TextTensor(const std::vector<std::string>& texts,
                            const std::vector<int64_t>& shape) {
  size_t width = 1;
  std::vector<std::vector<uint32_t>> points;
  for (const std::string& text : texts) {
    points.push_back(CodePoints(text));
    width = std::max(width, points.back().size());
  }
  if (width > UINT16_MAX)
    return MakeLimitError("strings of more than 65535 characters are not held as arrays");
  TN_ASSIGN_OR_RETURN(Tensor out,
                      Tensor::Make({TN_DL_HANDLE, 32, static_cast<uint16_t>(width)}, shape));
  if (texts.empty()) return out;
  std::fill(out.bytes().begin(), out.bytes().end(), std::byte{0});
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].empty()) continue;
    std::memcpy(out.bytes().data() + i * width * sizeof(uint32_t), points[i].data(),
                points[i].size() * sizeof(uint32_t));
  }
  return out;
}

// ---- Tensors in JSON ----

/// Elements of nested lists in row-major order, and their shape.
struct Flat {
  std::vector<const Json*> elements;
  std::vector<int64_t> shape;

  // False where lists of one depth differ in length.
  bool Add(const Json& json, size_t depth) {
    if (!json.is_array()) {
      elements.push_back(&json);
      return depth == shape.size();
    }
    if (depth == shape.size()) {
      if (!elements.empty() || depth == kMaxDims) return false;
      shape.push_back(static_cast<int64_t>(json.size()));
    }
    if (shape[depth] != static_cast<int64_t>(json.size())) return false;
    return std::all_of(json.begin(), json.end(),
                       [&](const Json& item) { return Add(item, depth + 1); });
  }
};

Expected<Flat> Flatten(const Json& json) {
  Flat flat;
  if (json.is_object() && json.contains("shape") && json.contains("data") &&
      json["shape"].is_array()) {
    int64_t count = 1;
    for (const Json& d : json["shape"]) {
      if (!d.is_number_integer() || d.get<int64_t>() < 0 || d.get<int64_t>() > INT32_MAX)
        return MakeError("expected sizes as the shape");
      flat.shape.push_back(d.get<int64_t>());
      if (__builtin_mul_overflow(count, flat.shape.back(), &count))
        return MakeLimitError("the shape is too large");
    }
    Flat data;
    if (!data.Add(json["data"], 0) || static_cast<int64_t>(data.elements.size()) != count)
      return MakeError(fmt::format("expected {} elements of shape {}, but got {}", count,
                                   ShapeText(flat.shape), data.elements.size()));
    flat.elements = std::move(data.elements);
    return flat;
  }
  if (!flat.Add(json, 0)) return MakeError("expected lists of one length at each depth");
  return flat;
}

Status SetElement(const Json& json, int64_t i, Tensor* out) {
  const tn_dl_data_type type = out->dtype();
  if (json.is_boolean() && type.code == TN_DL_BOOL) {
    out->Set(i, json.get<bool>() ? 1 : 0);
    return Ok();
  }
  const bool is_float = type.code == TN_DL_FLOAT || type.code == TN_DL_BFLOAT;
  if (json.is_string() && is_float) {
    const auto text = json.get<std::string>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "nan" || text == "inf" || text == "-inf") {
      out->Set(i, text == "nan" ? std::nan("") : text == "inf" ? kInfinity : -kInfinity);
      return Ok();
    }
  }
  if (json.is_number_integer() && type.bits == 64 && !is_float) {  // which doubles would round
    const auto number = json.is_number_unsigned() ? static_cast<int64_t>(json.get<uint64_t>())
                                                  : json.get<int64_t>();
    std::memcpy(out->bytes().data() + static_cast<size_t>(i) * 8, &number, 8);
    return Ok();
  }
  if (!json.is_number() || (!is_float && !json.is_number_integer()) || type.code == TN_DL_BOOL)
    return MakeError(fmt::format("element {} is {}; expected {}", IndexText(i, out->shape()),
                                 json.dump(), ToString(type)));
  out->Set(i, json.get<double>());
  return Ok();
}

Json ElementJson(const Tensor& t, int64_t i) {
  const tn_dl_data_type type = t.dtype();
  if (type.code == TN_DL_BOOL) return t.At(i) != 0;
  if (type.code == TN_DL_INT || type.code == TN_DL_UINT) {
    int64_t number = 0;
    if (type.bits < 64) return static_cast<int64_t>(t.At(i));
    std::memcpy(&number, t.bytes().data() + static_cast<size_t>(i) * 8, 8);
    return type.code == TN_DL_INT ? Json(number) : Json(static_cast<uint64_t>(number));
  }
  const double number = t.At(i);
  if (number != number) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  // With as many digits as its type needs.
  return type.bits == 64 ? number : std::stod(fmt::format("{}", static_cast<float>(number)));
}

// Lists in lists, taking elements in row-major order.
template <class Next>
Json Nested(std::span<const int64_t> shape, Next& next) {
  if (shape.empty()) return next();
  Json list = Json::array();
  for (int64_t i = 0; i < shape[0]; ++i) list.push_back(Nested(shape.subspan(1), next));
  return list;
}

Json TensorJson(const Tensor& t) {
  const auto shape = t.shape();
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return {{"shape", std::vector<int64_t>(shape.begin(), shape.end())}, {"data", Json::array()}};
  int64_t i = 0;
  const std::vector<std::string> texts =
      IsText(t.dtype()) ? TextsOf(t) : std::vector<std::string>();
  auto next = [&] {
    const int64_t at = i++;
    return texts.empty() ? ElementJson(t, at) : Json(texts[static_cast<size_t>(at)]);
  };
  return Nested(shape, next);
}

// ---- Arguments ----

}  // namespace

/// What arguments are made of. Keeps: everything lives as long as this.
class CallValues {
 public:
  Expected<tn_ffi_any> Of(const Value& value, const ValueType& type) {
    if (const auto* json = std::get_if<Json>(&value)) return OfJson(*json, type);
    const auto& tensor = std::get<Tensor>(value);
    if (!type.IsTensor())
      return MakeError(fmt::format("expected {}, but got an array; give it as .json", type.name));
    if ((type.name == "string") != IsText(tensor.dtype()))
      return MakeError(
          fmt::format("expected elements of {}, but got {}", type.name, ToString(tensor.dtype())));
    if (type.name != "string") return OfTensor(tensor);
    const auto shape = tensor.shape();
    return OfTexts({shape.begin(), shape.end()}, TextsOf(tensor));
  }

 private:
  Expected<tn_ffi_any> OfTensor(Tensor tensor) {
    tensors_.push_back(std::move(tensor));
    tn_ffi_any any{};
    any.type_index = TN_FFI_TENSOR;
    any.u.v_obj = &tensors_.back().handle()->header;
    return any;
  }

  Expected<tn_ffi_any> OfTexts(const std::vector<int64_t>& shape, std::vector<std::string> texts) {
    const std::vector<std::string>& kept = texts_.emplace_back(std::move(texts));
    std::vector<tn_ffi_any> dims, strings;
    for (int64_t d : shape) {
      dims.push_back({TN_FFI_INT, 0, {d}});
    }
    for (const std::string& text : kept) {
      if (!IsUtf8(text)) return MakeError("expected strings in UTF-8, but one is not");
      strings.push_back(objects_.String(text));
    }
    return objects_.Array({objects_.Array(std::move(dims)), objects_.Array(std::move(strings))});
  }

  Expected<tn_ffi_any> OfJson(const Json& json, const ValueType& type) {
    if (type.name == "optional") {
      if (json.is_null()) return tn_ffi_any{};
      return OfJson(json, type.inner[0]);
    }
    if (type.name == "sequence") {
      if (!json.is_array()) return MakeError("expected a list as a sequence");
      std::vector<tn_ffi_any> items;
      for (const Json& item : json) {
        TN_ASSIGN_OR_RETURN(const tn_ffi_any any, OfJson(item, type.inner[0]));
        items.push_back(any);
      }
      return objects_.Array(std::move(items));
    }
    if (type.name == "map") return OfMap(json, type);
    TN_ASSIGN_OR_RETURN(Tensor tensor, TensorFromJson(json, type.name));
    return Of(Value(std::move(tensor)), type);
  }

  Expected<tn_ffi_any> OfMap(const Json& json, const ValueType& type) {
    if (!json.is_object()) return MakeError("expected an object as a map");
    Json keys = Json::array(), values = Json::array();
    for (const auto& [key, value] : json.items()) {
      values.push_back(value);
      if (type.inner[0].name == "string") {
        keys.push_back(key);
        continue;
      }
      const Json number = Json::parse(key, nullptr, false);
      if (!number.is_number_integer())
        return MakeError(fmt::format("expected an integer as a map's key, but got '{}'", key));
      keys.push_back(number);
    }
    // No entry at all is a vector, too.
    if (keys.empty()) keys = values = {{"shape", {0}}, {"data", Json::array()}};
    TN_ASSIGN_OR_RETURN(const tn_ffi_any of_keys, OfJson(keys, type.inner[0]));
    TN_ASSIGN_OR_RETURN(const tn_ffi_any of_values, OfJson(values, type.inner[1]));
    return objects_.Array({of_keys, of_values});
  }

  FfiArguments objects_;
  std::deque<std::vector<std::string>> texts_;
  std::deque<Tensor> tensors_;
};

namespace {

// ---- Results ----

Diagnostic Damaged() { return MakeError("the library gave a value of another type than it says"); }

Expected<Value> FromResult(const tn_ffi_any& any, const ValueType& type);

Expected<Tensor> TextsFromResult(const tn_ffi_any& any) {
  const tn_ffi_array* pair = GetArray(any);
  const tn_ffi_array* dims = pair && pair->size == 2 ? GetArray(pair->data[0]) : nullptr;
  const tn_ffi_array* items = dims ? GetArray(pair->data[1]) : nullptr;
  if (!items) return Damaged();
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < dims->size; ++i) shape.push_back(dims->data[i].u.v_int64);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < items->size; ++i) {
    std::string_view text;
    if (!GetText(items->data[i], &text)) return Damaged();
    texts.emplace_back(text);
  }
  return TextTensor(texts, shape);
}

Expected<Json> MapFromResult(const tn_ffi_any& any, const ValueType& type) {
  const tn_ffi_array* pair = GetArray(any);
  if (!pair || pair->size != 2) return Damaged();
  TN_ASSIGN_OR_RETURN(const Value keys, FromResult(pair->data[0], type.inner[0]));
  TN_ASSIGN_OR_RETURN(const Value values, FromResult(pair->data[1], type.inner[1]));
  const Json list = ToJson(keys), items = ToJson(values);
  Json map = Json::object();
  for (size_t i = 0; list.is_array() && items.is_array() && i < std::min(list.size(), items.size());
       ++i)
    map[list[i].is_string() ? list[i].get<std::string>() : list[i].dump()] = items[i];
  return map;
}

Expected<Value> FromResult(const tn_ffi_any& any, const ValueType& type) {
  if (type.name == "string") {
    TN_ASSIGN_OR_RETURN(Tensor texts, TextsFromResult(any));
    return Value(std::move(texts));
  }
  if (type.IsTensor()) {
    if (any.type_index != TN_FFI_TENSOR) return Damaged();
    auto* tensor = reinterpret_cast<tn_tensor_t*>(any.u.v_obj);
    tn_tensor_retain(tensor);
    TN_ASSIGN_OR_RETURN(NamedTensors home, OnHost({{"", Tensor(tensor)}}));
    return Value(std::move(home[0].second));
  }
  if (type.name == "optional") {
    if (any.type_index == TN_FFI_NONE) return Value(Json());
    TN_ASSIGN_OR_RETURN(const Value value, FromResult(any, type.inner[0]));
    return Value(ToJson(value));
  }
  if (type.name == "map") {
    TN_ASSIGN_OR_RETURN(Json map, MapFromResult(any, type));
    return Value(std::move(map));
  }
  const tn_ffi_array* array = GetArray(any);
  if (!array) return Damaged();
  Json list = Json::array();
  for (int64_t i = 0; i < array->size; ++i) {
    TN_ASSIGN_OR_RETURN(const Value item, FromResult(array->data[i], type.inner[0]));
    list.push_back(ToJson(item));
  }
  return Value(std::move(list));
}

}  // namespace

Expected<ValueType> ValueType::Parse(const std::string& text) {
  ValueType type;
  const size_t open = text.find('(');
  type.name = text.substr(0, open);
  if (open == std::string::npos) return type;
  const bool known = type.name == "sequence" || type.name == "optional" || type.name == "map";
  if (!known || text.back() != ')' || std::count(text.begin(), text.end(), '(') > 16)
    return MakeError(fmt::format("'{}' is no type of a value", text));
  std::string inner = text.substr(open + 1, text.size() - open - 2);
  if (type.name == "map") {
    const size_t comma = inner.find(", ");
    if (comma == std::string::npos) return MakeError(fmt::format("'{}' is no type of a map", text));
    type.inner.push_back({inner.substr(0, comma), {}});
    inner = inner.substr(comma + 2);
  }
  TN_ASSIGN_OR_RETURN(ValueType of, Parse(inner));
  type.inner.push_back(std::move(of));
  return type;
}

Expected<Tensor> TensorFromJson(const Json& json, const std::string& type) {
  TN_ASSIGN_OR_RETURN(const Flat flat, Flatten(json));
  if (type == "string") {
    std::vector<std::string> texts;
    for (const Json* element : flat.elements) {
      if (!element->is_string())
        return MakeError(fmt::format("expected strings, but got {}", element->dump()));
      texts.push_back(element->get<std::string>());
    }
    return TextTensor(texts, flat.shape);
  }
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& r) { return r.name == type; });
  if (row == std::end(kTypes))
    return MakeError(fmt::format("elements of {} are not given as JSON", type));
  TN_ASSIGN_OR_RETURN(Tensor out, Tensor::Make(row->type, flat.shape));
  for (size_t i = 0; i < flat.elements.size(); ++i)
    TN_RETURN_IF_ERROR(SetElement(*flat.elements[i], static_cast<int64_t>(i), &out));
  return out;
}

Json ToJson(const Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return TensorJson(*tensor);
  return std::get<Json>(value);
}

ValueArguments::~ValueArguments() = default;
ValueArguments::ValueArguments(ValueArguments&&) noexcept = default;

Expected<ValueArguments> ValueArguments::Of(const Program& program,
                                            const std::vector<Value>& inputs) {
  ValueArguments out;
  out.values_ = std::make_unique<CallValues>();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Parameter& p = program.inputs()[i];
    TN_ASSIGN_OR_RETURN(const ValueType type, ValueType::Parse(p.type));
    Expected<tn_ffi_any> any = out.values_->Of(inputs[i], type);
    if (!any)
      return MakeError(fmt::format("input '{}' ({}): {}", p.name, p.type, any.errors()[0].message));
    out.list_.push_back(*any);
  }
  return out;
}

Expected<NamedValues> CallWithValues(const Program& program, const std::vector<Value>& inputs) {
  TN_ASSIGN_OR_RETURN(const ValueArguments args, ValueArguments::Of(program, inputs));
  tn_ffi_any result{};
  TN_RETURN_IF_ERROR(program.CallRaw(args.list(), &result));
  const tn_ffi_array* all = GetArray(result);
  const size_t count = program.outputs().size();
  NamedValues outputs;
  Status status = Ok();
  for (size_t i = 0; status && i < count; ++i) {
    const Parameter& p = program.outputs()[i];
    Expected<ValueType> type = ValueType::Parse(p.type);
    if (!type || (count > 1 && (!all || all->size != static_cast<int64_t>(count)))) {
      status = Damaged();
      break;
    }
    Expected<Value> value = FromResult(count > 1 ? all->data[i] : result, *type);
    if (value)
      outputs.emplace_back(p.name, std::move(*value));
    else
      status = std::move(value.errors());
  }
  tn_value_release(&result);
  TN_RETURN_IF_ERROR(status);
  return outputs;
}

namespace {

// What NaN and the infinities are written as.
bool IsSpecial(const Json& json) { return json == "nan" || json == "inf" || json == "-inf"; }

std::string Compare(const Json& got, const Json& want, const Tolerance& tolerance,
                    const std::string& at) {
  auto different = [&] {
    return fmt::format("{}: {} where {} is expected", at.empty() ? "all" : at, got.dump(),
                       want.dump());
  };
  if (got.is_number() && want.is_number()) {
    const auto a = got.get<double>(), b = want.get<double>();
    return std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b) ? ""
                                                                                    : different();
  }
  if (got.type() != want.type() || IsSpecial(got) != IsSpecial(want)) return different();
  if (!got.is_structured()) return got == want ? "" : different();
  if (got.size() != want.size())
    return fmt::format("{}: {} entries where {} are expected", at.empty() ? "all" : at, got.size(),
                       want.size());
  for (const auto& [key, value] : want.items()) {
    if (got.is_object() && !got.contains(key)) return fmt::format("{}: there is no '{}'", at, key);
    const Json& other = got.is_object() ? got[key] : got[std::stoul(key)];
    std::string difference = Compare(other, value, tolerance, fmt::format("{}[{}]", at, key));
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace

std::string Difference(const Json& got, const Json& want, const Tolerance& tolerance) {
  return Compare(got, want, tolerance, "");
}

Expected<Json> ReadJson(const std::string& path) {
  Expected<MappedFile> file = MappedFile::Open(path);
  if (!file) return InFile(std::move(file.errors()), path);
  TN_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(file->text(), path));
  return Json(json);
}

Status WriteJson(const std::string& path, const Json& json) {
  TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TN_RETURN_IF_ERROR(file.Append(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"));
  return file.Commit();
}

}  // namespace tenon::tools
