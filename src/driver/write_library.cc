#include "driver/write_library.h"

#include <fmt/format.h>

#include <filesystem>

#include "artifact/library_writer.h"
#include "driver/build.h"
#include "ir/print.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

tn_dl_data_type AbiType(DType type) {
  uint8_t code = TN_DL_HANDLE;
  switch (type.code) {
    case TypeCode::kInt:
    case TypeCode::kIndex: code = TN_DL_INT; break;
    case TypeCode::kUInt: code = TN_DL_UINT; break;
    case TypeCode::kFloat: code = TN_DL_FLOAT; break;
    case TypeCode::kBFloat: code = TN_DL_BFLOAT; break;
    case TypeCode::kFloat8: code = static_cast<uint8_t>(type.float8); break;
    case TypeCode::kBool: code = TN_DL_BOOL; break;
    case TypeCode::kHandle:
    case TypeCode::kString: break;
  }
  return {code, static_cast<uint8_t>(type.StorageBits()), 1};
}

artifact::ParamEntry Entry(const graph::Weight& w) {
  artifact::ParamEntry entry;
  entry.name = w.name;
  entry.dtype = AbiType(w.type.dtype);
  if (auto dims = w.type.StaticDims()) entry.dims = *dims;
  entry.layout = w.type.layout ? ToString(w.type.layout) : "";
  Hasher hasher;
  hasher.Text(w.prepare).Text(entry.layout);
  if (w.source) hasher.Add(w.source.bytes());
  for (const graph::Payload& p : w.sources) hasher.Add(p.bytes());
  entry.hash = hasher.Finish();
  entry.offset = w.offset;
  entry.bytes = w.bytes;
  return entry;
}

}  // namespace

std::vector<artifact::ParamEntry> WeightTable(const Built& built) {
  std::vector<artifact::ParamEntry> table;
  if (!built.request.weights) return table;
  for (const graph::Weight& w : built.request.weights->list) table.push_back(Entry(w));
  return table;
}

// Modules of WebAssembly have no segments: an object holds their weights.
static Expected<std::string> WeightObject(const Built& built, const std::string& path) {
  // Addresses have 32 bits, and the linker holds everything a few times.
  constexpr uint64_t kMostWeights = uint64_t{1} << 30;
  const uint64_t bytes = built.WeightsBytes();
  if (bytes > kMostWeights) {
    return MakeError(
        fmt::format("a module of WebAssembly can hold {} bytes of weights but the model has {}",
                    kMostWeights, bytes));
  }
  TN_ASSIGN_OR_RETURN(auto file, artifact::WeightFile::Create(path + ".weights", "", bytes));
  TN_RETURN_IF_ERROR(WriteWeights(built, &file));
  TN_ASSIGN_OR_RETURN(MappedFile content, file.Read());
  std::string size(8, '\0');
  for (size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(bytes >> (8 * i));
  std::string weights(reinterpret_cast<const char*>(content.bytes().data()), bytes);
  codegen::EmitOptions emit;
  emit.blobs.push_back({"tn_weights_base", std::move(weights), 64, false, false});
  emit.blobs.push_back({"tn_weights_size", size, 8, false, false});
  return codegen::EmitObject({}, *built.target, emit);
}

static Expected<Files> PrepareContained(const Built& built, artifact::LinkRequest link,
                                        const std::string& path) {
  std::string weights;
  if (built.WeightsBytes() > 0) {
    TN_ASSIGN_OR_RETURN(weights, WeightObject(built, path));
    link.objects.push_back({"weights.o", weights});
  }
  TN_ASSIGN_OR_RETURN(std::string image, artifact::LinkImage(link));
  return PrepareFile(path, image);
}

Expected<Files> PrepareLibrary(const Built& built, artifact::OutputKind kind,
                               const Output& output) {
  const std::string& chosen = built.request.soname;
  const std::string soname = chosen.empty() ? fs::path(output.path).filename().string() : chosen;
  // What the machine's own compiler makes of source has no weights.
  if (built.objects.empty()) {
    TN_ASSIGN_OR_RETURN(const std::string image, LinkInMemory(built, kind, soname));
    return PrepareFile(output.path, image);
  }
  TN_RETURN_IF_ERROR(CheckLinks(built, kind));
  artifact::LinkRequest link = RequestLink(built, kind);
  link.soname = soname;
  if (built.target->Cpu().IsContained()) return PrepareContained(built, link, output.path);
  link.weights_bytes = built.WeightsBytes();
  std::vector<artifact::ParamEntry> table;
  if (!output.params.empty()) {
    link.params_name = fs::path(output.params).filename();
    table = WeightTable(built);
  }
  TN_ASSIGN_OR_RETURN(auto writer, InPhase(built.request.hooks, "link", [&] {
                        return artifact::LibraryWriter::Create(link, output.path, table);
                      }));
  TN_RETURN_IF_ERROR(WriteWeights(built, &writer));
  return std::move(writer).Finish();
}

}  // namespace tenon::driver
