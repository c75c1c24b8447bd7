// Where a model runs, for `run` and `bench`: the device's name, and tensors that go there and back.
#pragma once

#include <string>

#include "program.h"

namespace tenon::tools {

/// The device that `text` names for a program: "opencl:1", "opencl" (its first), or "" (the first
/// of the kind that it was compiled for). Errors: it is compiled for another kind; there are not so
/// many.
Expected<tn_dl_device> DeviceFor(const Program& program, const std::string& text);

/// "opencl:1".
std::string ToString(tn_dl_device device);

/// Copies in memory of the device; the tensors themselves where that is the CPU's.
Expected<NamedTensors> OnDevice(const NamedTensors& tensors, tn_dl_device device);
/// Copies in host memory of what is elsewhere. Waits for what computes them.
Expected<NamedTensors> OnHost(const NamedTensors& tensors);

}  // namespace tenon::tools
