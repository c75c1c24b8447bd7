// The part of OpenCL 1.2 that the runtime uses, from the installable client driver loader
// libOpenCL.so.1, which is loaded when an OpenCL device is first asked for. The declarations are
// our own: nothing of OpenCL is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::runtime::opencl {

using Result = int32_t;  // 0: done
using Handle = void*;    // of every kind of object
using Flags = uint64_t;

constexpr Result kAllocationFailure = -4;
constexpr Result kOutOfResources = -5;
constexpr Result kOutOfHostMemory = -6;
constexpr Result kInvalidBufferSize = -61;

constexpr Flags kAllDevices = 0xFFFFFFFF;
constexpr Flags kReadWrite = 1;       // of memory
constexpr Flags kProfiling = 1 << 1;  // of a queue

// What can be asked for, of devices, queues, programs and events.
constexpr uint32_t kDeviceFloatConfig = 0x101B;
constexpr uint32_t kDeviceName = 0x102B, kDeviceDriver = 0x102D;
constexpr uint32_t kDeviceAvailable = 0x1027;
constexpr uint32_t kDeviceCompilerAvailable = 0x1028;
constexpr Flags kCorrectlyRoundedDivideSqrt = 1 << 7;
constexpr uint32_t kQueueContext = 0x1090;
constexpr uint32_t kBuildLog = 0x1183;
constexpr uint32_t kCommandEnd = 0x1283;

/// TN_CL(result, member, symbol, parameters).
#define TN_OPENCL_FUNCTIONS(TN_CL)                                                                 \
  TN_CL(Result, platforms, clGetPlatformIDs, (uint32_t most, Handle* out, uint32_t* count))        \
  TN_CL(Result, devices, clGetDeviceIDs,                                                           \
        (Handle platform, Flags types, uint32_t most, Handle* out, uint32_t* count))               \
  TN_CL(Result, device_info, clGetDeviceInfo,                                                      \
        (Handle device, uint32_t what, size_t bytes, void* out, size_t* size))                     \
  TN_CL(Handle, context_make, clCreateContext,                                                     \
        (const intptr_t* properties, uint32_t count, const Handle* devices, void* notify,          \
         void* data, Result* result))                                                              \
  TN_CL(Handle, queue_make, clCreateCommandQueue,                                                  \
        (Handle context, Handle device, Flags properties, Result * result))                        \
  TN_CL(Result, queue_free, clReleaseCommandQueue, (Handle queue))                                 \
  TN_CL(Result, queue_info, clGetCommandQueueInfo,                                                 \
        (Handle queue, uint32_t what, size_t bytes, void* out, size_t* size))                      \
  TN_CL(Result, finish, clFinish, (Handle queue))                                                  \
  TN_CL(Result, flush, clFlush, (Handle queue))                                                    \
  TN_CL(Handle, buffer_make, clCreateBuffer,                                                       \
        (Handle context, Flags flags, size_t bytes, void* host, Result* result))                   \
  TN_CL(Result, buffer_free, clReleaseMemObject, (Handle memory))                                  \
  TN_CL(Result, write, clEnqueueWriteBuffer,                                                       \
        (Handle queue, Handle memory, uint32_t blocking, size_t offset, size_t bytes,              \
         const void* source, uint32_t waits, const Handle* wait, Handle* event))                   \
  TN_CL(Result, read, clEnqueueReadBuffer,                                                         \
        (Handle queue, Handle memory, uint32_t blocking, size_t offset, size_t bytes,              \
         void* target, uint32_t waits, const Handle* wait, Handle* event))                         \
  TN_CL(Result, copy, clEnqueueCopyBuffer,                                                         \
        (Handle queue, Handle source, Handle target, size_t source_offset, size_t target_offset,   \
         size_t bytes, uint32_t waits, const Handle* wait, Handle* event))                         \
  TN_CL(Result, marker, clEnqueueMarkerWithWaitList,                                               \
        (Handle queue, uint32_t waits, const Handle* wait, Handle* event))                         \
  TN_CL(Result, barrier, clEnqueueBarrierWithWaitList,                                             \
        (Handle queue, uint32_t waits, const Handle* wait, Handle* event))                         \
  TN_CL(Result, wait, clWaitForEvents, (uint32_t count, const Handle* events))                     \
  TN_CL(Result, event_free, clReleaseEvent, (Handle event))                                        \
  TN_CL(Result, event_time, clGetEventProfilingInfo,                                               \
        (Handle event, uint32_t what, size_t bytes, void* out, size_t* size))                      \
  TN_CL(Handle, program_make, clCreateProgramWithSource,                                           \
        (Handle context, uint32_t count, const char** texts, const size_t* sizes, Result* result)) \
  TN_CL(Result, program_build, clBuildProgram,                                                     \
        (Handle program, uint32_t count, const Handle* devices, const char* options, void* notify, \
         void* data))                                                                              \
  TN_CL(Result, build_info, clGetProgramBuildInfo,                                                 \
        (Handle program, Handle device, uint32_t what, size_t bytes, void* out, size_t* size))     \
  TN_CL(Result, program_free, clReleaseProgram, (Handle program))                                  \
  TN_CL(Handle, kernel_make, clCreateKernel, (Handle program, const char* name, Result* result))   \
  TN_CL(Result, kernel_free, clReleaseKernel, (Handle kernel))                                     \
  TN_CL(Result, set_arg, clSetKernelArg,                                                           \
        (Handle kernel, uint32_t index, size_t bytes, const void* value))                          \
  TN_CL(Result, launch, clEnqueueNDRangeKernel,                                                    \
        (Handle queue, Handle kernel, uint32_t dims, const size_t* offsets, const size_t* threads, \
         const size_t* block, uint32_t waits, const Handle* wait, Handle* event))

constexpr int32_t kMaxDevices = 64;

struct Library {
  // In the order of the list, from the start on: BindSymbols fills them in.
#define TN_CL(result, member, symbol, parameters) result(*member) parameters;
  TN_OPENCL_FUNCTIONS(TN_CL)
#undef TN_CL
  /// Those that are available and can build programs, platform by platform as the loader lists
  /// them.
  Handle device[kMaxDevices];
  int32_t num_devices;
};

/// The loader with its devices; null where there is none, and then *out_missing (may be null) says
/// why. The first call decides for the process. TENON_OPENCL_LOADER names another library than
/// libOpenCL.so.1.
const Library* Find(const char** out_missing);

}  // namespace tenon::runtime::opencl
