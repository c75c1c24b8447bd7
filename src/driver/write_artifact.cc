#include "driver/write_artifact.h"

#include <fmt/format.h>

#include <filesystem>

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

std::vector<artifact::ParamEntry> WeightTable(const graph::LoweredNetwork& network) {
  std::vector<artifact::ParamEntry> table;
  for (const graph::Weight& w : network.weights) table.push_back(Entry(w));
  return table;
}

Expected<Output> ResolveOutput(const CompileOptions& options, const Target& target) {
  const bool object = options.format == OutputFormat::kObject;
  const bool source = options.format == OutputFormat::kCSource;
  if (source && !options.output.ends_with('/') && !options.output.ends_with(".c")) {
    return MakeError(fmt::format(
        "C source goes to a file that ends in .c, or into a folder/; got '{}'", options.output));
  }
  Output output{options.output, "", "", false};
  std::error_code fault;
  if (options.output.ends_with('/') || fs::is_directory(options.output, fault)) {
    fs::create_directories(options.output, fault);
    if (fault)
      return MakeError(
          fmt::format("cannot make the folder '{}': {}", options.output, fault.message()));
    const std::string_view suffix = object   ? ".o"
                                    : source ? ".c"
                                             : RowOf(target.Cpu().arch()).library_suffix;
    output.path = (fs::path(options.output) / fmt::format("model{}", suffix)).string();
    output.is_bundle = true;
  }
  output.directory = fs::path(output.path).parent_path().string();
  output.directory = output.directory.empty() ? "." : output.directory;
  if (options.params == ParamsMode::kSeparate)
    output.params = fs::path(output.path).replace_extension(".params");
  // That it cannot be written is better known before compiling than after; nothing stays of this.
  TN_RETURN_IF_ERROR(AtomicFile::Create(output.path));
  return output;
}

artifact::LinkRequest RequestLink(const CompiledModule& code, const Target& target,
                                  const CompileOptions& options) {
  artifact::LinkRequest link;
  link.kind = options.format == OutputFormat::kObject ? artifact::OutputKind::kRelocatable
                                                      : artifact::OutputKind::kSharedLibrary;
  for (size_t i = 0; i < code.objects.size(); ++i)
    link.objects.push_back({fmt::format("{}.o", i), code.objects[i]});
  for (const auto& [name, f] : code.host.funcs) {
    if (f->func_kind == FuncKind::kPacked) link.exports.push_back(name);
  }
  link.triple = target.Cpu().triple();
  return link;
}

Expected<artifact::LibraryWriter> CreateArtifact(const graph::LoweredNetwork& network,
                                                 const CompiledModule& code, const Target& target,
                                                 const CompileOptions& options,
                                                 const Output& output) {
  artifact::LinkRequest link = RequestLink(code, target, options);
  link.weights_bytes = network.weights_bytes;
  std::vector<artifact::ParamEntry> table;
  if (!output.params.empty()) {
    link.params_name = fs::path(output.params).filename();
    table = WeightTable(network);
  }
  return artifact::LibraryWriter::Create(link, output.path, table);
}

int64_t ArtifactBytes(const Output& output) {
  std::error_code ignored;
  uintmax_t bytes = fs::file_size(output.path, ignored);
  if (!output.params.empty() && fs::exists(output.params, ignored))
    bytes += fs::file_size(output.params, ignored);
  return static_cast<int64_t>(bytes);
}

}  // namespace tenon::driver
