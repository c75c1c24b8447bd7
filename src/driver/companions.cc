#include "driver/companions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "support/strings.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

struct CppType {
  const char* dtype;
  const char* constant;  // of tenon::DataType
  const char* element;
  const char* number = "";  // a function of the example that reads an element which C++ lacks
};

constexpr CppType kTypes[] = {
    {"float32", "kFloat32", "float"},
    {"float64", "kFloat64", "double"},
    {"bool", "kBool", "bool"},
    {"int8", "kInt8", "int8_t"},
    {"int16", "kInt16", "int16_t"},
    {"int32", "kInt32", "int32_t"},
    {"int64", "kInt64", "int64_t"},
    {"uint8", "kUInt8", "uint8_t"},
    {"uint16", "kUInt16", "uint16_t"},
    {"uint32", "kUInt32", "uint32_t"},
    {"uint64", "kUInt64", "uint64_t"},
    {"float16", "kFloat16", "uint16_t", "FromFloat16"},
    {"bfloat16", "kBFloat16", "uint16_t", "FromBFloat16"},
};

// Of what a call holds as bytes, too.
CppType TypeOf(std::string_view dtype) {
  for (const CppType& t : kTypes) {
    if (dtype == t.dtype) return t;
  }
  return {"", "kUInt8", "uint8_t"};
}

std::string TypeText(const Json& value) { return value["dtype"].get<std::string>(); }
bool IsTensor(const Json& value) {
  return TypeText(value) != "string" && TypeText(value).find('(') == std::string::npos;
}

// A name from a model as a C string literal; octal escapes end by themselves.
std::string Literal(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < ' ' || byte == 0x7f || c == '?') {  // '?': no trigraphs
      out += fmt::format("\\{:03o}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// "float32 1x3x224x224"; a dim with a name keeps it as far as a comment can hold it. What has a
// shape that only the call knows has none here.
std::string Describe(const Json& value) {
  if (!value.contains("shape")) return TypeText(value);
  std::vector<std::string> dims;
  for (const Json& d : value["shape"])
    dims.push_back(d.is_number() ? d.dump() : ToIdentifier(d.get<std::string>()));
  return TypeText(value) + " " + (dims.empty() ? "scalar" : Join(dims, "x"));
}

// Sizes as the program gives them: an open one is the smallest that its dim takes.
std::vector<std::string> Sizes(const Json& value, const Json& dims) {
  if (!value.contains("shape")) return {"1"};
  std::vector<std::string> sizes;
  for (const Json& size : value["shape"]) {
    std::string text = size.is_number() ? size.dump() : "1";
    for (const Json& d : dims) {
      if (d["name"] == size) text = d["min"].dump();
    }
    sizes.push_back(text);
  }
  return sizes;
}

// The type in "sequence(T)" and "optional(T)"; of "map(K, V)" both, with a comma.
std::string_view Inside(std::string_view type) {
  const size_t open = type.find('(');
  return type.substr(open + 1, type.size() - open - 2);
}

constexpr char kExampleHead[] =
    R"(// Calls the compiled model beside this file. Build and run it with:
//
//   c++ -std=c++17 -O2 inference_example.cpp -o inference_example -ltenon_runtime
//   ./inference_example
//
// (-I and -L say where Tenon's include and lib folders are, if the compiler does not know. A program
// finds libtenon_runtime.so when it starts where the system looks, or where it was told to look when
// it was linked: -Wl,-rpath,FOLDER; with -Wl,-rpath,'$ORIGIN' that is the program's own folder.)
#include <tenon/tenon.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>

template <class T, class Number = T>
void Print(const char* name, const tenon::Tensor& tensor, Number (*read)(T) = [](T x) { return x; }) {
  std::cout << name << ":";
  const int64_t shown = std::min<int64_t>(tensor.num_elements(), 8);
  for (int64_t i = 0; i < shown; ++i) std::cout << ' ' << +read(tensor.data_as<T>()[i]);
  std::cout << (shown < tensor.num_elements() ? " ...\n" : "\n");
}

)";

constexpr char kReadHalves[] =
    R"(// C++17 has no type for floats of 16 bits; tensors of them hold the bits.
float FromBFloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float number;
  std::memcpy(&number, &wide, sizeof number);
  return number;
}
float FromFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float number = std::ldexp(static_cast<float>(fraction + (exponent ? 1024 : 0)),
                            (exponent ? exponent : 1) - 25);
  if (exponent == 31) number = fraction ? NAN : INFINITY;
  return bits >> 15 ? -number : number;
}

)";

constexpr char kPrintStrings[] =
    R"(void PrintStrings(const char* name, const tenon::Value& strings) {
  std::cout << name << ":";
  for (const std::string& text : strings.AsStrings()) std::cout << " \"" << text << '"';
  std::cout << '\n';
}

)";

constexpr char kZeros[] =
    R"(tenon::Tensor Zeros(const std::vector<int64_t>& shape, tenon::DataType dtype) {
  tenon::Tensor tensor = tenon::Tensor::Empty(shape, dtype);
  std::fill_n(tensor.data_as<char>(), tensor.bytes(), 0);
  return tensor;
}

)";

// Writes the program. Networks whose values are all tensors of known ranks are called as functions,
// others by RunValues.
class Example {
 public:
  explicit Example(const std::string& info) : all_(Json::parse(info)), main_(all_["functions"][0]) {
    for (const char* list : {"inputs", "outputs"}) {
      for (const Json& value : main_[list]) {
        has_values_ |= !IsTensor(value) || !value.contains("shape");
        const std::string type = TypeText(value);
        has_halves_ |= type.find("float16") != std::string::npos;
        has_strings_ |= type.find("string") != std::string::npos;
      }
    }
  }

  std::string Text(const std::string& library) {
    text_ = kExampleHead;
    if (has_values_) Replace("#include <tenon/tenon.hpp>\n", "#include <tenon/value.hpp>\n");
    if (has_halves_) {
      Replace("#include <algorithm>\n", "#include <algorithm>\n#include <cmath>\n");
      Replace("#include <cstdio>\n", "#include <cstdio>\n#include <cstring>\n");
      text_ += kReadHalves;
    }
    if (has_strings_) text_ += kPrintStrings;
    if (has_values_) text_ += kZeros;
    text_ += "int main(int argc, char** argv) try {\n";
    const std::string path = fmt::format("argc > 1 ? argv[1] : {}", Literal(library));
    text_ += has_values_ ? fmt::format("  tenon::Session session({});\n\n", path)
                         : fmt::format(
                               "  auto module = tenon::Module::LoadFromFile({});\n"
                               "  tenon::Function model = module.GetFunction({});\n\n",
                               path, Literal(main_["name"].get<std::string>()));
    text_ +=
        "  // The inputs. Put your data where the zeros are; Tensor::Wrap takes memory that you "
        "have.\n";
    for (const Json& input : main_["inputs"]) AddInput(input);
    AddCall();
    for (size_t i = 0; i < main_["outputs"].size(); ++i) AddOutput(main_["outputs"][i], i);
    text_ += R"(  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
)";
    return text_;
  }

 private:
  void Replace(std::string_view from, std::string_view to) {
    text_.replace(text_.find(from), from.size(), to);
  }

  // What is there to begin with: one element of everything.
  static std::string Value(std::string_view type, const std::vector<std::string>& sizes) {
    const std::string shape = "{" + Join(sizes, ", ") + "}";
    if (type == "string") {
      int64_t count = 1;
      for (const std::string& size : sizes) count *= std::stoll(size);
      return fmt::format("tenon::Value::Strings({}, std::vector<std::string>({}))", shape, count);
    }
    if (type.starts_with("optional(")) return Value(Inside(type), {"1"});
    if (type.starts_with("sequence("))
      return fmt::format("tenon::Value::Sequence({{{}}})", Value(Inside(type), {"1"}));
    if (type.starts_with("map(")) {
      const std::string_view both = Inside(type);
      const size_t comma = both.find(", ");
      return fmt::format("tenon::Value::Map({}, {})", Value(both.substr(0, comma), {"1"}),
                         Value(both.substr(comma + 2), {"1"}));
    }
    return fmt::format("Zeros({}, tenon::DataType::{})", shape, TypeOf(type).constant);
  }

  void AddInput(const Json& input) {
    const std::string name = fmt::format("input{}", names_.size());
    const std::vector<std::string> sizes = Sizes(input, all_["dims"]);
    text_ +=
        fmt::format("  // {}: {}\n", Literal(input["name"].get<std::string>()), Describe(input));
    if (IsTensor(input)) {
      const CppType type = TypeOf(TypeText(input));
      text_ +=
          fmt::format("  tenon::Tensor {} = tenon::Tensor::Empty({{{}}}, tenon::DataType::{});\n",
                      name, Join(sizes, ", "), type.constant);
      text_ += fmt::format("  std::fill_n({0}.data_as<{1}>(), {0}.num_elements(), {1}{{0}});\n",
                           name, type.element);
    } else {
      text_ += fmt::format("  tenon::Value {} = {};\n", name, Value(TypeText(input), sizes));
    }
    names_.push_back(name);
  }

  void AddCall() {
    if (!has_values_) {
      text_ += fmt::format("\n  tenon::Result result = model({});\n", Join(names_, ", "));
      return;
    }
    std::vector<std::string> feeds;
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::string name = main_["inputs"][i]["name"];
      feeds.push_back(fmt::format("{{{}, {}}}", Literal(name), names_[i]));
    }
    text_ += fmt::format(
        "\n  const std::map<std::string, tenon::Value> results =\n      tenon::RunValues(session, "
        "{{{}}});\n",
        Join(feeds, ", "));
  }

  void AddOutput(const Json& output, size_t i) {
    const std::string name = Literal(output["name"].get<std::string>());
    if (!has_values_) {
      Print(name, TypeText(output), fmt::format("result[{}]", i), "  // " + Describe(output), 2);
      return;
    }
    text_ += fmt::format("  // {}: {}\n", name, Describe(output));
    std::string value = fmt::format("results.at({})", name);
    if (IsTensor(output)) value += ".AsTensor()";
    Print(name, TypeText(output), value, "", 2);
  }

  // Statements that print a value of the type; sequences and optional values one by one.
  void Print(const std::string& name, std::string_view type, const std::string& value,
             const std::string& comment, size_t indent) {
    const std::string space(indent, ' ');
    if (type == "string") {
      text_ += fmt::format("{}PrintStrings({}, {});\n", space, name, value);
    } else if (type.find('(') == std::string_view::npos) {
      const CppType t = TypeOf(type);
      const std::string read = *t.number ? fmt::format(", {}", t.number) : "";
      text_ +=
          fmt::format("{}Print<{}>({}, {}{});{}\n", space, t.element, name, value, read, comment);
    } else if (type.starts_with("map(")) {
      const std::string_view both = Inside(type);
      const size_t comma = both.find(", ");
      Part(name, both.substr(0, comma), value + ".MapKeys()", indent);
      Part(name, both.substr(comma + 2), value + ".MapValues()", indent);
    } else if (type.starts_with("optional(")) {
      text_ += fmt::format("{}if (!{}.IsNone()) {{\n", space, value);
      Part(name, Inside(type), value, indent + 2);
      text_ += space + "}\n";
    } else {
      const std::string item = fmt::format("item{}", indent / 2);
      text_ +=
          fmt::format("{}for (const tenon::Value& {} : {}.AsSequence()) {{\n", space, item, value);
      Part(name, Inside(type), item, indent + 2);
      text_ += space + "}\n";
    }
  }
  void Part(const std::string& name, std::string_view type, const std::string& value,
            size_t indent) {
    const bool tensor = type != "string" && type.find('(') == std::string_view::npos;
    Print(name, type, tensor ? value + ".AsTensor()" : value, "", indent);
  }

  const Json all_;
  const Json& main_;
  bool has_values_ = false, has_halves_ = false, has_strings_ = false;
  std::vector<std::string> names_;
  std::string text_;
};

}  // namespace

std::string ExampleText(const std::string& info, const std::string& library) {
  return Example(info).Text(library);
}

std::string PackedHeaderText(const std::string& info) {
  const Json main = Json::parse(info)["functions"][0];
  const std::string name = main["name"];
  std::string guard = name + "_TENON_H_";
  std::transform(guard.begin(), guard.end(), guard.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  std::string parameters, values, fields, comment;
  size_t count = 0;
  auto add = [&](const Json& tensor, const char* kind, size_t index) {
    bool is_input = kind[0] == 'i';
    // What is no tensor of numbers is passed as it is (docs/calling.md).
    const bool is_tensor = IsTensor(tensor);
    parameters += fmt::format("{}{}{}* {}{}", count ? ", " : "", is_input ? "const " : "",
                              is_tensor ? "tn_dl_tensor" : "tn_ffi_any", kind, index);
    values += fmt::format("{}{{TN_FFI_DL_TENSOR_PTR, 0, {{0}}}}", count ? ", " : "");
    fields += is_tensor ? fmt::format("  args[{}].u.v_ptr = (void*){}{};\n", count, kind, index)
                        : fmt::format("  args[{}] = *{}{};\n", count, kind, index);
    comment += fmt::format(" *   {}{}: {}\n", kind, index, Describe(tensor));
    ++count;
  };
  for (size_t i = 0; i < main["inputs"].size(); ++i) add(main["inputs"][i], "input", i);
  // Where their sizes depend on values, the call makes them.
  const bool makes = main.value("makes_outputs", false);
  for (size_t i = 0; !makes && i < main["outputs"].size(); ++i)
    add(main["outputs"][i], "output", i);
  const char* outputs = makes
                            ? "the outputs are made, and\n * *result is the tensor or an array of "
                              "them, which tn_value_release gives back"
                            : "the outputs are written";
  if (makes) parameters += fmt::format("{}tn_ffi_any* result", count ? ", " : "");
  const char* result = makes ? "" : "  tn_ffi_any result = {0, 0, {0}};\n";
  if (count == 0) values = "{0, 0, {0}}";
  return fmt::format(
      R"(/* The compiled model {name}. C11 and C++. */
#ifndef {guard}
#define {guard}

#include <tenon/ffi_types.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The exported function, in the packed signature of TVM-FFI: the inputs, then {packed}. */
int32_t __tvm_ffi_{name}(void* self, const tn_ffi_any* args, int32_t num_args, tn_ffi_any* result);

/* What went wrong in this thread's last call that returned -1: "ValueError: Parameter ...". Valid
 * until the next question. */
const char* {name}_error(void);

/* Calls the model; the tensors are compact and row-major, {outputs}. 0, or -1 for wrong
 * arguments ({name}_error). Several threads may call it at once.
{comment} */
static inline int32_t {name}({parameters}) {{
  tn_ffi_any args[] = {{{values}}};
{result}{fields}  return __tvm_ffi_{name}(0, args, {count}, {address}result);
}}

#ifdef __cplusplus
}} /* extern "C" */
#endif
#endif /* {guard} */
)",
      fmt::arg("name", name), fmt::arg("guard", guard), fmt::arg("comment", comment),
      fmt::arg("parameters", parameters), fmt::arg("values", values), fmt::arg("fields", fields),
      fmt::arg("count", count), fmt::arg("outputs", outputs),
      fmt::arg("packed", makes ? "nothing: the call makes the outputs" : "the outputs"),
      fmt::arg("result", result), fmt::arg("address", makes ? "" : "&"));
}

}  // namespace tenon::driver
