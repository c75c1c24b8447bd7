#include "driver/source.h"

#include <algorithm>
#include <set>

#include "frontend/onnx/import.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

using Obstacles = std::vector<onnx::Obstacle>;

void AddFile(const MappedFile& file, Hasher* hasher) {
  constexpr size_t kPiece = size_t{8} << 20;
  hasher->Int(file.size());
  for (size_t at = 0; at < file.size(); at += kPiece) {
    size_t n = std::min(kPiece, file.size() - at);
    hasher->Add(file.bytes().subspan(at, n));
    file.ReleasePages(at, n);
  }
}

}  // namespace

Expected<graph::Program> ImportModel(const CompileOptions& options, Obstacles* obstacles) {
  onnx::ImportOptions import;
  import.shapes = options.shapes;
  import.warn = options.warn;
  import.empty_sizes = options.empty_sizes;
  import.external_data_dir = options.external_data_dir;
  import.overrides = options.overrides;
  import.obstacles = obstacles;
  return onnx::ImportNetwork(options.model, import);
}

Expected<Hash128> HashSource(const CompileOptions& options, std::span<const graph::Graph> graphs) {
  Hasher hasher;
  TN_ASSIGN_OR_RETURN(MappedFile model, MappedFile::Open(options.model));
  AddFile(model, &hasher);
  for (const graph::WeightFile* file : WeightFilesOf(graphs)) {
    if (file->path != options.model) AddFile(file->map, &hasher);
  }
  return hasher.Finish();
}

std::vector<const graph::WeightFile*> WeightFilesOf(std::span<const graph::Graph> graphs) {
  // Constants stand in the order of the model, so the files do too.
  std::vector<const graph::WeightFile*> files;
  std::set<const graph::WeightFile*> seen;
  for (const graph::Graph& g : graphs) {
    for (const graph::Value& v : g.values) {
      const graph::WeightFile* file = v.payload.file().get();
      if (file && seen.insert(file).second) files.push_back(file);
    }
  }
  return files;
}

}  // namespace tenon::driver
