// What sessions of tuning measure with: libraries of kernels for this machine in a folder of their
// own, and a worker that runs them.
#pragma once

#include <memory>
#include <string>

#include "cost/machine.h"
#include "measure/worker_process.h"
#include "support/expected.h"
#include "target/target.h"
#include "tune/bench.h"

namespace tenon::driver {

/// Code is measured where it runs: errors name what this machine's CPU lacks of the target, or of
/// its host part.
Status CheckRunsHere(const Target& target);

/// What measurements of the target's code are about (Record::machine): this machine, or its device,
/// which a worker is asked for, once in a process. Where there is no device, a key that no record
/// has.
std::string MachineKeyOf(const Target& target);
/// Threads of a call while the machine's code is measured.
int64_t TeamOf(const Machine& machine);

/// A folder for libraries, gone with it. Folders of sessions that were killed are removed by the
/// next one.
class Workbench {
 public:
  /// `jobs`: threads that build candidates for a device ahead; 0: as many as there are CPUs.
  static Expected<std::unique_ptr<Workbench>> Make(const Target& target,
                                                   const measure::WorkerOptions& worker,
                                                   int jobs = 0);
  Workbench(const Workbench&) = delete;
  Workbench& operator=(const Workbench&) = delete;
  ~Workbench();

  const tune::SessionTools& tools() const { return tools_; }
  /// "" where kernels for the target can be measured, else why not: then the tools build candidates
  /// and answer with this. Errors: no worker can be started.
  Expected<std::string> FindDevice();
  /// What the device is that was found (tn_device_describe); "" of a CPU.
  const std::string& device() const { return device_; }
  const std::string& folder() const { return folder_; }
  int64_t worker_starts() const { return worker_.starts(); }

 private:
  Workbench(const Target& target, const measure::WorkerOptions& worker, int jobs,
            std::string folder);

  const Target target_;
  const std::string folder_;
  std::string device_;
  measure::WorkerProcess worker_;
  tune::SessionTools tools_;
};

}  // namespace tenon::driver
