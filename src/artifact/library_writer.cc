#include "artifact/library_writer.h"

#include <filesystem>

#include "artifact/checksum.h"
#include "artifact/weight_segment.h"
#include "support/check.h"

namespace tenon::artifact {

Expected<LibraryWriter> LibraryWriter::Create(const LinkRequest& request, const std::string& path,
                                              const std::vector<ParamEntry>& table) {
  TN_CHECK(request.params_name.find('/') == std::string::npos);
  TN_ASSIGN_OR_RETURN(std::string image, LinkImage(request));
  bool shared = request.kind == OutputKind::kSharedLibrary;
  bool separate = shared && request.weights_bytes > 0 && !request.params_name.empty();
  uint64_t weights_at = 0;
  if (request.weights_bytes > 0 && !separate) {
    TN_ASSIGN_OR_RETURN(weights_at, PlaceWeightSegment(image, request.weights_bytes));
  }
  TN_ASSIGN_OR_RETURN(AtomicFile library, AtomicFile::Create(path, shared ? 0777 : 0666));
  TN_RETURN_IF_ERROR(library.Append(image));
  std::optional<AtomicFile> params;
  if (separate) {
    std::string params_path =
        (std::filesystem::path(path).parent_path() / request.params_name).string();
    TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(params_path));
    std::string head = EncodeParamsHead(table, ParamsId(request), request.weights_bytes);
    TN_RETURN_IF_ERROR(file.Append(head));
    weights_at = head.size();
    params.emplace(std::move(file));
  }
  LibraryWriter writer(std::move(library), std::move(params), weights_at, request.weights_bytes,
                       shared);
  if (request.weights_bytes > 0) {
    TN_RETURN_IF_ERROR(writer.weights_file().Resize(weights_at + request.weights_bytes));
  }
  return writer;
}

Expected<std::vector<AtomicFile>> LibraryWriter::Finish() && {
  std::vector<AtomicFile> files;
  if (has_checksums_) {
    const bool has_weights = !params_ && weights_bytes() > 0;
    TN_RETURN_IF_ERROR(AppendChecksums(&library_, has_weights ? weights_at_ : library_.size()));
  }
  if (params_) {
    TN_RETURN_IF_ERROR(AppendChecksums(&*params_, weights_at_));
    files.push_back(*std::move(params_));
  }
  files.push_back(std::move(library_));
  for (const AtomicFile& file : files) TN_RETURN_IF_ERROR(file.CheckWritten());
  return files;
}

}  // namespace tenon::artifact
