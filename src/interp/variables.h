// The values of the variables in scope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "interp/names.h"
#include "interp/value.h"
#include "support/flat_map.h"

namespace tenon::interp {

/// Variables by number, the first met first: one table, which all workers read and which therefore
/// stays near.
class VariableNumbers {
 public:
  size_t Of(const VarNode* var) {
    if (const uint32_t* number = numbers_.Find(var)) return *number;
    const auto number = static_cast<uint32_t>(numbers_.size());
    *numbers_.Insert(var).first = number;
    return number;
  }

 private:
  FlatMap<const VarNode*, uint32_t, PointerHash> numbers_;
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
