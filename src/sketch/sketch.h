// Sketches: the ways in which rules schedule a function, each with a space of what it leaves open.
// Any function of loop IR whose blocks stand in loops of their own has them, on CPUs and on GPUs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost/estimate.h"
#include "sketch/numbers.h"
#include "sketch/rule.h"
#include "support/expected.h"

namespace tenon::sketch {

/// Of the rules: one more whenever a point's schedule becomes another.
inline constexpr int kEpoch = 2;

/// One rule, applied to one block.
struct Step {
  size_t rule = 0;  // of the table
  std::string block;
  int way = 0;
};

struct Sketch {
  std::string name;  // "inline(B) multi_level_tiling.1(C)": equal names are equal derivations
  std::vector<Step> steps;
  ops::Space space;
  ops::Point guess;
};

/// Everything that sketches of one function need, while it lives.
class Sketches {
 public:
  /// Of the function `func` of the module, whose target is the machine's. `rules` are tried before
  /// the machine's own. At most `most` of them, in the order of the table. Errors: the function is
  /// not there, or not even its plain loops can be scheduled.
  static Expected<Sketches> Of(const Module& module, const std::string& func,
                               const Machine& machine, std::vector<Rule> rules = {},
                               size_t most = 64);

  const std::vector<Sketch>& all() const { return all_; }
  const Machine& machine() const { return machine_; }
  /// The schedule of a point, with its trace. Errors: a step is not legal with these numbers.
  Expected<Schedule> At(size_t sketch, const ops::Point& point) const;
  /// What that is predicted to take; nullopt: it is not legal, or does not fit the machine.
  std::optional<WorkDescription> WorkAt(size_t sketch, const ops::Point& point) const;
  /// The same within microseconds, from numbers instead of a schedule (numbers.h). It does not know
  /// whether the point is legal; where numbers cannot follow the sketch's steps, it is WorkAt.
  std::optional<WorkDescription> GuessAt(size_t sketch, const ops::Point& point);
  /// Whether numbers follow the sketch's steps at points like this one.
  bool IsNumeric(size_t sketch, const ops::Point& point) { return NumbersFor(sketch, point); }

 private:
  Sketches(Module module, std::string func, const Machine& machine, std::vector<Rule> rules)
      : module_(std::move(module)),
        func_(std::move(func)),
        machine_(machine),
        rules_(std::move(rules)) {}
  void Derive(const Draft& draft, const Names& blocks, size_t left, std::vector<Step> steps,
              size_t most);
  Draft Run(const std::vector<Step>& steps, const ops::Point* point) const;
  // Numbers for all points that agree with this one on structural knobs; null: there are none.
  Numbers* NumbersFor(size_t sketch, const ops::Point& point);
  std::optional<Numbers> MakeNumbers(size_t sketch, const ops::Point& like) const;
  bool AreRight(Numbers* numbers, size_t sketch, const ops::Point& like) const;

  Module module_;
  std::string func_;
  Machine machine_;
  std::vector<Rule> rules_;
  std::vector<Sketch> all_;
  // By sketch, and what its structural knobs are.
  std::map<std::pair<size_t, std::vector<int64_t>>, std::optional<Numbers>> numbers_;
};

}  // namespace tenon::sketch
