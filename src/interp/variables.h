// The values of the variables in scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "interp/names.h"
#include "interp/value.h"

namespace tenon::interp {

/// Variables by number, the first met first: a table with open places, which all workers read and
/// which therefore stays near.
class VariableNumbers {
 public:
  size_t Of(const VarNode* var) {
    size_t at = Hash(var) & (slots_.size() - 1);
    for (; slots_[at].var != var; at = (at + 1) & (slots_.size() - 1)) {
      if (!slots_[at].var) return Add(var);
    }
    return slots_[at].number;
  }

 private:
  struct Slot {
    const VarNode* var = nullptr;
    size_t number = 0;
  };

  static size_t Hash(const VarNode* var) {
    return (reinterpret_cast<uintptr_t>(var) >> 4) * size_t{0x9E3779B97F4A7C15} >> 20;
  }
  size_t Add(const VarNode* var) {
    if (2 * ++count_ > slots_.size()) {
      std::vector<Slot> old(2 * slots_.size());
      old.swap(slots_);
      for (const Slot& slot : old) {
        if (slot.var) Put(slot);
      }
    }
    Put({var, count_ - 1});
    return count_ - 1;
  }
  void Put(const Slot& slot) {
    size_t at = Hash(slot.var) & (slots_.size() - 1);
    while (slots_[at].var) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(256);  // a power of two, at most half of it taken
  size_t count_ = 0;
};

/// What variables stand for in one frame. Launches have hundreds of frames, each read in turn: a
/// scalar is a lane in an array, a vector lies apart.
class Variables {
 public:
  explicit Variables(VariableNumbers& numbers) : numbers_(&numbers) {}

  void Set(const VarNode* var, Lane lane) {
    const size_t number = numbers_->Of(var);
    if (number >= places_.size()) places_.resize(number + 1);
    places_[number] = {lane, var};
  }
  void Set(const VarNode* var, Value value) {
    Set(var, value.first);
    if (value.IsVector()) vectors_.Set(var, std::move(value));
  }
  /// Of a vector its first lane. Null: the variable has no value.
  const Lane* Find(const VarNode* var) const {
    const size_t number = numbers_->Of(var);
    return number < places_.size() && places_[number].var ? &places_[number].lane : nullptr;
  }
  /// Null: it is no vector.
  const Value* FindVector(const VarNode* var) const { return vectors_.Find(var); }
  void Forget(const VarNode* var) {
    const size_t number = numbers_->Of(var);
    if (number < places_.size()) places_[number].var = nullptr;
    if (var->dtype.IsVector()) vectors_.Forget(var);
  }
  /// f(variable, lane) for each.
  template <class F>
  void ForEach(F f) const {
    for (const Place& place : places_) {
      if (place.var) f(place.var, place.lane);
    }
  }

 private:
  struct Place {
    Lane lane{};
    const VarNode* var = nullptr;  // null: it has no value
  };
  VariableNumbers* numbers_;
  std::vector<Place> places_;  // by number
  Names<VarNode, Value> vectors_;
};

}  // namespace tenon::interp
