// A call's launches as a graph.
//
// What the body of such a call launches follows from the slots of its closure alone, so it is
// enough to know those to know the launches. The first call with its slots runs the body twice
// without a device: once to count, once to note every launch with its arguments. In the second run
// the addresses of the caller's tensors are names, numbers that no address can be:
//
//   closure    x = 0x7f20_0000   n = 128   arena = 0x7f30_0000
//   run with   x = name 0        n = 128   arena = 0x7f30_0000
//   noted      k(name 0 + 4096, arena + 64, 128)   m(arena + 64, arena + 8256)
//   places     launch 0, argument 0: tensor 0 + 4096
//
// so that what was noted says which arguments are such addresses, and how far into the tensor.
// Later calls with the same slots behind the tensors find the graph; where tensors are elsewhere
// than last time, the launches that have them get their arguments anew, and nothing else is
// touched. Where these are many, and the tensors were in the same places a short while ago, as the
// states of a model that are input and output in turn, the places get a graph of their own, while
// there is room. Nothing is captured: streams, those of other threads too, never know.
//
// A graph is a call's own while it uses it; a second one that comes in between has another arena,
// and so another graph. A module keeps 16 of them. When it has so many, a call gets one only where
// a call like it was seen a short while ago: sizes that never come again would cost every call a
// graph.
#include "runtime/device/graph.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/device/code.h"
#include "runtime/device/graphs.h"

namespace tenon::runtime {

namespace {

constexpr uint64_t kName = uint64_t{1} << 63;  // no address of anything has this bit
constexpr int kNameShift = 47;
constexpr uint64_t kNameOffset = uint64_t{1} << (kNameShift - 1);  // offsets may be below 0

uint64_t NameOf(uint64_t buffer) { return kName | buffer << kNameShift | kNameOffset; }

}  // namespace

void Record(Recording* recording, const DeviceLaunch& launch) {
  if (recording->launches) {
    DeviceLaunch& note = recording->launches[recording->num_launches];
    note = launch;
    note.args = recording->args + recording->num_values;
    for (uint32_t i = 0; i < launch.num_params; ++i) {
      uint64_t& value = recording->values[recording->num_values + i];
      const uint8_t param = launch.params[i];
      value = 0;
      memcpy(&value, launch.args[i], IsAddress(param) ? sizeof value : param);
      note.args[i] = &value;
    }
  }
  ++recording->num_launches;
  recording->num_values += launch.num_params;
}

namespace {

int32_t RunBody(DeviceCall* call, void** closure, Recording* recording) {
  call->recording = recording;
  call->left_out = false;
  const CallScope scope(call);
  const int32_t status = call->given->body(static_cast<void*>(closure), 0, 1, nullptr);
  call->recording = nullptr;
  return status;
}

// Launches whose arguments are changed rather than a graph made: each takes the driver 0.4 us, and
// a graph of a hundred launches some hundred us.
constexpr uint32_t kManyMoved = 8;

uint64_t HashOf(const DeviceCall& call, void* const* slots, uint64_t count) {
  uint64_t hash = reinterpret_cast<uintptr_t>(call.given->body) ^
                  (static_cast<uint64_t>(call.device.device_id) << 56);
  for (uint64_t i = 0; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(slots[i])) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash;
}

bool HasRoom(const DeviceCall& call) {
  MutexLock guard(&call.module->lock);
  return call.module->num_graphs < kMostGraphs;
}

// Whether a call like this came not long ago without getting a graph of its own; from now on one
// has.
bool WasSeen(const DeviceCall& call, uint64_t hash) {
  DeviceModule* module = call.module;
  MutexLock guard(&module->lock);
  for (uint64_t seen : module->seen) {
    if (seen == hash) return true;
  }
  module->seen[module->next_seen++ % DeviceModule::kSeen] = hash;
  return false;
}

// How many launches have tensors that are elsewhere.
uint32_t CountMoved(const DeviceGraph& graph, void* const* buffers) {
  uint32_t count = 0, after = 0;  // the launches before it are counted
  for (uint32_t i = 0; i < graph.num_places; ++i) {
    const Place& place = graph.places[i];
    if (place.launch < after || graph.buffers[place.buffer] == buffers[place.buffer]) continue;
    after = place.launch + 1;
    ++count;
  }
  return count;
}

bool FindPlaces(DeviceGraph* graph) {
  for (const bool write : {false, true}) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->num_launches; ++i) {
      const DeviceLaunch& launch = graph->launches[i];
      const auto first = static_cast<uint32_t>(launch.args - graph->args);
      for (uint32_t k = 0; k < launch.num_params; ++k) {
        const uint64_t value = graph->values[first + k];
        if (!IsAddress(launch.params[k]) || (value & kName) == 0) continue;
        const uint64_t buffer = (value & ~kName) >> kNameShift;
        if (write) {
          graph->places[count] = {i, first + k, static_cast<uint32_t>(buffer),
                                  static_cast<int64_t>(value - NameOf(buffer))};
        }
        ++count;
      }
    }
    if (write) break;
    graph->num_places = count;
    graph->places = static_cast<Place*>(malloc((count + size_t{1}) * sizeof(Place)));
    if (!graph->places) return false;
  }
  return true;
}

// Puts the tensors' addresses in their places; with a driver's graph, there too. 0, or -1 + error.
int32_t SetBuffers(const DeviceCall& call, DeviceGraph* graph, void* const* buffers) {
  bool changed = false;
  for (uint32_t i = 0; i < graph->num_places; ++i) {
    const Place& place = graph->places[i];
    if (!graph->graph || graph->buffers[place.buffer] != buffers[place.buffer]) {
      graph->values[place.value] =
          reinterpret_cast<uintptr_t>(buffers[place.buffer]) + static_cast<uint64_t>(place.offset);
      changed = true;
    }
    const bool last = i + 1 == graph->num_places || graph->places[i + 1].launch != place.launch;
    if (!last || !changed) continue;
    changed = false;
    ChooseForm(&graph->launches[place.launch]);
    if (graph->graph && call.driver->graph_set(graph->device_id, graph->graph, place.launch,
                                               graph->launches[place.launch]) != 0) {
      return -1;
    }
  }
  memcpy(static_cast<void*>(graph->buffers), static_cast<const void*>(buffers),
         graph->num_buffers * sizeof(void*));
  return 0;
}

// Notes the body's launches; null + error, *out_few (then no error) where they are too few to be
// worth a graph.
DeviceGraph* Note(DeviceCall* call, void** closure, bool* out_few) {
  const tn_device_call& given = *call->given;
  Recording recording = {};
  if (RunBody(call, closure, &recording) != 0) return nullptr;
  *out_few = recording.num_launches < 2;
  if (*out_few) return nullptr;
  const auto buffers = static_cast<uint32_t>(given.num_buffers);
  DeviceGraph* graph =
      AllocateGraph(*call, static_cast<uint32_t>(given.num_slots) - buffers, buffers, recording);
  if (!graph) return nullptr;
  memcpy(static_cast<void*>(graph->slots), static_cast<const void*>(closure + given.num_buffers),
         graph->num_slots * sizeof(void*));
  recording = {graph->launches, graph->args, graph->values, 0, 0};
  void** const own = closure;
  for (int64_t i = 0; i < given.num_buffers; ++i) {
    graph->buffers[i] = own[i];
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a name in the place of an address
    own[i] = reinterpret_cast<void*>(NameOf(static_cast<uint64_t>(i)));
  }
  const int32_t status = RunBody(call, own, &recording);
  memcpy(static_cast<void*>(own), static_cast<const void*>(graph->buffers),
         graph->num_buffers * sizeof(void*));
  if (status == 0 && FindPlaces(graph)) return graph;
  if (status == 0) SetError("MemoryError", "out of memory");
  FreeGraph(*call->module, graph);
  return nullptr;
}

// Makes the graph of a call that has none; null and 0 in *out_status where it is to have none.
DeviceGraph* Make(DeviceCall* call, void** closure, int32_t* out_status) {
  bool few = false;
  DeviceGraph* graph = Note(call, closure, &few);
  *out_status = graph || few ? 0 : -1;
  if (!graph) return nullptr;
  SetBuffers(*call, graph, closure);
  return FinishGraph(*call, graph, out_status);
}

}  // namespace

int32_t RunThroughGraph(DeviceCall* call, void** closure) {
  void** const slots = closure + call->given->num_buffers;
  const auto all = static_cast<uint64_t>(call->given->num_slots);
  const auto count = all - static_cast<uint64_t>(call->given->num_buffers);
  DeviceGraph* graph = TakeGraph(*call, slots, 0, closure);
  const bool elsewhere = graph && !HasBuffers(*graph, closure);
  bool wanted = false;
  if (!graph) {
    wanted = HasRoom(*call) || WasSeen(*call, HashOf(*call, slots, count));
    if (!wanted) return RunBody(call, closure, nullptr);
  } else if (elsewhere && CountMoved(*graph, closure) >= kManyMoved) {
    wanted = HasRoom(*call) && WasSeen(*call, HashOf(*call, closure, all));
    if (wanted) GiveBackGraph(call->module, graph, false);
  }
  if (wanted) {
    int32_t status = 0;
    graph = Make(call, closure, &status);
    if (status != 0) return -1;
    if (!graph) return RunBody(call, closure, nullptr);
  } else if (elsewhere && SetBuffers(*call, graph, closure) != 0) {
    DiscardGraph(call->module, graph);
    return -1;
  }
  const int32_t status = call->driver->graph_launch(graph->device_id, graph->graph, call->stream);
  GiveBackGraph(call->module, graph);
  return status;
}

}  // namespace tenon::runtime
