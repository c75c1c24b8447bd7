// Spaces: what is left open of a schedule, as data. Algorithms of the library, templates of users
// and sketches (src/sketch) declare one each; planning and tuning choose among its points.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "graph/plan.h"
#include "ir/expr.h"
#include "support/expected.h"

namespace tenon::ops {

/// Numbers for all knobs of a space, in its order.
using Point = graph::Choices;

/// One number that an algorithm leaves open.
struct Knob {
  std::string name;
  std::vector<int64_t> domain;  // rising; never empty
  bool in_layout = false;       // it shows in the layout of an operand or a result
  bool structural = false;  // it changes which steps a schedule has, or the names they give: traces
                            // replay between points that agree on it
};

/// What an algorithm leaves open. `constraints` are bool expressions over `vars`, which stand for
/// the knobs; points that break one do not exist.
class Space {
 public:
  /// The variable that stands for the new knob in constraints.
  Var Add(Knob knob);
  void Require(Expr constraint);

  const std::vector<Knob>& knobs() const { return knobs_; }
  const std::vector<Expr>& constraints() const { return constraints_; }
  bool Contains(const Point& point) const { return static_cast<bool>(Check(point)); }
  /// Ok for a point of the space; errors name the knob or the constraint that it breaks.
  Status Check(const Point& point) const;
  /// Choices in any order as a point; errors as Check, and for knobs that there are not or that get
  /// no number.
  Expected<Point> PointOf(const graph::Choices& choices) const;
  /// True where the trace of one point's schedule replays to the other's: they agree on what is
  /// structural or shows in a layout, and on which numbers are 1, for loops of one iteration are
  /// none.
  bool SameStructure(const Point& a, const Point& b) const;
  /// Calls `f` with every point, the first knob changing slowest.
  void ForEach(const std::function<void(const Point&)>& f) const;
  /// The point before which none comes in ForEach's order, and the one after another; nullopt where
  /// there is none.
  std::optional<Point> First() const;
  std::optional<Point> After(const Point& point) const;
  /// A point drawn knob by knob, each value that the constraints allow being as likely as any;
  /// nullopt where it is not found soon. The same for the same state of the generator.
  std::optional<Point> Sample(std::mt19937_64* random) const;
  /// How many points there are, counting no further than `most`.
  int64_t Count(int64_t most) const;
  /// One line for each knob and each constraint.
  std::string ToString() const;

 private:
  // A constraint can be decided as soon as its last knob is.
  bool Holds(size_t constraint, const Point& point) const;
  // Whether the constraints hold that the point's last knob decides.
  bool Fits(const Point& point) const;
  // Makes the first `kept` numbers a point, in order, `from` being the first place in the next
  // knob's domain that is looked at.
  std::optional<Point> Complete(Point point, size_t from) const;
  bool Draw(Point* point, int* patience, std::mt19937_64* random) const;

  std::vector<Knob> knobs_;
  std::vector<Var> vars_;
  std::vector<Expr> constraints_;
  std::vector<size_t> last_knob_;  // of each constraint
};

}  // namespace tenon::ops
