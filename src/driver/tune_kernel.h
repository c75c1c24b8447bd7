// Kernels of users as something to tune: functions of loop IR with the sketches that rules derive,
// and templates, whose schedules somebody else makes from a point of their space.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/worker_process.h"
#include "sketch/sketch.h"
#include "support/expected.h"
#include "target/target.h"
#include "tune/kernel_session.h"

namespace tenon::driver {

/// A kernel whose schedule is open. Not for several threads at once.
class OpenKernel {
 public:
  /// The schedule of a point as a module with one function that is not of kind device.
  using Make = std::function<Expected<Module>(const ops::Point&)>;

  /// The sketches of the module's only function that is not of kind device, for the machine's
  /// target. Errors: it has none; its sizes are open.
  static Expected<std::unique_ptr<OpenKernel>> OfSketches(const Module& definition,
                                                          const Machine& machine,
                                                          std::vector<sketch::Rule> rules,
                                                          size_t most);
  /// A template of this name; `definition` says what it computes.
  static Expected<std::unique_ptr<OpenKernel>> OfTemplate(const std::string& name,
                                                          const Module& definition,
                                                          const Machine& machine, ops::Space space,
                                                          Make make);

  const tune::OpenKernel& open() const { return open_; }
  const Target& target() const { return target_; }
  const Machine& machine() const { return machine_; }
  const sketch::Sketches* sketches() const { return sketches_.get(); }
  /// The scheduled module of a pick, with its function as it was called. Errors: a step is illegal.
  Expected<Module> ModuleAt(const tune::Pick& pick) const { return make_(pick); }
  /// The pick that the model of costs takes, of `tried` ones; nullopt: none has a price.
  std::optional<tune::Pick> Predicted(uint64_t seed, size_t tried) const;

 private:
  OpenKernel(const Machine& machine, const Module& definition)
      : target_(*machine.target), definition_(definition), machine_(machine) {}
  Status Describe(const std::string& name);

  const Target target_;
  const Module definition_;
  std::unique_ptr<sketch::Sketches> sketches_;
  std::function<Expected<Module>(const tune::Pick&)> make_;
  std::function<std::optional<WorkDescription>(const tune::Pick&)> work_;
  std::function<std::optional<WorkDescription>(const tune::Pick&)> guess_;  // null: there is none
  mutable std::map<std::string, std::optional<tune::Quote>> prices_;
  const Machine machine_;
  tune::OpenKernel open_;
};

struct KernelTuning {
  std::string searcher = "improvement";
  tune::SearchOptions search;
  /// A policy of the caller's instead; null: none.
  tune::Searcher* policy = nullptr;
  tune::KernelOptions session;      // the bench is filled in
  std::string log;                  // path; "": none
  std::vector<tune::Trial> before;  // that are known, besides those of the log
  std::vector<tune::Pick> hints;    // good elsewhere, the best first
  /// Logs, besides that one, whose records of other kernels' sketches teach the model what its
  /// prices are wrong by on this machine. What cannot be read teaches nothing.
  std::vector<std::string> teachers;
  measure::WorkerOptions worker;  // `team` is found out
  int jobs = 0;                   // threads that build for a device; 0: as many as there are CPUs
  /// Told of each trial; null: nobody.
  std::function<void(const tune::Trial&, const tune::KernelState&)> done;
};

/// Measures on this machine; of a device that it has not, the leaders are built alone, and
/// `stopped` says so. Errors: a target that is not this machine; the log cannot be written;
/// no worker can be started.
Expected<tune::KernelState> TuneKernel(const OpenKernel& kernel, const KernelTuning& options,
                                       const std::atomic<bool>& stop);

}  // namespace tenon::driver
