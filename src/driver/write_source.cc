#include "driver/write_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "artifact/params.h"
#include "artifact/weight_sink.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

// What compilers of C still take as one array in a minute or so.
constexpr uint64_t kMostEmbedded = uint64_t{32} << 20;

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string CType(const Json& tensor) {
  const auto dtype = tensor["dtype"].get<std::string>();
  if (dtype == "float32") return "float";
  if (dtype == "float64") return "double";
  if (dtype == "bool") return "uint8_t";
  if (dtype == "float16" || dtype == "bfloat16") return "uint16_t";
  return dtype + "_t";
}

// ---- the header ----

constexpr char kHeader[] =
    R"(/* The compiled model {name}: {source}, C11 that needs the C library alone. */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* What a call needs for its intermediate values, aligned to 64 bytes. */
#define {upper}_WORKSPACE_BYTES {workspace}
{load}
/* Runs the model on the caller's thread; the tensors are compact and row-major, the outputs are
 * written. It allocates nothing. Several threads may call it at once, each with a workspace of its
 * own. Returns 0, or -1 where a pointer is null or not aligned, an output overlaps another
 * tensor{failure}.
{tensors} */
int32_t {name}_run({parameters}void* workspace);

/* The same in the packed signature of TVM-FFI, with all arguments checked; where pointers have 64
 * bits. A shared library made of {source} is a module for tvm_ffi.load_module. */
int32_t __tvm_ffi_{name}(void* self, void* args, int32_t num_args, void* result);

/* What went wrong in this thread's last call that returned -1. */
const char* {name}_error(void);

#ifdef __cplusplus
}} /* extern "C" */
#endif
#endif /* {guard} */
)";

constexpr char kLoadDeclaration[] = R"(
/* Reads the weights from a file, once and before the first call. Returns 0, or -1 where it is not
 * there or not the file that was made with this source. */
int32_t {}_load(const char* path);
)";

std::string HeaderText(const SourceRequest& r, const std::string& source, bool separate) {
  const Json all = Json::parse(r.info), &main = all["functions"][0];
  const std::string& name = r.options.name;
  std::string parameters, tensors;
  auto add = [&](const Json& list, const char* kind, const char* qualifier) {
    for (size_t i = 0; i < list.size(); ++i) {
      parameters += fmt::format("{}{}* {}{}, ", qualifier, CType(list[i]), kind, i);
      tensors += fmt::format(" *   {}{}: {} {} {}\n", kind, i,
                             QuoteJson(list[i]["name"].get<std::string>()),
                             list[i]["dtype"].get<std::string>(), list[i]["shape"].dump());
    }
  };
  add(main["inputs"], "input", "const ");
  add(main["outputs"], "output", "");
  for (const Json& d : all["dims"]) {
    const std::string dim = d["name"];
    parameters += fmt::format("int64_t {}, ", dim);
    tensors += fmt::format(" *   {}: {} to {} in steps of {}\n", dim, d["min"].dump(),
                           d["max"].dump(), d["step"].dump());
  }
  // A name of the model's must not end the comment.
  for (size_t at = 0; (at = tensors.find("*/", at)) != std::string::npos;)
    tensors.replace(at, 2, "* /");
  return fmt::format(kHeader, fmt::arg("name", name), fmt::arg("source", source),
                     fmt::arg("guard", Upper(name) + "_TENON_H_"), fmt::arg("upper", Upper(name)),
                     fmt::arg("workspace", all["arena_bytes"].get<int64_t>()),
                     fmt::arg("load", separate ? fmt::format(kLoadDeclaration, name) : ""),
                     fmt::arg("failure", separate ? ", or while the weights have not been read"
                                                  : ", or for an index out of range"),
                     fmt::arg("tensors", tensors), fmt::arg("parameters", parameters));
}

// ---- weights ----

constexpr char kEndianness[] =
    R"(#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights are little-endian"
#endif
)";

std::string Declarations(uint64_t bytes, bool separate) {
  if (bytes == 0) return "";
  if (separate) {
    return std::string(kEndianness) +
           "static const unsigned char* tn_weights_base;\n#define TN_WEIGHTS tn_weights_base\n";
  }
  return fmt::format(
      "{}static const _Alignas(64) uint64_t tn_weights[{}];\n#define tn_weights_base tn_weights\n",
      kEndianness, (bytes + 7) / 8);
}

std::string ArrayText(std::span<const std::byte> bytes) {
  const size_t words = (bytes.size() + 7) / 8;
  std::string out = fmt::format("\nstatic const _Alignas(64) uint64_t tn_weights[{}] = {{", words);
  out.reserve(words * 20 + 100);
  for (size_t i = 0; i < words; ++i) {
    uint64_t word = 0;
    for (size_t k = std::min<size_t>(8, bytes.size() - 8 * i); k-- > 0;)
      word = word << 8 | static_cast<uint64_t>(bytes[8 * i + k]);
    out += i % 4 == 0 ? "\n   " : "";
    fmt::format_to(std::back_inserter(out), " {:#x},", word);
  }
  return out + "\n};\n";
}

constexpr char kLoader[] = R"(
TN_EXPORT int32_t {name}_load(const char* path) {{
  static const uint64_t id[2] = {{{high:#x}, {low:#x}}};
  const uint64_t bytes = {bytes};
  unsigned char head[64];
  uint64_t at = 0, size = 0;
  FILE* file = fopen(path, "rb");
  if (!file) return tn_core_fail("RuntimeError", "the file of weights cannot be opened");
  const bool ours = fread(head, 1, sizeof head, file) == sizeof head &&
                    memcmp(head, "TNPARAMS\1\0\0\0", 12) == 0 && memcmp(head + 16, id, 16) == 0;
  memcpy(&at, head + 40, 8);
  memcpy(&size, head + 48, 8);
  void* memory = ours && size == bytes && size <= SIZE_MAX ? tn_core_allocate((size_t)bytes, 64) : NULL;
  bool done = memory != NULL && at <= INT32_MAX && fseek(file, (long)at, SEEK_SET) == 0;
  done = done && fread(memory, 1, (size_t)bytes, file) == (size_t)bytes;
  fclose(file);
  if (!done) {{
    tn_core_free(memory);
    return tn_core_fail("RuntimeError", ours ? "the file of weights cannot be read"
                                             : "the file of weights belongs to another model");
  }}
  tn_weights_base = (const unsigned char*)memory;
  return 0;
}}
)";

constexpr char kError[] = R"(
TN_EXPORT const char* {}_error(void) {{
  return tn_error_text;
}}
)";

std::string Comment(const SourceRequest& r) {
  return fmt::format(
      "/* The model {}, compiled by Tenon for target \"{}\": C11, for one thread. */\n",
      r.options.name, r.target.ToString());
}

}  // namespace

std::string PlainName(const CompileOptions& options) { return options.name + "_run"; }

// One workspace serves calls of all sizes.
Status RequireEnds(const SourceRequest& r) {
  const std::string open =
      "the largest size is needed for C; give '{0}' a range, as in "
      "--shape input:{0}[1..16]";
  for (const Json& d : Json::parse(r.info)["dims"]) {
    if (d["max"].get<int64_t>() < graph::Dim::kNoMax) continue;
    return MakeError(fmt::format(fmt::runtime(open), d["name"].get<std::string>()));
  }
  return Ok();
}

Status WriteSource(const SourceRequest& r) {
  TN_RETURN_IF_ERROR(RequireEnds(r));
  const uint64_t bytes = r.network.weights_bytes;
  const bool separate = bytes > 0 && !r.output.params.empty();
  if (bytes > kMostEmbedded && !separate) {
    return MakeError(fmt::format(
        "an array of C can hold {} bytes of weights but the model has {}; use --params separate",
        kMostEmbedded, bytes));
  }
  codegen::EmitOptions emit = r.code.emit;
  emit.functions.clear();
  emit.declarations = Declarations(bytes, separate);
  TN_ASSIGN_OR_RETURN(std::string text, codegen::EmitC(r.code.whole, r.target, emit));
  text = Comment(r) + text + fmt::format(kError, r.options.name);
  std::string head;
  if (separate) {
    Hasher hasher;
    hasher.Text(text);
    const Hash128 id = hasher.Finish();
    head = artifact::EncodeParamsHead(WeightTable(r.network), id, bytes);
    text += fmt::format(kLoader, fmt::arg("name", r.options.name), fmt::arg("high", id.high),
                        fmt::arg("low", id.low), fmt::arg("bytes", bytes));
  }
  if (bytes > 0) {
    const std::string path = separate ? r.output.params : r.output.path + ".weights";
    TN_ASSIGN_OR_RETURN(auto weights, artifact::WeightFile::Create(path, head, bytes));
    TN_RETURN_IF_ERROR(WriteWeights(r.network, r.build_host, r.prepare, &weights, r.progress));
    if (separate) {
      TN_RETURN_IF_ERROR(weights.Commit());
    } else {
      TN_ASSIGN_OR_RETURN(MappedFile content, weights.Read());
      text += ArrayText(content.bytes());
    }
  }
  const std::filesystem::path path = r.output.path;
  TN_RETURN_IF_ERROR(WriteFile(std::filesystem::path(path).replace_extension(".h"),
                               HeaderText(r, path.filename(), separate)));
  return WriteFile(path, text);
}

}  // namespace tenon::driver
