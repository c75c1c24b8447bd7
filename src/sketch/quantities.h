// Numbers that follow from choices: each is a choice, a constant, or an operation on two others,
// and all are computed in the order in which they were made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "ops/space.h"

namespace tenon::sketch {

class Quantities {
 public:
  enum class Op : uint8_t { kConstant, kKnob, kAdd, kSub, kMul, kCeilDiv, kMin, kMax };

  /// `point`: where quantities have their values while they are made.
  explicit Quantities(ops::Point point) : point_(std::move(point)) {}

  /// A quantity's place; equal ones are made once, and of constants nothing is left to compute.
  size_t Constant(int64_t value) { return Make(Op::kConstant, value, 0); }
  size_t Knob(size_t place) { return Make(Op::kKnob, static_cast<int64_t>(place), 0); }
  size_t Of(Op op, size_t a, size_t b) {
    return Make(op, static_cast<int64_t>(a), static_cast<int64_t>(b));
  }
  size_t Product(size_t a, size_t b) { return Of(Op::kMul, a, b); }

  int64_t operator[](size_t place) const { return values_[place]; }
  void MoveTo(const ops::Point& point);

 private:
  struct Quantity {
    Op op;
    int64_t a, b;  // operands' places; the constant; the knob's place
  };

  size_t Make(Op op, int64_t a, int64_t b);
  bool IsConstant(size_t q) const { return quantities_[q].op == Op::kConstant; }
  int64_t Value(const Quantity& q, const ops::Point& point) const;

  ops::Point point_;
  std::vector<Quantity> quantities_;
  std::vector<int64_t> values_;
  std::map<std::tuple<Op, int64_t, int64_t>, size_t> places_;
};

}  // namespace tenon::sketch
