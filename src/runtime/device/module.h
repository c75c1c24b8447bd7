// What this process has of one library on devices, and the call that a thread is in.
//
// All of it hangs on one object, which the library's first call makes: so it can outlive the
// library for as long as it takes to give everything back (FreeDeviceModule).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/device/device.h"
#include "tenon/kernel_abi.h"

namespace tenon::runtime {

struct DeviceArena;
struct DeviceGraph;
struct HeldLaunches;
struct Recording;

/// The library's code on one device.
struct LoadedCode {
  uint32_t num_parts;
  uint32_t without;  // of TN_LAUNCH_…: of the form that was loaded

  /// By the number of the part, behind this object: the driver's module; null: not loaded.
  void** modules() { return reinterpret_cast<void**>(this + 1); }
  /// Two by the number of the kernel, behind those: for any addresses, and for aligned ones (null:
  /// the same).
  void** forms(uint32_t kernel) { return modules() + num_parts + size_t{2} * kernel; }
};

/// The library's weights on one device.
struct LoadedWeights {
  void* memory;  // of all of them; null where each has its own
  uint32_t count;

  /// By number, behind this object: what kernels get.
  void** addresses() { return reinterpret_cast<void**>(this + 1); }
};

/// Zero-initialised. `loading` is held while code is loaded or weights are copied, `lock` guards
/// what stands behind it.
struct DeviceModule {
  static constexpr uint32_t kSeen = 64;

  std::atomic<LoadedCode*> code[TN_MAX_DEVICES];
  std::atomic<LoadedWeights*> weights[TN_MAX_DEVICES];
  int32_t device_type;
  uint32_t loading;
  uint32_t lock;
  int32_t num_graphs;
  DeviceGraph* graphs;  // the one used last first
  DeviceArena* arenas;
  int64_t largest_arena;
  int64_t arena_limit;   // bytes of all arenas of one device; 0: none
  uint64_t seen[kSeen];  // hashes of calls that got no graph of their own, latest at next_seen - 1
  uint32_t next_seen;
};

/// The library's; null + error where memory is out.
DeviceModule* DeviceModuleOf(const tn_device_code* code, tn_device_state* state);
/// Gives back all that it has on devices, and itself. No call of the library's functions may run.
void FreeDeviceModule(DeviceModule* module);

/// A call that a thread is in: where the launches of its body go.
struct DeviceCall {
  const tn_device_call* given;
  const DeviceDriver* driver;
  tn_dl_device device;
  DeviceModule* module;
  void* stream;
  uint64_t capture;  // of the stream; 0: nobody records it
  LoadedCode* code;
  Recording* recording;  // gets the launches; null: they are queued
  HeldLaunches* held;    // holds them back until the body waits; null: they are queued at once
  void** closure;        // of a body that holds them back
  bool left_out;         // the latest launch had no blocks
};

}  // namespace tenon::runtime
