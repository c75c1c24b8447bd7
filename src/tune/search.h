// Searching spaces that nobody enumerates: which points to measure next. All searchers have one
// interface, so that a session, and whoever compares them, does not know which it has; a policy of
// a user's is one more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/space.h"
#include "support/expected.h"
#include "tune/residual_model.h"

namespace tenon::tune {

/// A point of one of several spaces: sketches have a space each, a template is one.
struct Pick {
  size_t space = 0;
  ops::Point point;
  friend bool operator==(const Pick&, const Pick&) = default;
};

/// What the model of costs says of a pick.
struct Quote {
  double seconds = 0;
  Features features{};
};

/// What is searched. Prices are asked for often: who has them keeps them.
struct SearchProblem {
  std::string kernel;                   // its hash
  std::vector<std::string> algorithms;  // of each space, as records have it
  std::vector<ops::Space> spaces;       // at least one
  /// Nullopt: there is no such kernel, a step of its schedule is not legal or its tiles do not fit.
  std::function<std::optional<Quote>(const Pick&)> price;
  /// The same within microseconds, for looking at thousands: it may have a price for what has none.
  /// Null: the price is all there is.
  std::function<std::optional<Quote>(const Pick&)> guess;
  /// What tells kernels apart: points with the same text are one, which is tried once. Asked of
  /// picks that are handed out. Null: each point is a kernel of its own.
  std::function<std::string(const Pick&)> identity = nullptr;

  /// "sketch.2 {i.1: 4, j.1: 8}".
  std::string Trace(const Pick& pick) const;
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  /// At most `count` picks that were not given before and that have a price; none where there are
  /// no more.
  virtual std::vector<Pick> Next(size_t count) = 0;
  /// What became of a pick, of Next's or of another's (a log's, say): seconds, or nullopt where it
  /// failed.
  virtual void Observe(const Pick& pick, std::optional<double> seconds) = 0;
  /// A pick that was good elsewhere, of another machine or shape: worth being among the first.
  virtual void Hint(const Pick& pick) = 0;
};

struct SearchOptions {
  uint64_t seed = 0;
  /// Of genetic and model-based searchers, and walks of annealing; 0: 128, and where there are
  /// guesses of prices 2048 to a model-based one.
  size_t population = 0;
  size_t rounds = 4;          // of mutation and crossing before a model-based searcher answers
  double mutation = 0.85;     // chance of a child by mutation instead of crossing
  double random_part = 0.05;  // of each batch that is drawn without a model
  double start_temperature = 1, cooling = 0.97;  // of annealing, in logarithms of seconds
  /// Of expected improvement: one that was taught by other kernels; null: a fresh one.
  std::shared_ptr<ResidualModel> model;
};

/// Names of searchers: "improvement" (evolution of candidates under the corrected model of costs,
/// those first of which most improvement is expected), "random", "grid" (in the spaces' order),
/// "genetic" (populations of measured points), "annealing" (walks over the corrected model).
std::vector<std::string> SearcherNames();
/// Errors: there is no searcher of this name; its message lists them. The problem outlives it.
Expected<std::unique_ptr<Searcher>> MakeSearcher(std::string_view name,
                                                 const SearchProblem& problem,
                                                 const SearchOptions& options);

}  // namespace tenon::tune
