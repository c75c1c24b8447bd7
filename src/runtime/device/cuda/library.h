// The part of CUDA's driver API that the runtime uses, from libcuda.so.1, which is loaded when a
// CUDA device is first asked for. The declarations are our own: nothing of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::runtime::cuda {

using Result = int32_t;  // 0: done
using DevicePtr = uint64_t;
using Context = void*;

constexpr Result kOutOfMemory = 2;
constexpr Result kCooperativeTooLarge = 720;
constexpr int32_t kMaxDynamicShared = 8;             // an attribute of functions
constexpr int32_t kMultiprocessors = 16;             // and of devices
constexpr int32_t kArchMajor = 75, kArchMinor = 76;  // attributes of devices
constexpr uint32_t kNonBlocking = 1;  // of a stream: does not wait for the default one
constexpr int32_t kErrorLog = 5;      // options of loading a module: where to, how much
constexpr int32_t kErrorLogBytes = 6;

/// TN_CU(member, symbol, parameters): the symbols carry the version that CUDA 12 and 13 share.
#define TN_CUDA_FUNCTIONS(TN_CU)                                                                   \
  TN_CU(init, cuInit, (uint32_t flags))                                                            \
  TN_CU(device_count, cuDeviceGetCount, (int32_t* count))                                          \
  TN_CU(device_get, cuDeviceGet, (int32_t* device, int32_t ordinal))                               \
  TN_CU(device_name, cuDeviceGetName, (char* out, int32_t bytes, int32_t device))                  \
  TN_CU(driver_version, cuDriverGetVersion, (int32_t* out))                                        \
  TN_CU(device_attribute, cuDeviceGetAttribute, (int32_t* out, int32_t attribute, int32_t device)) \
  TN_CU(retain, cuDevicePrimaryCtxRetain, (Context * context, int32_t device))                     \
  TN_CU(get_current, cuCtxGetCurrent, (Context * context))                                         \
  TN_CU(push, cuCtxPushCurrent_v2, (Context context))                                              \
  TN_CU(pop, cuCtxPopCurrent_v2, (Context * context))                                              \
  TN_CU(allocate, cuMemAlloc_v2, (DevicePtr * out, size_t bytes))                                  \
  TN_CU(free, cuMemFree_v2, (DevicePtr memory))                                                    \
  TN_CU(to_device, cuMemcpyHtoDAsync_v2,                                                           \
        (DevicePtr target, const void* source, size_t bytes, void* stream))                        \
  TN_CU(to_host, cuMemcpyDtoHAsync_v2,                                                             \
        (void* target, DevicePtr source, size_t bytes, void* stream))                              \
  TN_CU(on_device, cuMemcpyDtoDAsync_v2,                                                           \
        (DevicePtr target, DevicePtr source, size_t bytes, void* stream))                          \
  TN_CU(                                                                                           \
      between, cuMemcpyPeerAsync,                                                                  \
      (DevicePtr target, Context to, DevicePtr source, Context from, size_t bytes, void* stream))  \
  TN_CU(stream_make, cuStreamCreate, (void** out, uint32_t flags))                                 \
  TN_CU(stream_free, cuStreamDestroy_v2, (void* stream))                                           \
  TN_CU(stream_wait, cuStreamSynchronize, (void* stream))                                          \
  TN_CU(stream_wait_event, cuStreamWaitEvent, (void* stream, void* event, uint32_t flags))         \
  TN_CU(event_make, cuEventCreate, (void** out, uint32_t flags))                                   \
  TN_CU(event_free, cuEventDestroy_v2, (void* event))                                              \
  TN_CU(event_record, cuEventRecord, (void* event, void* stream))                                  \
  TN_CU(event_wait, cuEventSynchronize, (void* event))                                             \
  TN_CU(event_elapsed, cuEventElapsedTime, (float* milliseconds, void* from, void* to))            \
  TN_CU(module_load, cuModuleLoadDataEx,                                                           \
        (void** out, const void* code, uint32_t count, int32_t* options, void** values))           \
  TN_CU(module_free, cuModuleUnload, (void* module))                                               \
  TN_CU(find_function, cuModuleGetFunction, (void** out, void* module, const char* name))          \
  TN_CU(set_attribute, cuFuncSetAttribute, (void* function, int32_t attribute, int32_t value))     \
  TN_CU(launch, cuLaunchKernel,                                                                    \
        (void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,      \
         uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, void* stream, void** args,     \
         void** extra))                                                                            \
  TN_CU(error_name, cuGetErrorName, (Result error, const char** out))                              \
  TN_CU(error_text, cuGetErrorString, (Result error, const char** out))

constexpr uint32_t kTensorMapBytes = 128, kTensorMapAlign = 64;
constexpr int32_t kMapFloat16 = 6, kMapBFloat16 = 9;  // types of elements
constexpr int32_t kMapSwizzle128 = 3, kMapPromote128 = 2;

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int32_t id;
  int32_t reserved;
  union {
    uint32_t cluster[3];
    int32_t on;
    uint8_t bytes[64];
  } value;
};
struct LaunchConfig {
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  uint32_t num_attributes;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56);
constexpr int32_t kLaunchCooperative = 2, kLaunchCluster = 4, kLaunchDependent = 6;

/// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNode {
  void* function;
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  void** args;
  void** extra;
  void* kernel;
  Context context;
};
/// CUgraphEdgeData.
struct GraphEdge {
  uint8_t from_port, to_port, type, reserved[5];
};
static_assert(sizeof(KernelNode) == 72 && sizeof(GraphEdge) == 8);
constexpr uint8_t kPortProgrammatic = 1, kEdgeProgrammatic = 1;
constexpr int32_t kCaptureActive = 1;   // a status of captures
constexpr int32_t kCaptureRelaxed = 2;  // a mode of threads
constexpr uint32_t kNoTiming = 2;       // of an event
constexpr Result kNotReady = 600, kCaptureImplicit = 906;

/// Those that older drivers may lack, or that only some devices have: null then.
#define TN_CUDA_OPTIONAL(TN_CU)                                                                   \
  TN_CU(encode_map, cuTensorMapEncodeTiled,                                                       \
        (void* map, int32_t type, uint32_t rank, void* address, const uint64_t* sizes,            \
         const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int32_t interleave, \
         int32_t swizzle, int32_t promotion, int32_t fill))                                       \
  TN_CU(launch_ex, cuLaunchKernelEx,                                                              \
        (const LaunchConfig* config, void* function, void** args, void** extra))                  \
  TN_CU(blocks_that_fit, cuOccupancyMaxActiveBlocksPerMultiprocessor,                             \
        (int32_t* out, void* function, int32_t threads, size_t shared_bytes))                     \
  TN_CU(allocate_async, cuMemAllocAsync, (DevicePtr * out, size_t bytes, void* stream))           \
  TN_CU(free_async, cuMemFreeAsync, (DevicePtr memory, void* stream))                             \
  TN_CU(allocate_pinned, cuMemHostAlloc, (void** out, size_t bytes, uint32_t flags))              \
  TN_CU(free_pinned, cuMemFreeHost, (void* memory))                                               \
  TN_CU(event_query, cuEventQuery, (void* event))                                                 \
  TN_CU(load_function, cuFuncLoad, (void* function))                                              \
  TN_CU(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int32_t* mode))                \
  TN_CU(capture_info, cuStreamGetCaptureInfo_v2,                                                  \
        (void* stream, int32_t* status, uint64_t* id, void** graph, const void** dependencies,    \
         size_t* count))                                                                          \
  TN_CU(graph_make, cuGraphCreate, (void** out, uint32_t flags))                                  \
  TN_CU(graph_free, cuGraphDestroy, (void* graph))                                                \
  TN_CU(graph_add, cuGraphAddKernelNode_v2,                                                       \
        (void** out, void* graph, void* const* after, size_t count, const KernelNode* node))      \
  TN_CU(graph_attribute, cuGraphKernelNodeSetAttribute,                                           \
        (void* node, int32_t id, const void* value))                                              \
  TN_CU(graph_edge, cuGraphAddDependencies_v2,                                                    \
        (void* graph, void* const* from, void* const* to, const GraphEdge* edges, size_t count))  \
  TN_CU(graph_instantiate, cuGraphInstantiateWithFlags,                                           \
        (void** out, void* graph, unsigned long long flags))                                      \
  TN_CU(exec_set, cuGraphExecKernelNodeSetParams_v2,                                              \
        (void* exec, void* node, const KernelNode* params))                                       \
  TN_CU(exec_launch, cuGraphLaunch, (void* exec, void* stream))                                   \
  TN_CU(exec_free, cuGraphExecDestroy, (void* exec))

struct Library {
  // In the order of the lists, from the start on: BindSymbols fills the first in.
#define TN_CU(member, symbol, parameters) Result(*member) parameters;
  TN_CUDA_FUNCTIONS(TN_CU)
  TN_CUDA_OPTIONAL(TN_CU)
#undef TN_CU
  int32_t devices;
  bool graphs;  // all that they need is there
};

/// The driver, initialised; null where there is none, and then *out_missing (may be null) says why.
/// The first call decides for the process. TENON_CUDA_DRIVER names another library than
/// libcuda.so.1.
const Library* Find(const char** out_missing);

}  // namespace tenon::runtime::cuda
