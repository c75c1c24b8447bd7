#include "interp/memory.h"

#include <algorithm>

namespace tenon::interp {

namespace {
constexpr int64_t kAlign = 1024;  // what allocations of generated code have, at the most
}

// Neighbouring allocations keep a gap, so that an address at the end of one is not the start of
// another. Fresh bytes are filled with 0xFB: should one slip through, it is a huge integer and an
// odd float.
Memory::Memory(std::string name, int64_t size, bool defined)
    : name_(std::move(name)),
      size_(size),
      storage_(new uint8_t[static_cast<size_t>(size + 2 * kAlign)]),
      defined_(static_cast<size_t>(size), defined) {
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(storage_.get()) % kAlign);
  data_ = storage_.get() + (kAlign - past) % kAlign;
  std::fill_n(data_, size, uint8_t{0xFB});
}

Memory::Memory(std::string name, const uint8_t* bytes, int64_t size)
    : name_(std::move(name)),
      size_(size),
      data_(const_cast<uint8_t*>(bytes)),
      defined_(static_cast<size_t>(size), true) {}

bool Memory::IsDefined(int64_t offset, int64_t bytes) const {
  for (int64_t i = offset; i < offset + bytes; ++i) {
    if (!defined_[static_cast<size_t>(i)]) return false;
  }
  return true;
}

void Memory::Define(int64_t offset, int64_t bytes) {
  std::fill_n(defined_.begin() + offset, bytes, true);
}

void Memory::SetUnderWay(int64_t offset, int64_t bytes, bool under_way) {
  if (under_way_.empty()) under_way_.resize(static_cast<size_t>(size_));
  for (int64_t i = offset; i < offset + bytes; ++i) {
    under_way_count_ += (under_way ? 1 : 0) - (under_way_[static_cast<size_t>(i)] ? 1 : 0);
    under_way_[static_cast<size_t>(i)] = under_way;
  }
}

bool Memory::IsUnderWay(int64_t offset, int64_t bytes) const {
  for (int64_t i = offset; under_way_count_ > 0 && i < offset + bytes; ++i) {
    if (under_way_[static_cast<size_t>(i)]) return true;
  }
  return false;
}

bool Memory::Touch(int64_t offset, int64_t bytes, uint8_t worker, uint32_t phase, bool write) {
  if (touched_.empty()) touched_.resize(static_cast<size_t>(size_));
  bool clean = true;
  for (int64_t i = offset; i < offset + bytes; ++i) {
    Touched& t = touched_[static_cast<size_t>(i)];
    if (t.phase != phase) t = {phase, 0, 0};
    clean &= t.writer == 0 || t.writer == worker;
    if (write) {
      clean &= t.reader == 0 || t.reader == worker;
      t.writer = worker;
    } else {
      t.reader = t.reader == 0 || t.reader == worker ? worker : Touched::kMany;
    }
  }
  return clean;
}

bool Memory::IsWrittenByAnother(int64_t offset, int64_t bytes, uint8_t worker,
                                uint32_t phase) const {
  for (int64_t i = offset; !touched_.empty() && i < offset + bytes; ++i) {
    const Touched& t = touched_[static_cast<size_t>(i)];
    if (t.phase == phase && t.writer != 0 && t.writer != worker) return true;
  }
  return false;
}

Memory* MemoryMap::Add(std::unique_ptr<Memory> memory) {
  Memory* out = memory.get();
  by_address_[out->address()] = std::move(memory);
  return out;
}

void MemoryMap::Remove(Memory* memory) { by_address_.erase(memory->address()); }

Memory* MemoryMap::Find(uintptr_t address) const {
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return nullptr;
  Memory* memory = std::prev(it)->second.get();
  return address <= memory->address() + static_cast<uintptr_t>(memory->size()) ? memory : nullptr;
}

}  // namespace tenon::interp
