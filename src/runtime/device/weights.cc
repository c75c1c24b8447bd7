// Weights are copied when a library first runs on a device: into one stretch of its memory, or,
// where memory has no addresses, into one for each weight. The library's file is mapped, so what is
// copied may have to be read first: it goes through two pieces of pinned memory, one of which the
// device reads while the other is filled.
#include "runtime/device/weights.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/device/device.h"

namespace tenon::runtime {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;
constexpr int64_t kAlign = 256;

const tn_device_weight* RowsOf(const DeviceCall& call) {
  return reinterpret_cast<const tn_device_weight*>(call.given->weights + 1);
}

/// Copies to the device through pinned memory, on a stream of its own.
class Staging {
 public:
  Staging(const DeviceDriver& driver, int32_t id) : driver_(driver), id_(id) {}
  ~Staging() {
    if (stream_) driver_.stream_free(id_, stream_);
    for (Half& half : halves_) {
      if (half.mark) driver_.event_free(id_, half.mark);
      if (half.memory) driver_.free_pinned(id_, half.memory);
    }
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // 0, or -1 + error.
  int32_t Begin() {
    if (driver_.stream_make(id_, &stream_) != 0) return -1;
    for (Half& half : halves_) {
      if (driver_.allocate_pinned(id_, kPiece, &half.memory) != 0) return -1;
      if (driver_.mark_make(id_, &half.mark) != 0) return -1;
    }
    return 0;
  }

  /// What is added from now on lies one behind the other from here.
  void At(void* target) { target_ = static_cast<char*>(target); }

  int32_t Add(const unsigned char* source, int64_t bytes) {
    while (bytes > 0) {
      if (filled_ == kPiece && Send() != 0) return -1;
      Half& half = halves_[next_ % 2];
      if (filled_ == 0 && next_ >= 2 && driver_.event_wait(id_, half.mark) != 0) return -1;
      const int64_t piece = std::min(kPiece - filled_, bytes);
      memcpy(static_cast<char*>(half.memory) + filled_, source, static_cast<size_t>(piece));
      filled_ += piece, source += piece, bytes -= piece;
    }
    return 0;
  }
  /// Bytes that nobody reads, fewer than there are in a piece.
  int32_t Skip(int64_t bytes) {
    static const unsigned char nothing[kAlign] = {};
    return Add(nothing, bytes);
  }

  int32_t End() { return Send() == 0 ? driver_.stream_wait(id_, stream_) : -1; }

 private:
  struct Half {
    void* memory = nullptr;
    void* mark = nullptr;
  };
  const DeviceDriver& driver_;
  const int32_t id_;
  void* stream_ = nullptr;
  Half halves_[2];
  char* target_ = nullptr;  // of the half that is being filled
  int64_t filled_ = 0;
  uint64_t next_ = 0;

  int32_t Send() {
    Half& half = halves_[next_ % 2];
    if (driver_.copy_from_host_async(id_, target_, half.memory, filled_, stream_) != 0 ||
        driver_.event_record(id_, half.mark, stream_) != 0) {
      return -1;
    }
    target_ += filled_;
    filled_ = 0;
    ++next_;
    return 0;
  }
};

int64_t Padding(const tn_device_weight& row) {
  return (kAlign - static_cast<int64_t>(row.bytes) % kAlign) % kAlign;
}

int32_t CopyAll(const DeviceCall& call, LoadedWeights* weights) {
  const tn_device_weight* rows = RowsOf(call);
  Staging staging(*call.driver, call.device.device_id);
  if (staging.Begin() != 0) return -1;
  staging.At(weights->memory);
  for (uint32_t i = 0; i < weights->count; ++i) {
    const auto bytes = static_cast<int64_t>(rows[i].bytes);
    if (staging.Add(call.given->weights_base + rows[i].offset, bytes) != 0 ||
        staging.Skip(Padding(rows[i])) != 0) {
      return -1;
    }
  }
  return staging.End();
}

int32_t PlaceTogether(const DeviceCall& call, LoadedWeights* weights) {
  const tn_device_weight* rows = RowsOf(call);
  int64_t bytes = 0;
  for (const bool write : {false, true}) {
    if (write && call.driver->allocate(call.device.device_id, bytes, &weights->memory) != 0)
      return -1;
    bytes = 0;
    for (uint32_t i = 0; i < weights->count; ++i) {
      if (write) weights->addresses()[i] = static_cast<char*>(weights->memory) + bytes;
      bytes += static_cast<int64_t>(rows[i].bytes) + Padding(rows[i]);
    }
  }
  return CopyAll(call, weights);
}

int32_t PlaceEach(const DeviceCall& call, LoadedWeights* weights) {
  const int32_t id = call.device.device_id;
  const tn_device_weight* rows = RowsOf(call);
  for (uint32_t i = 0; i < weights->count; ++i) {
    const auto bytes = static_cast<int64_t>(rows[i].bytes);
    void** address = &weights->addresses()[i];
    if (call.driver->allocate(id, bytes, address) != 0 ||
        call.driver->copy_from_host(id, *address, call.given->weights_base + rows[i].offset,
                                    bytes) != 0) {
      return -1;
    }
  }
  return 0;
}

// All or nothing; null + error.
LoadedWeights* Upload(const DeviceCall& call) {
  const uint32_t count = call.given->weights->count;
  auto* weights = static_cast<LoadedWeights*>(
      calloc(1, sizeof(LoadedWeights) + (count + size_t{1}) * sizeof(void*)));
  if (!weights) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  weights->count = count;
  const bool together = !call.driver->opaque && call.driver->allocate_pinned;
  if ((together ? PlaceTogether : PlaceEach)(call, weights) == 0) return weights;
  FreeWeights(*call.driver, call.device.device_id, weights);
  return nullptr;
}

}  // namespace

void FreeWeights(const DeviceDriver& driver, int32_t device_id, LoadedWeights* weights) {
  if (weights->memory) {
    driver.free(device_id, weights->memory);
  } else {
    for (uint32_t i = 0; i < weights->count; ++i) {
      if (weights->addresses()[i]) driver.free(device_id, weights->addresses()[i]);
    }
  }
  free(weights);
}

LoadedWeights* WeightsOf(const DeviceCall& call) {
  std::atomic<LoadedWeights*>& slot = call.module->weights[call.device.device_id];
  LoadedWeights* there = slot.load(std::memory_order_acquire);
  if (there) return there;
  MutexLock guard(&call.module->loading);
  there = slot.load(std::memory_order_relaxed);
  if (there) return there;
  there = Upload(call);
  if (there) call.given->state->uploads += there->count;
  slot.store(there, std::memory_order_release);
  return there;
}

}  // namespace tenon::runtime
