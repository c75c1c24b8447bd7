// Loading modules, and what they say about themselves.
//
// A library is opened through a descriptor, so that the file that was checked is the file that is
// loaded; and under a name that the loader has never seen, since it would answer a known name with
// the library that it has. The third library, on descriptor 7, is dlopen("/proc/self/fd/.//./7"):
// the same file as /proc/self/fd/7, and another text. Where the answer has another name all the
// same, the loader knew the file itself, and what is mapped of it may have been written over since;
// the runtime remembers what the file was (loaded_files.h). The library is then asked what it is by
// a function whose name has the version, "__tenon_query_v…", so that a library of another version
// is recognised without being called. Its information is JSON that is read at the first question
// about it, since most programs only call "main".

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "runtime/core/error.h"
#include "runtime/core/os.h"
#include "runtime/core/pool.h"
#include "runtime/device/run.h"
#include "runtime/elf_check.h"
#include "runtime/json.h"
#include "runtime/loaded_files.h"
#include "runtime/services.h"
#include "runtime/signature.h"
#include "tenon/c_api.h"
#include "tenon/kernel_abi.h"

using namespace tenon::runtime;

struct tn_module {
  void* handle;  // of dlopen
  const tn_module_info* info;
  uint32_t lock;  // of what follows
  Signature* signature;
  Metadata* metadata;
};

namespace tenon::runtime {
namespace {

int32_t LoadError(const char* path, const char* fault) {
  const tn_msg_part parts[] = {{TN_MSG_TEXT, 0, {"cannot load '"}},
                               {TN_MSG_TEXT, 0, {path}},
                               {TN_MSG_TEXT, 0, {"': "}},
                               {TN_MSG_TEXT, 0, {fault}}};
  return tn_core_raise("RuntimeError", parts, 4);
}

// Opens the library through its descriptor, so that a file newly put under an old path is the new
// library. The loader also remembers libraries by the name they were opened with, and descriptors
// are used again: the name is made unique by spelling a counter in its slashes, '1' as "/./" and
// '0' as "//", which change nothing. It starts at 1: the plain path is for others in this process.
// *out_fresh: whether the loader did not have the library yet.
void* OpenDescriptor(int fd, bool* out_fresh) {
  static std::atomic<uint32_t> opened{1};
  constexpr int kBits = 32;
  char path[3 * kBits + 64];
  char* p = path + snprintf(path, sizeof path, "/proc/self/fd");
  for (uint32_t count = opened.fetch_add(1, std::memory_order_relaxed); count != 0; count >>= 1) {
    *p++ = '/';
    if (count & 1) *p++ = '.';
    *p++ = '/';
  }
  snprintf(p, static_cast<size_t>(path + sizeof path - p), "/%d", fd);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle) *out_fresh = strcmp(static_cast<const link_map*>(handle)->l_name, path) == 0;
  return handle;
}

// The version in the name of the library's query symbol, where it is not ours; 0 for none.
int OtherVersion(void* handle) {
  constexpr int kLatest = 64;
  char symbol[32];
  for (int version = 1; version <= kLatest; ++version) {
    snprintf(symbol, sizeof symbol, "__tenon_query_v%d", version);
    if (version != TN_ABI_VERSION && dlsym(handle, symbol)) return version;
  }
  return 0;
}

int32_t WrongVersion(const char* path, uint32_t version) {
  char fault[128];
  snprintf(fault, sizeof fault,
           "it was compiled for ABI version %u but this runtime expects version %d", version,
           TN_ABI_VERSION);
  return LoadError(path, fault);
}

// Asks the library what it is; null + error where this runtime cannot run it.
const tn_module_info* Query(void* handle, const char* path) {
  auto query = reinterpret_cast<tn_query_fn>(dlsym(handle, TN_QUERY_SYMBOL));
  if (!query) {
    int version = OtherVersion(handle);
    if (version != 0) {
      WrongVersion(path, static_cast<uint32_t>(version));
    } else {
      LoadError(path,
                "it is not a library that Tenon compiled (it exports no " TN_QUERY_SYMBOL ")");
    }
    return nullptr;
  }
  const tn_module_info* info = query();
  // What was appended since the first libraries of this version may be missing.
  constexpr size_t kFirstBytes = offsetof(tn_module_info, device_code);
  if (info->abi_version != TN_ABI_VERSION || info->struct_bytes < kFirstBytes) {
    WrongVersion(path, info->abi_version);
    return nullptr;
  }
  info->adopt(&tn_runtime_services);
  return info->check_cpu() == 0 ? info : nullptr;
}

// Null where the library has none, or was made before there was one.
tn_device_state* StateOf(const tn_module_info& info) {
  return info.struct_bytes > offsetof(tn_module_info, device_state) ? info.device_state : nullptr;
}

int32_t LoadFrom(int fd, const char* path, tn_module_t** out_module) {
  const char* fault = CheckLibraryFile(fd);
  if (fault) return LoadError(path, fault);
  bool fresh = false;
  void* handle = OpenDescriptor(fd, &fresh);
  if (!handle && getauxval(AT_BASE) == 0) {  // no loader has started it
    return LoadError(path,
                     "this program is linked statically and cannot load libraries; link the model "
                     "itself (tenon compile --format obj)");
  }
  if (!handle) {
    // The loader's message starts with the descriptor's path, which says nothing to anyone.
    const char* fault = dlerror();
    const char* colon = strstr(fault, ": ");
    return LoadError(path, colon && fault[0] == '/' ? colon + 2 : fault);
  }
  if (!NoteLoaded(fd, fresh)) {
    dlclose(handle);
    return LoadError(
        path,
        "the file was written over while its library is loaded; write another file and "
        "rename it");
  }
  const tn_module_info* info = Query(handle, path);
  auto* module = info ? static_cast<tn_module_t*>(calloc(1, sizeof(tn_module_t))) : nullptr;
  if (!module) {
    dlclose(handle);
    return info ? LoadError(path, "out of memory") : -1;
  }
  module->handle = handle;
  module->info = info;
  if (tn_device_state* state = StateOf(*info)) std::atomic_ref(state->handles).fetch_add(1);
  *out_module = module;
  return 0;
}

JsonValue InfoOf(const tn_module_t* module) {
  const char* text = module->info->info_json;
  return {text, text + *module->info->info_bytes};
}

// The parts of the information that are asked for by name are read at the first question.
const Signature* SignatureOf(const tn_module_t* module) {
  auto* own = const_cast<tn_module_t*>(module);
  MutexLock lock(&own->lock);
  if (!own->signature) own->signature = ReadSignature(InfoOf(module));
  if (!own->signature) SetError("MemoryError", "out of memory");
  return own->signature;
}

/// "add, sub": the module's functions, as many as there is room for.
void ListFunctions(const tn_module_t* module, char* out, size_t room) {
  size_t length = 0;
  out[0] = '\0';
  JsonItems functions(JsonFind(InfoOf(module), "functions"));
  for (JsonValue f = functions.Next(); f.exists(); f = functions.Next()) {
    const JsonValue name = JsonFind(f, "name");
    const size_t needed = JsonStringRoom(name) + 2;
    if (length + needed + sizeof ", ..." > room) {
      snprintf(out + length, room - length, ", ...");
      return;
    }
    if (length > 0) length += static_cast<size_t>(snprintf(out + length, 3, ", "));
    JsonDecode(name, out + length);
    length += strlen(out + length);
  }
}

int32_t GetParameter(const ParameterList& list, const char* what, int32_t index,
                     tn_parameter_t* out) {
  if (index >= 0 && index < list.count) {
    *out = list.items[index];
    return 0;
  }
  char message[96];
  snprintf(message, sizeof message, "%s %d was asked for but the module has %d", what, index,
           list.count);
  return Fail("IndexError", message);
}

}  // namespace
}  // namespace tenon::runtime

const char* tn_version(void) { return TN_VERSION; }

const char* tn_last_error(const char** out_kind) { return LastError(out_kind); }

int32_t tn_module_load(const char* path, tn_module_t** out_module) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return LoadError(path, strerror(errno));
  int32_t status = LoadFrom(fd, path, out_module);
  close(fd);
  return status;
}

// Libraries stay mapped; what one has on devices goes with the last module of it.
void tn_module_unload(tn_module_t* module) {
  if (!module) return;
  tn_device_state* state = StateOf(*module->info);
  if (state && std::atomic_ref(state->handles).fetch_sub(1) == 1) LeaveDevices(state);
  dlclose(module->handle);
  tn_module_free(module);
}

// The library's handle is kept, and so its code.
void tn_module_free(tn_module_t* module) {
  if (!module) return;
  free(module->signature);
  free(module->metadata);
  free(module);
}

int32_t tn_module_get_name(const tn_module_t* module, const char** out_name) {
  const Signature* signature = SignatureOf(module);
  if (!signature) return -1;
  *out_name = signature->name;
  return 0;
}

int32_t tn_module_get_function(const tn_module_t* module, const char* name,
                               tn_packed_fn* out_function) {
  char symbol[512];
  int length = snprintf(symbol, sizeof symbol, "__tvm_ffi_%s", name);
  bool fits = length < int{sizeof symbol};
  auto function = fits ? reinterpret_cast<tn_packed_fn>(dlsym(module->handle, symbol)) : nullptr;
  if (function) {
    *out_function = function;
    return 0;
  }
  char names[400];
  ListFunctions(module, names, sizeof names);
  const tn_msg_part parts[] = {{TN_MSG_TEXT, 0, {"the module has no function '"}},
                               {TN_MSG_TEXT, 0, {name}},
                               {TN_MSG_TEXT, 0, {names[0] ? "'; it has " : "'"}},
                               {TN_MSG_TEXT, 0, {names}}};
  return tn_core_raise("ValueError", parts, 4);
}

int32_t tn_module_get_info(const tn_module_t* module, const char** out_json, uint64_t* out_bytes) {
  *out_json = module->info->info_json;
  *out_bytes = *module->info->info_bytes;
  return 0;
}

int32_t tn_module_num_inputs(const tn_module_t* module) {
  const Signature* signature = SignatureOf(module);
  return signature ? signature->inputs.count : -1;
}

int32_t tn_module_num_outputs(const tn_module_t* module) {
  const Signature* signature = SignatureOf(module);
  return signature ? signature->outputs.count : -1;
}

int32_t tn_module_get_input(const tn_module_t* module, int32_t index, tn_parameter_t* out) {
  const Signature* signature = SignatureOf(module);
  return signature ? GetParameter(signature->inputs, "input", index, out) : -1;
}

int32_t tn_module_get_output(const tn_module_t* module, int32_t index, tn_parameter_t* out) {
  const Signature* signature = SignatureOf(module);
  return signature ? GetParameter(signature->outputs, "output", index, out) : -1;
}

int32_t tn_module_get_metadata(const tn_module_t* module, const char* key, const char** out_value) {
  auto* own = const_cast<tn_module_t*>(module);
  MutexLock lock(&own->lock);
  if (!own->metadata) own->metadata = ReadMetadata(InfoOf(module));
  if (!own->metadata) return Fail("MemoryError", "out of memory");
  for (int32_t i = 0; i < own->metadata->count; ++i) {
    if (strcmp(own->metadata->items[i].key, key) != 0) continue;
    *out_value = own->metadata->items[i].value;
    return 0;
  }
  const tn_msg_part parts[] = {{TN_MSG_TEXT, 0, {"the model's metadata has no '"}},
                               {TN_MSG_TEXT, 0, {key}},
                               {TN_MSG_TEXT, 0, {"'"}}};
  return tn_core_raise("ValueError", parts, 3);
}

int32_t tn_module_reserve(const tn_module_t* module, int32_t instances, int64_t arena_bytes) {
  if (arena_bytes == 0) arena_bytes = JsonInt(JsonFind(InfoOf(module), "arena_bytes"), 0);
  return module->info->reserve(module->info->main_instances, instances, arena_bytes);
}

int32_t tn_module_limit_memory(const tn_module_t* module, int64_t bytes) {
  tn_device_state* state = StateOf(*module->info);
  return state ? LimitDevices(module->info->device_code, state, bytes) : 0;
}

int32_t tn_module_trim(const tn_module_t* module) {
  if (tn_device_state* state = StateOf(*module->info)) TrimDevices(state);
  return 0;
}

int32_t tn_call(tn_packed_fn function, const tn_call_options_t* options, const tn_ffi_any* args,
                int32_t num_args, tn_ffi_any* result) {
  *result = {TN_FFI_NONE, 0, {0}};
  if (!options) return function(nullptr, args, num_args, result);
  tn_call_options_t all{};  // older callers know the first few
  memcpy(&all, options, std::min<size_t>(options->struct_bytes, sizeof all));
  CallLimits limits = {all.max_team,
                       all.max_nanoseconds > 0 ? NanosecondsNow() + all.max_nanoseconds : 0,
                       all.max_bytes > 0 ? all.max_bytes : INT64_MAX,
                       all.stop,
                       all.workspace,
                       all.workspace_bytes,
                       all.out_workspace_bytes};
  CallLimits* before = SetThreadLimits(&limits);
  int32_t status = function(nullptr, args, num_args, result);
  SetThreadLimits(before);
  return status;
}
