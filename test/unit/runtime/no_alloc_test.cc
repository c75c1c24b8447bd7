// After the first call, a call with its outputs passed in makes no malloc and no mmap: both are
// counted by interposition.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "tenon/tenon.hpp"
#include "testing.h"

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0}, mappings{0};
}  // namespace

#define INTERPOSE __attribute__((visibility("default")))
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

INTERPOSE void* malloc(size_t bytes) {
  if (counting) allocations++;
  return __libc_malloc(bytes);
}
INTERPOSE void* calloc(size_t count, size_t bytes) {
  if (counting) allocations++;
  return __libc_calloc(count, bytes);
}
INTERPOSE void* realloc(void* block, size_t bytes) {
  if (counting) allocations++;
  return __libc_realloc(block, bytes);
}
INTERPOSE int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (counting) allocations++;
  *out = __libc_memalign(alignment, bytes);
  return *out ? 0 : 12;
}
INTERPOSE void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (counting) mappings++;
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, at, bytes, long{protection}, long{flags}, long{fd}, offset));
}
}

namespace tenon::runtime {
namespace {

TEST(NoAlloc, InterpositionWorks) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  counting = true;
  Result output = module.GetFunction("outputs")(1);
  module.GetFunction("arena")(int64_t{64} << 20);
  counting = false;
  EXPECT_GE(allocations.exchange(0), 1);
  EXPECT_GE(mappings.exchange(0), 1);
}

TEST(NoAlloc, WarmCallsAllocateNothing) {
  Module module = Module::LoadFromFile(ModulePath("add"));
  Function f = module.GetFunction("main");
  Tensor a = Tensor::Empty({100000}, DataType::kFloat32),
         c = Tensor::Empty({100000}, DataType::kFloat32);
  for (int i = 0; i < 20; ++i) f(a, a, c);
  counting = true;
  for (int i = 0; i < 200; ++i) f(a, a, c);
  counting = false;
  EXPECT_EQ(allocations.exchange(0), 0);
  EXPECT_EQ(mappings.exchange(0), 0);
}

}  // namespace
}  // namespace tenon::runtime

#endif
