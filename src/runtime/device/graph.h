// The launches of a call, kept as a graph of the device's driver.
#pragma once

#include "runtime/device/module.h"

namespace tenon::runtime {

/// Notes a launch; its arguments are copied.
void Record(Recording* recording, const DeviceLaunch& launch);

/// Runs the call's body once as a graph, or launch by launch where there is to be none; 0, or -1 +
/// error. For bodies with TN_CALL_REPEATS, while nobody else records the stream.
int32_t RunThroughGraph(DeviceCall* call, void** closure);

/// Runs the body of a call that waits, each of its pieces as a graph where that is possible; 0, or
/// -1 + error. Such a call holds launches back, and whatever waits for them or follows them queues
/// them first.
int32_t RunInPieces(DeviceCall* call, void** closure);
int32_t Hold(DeviceCall* call, const DeviceLaunch& launch);
int32_t QueueHeld(DeviceCall* call);

/// Gives back the graphs that no call has and that use memory (null: all of them). The module's
/// lock is held.
void DropGraphs(DeviceModule* module, const void* memory);

}  // namespace tenon::runtime
