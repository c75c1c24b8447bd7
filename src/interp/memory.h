// Memory as the interpreter sees it: real bytes, each marked as written or not, and for every byte
// who touched it since the last barrier.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interp/access_history.h"

namespace tenon::interp {

/// What the workers of a team did to a byte since their last barrier. Worker numbers are rank + 1;
/// kMany: several.
struct Touched {
  static constexpr uint8_t kMany = 255;
  uint32_t phase = 0;  // of which phase the marks are
  uint8_t writer = 0, reader = 0;
};

/// One allocation. The bytes stay where they are.
class Memory {
 public:
  Memory(std::string name, int64_t size, bool defined);
  /// A view of bytes that somebody else owns, all defined, not to be written.
  Memory(std::string name, const uint8_t* bytes, int64_t size);

  const std::string& name() const { return name_; }
  uint8_t* data() { return data_; }
  int64_t size() const { return size_; }
  uintptr_t address() const { return reinterpret_cast<uintptr_t>(data_); }
  bool writable() const { return storage_ != nullptr; }
  /// Memory of one thread of a launch, which nobody else sees.
  bool is_private() const { return private_; }
  void MakePrivate() { private_ = true; }
  /// What the threads of a launch did to it.
  AccessHistory& history() {
    if (!history_) history_ = std::make_unique<AccessHistory>(size_);
    return *history_;
  }

  /// Bytes that an asynchronous copy is on its way to.
  void SetUnderWay(int64_t offset, int64_t bytes, bool under_way);
  bool IsUnderWay(int64_t offset, int64_t bytes) const;
  bool AnyUnderWay() const { return under_way_count_ > 0; }

  bool IsDefined(int64_t offset, int64_t bytes) const;
  void Define(int64_t offset, int64_t bytes);
  /// Notes an access by `worker` (rank + 1) in the given phase; false when it races with another
  /// worker's.
  bool Touch(int64_t offset, int64_t bytes, uint8_t worker, uint32_t phase, bool write);
  /// Another worker has written some of it in this phase.
  bool IsWrittenByAnother(int64_t offset, int64_t bytes, uint8_t worker, uint32_t phase) const;

 private:
  std::string name_;
  int64_t size_;
  std::unique_ptr<uint8_t[]> storage_;
  uint8_t* data_;
  std::vector<bool> defined_;
  std::vector<Touched> touched_;  // made at the first Touch
  std::unique_ptr<AccessHistory> history_;
  std::vector<bool> under_way_;  // made when first needed
  int64_t under_way_count_ = 0;
  bool private_ = false;
};

/// All memory alive, by address.
class MemoryMap {
 public:
  Memory* Add(std::unique_ptr<Memory> memory);
  void Remove(Memory* memory);
  /// The memory that holds the address (or ends there); null: foreign memory, such as a caller's
  /// argument array.
  Memory* Find(uintptr_t address) const;

 private:
  std::map<uintptr_t, std::unique_ptr<Memory>> by_address_;
};

}  // namespace tenon::interp
