// Sketches: the ways in which rules schedule a function, each with a space of what it leaves open.
// Any function of loop IR whose blocks stand in loops of their own has them, on CPUs and on GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "sketch/rule.h"
#include "support/expected.h"

namespace tenon::sketch {

/// Of the rules: one more whenever a point's schedule becomes another.
inline constexpr int kEpoch = 1;

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

 private:
  Sketches(Module module, std::string func, const Machine& machine, std::vector<Rule> rules)
      : module_(std::move(module)),
        func_(std::move(func)),
        machine_(machine),
        rules_(std::move(rules)) {}
  void Derive(const Draft& draft, const Names& blocks, size_t left, std::vector<Step> steps,
              size_t most);
  Draft Run(const std::vector<Step>& steps, const ops::Point* point) const;

  Module module_;
  std::string func_;
  Machine machine_;
  std::vector<Rule> rules_;
  std::vector<Sketch> all_;
};

}  // namespace tenon::sketch
