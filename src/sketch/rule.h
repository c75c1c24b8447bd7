// Rules by which schedules of any function are derived: each takes one block and does something
// about it, leaving numbers open. A table of them, tried block by block from the results to the
// inputs, gives the sketches of a function (sketch.h). Users add rows of their own.
//
// A rule is a function of the numbers that it asks for (Draft::Choose). Deriving runs it with
// guesses, which declares the space; every point of that space is then the same rules run again
// with its numbers. A step that is not legal for some numbers ends that point alone. What was done
// is a trace, as of any schedule.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ops/space.h"
#include "schedule/schedule.h"

namespace tenon::sketch {

using Names = std::vector<std::string>;

/// A schedule on its way, with the choices that were left open so far.
struct Draft {
  Draft(Schedule s, const Machine& m, const ops::Point* p = nullptr)
      : schedule(std::move(s)), machine(&m), point(p) {}

  /// A number: the point's, or the guess while the space is being declared. The domain depends on
  /// the function and the machine alone, never on other choices.
  int64_t Choose(const std::string& name, std::vector<int64_t> domain, int64_t guess,
                 bool structural = false);
  /// "$name" where a step of the trace may refer to the choice.
  static std::string Ref(const std::string& name) { return "$" + name; }
  /// A bool over Var(name)s; points that break it do not exist.
  void Require(const Expr& constraint) { space.Require(constraint); }
  Expr VarOf(const std::string& name) const { return vars.at(name); }
  /// Nothing comes of this draft.
  void Refuse() { refused = true; }
  bool ok() const { return !refused && schedule.ok(); }

  Schedule schedule;
  const Machine* machine;
  const ops::Point* point;  // null: guesses
  ops::Space space;
  std::map<std::string, Var> vars;
  bool refused = false;
};

/// What becomes of the other rules of a block where one applies.
enum class Then : uint8_t {
  kTryOthers,  // they are alternatives
  kSkipOthers  // this one is it
};

struct Rule {
  std::string name;  // "multi_level_tiling"
  Then then = Then::kTryOthers;
  /// How many ways it has to do something about this block; 0: it is not for it.
  std::function<int(const Draft& draft, const std::string& block)> ways;
  /// Does it in the way of this number. Failures are the schedule's.
  std::function<void(Draft* draft, const std::string& block, int way)> apply;
};

/// The table for a machine, in the order in which rules are tried: those for CPUs, or for GPUs.
std::vector<Rule> RulesFor(const Machine& machine);
std::vector<Rule> CpuRules();
std::vector<Rule> GpuRules();
/// Of both: what is computed where it is used.
Rule InlineRule();

// ---- What rules ask about blocks ----

struct BlockView {
  std::string name, buffer;  // the first that it writes
  DType type;                // of its elements
  bool is_result = false;    // it writes a parameter
  bool all_known = true;     // extents are numbers
  Names spatial, reduce;     // loops, outermost first
  std::vector<int64_t> spatial_extents, reduce_extents;
  Names reads, consumers, producers;
  bool reuses = false;       // an operand is read by several results
  bool along = false;        // some operand lies along the results' last loop
  bool elementwise = false;  // no reduction, and one element of what it reads of each operand
  int64_t results = 1, reduced = 1;
};
BlockView View(const Schedule& schedule, const std::string& block);
/// Whether the consumer reads of the buffer the element of its own place, and nothing else.
bool ReadsAsWritten(const Schedule& schedule, const std::string& consumer,
                    const std::string& buffer);
/// Whether a block is as it was written: in serial loops of its own, one for each variable.
bool IsUntouched(const Schedule& schedule, const std::string& block);
/// The only consumer of a block's results where it can be tiled in their place: of the same shape,
/// untouched, element by element; "" where there is none.
std::string FollowerOf(const Schedule& schedule, const BlockView& view);
/// 1 where a block follows a reduction that no rule has come to yet, else 0: it waits for that.
int FollowerWays(const Draft& draft, const std::string& block);

/// Divisors of n, rising, at most `most`.
std::vector<int64_t> Divisors(int64_t n, int64_t most);
/// 1, 2, 4, … up to `most`, and no more than the next power of two from n.
std::vector<int64_t> Powers(int64_t n, int64_t most);
/// Divisors and powers together: tiles of a loop of n.
std::vector<int64_t> TileSizes(int64_t n, int64_t most);
/// The number of the domain that is nearest to x from below; the least where none is.
int64_t Nearest(const std::vector<int64_t>& domain, int64_t x);

}  // namespace tenon::sketch
