// Weights in a file of their own: tn_params_header (kernel_abi.h), a table that says what is where,
// then the image of the weight segment, aligned so that it can be mapped as that segment.
//
// The table, little-endian, one entry after another: name (u32 length, bytes), DLDataType (u8 code,
// u8 bits, u16 lanes), dims (u32 count, i64 each), layout (u32 length, bytes), hash (u64 high, u64
// low), offset in the payload and size (u64 each).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"
#include "support/file.h"
#include "support/hash.h"
#include "tenon/ffi_types.h"

namespace tenon::artifact {

/// One packed weight.
struct ParamEntry {
  std::string name;
  tn_dl_data_type dtype = {};
  std::vector<int64_t> dims;  // logical
  std::string layout;         // of the stored bytes, in the text form of layouts
  Hash128 hash;               // of the source's bytes and of what made these of them
  uint64_t offset = 0;        // in the weight segment
  uint64_t bytes = 0;
};

/// Header and table of a file, padded to where its payload begins.
std::string EncodeParamsHead(const std::vector<ParamEntry>& entries, const Hash128& id,
                             uint64_t payload_bytes);

/// A file of weights, mapped. Nothing in it is believed: every length is checked against the file.
class ParamsFile {
 public:
  static Expected<ParamsFile> Open(const std::string& path);

  const std::vector<ParamEntry>& entries() const { return entries_; }
  const Hash128& id() const { return id_; }
  /// The bytes of one entry; valid while this object lives.
  std::span<const std::byte> Bytes(const ParamEntry& entry) const {
    return payload_.subspan(entry.offset, entry.bytes);
  }

 private:
  MappedFile file_;
  std::vector<ParamEntry> entries_;
  Hash128 id_;
  std::span<const std::byte> payload_;
};

}  // namespace tenon::artifact
