#include "artifact/params.h"

#include <fmt/format.h>
#include <string.h>

#include <type_traits>

#include "artifact/link.h"
#include "support/check.h"
#include "tenon/kernel_abi.h"

namespace tenon::artifact {
namespace {

template <class T>
void Put(T value, std::string* out) {
  static_assert(std::is_trivially_copyable_v<T>);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutText(std::string_view text, std::string* out) {
  Put(static_cast<uint32_t>(text.size()), out);
  out->append(text);
}

void PutEntry(const ParamEntry& entry, std::string* out) {
  PutText(entry.name, out);
  Put(entry.dtype, out);
  Put(static_cast<uint32_t>(entry.dims.size()), out);
  for (int64_t dim : entry.dims) Put(dim, out);
  PutText(entry.layout, out);
  Put(entry.hash.high, out);
  Put(entry.hash.low, out);
  Put(entry.offset, out);
  Put(entry.bytes, out);
}

// Takes values off the front of the table; after a read beyond the end all further ones are empty.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : left_(bytes) {}
  bool failed() const { return failed_; }
  size_t left() const { return left_.size(); }

  template <class T>
  T Take() {
    T value{};
    if (Has(sizeof(T))) {
      memcpy(&value, left_.data(), sizeof(T));
      left_ = left_.subspan(sizeof(T));
    }
    return value;
  }
  std::string TakeText() {
    uint32_t length = Take<uint32_t>();
    if (!Has(length)) return "";
    std::string text(reinterpret_cast<const char*>(left_.data()), length);
    left_ = left_.subspan(length);
    return text;
  }
  std::vector<int64_t> TakeDims() {
    std::vector<int64_t> dims;
    uint32_t count = Take<uint32_t>();
    if (!Has(uint64_t{count} * sizeof(int64_t))) return dims;
    for (uint32_t i = 0; i < count; ++i) dims.push_back(Take<int64_t>());
    return dims;
  }

 private:
  bool Has(uint64_t bytes) {
    failed_ |= bytes > left_.size();
    return !failed_;
  }
  std::span<const std::byte> left_;
  bool failed_ = false;
};

ParamEntry TakeEntry(Cursor* cursor) {
  ParamEntry entry;
  entry.name = cursor->TakeText();
  entry.dtype = cursor->Take<tn_dl_data_type>();
  entry.dims = cursor->TakeDims();
  entry.layout = cursor->TakeText();
  entry.hash.high = cursor->Take<uint64_t>();
  entry.hash.low = cursor->Take<uint64_t>();
  entry.offset = cursor->Take<uint64_t>();
  entry.bytes = cursor->Take<uint64_t>();
  return entry;
}

Diagnostic Fault(const std::string& path, std::string_view fault) {
  return MakeError(fmt::format("cannot read the weights: {}", fault), {.file = path});
}

}  // namespace

std::string EncodeParamsHead(const std::vector<ParamEntry>& entries, const Hash128& id,
                             uint64_t payload_bytes) {
  std::string table;
  for (const ParamEntry& entry : entries) {
    TN_CHECK(entry.offset <= payload_bytes && entry.bytes <= payload_bytes - entry.offset);
    PutEntry(entry, &table);
  }
  uint64_t alignment = WeightAlignment(payload_bytes, PageBytes("aarch64"));
  uint64_t head_bytes = sizeof(tn_params_header) + table.size();
  tn_params_header header = {};
  memcpy(header.magic, TN_PARAMS_MAGIC, sizeof header.magic);
  header.version = TN_PARAMS_VERSION;
  header.num_entries = static_cast<uint32_t>(entries.size());
  header.id[0] = id.high;
  header.id[1] = id.low;
  header.table_bytes = table.size();
  header.payload_offset = (head_bytes + alignment - 1) / alignment * alignment;
  header.payload_bytes = payload_bytes;
  std::string head;
  Put(header, &head);
  head += table;
  head.resize(header.payload_offset);
  return head;
}

Expected<ParamsFile> ParamsFile::Open(const std::string& path) {
  ParamsFile params;
  TN_ASSIGN_OR_RETURN(params.file_, MappedFile::Open(path));
  std::span<const std::byte> bytes = params.file_.bytes();
  tn_params_header header;
  if (bytes.size() < sizeof header) return Fault(path, "the file is truncated");
  memcpy(&header, bytes.data(), sizeof header);
  if (memcmp(header.magic, TN_PARAMS_MAGIC, sizeof header.magic) != 0) {
    return Fault(path, "it is not a file of weights");
  }
  if (header.version != TN_PARAMS_VERSION) {
    return Fault(
        path, fmt::format("expected version {} but it has {}", TN_PARAMS_VERSION, header.version));
  }
  uint64_t behind_header = bytes.size() - sizeof header;
  if (header.table_bytes > behind_header || header.payload_offset > bytes.size() ||
      header.payload_bytes > bytes.size() - header.payload_offset) {
    return Fault(path, "the file is truncated");
  }
  params.id_ = {header.id[0], header.id[1]};
  params.payload_ = bytes.subspan(header.payload_offset, header.payload_bytes);
  Cursor cursor(bytes.subspan(sizeof header, header.table_bytes));
  for (uint32_t i = 0; i < header.num_entries; ++i) {
    ParamEntry entry = TakeEntry(&cursor);
    if (cursor.failed()) return Fault(path, fmt::format("its table ends within entry {}", i));
    if (entry.offset > header.payload_bytes || entry.bytes > header.payload_bytes - entry.offset) {
      return Fault(path, fmt::format("the bytes of '{}' lie outside the file", entry.name));
    }
    params.entries_.push_back(std::move(entry));
  }
  return params;
}

}  // namespace tenon::artifact
