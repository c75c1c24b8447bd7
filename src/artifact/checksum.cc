#include "artifact/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "support/file.h"

namespace tenon::artifact {

namespace {

// Of `bytes`, which go on from what `sum` was taken of, in whole words.
uint64_t Continue(uint64_t sum, std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    sum = std::rotl(sum ^ word, 29) * kChecksumFactor;
  }
  return sum;
}

// A piece at a time, so that files larger than memory can be read.
uint64_t ChecksumOf(const MappedFile& file, uint64_t begin, uint64_t end) {
  constexpr uint64_t kPiece = uint64_t{64} << 20;
  uint64_t sum = kChecksumSeed;
  for (uint64_t at = begin; at < end; at += kPiece) {
    const uint64_t bytes = std::min(kPiece, end - at);
    sum = Continue(sum, file.bytes().subspan(at, bytes));
    file.ReleasePages(at, bytes);
  }
  return sum;
}

uint64_t OwnChecksum(const Checksums& sums) {
  return Continue(kChecksumSeed,
                  std::as_bytes(std::span(&sums, 1)).first(offsetof(Checksums, own)));
}

// None where there are none, or they are damaged themselves.
std::optional<Checksums> ChecksumsOf(const MappedFile& file) {
  Checksums sums;
  if (file.size() < sizeof sums) return std::nullopt;
  const uint64_t all_bytes = file.size() - sizeof sums;
  std::memcpy(&sums, file.data() + all_bytes, sizeof sums);
  const bool good = std::memcmp(sums.magic, kChecksumsMagic, sizeof sums.magic) == 0 &&
                    sums.own == OwnChecksum(sums) && sums.all_bytes == all_bytes &&
                    sums.code_bytes <= all_bytes;
  if (!good) return std::nullopt;
  return sums;
}

}  // namespace

Status AppendChecksums(AtomicFile* file, uint64_t weights_at) {
  // In whole words, so that a loader has no last piece to think of.
  const uint64_t padded = (file->size() + 7) / 8 * 8;
  if (weights_at == file->size()) weights_at = padded;
  TN_RETURN_IF_ERROR(file->Resize(padded));
  Checksums sums = {};
  std::memcpy(sums.magic, kChecksumsMagic, sizeof sums.magic);
  sums.all_bytes = file->size();
  sums.code_bytes = weights_at;
  {
    TN_ASSIGN_OR_RETURN(const MappedFile content,
                        MappedFile::OpenDescriptor(file->fd(), file->temporary_path()));
    sums.code = ChecksumOf(content, 0, weights_at);
    sums.weights = ChecksumOf(content, weights_at, sums.all_bytes);
  }
  sums.own = OwnChecksum(sums);
  return file->Append(std::as_bytes(std::span(&sums, 1)));
}

Status CheckFile(const std::string& path, Checked what) {
  TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::optional<Checksums> sums = ChecksumsOf(file);
  if (!sums) {
    if (what == Checked::kCode) return Ok();
    return MakeError("it has no checksums: it was stripped, cut off or damaged", {path});
  }
  if (ChecksumOf(file, 0, sums->code_bytes) != sums->code)
    return MakeError("it is damaged: its headers, tables or code are not what was written", {path});
  if (what == Checked::kAll && ChecksumOf(file, sums->code_bytes, sums->all_bytes) != sums->weights)
    return MakeError("it is damaged: its weights are not what was written", {path});
  return Ok();
}

}  // namespace tenon::artifact
