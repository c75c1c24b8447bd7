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
};

constexpr CppType kTypes[] = {
    {"float32", "kFloat32", "float"},  {"float64", "kFloat64", "double"},
    {"bool", "kBool", "bool"},         {"int8", "kInt8", "int8_t"},
    {"int16", "kInt16", "int16_t"},    {"int32", "kInt32", "int32_t"},
    {"int64", "kInt64", "int64_t"},    {"uint8", "kUInt8", "uint8_t"},
    {"uint16", "kUInt16", "uint16_t"}, {"uint32", "kUInt32", "uint32_t"},
    {"uint64", "kUInt64", "uint64_t"},
};

CppType TypeOf(const Json& tensor) {
  for (const CppType& t : kTypes) {
    if (tensor["dtype"] == t.dtype) return t;
  }
  return {"", "kUInt8", "uint8_t"};
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

// "float32 1x3x224x224"; a dim with a name keeps it as far as a comment can hold it.
std::string Describe(const Json& tensor) {
  std::vector<std::string> dims;
  for (const Json& d : tensor["shape"])
    dims.push_back(d.is_number() ? d.dump() : ToIdentifier(d.get<std::string>()));
  return tensor["dtype"].get<std::string>() + " " + (dims.empty() ? "scalar" : Join(dims, "x"));
}

// Sizes as the program gives them: an open one is the smallest that its dim takes.
std::string Sizes(const Json& tensor, const Json& dims) {
  std::vector<std::string> sizes;
  for (const Json& size : tensor["shape"]) {
    std::string text = size.is_number() ? size.dump() : "1";
    for (const Json& d : dims) {
      if (d["name"] == size) text = d["min"].dump();
    }
    sizes.push_back(text);
  }
  return "{" + Join(sizes, ", ") + "}";
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

template <class T>
void Print(const char* name, const tenon::Tensor& tensor) {
  std::cout << name << ":";
  const int64_t shown = std::min<int64_t>(tensor.num_elements(), 8);
  for (int64_t i = 0; i < shown; ++i) std::cout << ' ' << +tensor.data_as<T>()[i];
  std::cout << (shown < tensor.num_elements() ? " ...\n" : "\n");
}

)";

}  // namespace

std::string ExampleText(const std::string& info, const std::string& library) {
  const Json all = Json::parse(info), &main = all["functions"][0];
  std::string text = kExampleHead;
  text += fmt::format(
      "int main(int argc, char** argv) try {{\n  auto module = tenon::Module::LoadFromFile(argc > "
      "1 ? argv[1] : {});\n",
      Literal(library));
  text += fmt::format("  tenon::Function model = module.GetFunction({});\n\n",
                      Literal(main["name"].get<std::string>()));
  text +=
      "  // The inputs. Put your data where the zeros are; Tensor::Wrap takes memory that you "
      "have.\n";
  std::vector<std::string> arguments;
  for (const Json& input : main["inputs"]) {
    CppType type = TypeOf(input);
    std::string name = fmt::format("input{}", arguments.size());
    text +=
        fmt::format("  // {}: {}\n", Literal(input["name"].get<std::string>()), Describe(input));
    text += fmt::format("  tenon::Tensor {} = tenon::Tensor::Empty({}, tenon::DataType::{});\n",
                        name, Sizes(input, all["dims"]), type.constant);
    text += fmt::format("  std::fill_n({0}.data_as<{1}>(), {0}.num_elements(), {1}{{0}});\n", name,
                        type.element);
    arguments.push_back(name);
  }
  text += fmt::format("\n  tenon::Result result = model({});\n", Join(arguments, ", "));
  for (size_t i = 0; i < main["outputs"].size(); ++i) {
    const Json& output = main["outputs"][i];
    text += fmt::format("  Print<{}>({}, result[{}]);  // {}\n", TypeOf(output).element,
                        Literal(output["name"].get<std::string>()), i, Describe(output));
  }
  text += R"(  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
)";
  return text;
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
    parameters += fmt::format("{}{}tn_dl_tensor* {}{}", count ? ", " : "", is_input ? "const " : "",
                              kind, index);
    values += fmt::format("{}{{TN_FFI_DL_TENSOR_PTR, 0, {{0}}}}", count ? ", " : "");
    fields += fmt::format("  args[{}].u.v_ptr = (void*){}{};\n", count, kind, index);
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
