// What loops count. A loop is a row of digits, outermost first: one where it is as it was made,
// several where loops were fused. Splitting replaces a digit by others; whatever was counted by it
// is counted by them, each as often as those inside of it have iterations. Every iteration variable
// of a block is a sum of multiples of digits, a Form; extents and multiples are quantities.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sketch/quantities.h"

namespace tenon::sketch {

using Form = std::map<size_t, size_t>;  // digit → its multiple, a quantity

/// What a loop's iterations count: its digits, outermost first. Of a loop over several digits that
/// was split again the parts have the same digits, and count them `weight` at a time.
struct CountedLoop {
  static constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> digits;
  size_t extent = kNone, weight = kNone;  // weight: of parts alone
  bool IsPart() const { return weight != kNone; }
};

/// The loops of a function by name, and the variables of its blocks as forms.
class Digits {
 public:
  using Forms = std::map<std::string, Form>;  // of a block's variables

  explicit Digits(Quantities* quantities) : q_(*quantities) {}

  void AddLoop(const std::string& name, size_t extent) { loops_[name] = {{New(extent)}, extent}; }
  /// A loop that counts as another does, by digits of its own; `copies` gets old → new.
  void AddCopy(const std::string& name, const CountedLoop& of, std::map<size_t, size_t>* copies);
  bool Has(const std::string& loop) const { return loops_.contains(loop); }
  /// Null: there is none of that name.
  const CountedLoop* Find(const std::string& loop) const;

  /// What the loops' steps do to them and to all forms. False: the loop is not there, or a part.
  bool Split(const std::string& loop, const std::vector<size_t>& extents,
             const std::vector<std::string>& names);
  bool Fuse(const std::vector<std::string>& loops, const std::string& name);

  size_t ExtentOf(size_t digit) const { return digits_[digit]; }
  /// What the digits count together.
  Form Counted(const std::vector<size_t>& digits);
  void AddTo(Form* form, size_t digit, size_t multiple);
  /// How far a form reaches over the digits that are not `outside`: a quantity.
  size_t Reach(const Form& form, const std::set<size_t>& outside);

  std::map<std::string, Forms>& blocks() { return blocks_; }

 private:
  size_t New(size_t extent) {
    digits_.push_back(extent);
    return digits_.size() - 1;
  }
  void SplitDigit(size_t digit, const std::vector<size_t>& extents,
                  const std::vector<std::string>& names);
  void SplitRow(const std::vector<size_t>& digits, const std::vector<size_t>& extents,
                const std::vector<std::string>& names);

  Quantities& q_;
  std::vector<size_t> digits_;  // extents
  std::map<std::string, CountedLoop> loops_;
  std::map<std::string, Forms> blocks_;
};

}  // namespace tenon::sketch
