#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <memory>

#include "npy.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
template <class T>
using Handle = std::unique_ptr<T, Discard>;

Diagnostic ZipError(const std::string& path, const std::string& what, zip_error_t* error) {
  return MakeError(fmt::format("{}: {}", what, zip_error_strerror(error)), {path});
}

Diagnostic OpenError(const std::string& path, int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  Diagnostic d = ZipError(path, "cannot open it as an .npz archive", &error);
  zip_error_fini(&error);
  return d;
}

// Fills all of `out`, or says that the entry is shorter or damaged.
Status ReadAll(zip_file_t* file, std::span<std::byte> out, const SourceLoc& where) {
  while (!out.empty()) {
    zip_int64_t n = zip_fread(file, out.data(), out.size());
    if (n <= 0) return MakeError("the archive is damaged: the array's data is cut off", where);
    out = out.subspan(static_cast<size_t>(n));
  }
  // The check sum is compared when the end is read.
  std::byte beyond;
  if (zip_fread(file, &beyond, 1) != 0) {
    return MakeError("the archive is damaged: the array's check sum or size is wrong", where);
  }
  return Ok();
}

// A few kilobytes can stand for gigabytes of zeros, which somebody may have had; but not as a
// surprise.
class Unpacked {
 public:
  Unpacked(const std::string& path, uint64_t file_bytes)
      : path_(path), most_(std::max(kMost, kMostTimes * file_bytes)) {}

  Status Add(uint64_t bytes) {
    if (bytes <= most_ - total_) {
      total_ += bytes;
      return Ok();
    }
    return MakeLimitError(
        fmt::format("the archive unpacks to more than {} MB, {} times its size; unpack it first, "
                    "or save it without compression",
                    most_ >> 20, kMostTimes),
        {path_});
  }

 private:
  static constexpr uint64_t kMost = uint64_t{1} << 30, kMostTimes = 16;
  const std::string& path_;
  const uint64_t most_;
  uint64_t total_ = 0;
};

Expected<Tensor> ReadEntry(zip_t* archive, zip_uint64_t index, const zip_stat_t& stat,
                           const SourceLoc& where, Unpacked* unpacked) {
  Handle<zip_file_t> file(zip_fopen_index(archive, index, 0));
  if (!file) return ZipError(where.file, where.item, zip_get_error(archive));
  std::string head(std::min<uint64_t>(kMaxNpyHeader, stat.size), '\0');
  zip_int64_t got = zip_fread(file.get(), head.data(), head.size());
  head.resize(static_cast<size_t>(std::max<zip_int64_t>(got, 0)));
  TN_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(head, where.file + ": " + where.item));
  if (stat.size - header.header_bytes != header.data_bytes) {
    return MakeError(fmt::format("expected {} bytes of data for {} of {} but there are {}",
                                 header.data_bytes, ShapeText(header.shape), ToString(header.dtype),
                                 stat.size - header.header_bytes),
                     where);
  }
  TN_RETURN_IF_ERROR(unpacked->Add(stat.size));
  TN_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(header.dtype, header.shape));
  std::span<std::byte> bytes = tensor.bytes();
  size_t begun = std::min(head.size() - header.header_bytes, bytes.size());
  std::copy_n(std::as_bytes(std::span(head)).begin() + static_cast<ptrdiff_t>(header.header_bytes),
              begun, bytes.begin());
  TN_RETURN_IF_ERROR(ReadAll(file.get(), bytes.subspan(begun), where));
  return header.fortran_order ? FromFortranOrder(tensor) : tensor;
}

// Adds one stored entry without a date, so that the same arrays give the same archive.
bool AddEntry(zip_t* archive, const std::string& name, const std::string& content) {
  zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
  if (!source) return false;
  zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  auto at = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t kFirstDate = 1 << 5 | 1;  // 1980-01-01
  return zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) == 0 &&
         zip_file_set_dostime(archive, at, 0, kFirstDate, 0) == 0;
}

}  // namespace

Expected<NamedTensors> ReadNpz(const std::string& path) {
  // It says what is no file; libzip would wait for a pipe.
  Expected<MappedFile> file = MappedFile::Open(path);
  if (!file) return InFile(std::move(file.errors()), path);
  Unpacked unpacked(path, file->size());
  int code = 0;
  Handle<zip_t> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive) return OpenError(path, code);
  NamedTensors tensors;
  zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(std::max<zip_int64_t>(count, 0)); ++i) {
    zip_stat_t stat;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(archive.get(), i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
      return ZipError(path, "the archive is damaged", zip_get_error(archive.get()));
    }
    std::string name = stat.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    SourceLoc where{path, 0, 0, fmt::format("array '{}'", name)};
    TN_ASSIGN_OR_RETURN(Tensor tensor, ReadEntry(archive.get(), i, stat, where, &unpacked));
    tensors.emplace_back(std::move(name), std::move(tensor));
  }
  return tensors;
}

Status WriteNpz(const std::string& path, const NamedTensors& tensors) {
  zip_error_t error;
  zip_error_init(&error);
  Handle<zip_source_t> memory(zip_source_buffer_create(nullptr, 0, 0, &error));
  Handle<zip_t> archive(memory ? zip_open_from_source(memory.get(), ZIP_TRUNCATE, &error)
                               : nullptr);
  if (!archive) return ZipError(path, "cannot make an archive", &error);
  zip_source_keep(memory.get());      // the archive drops one reference when it closes
  std::vector<std::string> contents;  // alive until then
  contents.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    TN_RETURN_IF_ERROR(CheckWritable(tensor, name));
    std::span<std::byte> bytes = tensor.bytes();
    contents.push_back(FormatNpyHeader(tensor.dtype(), tensor.shape()));
    contents.back().append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!AddEntry(archive.get(), name + ".npy", contents.back())) {
      return ZipError(path, "cannot add '" + name + "'", zip_get_error(archive.get()));
    }
  }
  if (zip_close(archive.get()) != 0) {
    return ZipError(path, "cannot write", zip_get_error(archive.get()));
  }
  archive.release();  // NOLINT(bugprone-unused-return-value): closed, and so freed
  std::string content;
  zip_stat_t stat;
  zip_source_t* source = memory.get();
  bool ok = zip_source_stat(source, &stat) == 0 && zip_source_open(source) == 0;
  if (ok) {
    content.resize(stat.size);
    ok = zip_source_read(source, content.data(), content.size()) ==
         static_cast<zip_int64_t>(content.size());
    zip_source_close(source);
  }
  if (!ok) return ZipError(path, "cannot write", zip_source_error(source));
  return WriteFile(path, content);
}

}  // namespace tenon::tools
