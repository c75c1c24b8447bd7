// Captures and graphs of the fake driver.
#include "support/fake_cuda/state.h"

// NOLINTBEGIN(readability-identifier-naming, performance-no-int-to-ptr): CUDA's names and addresses
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): its functions are C's

#pragma GCC visibility push(default)
extern "C" {

// ---- captures ----
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  const Guard guard(mutex);
  if (int code = Note("cuStreamBeginCapture_v2", Hex(stream))) return code;
  if (!stream) return kCaptureUnsupported;
  const auto on = StreamOf(stream);
  on->capture = ++captures;
  on->mode = mode;
  on->broken = false;
  on->recorded = {};
  return 0;
}
int cuStreamEndCapture(void* stream, void** out) {
  const Guard guard(mutex);
  if (int code = Note("cuStreamEndCapture", Hex(stream))) return code;
  const auto on = StreamOf(stream);
  on->capture = 0;
  if (on->broken) return kCaptureInvalidated;
  *out = graphs.Add(on->recorded);
  return 0;
}
int cuStreamGetCaptureInfo_v2(void* stream, int* status, uint64_t* id, void**, const void**,
                              size_t*) {
  const Guard guard(mutex);
  *status = 0;
  *id = 0;
  if (failing == "cuStreamGetCaptureInfo_v2") return failing_code;
  const auto on = StreamOf(stream);
  const bool is_default = !stream;
  for (auto& [number, other] : streams.all()) {
    if (is_default && other->blocking && other->capture) return kCaptureImplicit;
  }
  if (!on->capture) return 0;
  *status = on->broken ? 2 : 1;
  *id = on->capture;
  return 0;
}

// ---- graphs ----
struct FakeNodeParams {
  void* function;
  unsigned grid[3], block[3], shared;
  void **args, **extra;
  void *kernel, *context;
};
int cuGraphCreate(void** out, unsigned) {
  const Guard guard(mutex);
  if (int code = Note("cuGraphCreate")) return code;
  *out = graphs.Add({});
  return 0;
}
int cuGraphDestroy(void* graph) {
  const Guard guard(mutex);
  const int code = Note("cuGraphDestroy");
  std::erase_if(nodes.all(), [&](const auto& n) { return n.second->graph == graph; });
  graphs.Remove(graph);
  return code;
}
// Nodes come in an order in which they can run.
int cuGraphAddKernelNode_v2(void** out, void* graph, void* const* after, size_t count,
                            const FakeNodeParams* params) {
  const Guard guard(mutex);
  if (int code = Note("cuGraphAddKernelNode_v2", std::to_string(count))) return code;
  const auto known = graphs.Find(graph);
  const bool is_chain = known->launches.empty() ||
                        (count == 1 && nodes.Find(*after)->place + 1 == known->launches.size());
  if (!is_chain && count > 0) return 1;
  known->launches.push_back(LaunchOf(params->function, params->grid, params->block, params->args));
  *out = nodes.Add({graph, known->launches.size() - 1});
  return 0;
}
int cuGraphKernelNodeSetAttribute(void*, int id, const void*) {
  return Note("cuGraphKernelNodeSetAttribute", std::to_string(id));
}
int cuGraphAddDependencies_v2(void*, void* const*, void* const*, const void* edge, size_t) {
  return Note("cuGraphAddDependencies_v2",
              std::to_string(static_cast<const uint8_t*>(edge)[2]));  // the type
}
int cuGraphInstantiateWithFlags(void** out, void* graph, unsigned long long) {
  const Guard guard(mutex);
  const auto known = graphs.Find(graph);
  if (int code = Note("cuGraphInstantiateWithFlags", std::to_string(known->launches.size())))
    return code;
  *out = execs.Add(*known);
  return 0;
}
int cuGraphExecKernelNodeSetParams_v2(void* exec, void* node, const FakeNodeParams* params) {
  const Guard guard(mutex);
  const auto known = nodes.Find(node);
  const auto launch = LaunchOf(params->function, params->grid, params->block, params->args);
  if (int code = Note("cuGraphExecKernelNodeSetParams_v2",
                      std::to_string(known->place) + ", " + launch->name)) {
    return code;
  }
  execs.Find(exec)->launches[known->place] = launch;
  return 0;
}
int cuGraphLaunch(void* exec, void* stream) {
  const Guard guard(mutex);
  if (int code = Note("cuGraphLaunch", Hex(stream))) return code;
  const auto known = execs.Find(exec);
  for (const auto& launch : known->launches) {
    if (int code = Queue(stream, [launch] { return launch->Run(); }, launch)) return code;
  }
  return 0;
}
int cuGraphExecDestroy(void* exec) {
  const Guard guard(mutex);
  const int code = Note("cuGraphExecDestroy");
  execs.Remove(exec);
  return code;
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming, performance-no-int-to-ptr)
