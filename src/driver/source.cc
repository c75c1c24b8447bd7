#include "driver/source.h"

#include <algorithm>
#include <set>

#include "frontend/onnx/import.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

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

Expected<graph::Graph> ImportModel(const CompileOptions& options) {
  onnx::ImportOptions import;
  import.shapes = options.shapes;
  import.external_data_dir = options.external_data_dir;
  return onnx::ImportOnnx(options.model, import);
}

Expected<Hash128> HashSource(const CompileOptions& options, const graph::Graph& g) {
  Hasher hasher;
  TN_ASSIGN_OR_RETURN(MappedFile model, MappedFile::Open(options.model));
  AddFile(model, &hasher);
  // Constants stand in the order of the model, so the files do too.
  std::set<const graph::WeightFile*> seen;
  for (const graph::Value& v : g.values) {
    const graph::WeightFile* file = v.payload.file().get();
    if (!file || !seen.insert(file).second || file->path == options.model) continue;
    AddFile(file->map, &hasher);
  }
  return hasher.Finish();
}

}  // namespace tenon::driver
