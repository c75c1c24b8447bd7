// Memory of a device that calls borrow.
#pragma once

#include "runtime/device/module.h"

namespace tenon::runtime {

/// One arena. Its call has it while `lent`; work that is queued may still use it when it is not.
struct DeviceArena {
  DeviceArena* next;       // of the module's
  DeviceArena* next_lent;  // of its call's
  int32_t device_id;
  bool lent;
  uint64_t capture;  // whose graph it belongs to, for good; 0: nobody's
  void* stream;      // that used it last
  void* mark;        // behind that use where `marked`; null: there is none yet
  bool marked;
  void* memory;
  int64_t bytes;
  tn_ffi_object* tensor;  // of a framework, whose memory it is; null: it is the driver's
};

/// Memory of at least so many bytes for work on the call's stream: what this stream used last, else
/// what no work uses any more, else new; where there is no more to be had, what another stream will
/// have done with. Under a capture what is idle, which is the captured graph's from then on. Null +
/// error.
DeviceArena* AcquireArena(const DeviceCall& call, int64_t bytes);
/// After the call has queued its work. Of one that failed nobody knows how far it came: then its
/// stream alone can have the arena.
void ReleaseArena(const DeviceCall& call, DeviceArena* arena, bool failed);

/// Gives back what no call has and no captured graph holds, with the graphs that use it; waits for
/// work that does.
void TrimArenas(DeviceModule* module);

}  // namespace tenon::runtime
