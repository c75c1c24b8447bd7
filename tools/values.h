// Values of networks that are no tensors of numbers, on the command line: strings, sequences,
// optional values, maps.
//
// Arrays in files hold strings as NumPy does, `<U` and `|S`; here they are tensors, too (IsText).
// Any value has a form in JSON, which its type decides:
//
//   tensor         lists in lists, a number where it has no dims: [[1, 2.5], ["nan", "-inf"]];
//   where
//                  a dim is 0: {"shape": [2, 0], "data": []}
//   string         the same of texts
//   sequence(T)    a list
//   optional(T)    null, or a T
//   map(K, V)      an object, whose keys are texts or integers as texts
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compare_tensors.h"
#include "program.h"

namespace tenon::tools {

using Json = nlohmann::ordered_json;

/// What a value of a type that is not a tensor's is, is its form in JSON. Tensors of strings are
/// tensors, as in files.
using Value = std::variant<Tensor, Json>;
using NamedValues = std::vector<std::pair<std::string, Value>>;

/// A value's type as libraries say it (Parameter::type): "map(int64, float32)".
struct ValueType {
  std::string name;  // "sequence", "optional", "map", "string", or an element type
  std::vector<ValueType> inner;
  static Expected<ValueType> Parse(const std::string& text);
  bool IsTensor() const { return inner.empty(); }
};

/// The tensor that a JSON value is; `type` is an element type.
Expected<Tensor> TensorFromJson(const Json& json, const std::string& type);
/// The form of any value in JSON.
Json ToJson(const Value& value);

class CallValues;

/// The arguments of a call, of a network's inputs in order; what JSON is given for tensors is made
/// one. Errors name the input.
class ValueArguments {
 public:
  static Expected<ValueArguments> Of(const Program& program, const std::vector<Value>& inputs);
  ValueArguments(ValueArguments&&) noexcept;
  ~ValueArguments();

  /// As long as this lives.
  const std::vector<tn_ffi_any>& list() const { return list_; }

 private:
  ValueArguments() = default;
  std::unique_ptr<CallValues> values_;
  std::vector<tn_ffi_any> list_;
};

/// Calls a network of any values.
Expected<NamedValues> CallWithValues(const Program& program, const std::vector<Value>& inputs);

/// "" where got equals want: the same form, and every number within the tolerance; else where and
/// how they differ.
std::string Difference(const Json& got, const Json& want, const Tolerance& tolerance);

Expected<Json> ReadJson(const std::string& path);
Status WriteJson(const std::string& path, const Json& json);

}  // namespace tenon::tools
