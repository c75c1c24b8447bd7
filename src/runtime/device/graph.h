// The launches of a call, kept as a graph of the device's driver.
#pragma once

#include "runtime/device/module.h"

namespace tenon::runtime {

/// Notes a launch; its arguments are copied.
void Record(Recording* recording, const DeviceLaunch& launch);

/// Runs the call's body once as a graph, or launch by launch where there is to be none; 0, or -1 +
/// error. For bodies with TN_CALL_REPEATS, while nobody else records the stream.
int32_t RunThroughGraph(DeviceCall* call, void** closure);

/// Gives back the graphs that no call has and that use memory (null: all of them). The module's
/// lock is held.
void DropGraphs(DeviceModule* module, const void* memory);

}  // namespace tenon::runtime
