#include "artifact/library_writer.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "artifact/weight_segment.h"

namespace tenon::artifact {

WritableRange::WritableRange(WritableRange&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(other.mapping_bytes_),
      bytes_(other.bytes_) {}

WritableRange::~WritableRange() {
  if (mapping_) munmap(mapping_, mapping_bytes_);
}

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
  LibraryWriter writer(std::move(library), std::move(params), weights_at, request.weights_bytes);
  if (request.weights_bytes > 0) {
    TN_RETURN_IF_ERROR(writer.weights_file().Resize(weights_at + request.weights_bytes));
  }
  return writer;
}

Status LibraryWriter::Write(uint64_t offset, std::span<const std::byte> bytes) {
  TN_CHECK(offset <= weights_bytes_ && bytes.size() <= weights_bytes_ - offset);
  return weights_file().WriteAt(weights_at_ + offset, bytes);
}

Expected<WritableRange> LibraryWriter::Map(uint64_t offset, uint64_t bytes) {
  TN_CHECK(offset <= weights_bytes_ && bytes <= weights_bytes_ - offset);
  if (bytes == 0) return WritableRange(nullptr, 0, {});
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t start = (weights_at_ + offset) / page * page;
  size_t lead = weights_at_ + offset - start;
  void* mapping = mmap(nullptr, lead + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       weights_file().fd(), static_cast<off_t>(start));
  if (mapping == MAP_FAILED) {
    return MakeLimitError(fmt::format("cannot map {} bytes of '{}': {}", bytes,
                                      weights_file().temporary_path(), strerror(errno)));
  }
  return WritableRange(mapping, lead + bytes, {static_cast<std::byte*>(mapping) + lead, bytes});
}

Status LibraryWriter::Commit() {
  if (params_) TN_RETURN_IF_ERROR(params_->Commit());
  return library_.Commit();
}

}  // namespace tenon::artifact
