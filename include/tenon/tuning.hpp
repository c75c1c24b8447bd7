// Tuning kernels of one's own: templates, whose numbers are left open, and sketches, which rules
// derive from what is computed. C++20; link Tenon::compiler.
//
//   tuning::Template matmul = [](tuning::Config& config) {
//     …
//     config.DefineSplit("tile_i", 512, 2);
//     const std::vector<int64_t> i = config.Split("tile_i");
//     …
//     return Lower(s, {a, b, c});
//   };
//   auto task = tuning::Task::FromTemplate("matmul", CreateFunc({a, b, c}), matmul,
//   Target("llvm")); auto task = tuning::Task::FromSketches(CreateFunc({a, b, c}), Target("llvm"));
//   tuning::Result result = task.Tune({.trials = 64, .log = "tuning.log"});
//   Library library = Build(task.At(result.best));
//
// Candidates run in a process of their own (tenon-measure, docs/tuning.md), raced against the best
// one so far; what becomes of them is recorded, and never ends a session.
#ifndef TENON_TUNING_HPP_
#define TENON_TUNING_HPP_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/compiler.hpp"
#include "tenon/ir.hpp"

namespace tenon {
inline namespace v0 {
namespace tuning {

struct TaskData;

/// Numbers by name.
using Point = std::map<std::string, int64_t>;

/// A number that is left open: one of the domain, which rises.
struct Knob {
  std::string name;
  std::vector<int64_t> domain;
};

/// Ways to split a loop of `extent` into `parts`, outermost first.
struct SplitOptions {
  /// "factors": all parts multiply to the extent; "power2": inner parts are powers of two,
  /// "verbose": both. The outermost part takes what is left.
  std::string policy = "factors";
  int64_t max_factor = -1;  // of inner parts; negative: no limit
  bool no_tail = false;     // the parts divide the extent
};
/// Errors: an extent or a number of parts below 1, a policy that there is not, no way is left.
TN_API std::vector<std::vector<int64_t>> SplitCandidates(const std::string& name, int64_t extent,
                                                         int64_t parts,
                                                         const SplitOptions& options = {});

/// What a template leaves open, and what it is: while the space is being found out each choice is
/// its first candidate.
class TN_API Config {
 public:
  Config() = default;
  explicit Config(const Point& point) : point_(point), chosen_(true) {}

  /// One of these numbers; errors: there is none, or the name is taken.
  int64_t DefineKnob(const std::string& name, const std::vector<int64_t>& values);
  /// Parts of a loop, one of SplitCandidates.
  std::vector<int64_t> DefineSplit(const std::string& name, int64_t extent, int64_t parts,
                                   const SplitOptions& options = {});
  int64_t Value(const std::string& name) const;
  const std::vector<int64_t>& Split(const std::string& name) const;

  /// The knobs so far: each is the place of its candidate.
  const std::vector<Knob>& knobs() const { return knobs_; }

 private:
  size_t Place(const std::string& name, size_t count);

  Point point_;
  bool chosen_ = false;
  std::vector<Knob> knobs_;
  std::map<std::string, std::vector<std::vector<int64_t>>> candidates_;
  std::map<std::string, size_t> places_;
};

/// A function of loop IR for what the config says.
using Template = std::function<IrModule(Config&)>;

/// A point of one of a task's spaces.
struct Pick {
  int space = 0;
  Point point;
};

/// What became of a trial.
struct Trial {
  Pick pick;
  std::string algorithm;  // "template matmul", "sketch multi_level_tiling(C)"
  std::string outcome;    // "ok", "wrong", "outside", "crash", "timeout", "error", "started"
  std::string message;    // of others than "ok"
  double seconds = 0;     // of "ok"
  double predicted = 0;
  double noise = 0;     // of the kernel against itself
  bool leader = false;  // it was faster than all before it
  std::string line;     // the record, as lines of a log have it, with its end
};

/// Which points to try next: what users derive from, in the place of a searcher by name.
class TN_API Policy {
 public:
  virtual ~Policy() = default;
  /// At most `count`; none ends the session.
  virtual std::vector<Pick> Next(int count) = 0;
  /// What became of one; nullopt: it failed.
  virtual void Observe(const Pick& pick, std::optional<double> seconds) {
    (void)pick, (void)seconds;
  }
};

struct Options {
  int64_t trials = 64;         // 0: no such limit
  double seconds = 0;          // of the session; 0: no such limit
  int64_t early_stopping = 0;  // trials in a row without a new leader; 0: no such limit
  int64_t batch = 8;           // trials between two questions to the searcher
  /// "improvement", "random", "grid", "genetic", "annealing".
  std::string searcher = "improvement";
  uint64_t seed = 0;
  /// Points that a round of evolution looks at; 0: 2048 where prices follow from numbers, else 128.
  int population = 0, rounds = 4;
  double mutation = 0.85, random_part = 0.05;
  Policy* policy = nullptr;  // instead of a searcher by name
  std::string log;           // an SQLite log (docs/tuning.md), made where it is not there; "": none
  std::vector<Pick> hints;   // good elsewhere, the best first; a policy sees none
  std::vector<Trial> before;                // that are known, of ReadTrials
  std::vector<std::string> teachers;        // logs whose other kernels' sketches teach the model
  double candidate_seconds = 1;             // for timing one candidate
  double worker_seconds = 30;               // for one candidate, from loading to the answer
  int64_t worker_bytes = int64_t{4} << 30;  // of its data
  std::function<void(const Trial&)> done = nullptr;  // told of each trial
  std::function<bool()> stop = nullptr;              // asked after each: true ends the session
};

struct Result {
  Pick best;
  double best_seconds = 0;  // 0: nothing worked
  int64_t trials = 0, failures = 0;
  double seconds = 0;
  std::string stopped;  // why it ended
};

/// A rule of one's own for sketches, tried before those there are (docs/tuning.md). The schedule is
/// as the rules before it left it; what Decide leaves open is searched.
struct SketchRule {
  std::string name;
  bool skip_others = false;  // where it applies, no other rule is tried for the block
  /// How many ways it has to do something about the block; 0: none.
  std::function<int(const IrSchedule&, const std::string& block)> ways;
  std::function<void(IrSchedule&, const std::string& block, int way)> apply;
};

struct SketchOptions {
  int most = 64;
  std::vector<SketchRule> rules;
};

/// A kernel whose schedule is open. A handle; for one thread at a time.
class TN_API Task {
 public:
  /// Runs the template once to find what it leaves open. What it throws is thrown, with the
  /// template's name.
  static Task FromTemplate(const std::string& name, const IrModule& definition,
                           const Template& make, const Target& target = Target());
  /// The same with the space given; `make` gets a place in the domain for each knob.
  static Task FromSpace(const std::string& name, const IrModule& definition,
                        const std::vector<Knob>& space,
                        const std::function<IrModule(const Point&)>& make,
                        const Target& target = Target());
  static Task FromSketches(const IrModule& definition, const Target& target = Target(),
                           const SketchOptions& options = {});

  std::string name() const;
  /// What it computes, and the hash by which records know it.
  std::string text() const;
  std::string kernel() const;
  Target target() const;
  /// One of a template; of sketches their names, each with a space of its own.
  std::vector<std::string> algorithms() const;
  std::vector<Knob> space(int index = 0) const;
  /// How many points a space has, counted no further than `most`.
  int64_t size(int index = 0, int64_t most = 1 << 20) const;

  /// Seconds that the model of costs predicts; nullopt: there is no such schedule.
  std::optional<double> Price(const Pick& pick) const;
  /// What a sketch takes without a search, and the predicted leaders of all.
  Pick Guess(int space) const;
  std::vector<Pick> Leaders(uint64_t seed, int count) const;
  /// The pick that is predicted to be the fastest, of about so many.
  std::optional<Pick> Predicted(uint64_t seed = 0, int tried = 256) const;
  IrModule At(const Pick& pick) const;
  /// The schedule of a sketch's point, with its trace; throws for templates.
  IrSchedule ScheduleAt(const Pick& pick) const;

  /// Measures on this machine.
  Result Tune(const Options& options = {}) const;
  /// The trials of this task on this machine and target that a log knows, an SQLite file or lines.
  /// Lines that are none are passed over; `skipped` gets what was wrong with each.
  std::vector<Trial> ReadTrials(const std::string& log,
                                std::vector<std::string>* skipped = nullptr) const;
  /// A line that gives a log of lines the task's text.
  std::string KernelLine() const;

 private:
  explicit Task(std::shared_ptr<TaskData> data) : data_(std::move(data)) {}
  std::shared_ptr<TaskData> data_;
};

// ---- Networks ----

/// A kernel of a model that leaves something open; equal ones are one.
struct ModelKernel {
  std::string name;    // of the first node that is it
  std::string kind;    // of its anchor: "matmul"
  std::string kernel;  // the hash by which records know it
  int64_t launches = 1, points = 0;
};
TN_API std::vector<ModelKernel> ModelKernels(const std::string& model,
                                             const ModelOptions& options = {});
/// A session over a model's kernels into `options.log`, which ModelOptions::log compiles by; trials
/// go where the whole gains most. `only`: kernels by their hashes; none: all. `done` is told of
/// each trial by a line. The result has no best pick.
TN_API Result TuneModel(const std::string& model, const ModelOptions& options,
                        const Options& tuning, const std::vector<std::string>& only = {},
                        const std::function<void(const std::string&)>& done = nullptr);
/// Copies the records of a log (an SQLite file or lines) that are not there yet into an SQLite log,
/// or to the end of a file of lines.
TN_API void MergeLog(const std::string& into, const std::string& from);
TN_API void AppendLines(const std::string& lines, const std::string& from);

/// The names that Options::searcher takes.
TN_API std::vector<std::string> Searchers();

}  // namespace tuning
}  // namespace v0
}  // namespace tenon

#endif  // TENON_TUNING_HPP_
