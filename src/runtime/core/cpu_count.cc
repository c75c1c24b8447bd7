// How many threads this process may keep busy.
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "runtime/core/pool.h"

namespace tenon::runtime {
namespace {

constexpr int32_t kMostThreads = 256;  // pool.cc's workers and the caller
constexpr size_t kFileBytes = 4096;

int32_t CountAffinity() {
  // A mask larger than the kernel's is accepted, a smaller one is EINVAL: 8,192 CPUs are more than
  // any kernel is built for.
  unsigned long mask[8192 / (8 * sizeof(unsigned long))] = {};
  if (sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask)) != 0) return 1;
  int32_t count = 0;
  for (unsigned long word : mask) count += __builtin_popcountl(word);
  return count;
}

// Reads a small file into text, NUL-terminated; whether there was one.
bool ReadText(const char* path, char (&text)[kFileBytes]) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t size = read(fd, text, kFileBytes - 1);
  close(fd);
  text[size > 0 ? size : 0] = '\0';
  return size > 0;
}

int32_t CpusOf(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return kMostThreads;
  long long cpus = (quota + period - 1) / period;
  return cpus < kMostThreads ? static_cast<int32_t>(cpus) : kMostThreads;
}

// cgroup v2: the least quota from our group up to the root of what we see.
int32_t QuotaV2(char* group) {
  char path[kFileBytes], text[kFileBytes];
  int32_t least = kMostThreads;
  while (true) {
    if (snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group) < int{sizeof path} &&
        ReadText(path, text)) {
      char* end;
      long long quota = strtoll(text, &end, 10);  // "max" reads as 0: no bound
      int32_t cpus = CpusOf(quota, strtoll(end, nullptr, 10));
      if (cpus < least) least = cpus;
    }
    char* slash = strrchr(group, '/');
    if (!slash) return least;
    *slash = '\0';
  }
}

int32_t QuotaV1() {
  char quota[kFileBytes], period[kFileBytes];
  if (!ReadText("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", quota)) return kMostThreads;
  if (!ReadText("/sys/fs/cgroup/cpu/cpu.cfs_period_us", period)) return kMostThreads;
  return CpusOf(strtoll(quota, nullptr, 10), strtoll(period, nullptr, 10));
}

int32_t CountQuota() {
  char text[kFileBytes];
  if (!ReadText("/proc/self/cgroup", text)) return kMostThreads;
  char* v2 = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
  if (!v2) return QuotaV1();
  char* group = strchr(v2, '/');
  if (!group) return kMostThreads;
  group[strcspn(group, "\n")] = '\0';
  int32_t unified = QuotaV2(group);
  int32_t legacy = QuotaV1();
  return unified < legacy ? unified : legacy;
}

int32_t ReadTeamLimit() {
  const char* wanted = getenv("TENON_NUM_THREADS");
  if (wanted) {
    char* end;
    long count = strtol(wanted, &end, 10);
    if (end != wanted && *end == '\0' && count >= 1) {
      return count < kMostThreads ? static_cast<int32_t>(count) : kMostThreads;
    }
  }
  return CpuCount();
}

int32_t ReadCpuCount() {
  int32_t count = CountAffinity();
  int32_t quota = CountQuota();
  if (quota < count) count = quota;
  return count < 1 ? 1 : count;
}

// What `read` gives, asked once.
int32_t Once(std::atomic<int32_t>* known, int32_t (*read)()) {
  int32_t value = known->load(std::memory_order_relaxed);
  if (value == 0) {
    value = read();
    known->store(value, std::memory_order_relaxed);
  }
  return value;
}

}  // namespace

int32_t CpuCount() {
  static std::atomic<int32_t> count{0};
  return Once(&count, ReadCpuCount);
}

int32_t TeamLimit() {
  static std::atomic<int32_t> limit{0};
  return Once(&limit, ReadTeamLimit);
}

}  // namespace tenon::runtime
