// What a device does, found like what a machine does (doctor.h): by kernels on it, each timed with
// a worker's bursts.
#pragma once

#include "driver/doctor.h"

namespace tenon::driver {

/// Of a target of a device. Errors: there is none here, or no worker can be started.
Expected<Profile> MeasureDevice(const DoctorOptions& options);

}  // namespace tenon::driver
