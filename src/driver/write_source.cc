#include "driver/write_source.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "artifact/params.h"
#include "artifact/weight_sink.h"
#include "driver/build.h"
#include "driver/write_library.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

// What compilers of C still take as one array in a minute or so.
constexpr uint64_t kMostEmbedded = uint64_t{32} << 20;

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
TN_EXPORT const char* {}(void) {{
  return tn_error_text;
}}
)";

std::string Comment(const Built& built) {
  const std::string name = Json::parse(built.info)["name"];
  return fmt::format("/* {}, compiled by Tenon for target \"{}\": C11, for one thread. */\n",
                     built.request.weights ? "The model " + name : "Functions",
                     built.target->ToString());
}

std::string LoaderOf(const Built& built, const Hash128& id) {
  const Json all = Json::parse(built.info);
  return fmt::format(kLoader, fmt::arg("name", all["name"].get<std::string>()),
                     fmt::arg("high", id.high), fmt::arg("low", id.low),
                     fmt::arg("bytes", built.WeightsBytes()));
}

}  // namespace

Expected<std::string> SourceOf(const Built& built, const std::string& declarations) {
  codegen::EmitOptions emit = built.emit;
  emit.functions.clear();
  emit.declarations = declarations;
  TN_ASSIGN_OR_RETURN(std::string text, codegen::EmitC(built.whole, *built.target, emit));
  for (const std::string& name : built.request.error_texts) text += fmt::format(kError, name);
  return text;
}

Expected<Files> PrepareSource(const Built& built, const Output& output) {
  const uint64_t bytes = built.WeightsBytes();
  // For reading only: of code that has its weights elsewhere.
  const bool alone = !built.objects.empty();
  const bool separate = bytes > 0 && !output.params.empty();
  if (bytes > kMostEmbedded && !separate && !alone) {
    return MakeError(fmt::format(
        "an array of C can hold {} bytes of weights but the model has {}; use --params separate",
        kMostEmbedded, bytes));
  }
  TN_ASSIGN_OR_RETURN(std::string text,
                      SourceOf(built, alone ? "" : Declarations(bytes, separate)));
  if (alone) return PrepareFile(output.path, text);
  text = Comment(built) + text;
  std::string head;
  Files files;
  if (separate) {
    Hasher hasher;
    hasher.Text(text);
    const Hash128 id = hasher.Finish();
    head = artifact::EncodeParamsHead(WeightTable(built), id, bytes);
    text += LoaderOf(built, id);
  }
  if (bytes > 0) {
    const std::string path = separate ? output.params : output.path + ".weights";
    TN_ASSIGN_OR_RETURN(auto weights, artifact::WeightFile::Create(path, head, bytes));
    TN_RETURN_IF_ERROR(WriteWeights(built, &weights));
    if (separate) {
      TN_ASSIGN_OR_RETURN(AtomicFile file, std::move(weights).Finish());
      files.push_back(std::move(file));
    } else {
      TN_ASSIGN_OR_RETURN(MappedFile content, weights.Read());
      text += ArrayText(content.bytes());
    }
  }
  TN_ASSIGN_OR_RETURN(Files source, PrepareFile(output.path, text));
  files.push_back(std::move(source[0]));
  return files;
}

}  // namespace tenon::driver
