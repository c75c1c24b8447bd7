/* What generated code and the runtime share. The functions here form the *core*: they are linked
 * statically, with hidden visibility, into every model.so (archive
 * lib/tenon/<triple>/libtenon_core.a) and need libc alone. Where a libtenon_runtime of the same
 * TN_ABI_VERSION is in the process, shared or static, the core uses that one's workers and devices;
 * else the workers of the core that was loaded first.
 *
 * Nothing throws or aborts; functions that can fail return -1 (or NULL) with the thread's error
 * set. All may be called from any thread unless they say otherwise. Plain C11 and C++. */
#ifndef TENON_KERNEL_ABI_H_
#define TENON_KERNEL_ABI_H_

#include "tenon/ffi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when anything in this file changes meaning. A library made for one version is refused by a
 * runtime of another; the name of the query symbol carries it too. */
#define TN_ABI_VERSION 5

#if defined(__GNUC__)
#define TN_CORE_API __attribute__((visibility("hidden")))
#else
#define TN_CORE_API
#endif

/* ---- Teams ---- */

/* One worker's view of the team that runs one call: its own, and valid during that call only. */
typedef struct tn_team tn_team;

/* One worker's part. rank is in 0..team_size. Returns 0, or -1 with the error set *on its own
 * thread*; the pool moves the message of a failed worker to the caller's thread. Must reach every
 * barrier that its team mates reach, also on failure. */
typedef int32_t (*tn_body_fn)(void* closure, int32_t rank, int32_t team_size, tn_team* team);

/* Runs body once on each of a team of workers and returns when all have returned. The caller is
 * rank 0; the others are taken from those idle at this moment, so that team_size is between 1 and
 * max_team (max_team <= 0: as many as the pool has; never more than TENON_NUM_THREADS, else the
 * affinity mask and cgroup quota, allow). A worker runs on the same thread for the whole call. What
 * the caller wrote before is visible to every worker, what they wrote is visible after. Called
 * inside a body it runs with what is idle, usually alone. Returns 0 or the non-zero result of the
 * lowest failing rank. Allocates nothing after the first call of the process (and of a forked
 * child), but where workers have ended, having been idle for long, and are started anew. */
TN_CORE_API int32_t tn_core_run_team(tn_body_fn body, void* closure, int32_t max_team);

/* Waits until all workers of the team are here; what each wrote before is visible to all after.
 * `team` is what this worker's body was given; for a team of one, and for NULL, which stands for
 * one too (who calls a body directly passes rank 0, size 1 and NULL), there is nobody to wait for.
 * Returns 0, or, the same to all workers, -1 + RuntimeError where the call is over its time or is
 * to stop (tn_call_options in c_api.h): a body that can fail then returns at once. */
TN_CORE_API int32_t tn_core_barrier(tn_team* team);

/* A part of a loop that a team shares out: the iterations from extent * rank / size up to extent *
 * (rank + 1) / size. `loop` is the core's; 0 before the first part. */
typedef struct tn_part {
  int32_t rank, size;
  uint32_t loop;
  uint32_t reserved;
} tn_part;

/* Writes a part that nobody has been given, and returns 1; 0 where none is left. Each member asks
 * until then. All members of a team must ask for the same loops in the same order, with the same
 * extents; parts of different loops, and of one, run side by side unless a barrier stands between
 * them. `team` as for the barrier. */
TN_CORE_API int32_t tn_core_take(tn_team* team, int64_t extent, tn_part* part);

/* ---- Errors ---- */

enum {
  TN_MSG_TEXT = 0,        /* u.text, NUL-terminated; NULL prints nothing */
  TN_MSG_INT = 1,         /* u.i in decimal */
  TN_MSG_DOUBLE = 2,      /* u.f, shortest of six digits */
  TN_MSG_DTYPE = 3,       /* the low 32 bits of u.i as a DLDataType: "float32", "bool", "int8x4" */
  TN_MSG_DEVICE_TYPE = 4, /* u.i as a DLDeviceType: "cpu", "cuda" */
  TN_MSG_C_STRING = 5     /* u.i as the address of a NUL-terminated string; 0 prints nothing */
};

typedef struct tn_msg_part {
  int32_t kind;
  int32_t value; /* tn_core_raise_at: 0, or the number from 1 of the value that stands for u */
  union {
    const char* text;
    int64_t i;
    double f;
  } u;
} tn_msg_part;

/* Sets this thread's error to `error_kind` ("ValueError", "TypeError", "RuntimeError",
 * "IndexError") with the parts put together as its message (cut after 4,000 bytes): TVM-FFI's error
 * where that library is in the process, this copy's own (tn_core_error_text,
 * tn_module_info.last_error), and that of every runtime in the process (tn_last_error). Returns -1,
 * so that `return tn_core_raise(…)` reads well. */
TN_CORE_API int32_t tn_core_raise(const char* error_kind, const tn_msg_part* parts,
                                  int32_t num_parts);

#define TN_RAISE_VALUES 3

/* The same, where what is known of an error is a constant: site[0] has the number of parts in
 * `kind` and the error's kind in u.text, and the parts follow, in which values are put in. Its
 * callers are checks, of which there are many, and short so. */
TN_CORE_API int32_t tn_core_raise_at(const tn_msg_part* site, int64_t value1, int64_t value2,
                                     int64_t value3);

/* "ValueError: Parameter …": this thread's error as one text, which lasts until the next question.
 */
TN_CORE_API const char* tn_core_error_text(void);

/* ---- Instances ---- */

#define TN_INSTANCE_SLOTS 16

/* The idle arenas of one function: zero-initialised data of the library, at least 8-byte aligned,
 * private to the two functions below. Idle arenas stand in slots, taken and given by atomic
 * exchange; those beyond the slots hang on a list under a lock. sizeof is TN_INSTANCES_BYTES. */
typedef struct tn_instances {
  void* slots[TN_INSTANCE_SLOTS];
  void* overflow;
  int64_t largest; /* bytes of the largest request so far: a new or regrown arena has at least as
                      many */
  uint32_t lock;
  uint32_t reserved;
} tn_instances;
#define TN_INSTANCES_BYTES (8 * (TN_INSTANCE_SLOTS + 3))

/* Borrows an arena of at least `bytes` bytes (0 is allowed: the result is then only a token) from
 * `state`, growing it or making a new one where none idle is large enough. Aligned to 64 bytes, to
 * 2 MiB where bytes >= 2 MiB (then huge pages are asked for). Contents are unspecified. NULL +
 * error (RuntimeError) when memory is out. Every call of a function borrows one and gives it back,
 * so their number grows to the peak of simultaneous calls. */
TN_CORE_API void* tn_core_arena_acquire(tn_instances* state, int64_t bytes);
TN_CORE_API void tn_core_arena_release(tn_instances* state, void* arena);

/* ---- Outputs ---- */

/* Makes a compact row-major CPU tensor that is an owned TVM-FFI tensor object: from
 * TVMFFIEnvTensorAlloc where an allocator is set, else TVMFFITensorFromDLPackVersioned over our
 * memory, else (no TVM-FFI in the process) an object of our own with the same layout. dtype_packed:
 * code | bits << 8 | lanes << 16. *out receives the reference, *out_data the address of the first
 * element (aligned to 64 bytes where the memory is ours; non-NULL also for no elements). Dims must
 * be
 * >= 0. Returns 0 or -1 + error, then *out is None. */
TN_CORE_API int32_t tn_core_tensor_alloc(int32_t dtype_packed, int32_t ndim, const int64_t* shape,
                                         tn_ffi_any* out, void** out_data);

/* Makes a call's result of its n output tensors: None for 0, the tensor for 1, an ffi.Array for
 * more. Takes over the references in tensors[0..n) (they are None afterwards), also on failure.
 * Returns 0 or -1 + error. */
TN_CORE_API int32_t tn_core_return(tn_ffi_any* tensors, int32_t n, tn_ffi_any* result);

/* Drops the reference a value holds, if it holds one, and makes it None. */
TN_CORE_API void tn_core_release(tn_ffi_any* value);

/* ---- Devices ---- */

/* The code of a library's kernels for one kind of device: read-only data of the library, aligned to
 * 64 bytes. Behind this header stand `num_kernels` tn_device_kernel, then `num_images`
 * tn_device_image, then what they point to; offsets count from the header's first byte. */
typedef struct tn_device_code {
  uint32_t struct_bytes; /* sizeof(tn_device_code), where the kernels begin */
  int32_t device_type;   /* a DLDeviceType */
  uint32_t num_kernels;
  uint32_t num_images; /* a multiple of num_parts */
  uint32_t num_parts;  /* modules of the driver that the kernels are spread over: 1 or more */
  uint32_t part_of;    /* offset of a uint32_t for each kernel: the part that it is in */
} tn_device_code;

typedef struct tn_device_kernel {
  uint32_t name;         /* offset of its name in the code, NUL-terminated */
  uint32_t shared_bytes; /* shared memory that every launch asks for */
  uint32_t params; /* offset of a byte per parameter: 0 for a buffer, TN_PARAM_TENSOR_MAP or */
                   /* TN_PARAM_ALIGNED_MAP, else its size */
  uint32_t num_params;
  uint8_t cluster[3]; /* blocks of a cluster along x, y, z, which divide the launch's; 1: alone */
  uint8_t launch;     /* of TN_LAUNCH_… */
  uint32_t aligned; /* offset of the name of its other form, which is launched in its place where */
                    /* all addresses are multiples of TN_KERNEL_ALIGN; 0: none */
} tn_device_kernel;

/* What the widest access of a thread wants. */
#define TN_KERNEL_ALIGN 16

/* How a kernel is launched: all its blocks at once, or not at all, so that they may wait for each
 * other; or early, while the launch before it on the stream runs, for whose end it waits itself. */
#define TN_LAUNCH_COOPERATIVE 1
#define TN_LAUNCH_DEPENDENT 2

/* A parameter whose argument is the address of a matrix, and that the kernel, or its aligned form
 * alone, gets as a description for the copy engine, which the launch makes. For each of these, in
 * their order, a tn_device_map follows right behind the bytes, from the next multiple of 8 on. */
#define TN_PARAM_TENSOR_MAP 255
#define TN_PARAM_ALIGNED_MAP 254
#define TN_MAX_TENSOR_MAPS 8
typedef struct tn_device_map {
  int64_t rows, columns;             /* of the matrix, which lies row by row without gaps */
  int32_t rows_param, columns_param; /* the parameter whose value is meant instead, or -1 */
  uint32_t box_rows, box_columns;    /* what is copied at a time */
  uint32_t type_code, type_bits;     /* of elements, as in DLDataType */
} tn_device_map;

/* The same kernels in several forms, each with an image for every part: the first form that a
 * device takes is used. CUDA: cubins, then PTX, which ends in a zero byte. OpenCL: source. */
typedef struct tn_device_image {
  uint64_t offset, bytes;
  uint32_t form;    /* offset of what it is, for errors: "cubin for sm_90a" */
  uint32_t without; /* of TN_LAUNCH_…: what kernels are not launched with in this form, because */
                    /* its code has nothing for it */
} tn_device_image;

/* What the devices of one process have of a library: zero-initialised data of the library, private
 * to the functions below. sizeof is TN_DEVICE_STATE_BYTES. */
#define TN_MAX_DEVICES 64
typedef struct tn_device_state {
  void* module; /* made by the first call */
  uint32_t lock;
  uint32_t uploads; /* weights that were copied to a device so far */
  uint32_t handles; /* modules that a runtime has loaded of the library */
  uint32_t calls;   /* that are under way */
} tn_device_state;
#define TN_DEVICE_STATE_BYTES 24

/* Which parts of the weight segment (below) a library's kernels get on a device: read-only data of
 * the library; `count` of tn_device_weight follow. */
typedef struct tn_device_weights {
  uint32_t count;
  uint32_t reserved;
} tn_device_weights;
typedef struct tn_device_weight {
  uint64_t offset, bytes; /* in the segment */
} tn_device_weight;

/* A call of a host function that launches kernels on a device. Its closure's slots are, in this
 * order, addresses of the caller's tensors, dims and scalars; among the last are those for the
 * addresses of weights and for arenas, which the runtime fills. */
typedef struct tn_device_call {
  tn_body_fn body;
  const tn_device_code* code;
  tn_device_state* state;
  const tn_device_weights* weights; /* NULL: it reads none */
  const unsigned char* weights_base;
  const int64_t* arena_bytes; /* of each arena */
  int64_t num_arenas;
  int64_t num_buffers, num_slots;         /* of the closure */
  int64_t weights_slot, first_arena_slot; /* … and where those begin */
  int64_t device_type, device_id;
  int64_t flags; /* of TN_CALL_… */
} tn_device_call;

/* What the body launches follows from the closure alone: it has no other effect, and reads nothing
 * that an address in the closure leads to. */
#define TN_CALL_REPEATS 1

/* Runs the body, whose launches go to the calling thread's stream of the device (tn_stream_set):
 * loads the library's code and copies its weights there where this is the first call, lends it
 * memory, and, for a body that repeats, keeps its launches as a graph, so that later calls with the
 * same dims are one launch. Returns when the work is queued: 0, or -1 + error. Where a host (below)
 * is in the process, its devices are used. */
TN_CORE_API int32_t tn_core_device_run(const tn_device_call* call, void** closure);

/* Within such a body: launches kernel number `kernel` of `code`. `extents`: blocks along x, y, z,
 * threads of a block along x, y, z; with one of them 0 nothing is launched. `args`: the address of
 * each parameter's value, read before the function returns. Returns 0, or -1 + error that names the
 * kernel. */
TN_CORE_API int32_t tn_core_device_launch(const tn_device_code* code, int32_t kernel,
                                          const int64_t* extents, void** args);

/* Within such a body: copies `bytes` bytes of the device's memory to `into`, on the host, when what
 * was launched before is done, and waits for that. Returns 0, or -1 + error. */
TN_CORE_API int32_t tn_core_device_fetch(void* into, const void* memory, int64_t bytes);

/* The number of the device of that type that the first of the arguments which are tensors is on;
 * 0 where there is none. */
TN_CORE_API int32_t tn_core_device_of(const tn_ffi_any* args, int32_t n, int32_t device_type);

/* Copies between two places of a device's memory, in the order of the calling thread's stream, and
 * does not wait for it. Returns 0, or -1 + error. */
TN_CORE_API int32_t tn_core_device_copy(int32_t device_type, int32_t device_id, void* to,
                                        const void* from, int64_t bytes);

/* Copies between the host and a device's memory, `to_device` or from there, behind what is queued
 * on the calling thread's stream; done when it returns. Returns 0, or -1 + error. */
TN_CORE_API int32_t tn_core_device_move(int32_t device_type, int32_t device_id, void* to,
                                        const void* from, int64_t bytes, int32_t to_device);

/* tn_core_tensor_alloc on a device. */
TN_CORE_API int32_t tn_core_device_tensor_alloc(int32_t device_type, int32_t device_id,
                                                int32_t dtype_packed, int32_t ndim,
                                                const int64_t* shape, tn_ffi_any* out,
                                                void** out_data);

/* ---- Times of launches ----
 * Of a library that was compiled to tell them. `table`: a row for each place in the code that
 * launches a kernel, how often it did and the nanoseconds that this took. Threads may be in any of
 * these at once. */

/* Nanoseconds of a clock that nobody sets. */
TN_CORE_API int64_t tn_core_now(void);

/* Counts a launch that began at `begin` and is over. */
TN_CORE_API void tn_core_launch_took(int64_t* table, int64_t row, int64_t begin);

/* Copies the first `rows` rows. */
TN_CORE_API void tn_core_launch_times(const int64_t* table, int64_t* into, int64_t rows);

/* ---- Functions of numbers ---- */

/* C's fmod, exactly. */
TN_CORE_API double tn_core_remainder_f64(double x, double y);

/* ---- CPU features ---- */

/* Compares tn_cpu_required with this CPU (and operating system: wide registers must be enabled)
 * once per process, asking Linux for the AMX tile permission where amx-tile is required; afterwards
 * a load. Code that uses a feature must run behind it; it itself is baseline code. 0, or -1 +
 * RuntimeError that names the features needed and those there are. */
TN_CORE_API int32_t tn_core_check_cpu(void);

/* ---- What the generated object provides to the core ----
 * All hidden, all optional (the core has weak empty definitions). */

/* JSON text, not NUL-terminated, and its size in bytes; the schema is below. */
extern TN_CORE_API const char tn_blob_info[];
extern TN_CORE_API const uint64_t tn_blob_info_size;

/* The CPU features that the code of this library needs, as LLVM names, each NUL-terminated, ended
 * by an empty one: "avx2\0fma\0avx512f\0\0". Only features that change what instructions may
 * appear; none is the empty list "\0". A name that the core does not know counts as lacking. */
extern TN_CORE_API const char tn_cpu_required[];

/* The library's device code and its state; no kernels where it has none. */
extern TN_CORE_API const tn_device_code tn_blob_device_code;
extern TN_CORE_API tn_device_state tn_blob_device_state;

/* The instances of `main`, so that tn_module_reserve reaches them. */
extern TN_CORE_API tn_instances tn_main_instances;

/* The weight segment: first byte (aligned to 4 KiB, from 8 MiB on to 2 MiB) and size. Read-only
 * memory, mapped from the file; placed by the linker (src/artifact), not by code generation, which
 * only refers to it: `extern const unsigned char tn_weights_base[]`. It lies within 2 GiB of the
 * code; what is in it may not: offsets are 64-bit. */
extern TN_CORE_API const unsigned char tn_weights_base[];
extern TN_CORE_API const uint64_t tn_weights_size;

/* Where the weights are in a file of their own: its name, in the folder of the library, and the id
 * that it must carry. The empty name: they are in the library. Placed by the linker too;
 * tn_core_check_cpu maps the file over the segment. */
extern TN_CORE_API const char tn_params_name[];
extern TN_CORE_API const uint64_t tn_params_id[2];

/* What such a file begins with. The table (src/artifact/params.h) follows; the payload is the image
 * of the segment. */
typedef struct tn_params_header {
  char magic[8]; /* TN_PARAMS_MAGIC */
  uint32_t version;
  uint32_t num_entries;
  uint64_t id[2];
  uint64_t table_bytes;
  uint64_t payload_offset; /* aligned as the segment is */
  uint64_t payload_bytes;
  uint64_t reserved;
} tn_params_header;
#define TN_PARAMS_MAGIC "TNPARAMS"
#define TN_PARAMS_VERSION 1

/* The JSON of tn_blob_info (keys that do not apply are left out; readers ignore keys they do not
 * know):
 * {"abi": 1, "name": "main", "target": "llvm -mcpu=…", "triple": "x86_64-…", "features": ["avx2",
 * …], "functions": [{"name": "main", "inputs":  [{"name": "x", "dtype": "float32", "shape": ["n",
 * 3, 224, 224]}, …], "outputs": [{"name": "y", "dtype": "float32", "shape": ["n", 1000]}, …]}, …],
 *  "dims": [{"name": "n", "min": 1, "max": 64, "step": 1}, …],
 *  "arena_bytes": 123, "weights_bytes": 456,
 *  "kernels": [{"name": …, "kind": …, "flops": …, "bytes": …, "estimated_us": …}, …],
 *  "plan": …, "metadata": {"key": "value", …}, "hashes": {"source": …, "profile": …, "tuning_log":
 * …}} The first of "functions" is the one that a Session runs. One for a device that has to see
 * what the device computes says so: "waits" are the places where it does, "waits_in_loops" those of
 * them within loops. */

/* ---- The query symbol ---- */

struct tn_host_services;

/* What the exported function __tenon_query_v5 tells about its library. All pointers live as long as
 * the library. */
typedef struct tn_module_info {
  uint32_t abi_version;  /* TN_ABI_VERSION of the core in the library */
  uint32_t struct_bytes; /* sizeof(tn_module_info) there; later fields are only appended */
  const char* info_json; /* tn_blob_info */
  const uint64_t* info_bytes;
  const char* cpu_required;     /* tn_cpu_required */
  const unsigned char* weights; /* tn_weights_base */
  const uint64_t* weights_bytes;
  tn_instances* main_instances;
  int32_t (*check_cpu)(void); /* tn_core_check_cpu */
  int32_t (*reserve)(tn_instances* state, int32_t count,
                     int64_t bytes); /* makes `count` idle arenas of >= bytes */
  /* Makes the core use a host's pool and error slot from now on; the loader of libtenon_runtime
   * calls it. */
  void (*adopt)(const struct tn_host_services* host);
  /* The calling thread's last error in this core: the message, with *out_kind its kind; "" where
   * there was none. */
  const char* (*last_error)(const char** out_kind);
  const tn_device_code* device_code; /* tn_blob_device_code */
  tn_device_state* device_state;     /* tn_blob_device_state */
} tn_module_info;

typedef const tn_module_info* (*tn_query_fn)(void);
#define TN_QUERY_SYMBOL "__tenon_query_v5"

/* What a copy of the runtime, or of the core, offers to the cores of other libraries. */
typedef struct tn_host_services {
  uint32_t abi_version;
  uint32_t struct_bytes;
  int32_t (*run_team)(tn_body_fn body, void* closure, int32_t max_team);
  /* The calling thread's error slot, which tn_last_error reads. */
  void (*set_error)(const char* kind, const char* message);
  const char* (*last_error)(const char** out_kind);
  /* tn_core_device_run and tn_core_device_launch, and a new compact tensor on a device. */
  int32_t (*device_run)(const tn_device_call* call, void** closure);
  int32_t (*device_launch)(const tn_device_code* code, int32_t kernel, const int64_t* extents,
                           void** args);
  int32_t (*tensor_make)(tn_dl_data_type dtype, int32_t ndim, const int64_t* shape,
                         tn_dl_device device, tn_ffi_tensor** out_tensor);
  /* Takes `bytes` from what the thread's call may have (max_bytes of tn_call_options); -1, without
   * an error, where it may not have so many. */
  int32_t (*take_bytes)(int64_t bytes);
  /* tn_core_device_fetch and tn_core_device_copy. */
  int32_t (*device_fetch)(void* into, const void* memory, int64_t bytes);
  int32_t (*device_copy)(int32_t device_type, int32_t device_id, void* to, const void* from,
                         int64_t bytes);
  /* tn_core_device_move. */
  int32_t (*device_move)(int32_t device_type, int32_t device_id, void* to, const void* from,
                         int64_t bytes, int32_t to_device);
} tn_host_services;

/* ---- Copies in one process ----
 * Every runtime and every core has a tn_host_services, and in the program or library that it is
 * part of a note (of a PT_NOTE segment, which dl_iterate_phdr shows) that leads there: so that they
 * find each other whatever symbols are visible, in static programs too. A core has no devices to
 * offer: those services are NULL. The note's content is the distance from there
 * to the services, 64 bits. */
#define TN_NOTE_NAME "Tenon"
#define TN_NOTE_RUNTIME 1
#define TN_NOTE_CORE 2
#define TN_NOTE(kind, services)                                              \
  __asm__(".pushsection .note.tenon,\"a\",%note\n.balign 4\n.long 6,8," kind \
          "\n.asciz \"" TN_NOTE_NAME "\"\n.balign 4\n.quad " services " - .\n.popsection")

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* TENON_KERNEL_ABI_H_ */
