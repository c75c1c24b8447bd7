// Graphs, built node by node.
//
//   cuGraphCreate
//   cuGraphAddKernelNode      for each launch, behind the one before it
//   cuGraphInstantiate
//   cuGraphExecKernelNodeSetParams    a launch's arguments, later
//   cuGraphLaunch
//
// A launch that depends on the one before it (TN_LAUNCH_DEPENDENT) begins while that runs, where
// the driver knows edges for that; its kernel waits by itself, so an edge like all others is right
// too.
#include <stdlib.h>

#include "runtime/core/error.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/launch.h"

namespace tenon::runtime::cuda {
namespace {

/// The graph is kept for its nodes, which name places in `exec`; they stand behind this object.
struct Graph {
  void* graph;
  void* exec;

  void** nodes() { return reinterpret_cast<void**>(this + 1); }
};

KernelNode NodeOf(const DeviceLaunch& launch) {
  KernelNode node = {};
  node.function = launch.function;
  for (int i = 0; i < 3; ++i) {
    node.grid[i] = launch.grid[i];
    node.block[i] = launch.block[i];
  }
  node.shared_bytes = launch.shared_bytes;
  node.args = launch.args;
  return node;
}

// Adds the launch behind `before`, which may be null; 0, or -1 + error.
int32_t Add(int32_t id, const Library& library, const DeviceLaunch& launch, void* graph,
            void* before, void** out) {
  TensorMaps maps(launch);
  if (maps.Make(id) != 0) return -1;
  const KernelNode node = NodeOf(launch);
  const bool early = before && (launch.attributes & TN_LAUNCH_DEPENDENT) != 0 && library.graph_edge;
  const size_t after = before && !early ? 1 : 0;
  Result result = library.graph_add(out, graph, &before, after, &node);
  const char* function = "cuGraphAddKernelNode";
  if (result == 0 && early) {
    const GraphEdge edge = {kPortProgrammatic, 0, kEdgeProgrammatic, {}};
    result = library.graph_edge(graph, &before, out, &edge, 1);
    function = "cuGraphAddDependencies";
  }
  LaunchAttribute attributes[kMostAttributes];
  const uint32_t count = AttributesOf(launch, attributes);
  for (uint32_t i = 0; result == 0 && i < count; ++i) {
    if (attributes[i].id == kLaunchDependent) continue;  // an edge says so
    result = library.graph_attribute(*out, attributes[i].id, &attributes[i].value);
    function = "cuGraphKernelNodeSetAttribute";
  }
  return result == 0 ? 0 : Raise(id, function, launch.name, result);
}

int32_t Build(int32_t id, const Library& library, const DeviceLaunch* launches, uint32_t count,
              Graph* out) {
  Result result = library.graph_make(&out->graph, 0);
  if (result != 0) return Raise(id, "cuGraphCreate", nullptr, result);
  void* before = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    if (Add(id, library, launches[i], out->graph, before, &out->nodes()[i]) != 0) return -1;
    before = out->nodes()[i];
  }
  result = library.graph_instantiate(&out->exec, out->graph, 0);
  return result == 0 ? 0 : Raise(id, "cuGraphInstantiate", nullptr, result);
}

}  // namespace

// The legacy default stream cannot be captured itself, and must not be used while a stream that
// waits for it is.
int32_t CaptureOf(int32_t id, void* stream, uint64_t* out) {
  *out = 0;
  const Use use(id);
  if (!use.library) return -1;
  if (!use.library->capture_info) return 0;
  int32_t status = 0;
  uint64_t number = 0;
  const Result result =
      use.library->capture_info(stream, &status, &number, nullptr, nullptr, nullptr);
  if (result == kCaptureImplicit) {
    return Fail("RuntimeError",
                "the default stream cannot be used while another stream, which waits for it, is "
                "being captured into a graph; set a stream for the call");
  }
  if (result != 0) return Raise(id, "cuStreamGetCaptureInfo", nullptr, result);
  if (status == kCaptureActive) *out = number;
  return 0;
}

// A device without room for the graph can still launch what would have been in it.
int32_t GraphMake(int32_t id, const DeviceLaunch* launches, uint32_t count, void** out) {
  const Use use(id);
  if (!use.library) return -1;
  if (!use.library->graphs) return 1;
  const Apart apart(use.library);
  auto* graph = static_cast<Graph*>(calloc(1, sizeof(Graph) + count * sizeof(void*)));
  if (!graph) return Fail("MemoryError", "out of memory");
  if (Build(id, *use.library, launches, count, graph) == 0) {
    *out = graph;
    return 0;
  }
  GraphFree(id, graph);
  return IsOutOfMemory() ? 1 : -1;
}

int32_t GraphSet(int32_t id, void* graph, uint32_t place, const DeviceLaunch& launch) {
  auto* own = static_cast<Graph*>(graph);
  const Use use(id);
  if (!use.library) return -1;
  TensorMaps maps(launch);
  if (maps.Make(id) != 0) return -1;
  const KernelNode node = NodeOf(launch);
  const Result result = use.library->exec_set(own->exec, own->nodes()[place], &node);
  return result == 0 ? 0 : Raise(id, "cuGraphExecKernelNodeSetParams", launch.name, result);
}

int32_t GraphLaunch(int32_t id, void* graph, void* stream) {
  const Use use(id);
  if (!use.library) return -1;
  const Result result = use.library->exec_launch(static_cast<Graph*>(graph)->exec, stream);
  return result == 0 ? 0 : Raise(id, "cuGraphLaunch", nullptr, result);
}

void GraphFree(int32_t id, void* graph) {
  auto* own = static_cast<Graph*>(graph);
  const Use use(id, true);
  const Apart apart(use.library);
  if (use.library && own->exec) use.library->exec_free(own->exec);
  if (use.library && own->graph) use.library->graph_free(own->graph);
  free(own);
}

}  // namespace tenon::runtime::cuda
