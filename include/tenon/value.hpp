// Values of networks that are no tensors of numbers: strings, sequences, optional values, maps.
// Header-only over tenon.hpp; C++17.
//
//   tenon::Session session("model.so");
//   auto results = tenon::RunValues(session, {{"color", tenon::Value::Strings({2, 1}, {"red",
//   "blue"})}, {"x", x}}); for (const tenon::Value& map : results.at("maps").AsSequence()) …
#ifndef TENON_VALUE_HPP_
#define TENON_VALUE_HPP_

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/ffi_values.hpp"
#include "tenon/tenon.hpp"

namespace tenon {
inline namespace v0 {

/// What a network takes or gives: nothing (an optional value that is not there), a tensor, a
/// sequence of values, a tensor of strings, or a map. As where it is passed (docs/calling.md),
/// strings and maps are made of sequences, and only the model says what a sequence is; the As…
/// check that it can be what is asked for, and throw a TypeError where it cannot. Copies share
/// tensors; a value needs no library to live on.
class Value {
 public:
  Value() = default;
  Value(Tensor tensor) : is_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  static Value Sequence(std::vector<Value> items) {
    Value v;
    v.is_ = std::move(items);
    return v;
  }
  /// Elements in row-major order; there must be as many as the shape says. UTF-8.
  static Value Strings(const std::vector<int64_t>& shape,
                       const std::vector<std::string>& elements) {
    std::vector<Value> dims, texts;
    for (int64_t d : shape) dims.push_back(Of(d));
    for (const std::string& text : elements) texts.push_back(Of(text));
    return Sequence({Sequence(std::move(dims)), Sequence(std::move(texts))});
  }
  /// Keys and values, a vector each: a tensor or strings.
  static Value Map(Value keys, Value values) {
    return Sequence({std::move(keys), std::move(values)});
  }
  /// A copy of what a call gave.
  static Value FromResult(const tn_ffi_any& result) {
    std::string_view text;
    if (result.type_index == TN_FFI_NONE) return {};
    if (result.type_index == TN_FFI_INT) return Of(result.u.v_int64);
    if (GetText(result, &text)) return Of(std::string(text));
    if (result.type_index == TN_FFI_TENSOR) {
      auto* tensor = reinterpret_cast<tn_tensor_t*>(result.u.v_obj);
      tn_tensor_retain(tensor);
      return Tensor::Adopt(tensor);
    }
    const tn_ffi_array* array = GetArray(result);
    if (!array) throw Error("TypeError", "the result is of a type that no network gives");
    std::vector<Value> items;
    for (int64_t i = 0; i < array->size; ++i) items.push_back(FromResult(array->data[i]));
    return Sequence(std::move(items));
  }

  bool IsNone() const { return std::holds_alternative<std::monostate>(is_); }
  bool IsTensor() const { return std::holds_alternative<Tensor>(is_); }
  const Tensor& AsTensor() const { return As<Tensor>(*this, "a tensor"); }
  const std::vector<Value>& AsSequence() const {
    return As<std::vector<Value>>(*this, "a sequence");
  }
  /// Of a tensor of strings.
  std::vector<int64_t> StringsShape() const {
    std::vector<int64_t> shape;
    for (const Value& d : Half(0).AsSequence()) shape.push_back(As<int64_t>(d, "a size"));
    return shape;
  }
  std::vector<std::string> AsStrings() const {
    std::vector<std::string> texts;
    for (const Value& text : Half(1).AsSequence())
      texts.push_back(As<std::string>(text, "a string"));
    return texts;
  }
  const Value& MapKeys() const { return Half(0); }
  const Value& MapValues() const { return Half(1); }

  /// As an argument, which lives as long as this value and `arguments`.
  tn_ffi_any ToArgument(FfiArguments* arguments) const {
    if (IsTensor()) return detail::ToAny(AsTensor());
    if (const auto* number = std::get_if<int64_t>(&is_)) return detail::ToAny(*number);
    if (const auto* text = std::get_if<std::string>(&is_)) return arguments->String(*text);
    if (IsNone()) return {};
    std::vector<tn_ffi_any> items;
    for (const Value& item : AsSequence()) items.push_back(item.ToArgument(arguments));
    return arguments->Array(std::move(items));
  }

 private:
  template <class T>
  static Value Of(T is) {
    Value v;
    v.is_ = std::move(is);
    return v;
  }
  template <class T>
  static const T& As(const Value& value, const char* what) {
    if (const T* is = std::get_if<T>(&value.is_)) return *is;
    throw Error("TypeError", std::string("the value is not ") + what);
  }
  const Value& Half(size_t i) const {
    const std::vector<Value>& both = As<std::vector<Value>>(*this, "strings or a map");
    if (both.size() != 2) throw Error("TypeError", "the value is not strings or a map");
    return both[i];
  }

  // Sizes of strings are integers.
  std::variant<std::monostate, Tensor, int64_t, std::string, std::vector<Value>> is_;
};

/// Every input must be given, by its name; all outputs come back.
inline std::map<std::string, Value> RunValues(const Session& session,
                                              const std::map<std::string, Value>& feeds,
                                              const CallOptions& options = {}) {
  FfiArguments arguments;
  std::vector<tn_ffi_any> args;
  for (const Parameter& parameter : session.inputs()) {
    const auto found = feeds.find(parameter.name);
    if (found == feeds.end())
      throw Error("ValueError", "input '" + parameter.name + "' was not given");
    args.push_back(found->second.ToArgument(&arguments));
  }
  if (feeds.size() != session.inputs().size())
    throw Error("ValueError", "a value was given for an input that there is not");
  const Module& module = session.module();
  Result result = module.GetFunction(module.Name())
                      .Call(args.data(), static_cast<int32_t>(args.size()), options);
  const Value all = Value::FromResult(*result.raw());
  std::map<std::string, Value> results;
  const std::vector<Parameter>& outputs = session.outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    results.emplace(outputs[i].name, outputs.size() == 1 ? all : all.AsSequence().at(i));
  return results;
}

}  // namespace v0
}  // namespace tenon

#endif  // TENON_VALUE_HPP_
