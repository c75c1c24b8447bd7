// A body that waits for what it has launched is run each time. Its launches are held back until it
// waits or ends: a piece. Where the same kernels were one before, with the same arenas, that is a
// graph already; the nodes whose arguments or blocks are others than last time are set, and all
// start by one call of the driver. So a loop that waits in each iteration has one graph, in which
// what depends on the iteration is set. What is launched alone stays a launch.
#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/device/code.h"
#include "runtime/device/graphs.h"

namespace tenon::runtime {
namespace {

// Room for more than was needed, to grow rarely; false + error.
template <class T>
bool Grow(T** list, uint32_t* room, uint32_t count, uint32_t needed) {
  if (needed <= *room) return true;
  const uint32_t more = needed * 2 + 16;
  auto* moved = static_cast<T*>(malloc(more * sizeof(T)));
  if (!moved) return Fail("MemoryError", "out of memory") == 0;
  if (count > 0)
    memcpy(static_cast<void*>(moved), static_cast<const void*>(*list), count * sizeof(T));
  free(static_cast<void*>(*list));
  *list = moved;
  *room = more;
  return true;
}

}  // namespace

/// Launches that have not been queued, without their arguments' places, which move until all are
/// there.
struct HeldLaunches {
  DeviceLaunch* launches;
  uint64_t* values;
  void** args;
  uint32_t num_launches, num_values;
  uint32_t room_launches, room_values, room_args;

  ~HeldLaunches() {
    free(launches);
    free(values);
    free(static_cast<void*>(args));
  }
};

int32_t Hold(DeviceCall* call, const DeviceLaunch& launch) {
  HeldLaunches& held = *call->held;
  const uint32_t values = held.num_values + launch.num_params;
  if (!Grow(&held.launches, &held.room_launches, held.num_launches, held.num_launches + 1) ||
      !Grow(&held.values, &held.room_values, held.num_values, values) ||
      !Grow(&held.args, &held.room_args, held.num_values, values))
    return -1;
  Recording into = {held.launches, held.args, held.values, held.num_launches, held.num_values};
  Record(&into, launch);
  held.num_launches = into.num_launches;
  held.num_values = into.num_values;
  return 0;
}

namespace {

// The arguments to where they are now.
void PlaceArguments(DeviceLaunch* launches, uint32_t count, void** args, uint64_t* values) {
  for (uint32_t i = 0; i < count; ++i) {
    launches[i].args = args;
    for (uint32_t k = 0; k < launches[i].num_params; ++k) *args++ = values++;
  }
}

uint64_t PieceOf(const HeldLaunches& held) {
  uint64_t hash = held.num_launches;
  for (uint32_t i = 0; i < held.num_launches; ++i) {
    const DeviceLaunch& launch = held.launches[i];
    hash = (hash ^ reinterpret_cast<uintptr_t>(launch.forms[0]) ^ launch.attributes) *
           0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash | 1;
}

// Whether the launches are of the graph's kernels.
bool AreOf(const DeviceGraph& graph, const HeldLaunches& held) {
  bool same = graph.num_launches == held.num_launches && graph.num_values == held.num_values;
  for (uint32_t i = 0; same && i < held.num_launches; ++i) {
    same = graph.launches[i].forms[0] == held.launches[i].forms[0] &&
           graph.launches[i].attributes == held.launches[i].attributes;
  }
  return same;
}

// Sets the nodes that are others than last time; 0, or -1 + error.
int32_t SetNodes(const DeviceCall& call, DeviceGraph* graph, const HeldLaunches& held) {
  const uint64_t* values = held.values;
  for (uint32_t i = 0; i < held.num_launches; ++i) {
    DeviceLaunch& node = graph->launches[i];
    const DeviceLaunch& now = held.launches[i];
    const size_t bytes = now.num_params * sizeof(uint64_t);
    void* const own = graph->values + (node.args - graph->args);
    const bool same = memcmp(own, values, bytes) == 0 &&
                      memcmp(node.grid, now.grid, sizeof node.grid) == 0 &&
                      memcmp(node.block, now.block, sizeof node.block) == 0;
    memcpy(own, values, bytes);
    memcpy(node.grid, now.grid, sizeof node.grid);
    memcpy(node.block, now.block, sizeof node.block);
    values += now.num_params;
    if (same) continue;
    ChooseForm(&node);
    if (call.driver->graph_set(graph->device_id, graph->graph, i, node) != 0) return -1;
  }
  return 0;
}

// A graph of the held launches. Pieces do not push graphs out: a call of many would come back to
// none of them.
DeviceGraph* MakePiece(const DeviceCall& call, const HeldLaunches& held, void* const* slots,
                       uint64_t piece, int32_t* out_status) {
  {
    MutexLock guard(&call.module->lock);
    if (call.module->num_graphs >= kMostGraphs) return nullptr;
  }
  const auto num_slots = static_cast<uint32_t>(call.given->num_arenas);
  DeviceGraph* graph = AllocateGraph(
      call, num_slots, 0, {nullptr, nullptr, nullptr, held.num_launches, held.num_values});
  if (!graph) {
    *out_status = -1;
    return nullptr;
  }
  graph->piece = piece;
  memcpy(static_cast<void*>(graph->slots), static_cast<const void*>(slots),
         num_slots * sizeof(void*));
  memcpy(graph->launches, held.launches, held.num_launches * sizeof(DeviceLaunch));
  memcpy(graph->values, held.values, held.num_values * sizeof(uint64_t));
  PlaceArguments(graph->launches, graph->num_launches, graph->args, graph->values);
  return FinishGraph(call, graph, out_status);
}

// As one graph, where there is one or is to be one. *out_done: they are queued.
int32_t QueueAsGraph(const DeviceCall& call, const HeldLaunches& held, bool* out_done) {
  *out_done = false;
  void* const* const slots = call.closure + call.given->first_arena_slot;
  const uint64_t piece = PieceOf(held);
  int32_t status = 0;
  DeviceGraph* graph = TakeGraph(call, slots, piece, nullptr);
  if (graph && !AreOf(*graph, held)) {
    GiveBackGraph(call.module, graph);
    return 0;
  }
  if (!graph) {
    graph = MakePiece(call, held, slots, piece, &status);
    if (!graph) return status;
  } else if (SetNodes(call, graph, held) != 0) {
    DiscardGraph(call.module, graph);
    return -1;
  }
  *out_done = true;
  status = call.driver->graph_launch(graph->device_id, graph->graph, call.stream);
  GiveBackGraph(call.module, graph);
  return status;
}

}  // namespace

int32_t QueueHeld(DeviceCall* call) {
  HeldLaunches& held = *call->held;
  PlaceArguments(held.launches, held.num_launches, held.args, held.values);
  bool done = false;
  int32_t status = held.num_launches < 2 ? 0 : QueueAsGraph(*call, held, &done);
  for (uint32_t i = 0; !done && status == 0 && i < held.num_launches; ++i) {
    ChooseForm(&held.launches[i]);
    status = call->driver->launch(call->device.device_id, held.launches[i]);
  }
  held.num_launches = held.num_values = 0;
  return status;
}

int32_t RunInPieces(DeviceCall* call, void** closure) {
  HeldLaunches held = {};
  call->held = &held;
  call->closure = closure;
  call->left_out = false;
  const CallScope scope(call);
  int32_t status = call->given->body(static_cast<void*>(closure), 0, 1, nullptr);
  if (status == 0) status = QueueHeld(call);
  call->held = nullptr;
  return status;
}

}  // namespace tenon::runtime
