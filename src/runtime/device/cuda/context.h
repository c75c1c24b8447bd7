// The primary contexts of devices, and what goes wrong in them.
#pragma once

#include "runtime/device/cuda/library.h"
#include "runtime/device/device.h"

namespace tenon::runtime::cuda {

/// -1 with the thread's error: what failed, on which device, and why. `of` is a kernel's name, or
/// null; `log` says more where it is not empty. After an error that a device does not recover from,
/// every use of it fails with what this one said.
int32_t Raise(int32_t id, const char* function, const char* of, Result result,
              const char* log = "");

/// The device's context for as long as this object lives. `library` is null where that failed, with
/// the error set, or, of a quiet use, with nothing said.
class Use {
 public:
  explicit Use(int32_t id, bool quiet = false);
  ~Use() {
    Context ignored;
    if (pushed_) library->pop(&ignored);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  Context context() const { return context_; }

  const Library* library = nullptr;

 private:
  Context context_ = nullptr;
  bool pushed_ = false;
};

/// While this object lives, what this thread asks for is no concern of captures, in whatever mode
/// they are: neither are they broken by it, nor is it refused.
class Apart {
 public:
  explicit Apart(const Library* library) : library_(library) {
    if (library_ && library_->exchange_capture_mode) library_->exchange_capture_mode(&mode_);
  }
  ~Apart() {
    if (library_ && library_->exchange_capture_mode) library_->exchange_capture_mode(&mode_);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

 private:
  const Library* library_;
  int32_t mode_ = kCaptureRelaxed;
};

inline DevicePtr Address(const void* memory) { return reinterpret_cast<DevicePtr>(memory); }

// launch.cc
int32_t Launch(int32_t id, const DeviceLaunch& launch);
// graph.cc
int32_t CaptureOf(int32_t id, void* stream, uint64_t* out);
int32_t GraphMake(int32_t id, const DeviceLaunch* launches, uint32_t count, void** out);
int32_t GraphSet(int32_t id, void* graph, uint32_t place, const DeviceLaunch& launch);
int32_t GraphLaunch(int32_t id, void* graph, void* stream);
void GraphFree(int32_t id, void* graph);

}  // namespace tenon::runtime::cuda
