// The graphs of a module, among those who make them (graph.cc, pieces.cc).
#pragma once

#include "runtime/device/graph.h"

namespace tenon::runtime {

inline constexpr int32_t kMostGraphs = 16;

/// Launches of a body. While it counts, `launches` is null.
struct Recording {
  DeviceLaunch* launches;
  void** args;
  uint64_t* values;
  uint32_t num_launches, num_values;
};

/// An argument that is an address in a tensor of the caller's.
struct Place {
  uint32_t launch, value, buffer;
  int64_t offset;
};

/// Of a call, or of a piece of one (`piece`: a hash of its kernels; else 0), whose slots are the
/// call's arenas. Behind it stand the slots that it is for, the tensors' addresses that it has now,
/// the launches, their arguments, and the places of the tensors.
struct DeviceGraph {
  DeviceGraph* next;
  void* graph;  // the driver's
  tn_body_fn body;
  uint64_t piece;
  int32_t device_id;
  bool lent;
  uint32_t num_slots, num_buffers, num_launches, num_values, num_places;
  void** slots;
  void** buffers;
  DeviceLaunch* launches;
  void** args;
  uint64_t* values;
  Place* places;
};

/// With room for the launches that were counted; null + error.
DeviceGraph* AllocateGraph(const DeviceCall& call, uint32_t slots, uint32_t buffers,
                           const Recording& counted);
/// Makes the driver's graph and keeps it for the module; null where there is none, *out_status is 0
/// where that is no error. The one used longest ago gives way.
DeviceGraph* FinishGraph(const DeviceCall& call, DeviceGraph* graph, int32_t* out_status);

/// Lends the graph for the slots, or of the piece; null where there is none that is free. Of
/// several it is the one that has the tensors' addresses (null: whatever they are), else the one
/// used longest ago.
DeviceGraph* TakeGraph(const DeviceCall& call, void* const* slots, uint64_t piece,
                       void* const* buffers);
/// Whether these are the addresses that it has of the caller's tensors.
bool HasBuffers(const DeviceGraph& graph, void* const* buffers);
/// `used`: its call has launched it, now.
void GiveBackGraph(DeviceModule* module, DeviceGraph* graph, bool used = true);
/// Of a graph that its call has broken.
void DiscardGraph(DeviceModule* module, DeviceGraph* graph);
/// One that is not kept.
void FreeGraph(const DeviceModule& module, DeviceGraph* graph);

}  // namespace tenon::runtime
