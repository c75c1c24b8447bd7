// A hash table of small keys and values in one array, for maps that are filled, asked and cleared
// over and over: clearing costs nothing and keeps the memory. Nothing can be erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon {

/// `Hash` gives 64 bits for a key, all of them good. Pointers to values last until the next
/// insertion. A value that is cleared away lives on until another takes its place.
template <class Key, class Value, class Hash>
class FlatMap {
 public:
  size_t size() const { return size_; }

  Value* Find(const Key& key) {
    if (size_ == 0) return nullptr;
    Slot& slot = slots_[Place(key)];
    return slot.age == age_ ? &slot.value : nullptr;
  }

  /// The value of `key`, made from nothing where there is none, which the flag tells.
  std::pair<Value*, bool> Insert(const Key& key) {
    if (slots_.size() < 2 * (size_ + 1)) Grow();
    Slot& slot = slots_[Place(key)];
    if (slot.age == age_) return {&slot.value, false};
    ++size_;
    slot = {key, age_, Value()};
    return {&slot.value, true};
  }

  void Clear() {
    size_ = 0;
    if (++age_ != 0) return;
    slots_.clear();  // ages begin again
    age_ = 1;
  }

 private:
  struct Slot {
    Key key{};
    uint32_t age = 0;  // it is empty where this is not the table's
    Value value{};
  };

  // Where the key is, or would be.
  size_t Place(const Key& key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = Hash()(key) & mask;
    while (slots_[i].age == age_ && !(slots_[i].key == key)) i = (i + 1) & mask;
    return i;
  }

  void Grow() {
    constexpr size_t kFirst = 16;
    std::vector<Slot> before(slots_.empty() ? kFirst : 2 * slots_.size());
    before.swap(slots_);
    for (Slot& slot : before) {
      if (slot.age == age_) slots_[Place(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  uint32_t age_ = 1;
  size_t size_ = 0;
};

/// Spreads the bits of a number over all 64.
inline uint64_t SpreadBits(uint64_t x) {
  x = (x ^ (x >> 32)) * 0xBF58476D1CE4E5B9ull;
  return x ^ (x >> 29);
}

struct PointerHash {
  uint64_t operator()(const void* p) const { return SpreadBits(reinterpret_cast<uintptr_t>(p)); }
};

}  // namespace tenon
