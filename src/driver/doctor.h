// What a machine does, found by running kernels like those that networks are made of.
#pragma once

#include <functional>
#include <string>

#include "driver/profile.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

struct DoctorOptions {
  Target target = Target::Host();  // code of which target is measured; without a number of cores
  std::string worker;              // tenon-measure; "": measure::FindWorker
  /// Told what comes next, and how much of all is done; null: nobody.
  std::function<void(const std::string& what, double done)> progress;
};

/// Takes less than a minute. Errors: code of the target does not run here, or no worker can be
/// started.
Expected<Profile> MeasureMachine(const DoctorOptions& options);

}  // namespace tenon::driver
