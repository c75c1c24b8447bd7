#include "runtime/device/graphs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/device/code.h"

namespace tenon::runtime {
namespace {

bool IsFor(const DeviceGraph& graph, const DeviceCall& call, void* const* slots, uint64_t piece) {
  return !graph.lent && graph.body == call.given->body && graph.piece == piece &&
         graph.device_id == call.device.device_id &&
         memcmp(static_cast<const void*>(graph.slots), static_cast<const void*>(slots),
                graph.num_slots * sizeof(void*)) == 0;
}

// Puts a new graph, which its call has, first; the one used longest ago gives way.
void Keep(DeviceModule* module, DeviceGraph* graph) {
  DeviceGraph* last = nullptr;
  {
    MutexLock guard(&module->lock);
    graph->next = module->graphs;
    module->graphs = graph;
    if (++module->num_graphs > kMostGraphs) {
      DeviceGraph** oldest = nullptr;
      for (DeviceGraph** at = &graph->next; *at; at = &(*at)->next) {
        if (!(*at)->lent) oldest = at;
      }
      if (oldest) {
        last = *oldest;
        *oldest = last->next;
        --module->num_graphs;
      }
    }
  }
  if (last) FreeGraph(*module, last);
}

}  // namespace

void FreeGraph(const DeviceModule& module, DeviceGraph* graph) {
  if (graph->graph) FindDriver(module.device_type)->graph_free(graph->device_id, graph->graph);
  free(graph->places);
  free(graph);
}

DeviceGraph* TakeGraph(const DeviceCall& call, void* const* slots, uint64_t piece,
                       void* const* buffers) {
  MutexLock guard(&call.module->lock);
  DeviceGraph** found = nullptr;
  for (DeviceGraph** at = &call.module->graphs; *at; at = &(*at)->next) {
    if (!IsFor(**at, call, slots, piece)) continue;
    found = at;
    if (!buffers || HasBuffers(**at, buffers)) break;
  }
  if (!found) return nullptr;
  (*found)->lent = true;
  return *found;
}

bool HasBuffers(const DeviceGraph& graph, void* const* buffers) {
  return memcmp(static_cast<const void*>(graph.buffers), static_cast<const void*>(buffers),
                graph.num_buffers * sizeof(void*)) == 0;
}

void GiveBackGraph(DeviceModule* module, DeviceGraph* graph, bool used) {
  MutexLock guard(&module->lock);
  graph->lent = false;
  if (!used) return;
  DeviceGraph** at = &module->graphs;
  while (*at != graph) at = &(*at)->next;
  *at = graph->next;
  graph->next = module->graphs;
  module->graphs = graph;
}

void DiscardGraph(DeviceModule* module, DeviceGraph* graph) {
  {
    MutexLock guard(&module->lock);
    for (DeviceGraph** at = &module->graphs; *at; at = &(*at)->next) {
      if (*at != graph) continue;
      *at = graph->next;
      --module->num_graphs;
      break;
    }
  }
  FreeGraph(*module, graph);
}

DeviceGraph* AllocateGraph(const DeviceCall& call, uint32_t slots, uint32_t buffers,
                           const Recording& counted) {
  const size_t bytes = sizeof(DeviceGraph) + sizeof(void*) * (size_t{slots} + buffers) +
                       sizeof(DeviceLaunch) * size_t{counted.num_launches} +
                       (sizeof(void*) + sizeof(uint64_t)) * size_t{counted.num_values};
  auto* graph = static_cast<DeviceGraph*>(calloc(1, bytes));
  if (!graph) {
    SetError("MemoryError", "out of memory");
    return nullptr;
  }
  static_assert(alignof(DeviceLaunch) <= 8 && sizeof(DeviceGraph) % 8 == 0);
  graph->body = call.given->body;
  graph->device_id = call.device.device_id;
  graph->num_launches = counted.num_launches;
  graph->num_values = counted.num_values;
  graph->lent = true;
  graph->num_slots = slots;
  graph->num_buffers = buffers;
  graph->launches = reinterpret_cast<DeviceLaunch*>(graph + 1);
  graph->slots = reinterpret_cast<void**>(graph->launches + counted.num_launches);
  graph->buffers = graph->slots + slots;
  graph->args = graph->buffers + buffers;
  graph->values = reinterpret_cast<uint64_t*>(graph->args + counted.num_values);
  return graph;
}

DeviceGraph* FinishGraph(const DeviceCall& call, DeviceGraph* graph, int32_t* out_status) {
  for (uint32_t i = 0; i < graph->num_launches; ++i) ChooseForm(&graph->launches[i]);
  const int32_t made = call.driver->graph_make(graph->device_id, graph->launches,
                                               graph->num_launches, &graph->graph);
  *out_status = made < 0 ? -1 : 0;
  if (made == 0) {
    Keep(call.module, graph);
    return graph;
  }
  FreeGraph(*call.module, graph);
  return nullptr;
}

void DropGraphs(DeviceModule* module, const void* memory) {
  for (DeviceGraph** at = &module->graphs; *at;) {
    DeviceGraph* graph = *at;
    bool uses = !memory;
    for (uint32_t i = 0; i < graph->num_slots; ++i) uses |= graph->slots[i] == memory;
    if (graph->lent || !uses) {
      at = &graph->next;
      continue;
    }
    *at = graph->next;
    --module->num_graphs;
    FreeGraph(*module, graph);
  }
}

}  // namespace tenon::runtime
