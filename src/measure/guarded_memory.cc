#include "measure/guarded_memory.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace tenon::measure {

namespace {

constexpr size_t kAlign = 64;
constexpr std::byte kPattern{0xA5};

// Guards, where a signal handler can look: slots that are taken and given back, never moved.
struct Guard {
  std::atomic<uintptr_t> page = 0;
};
constexpr size_t kMostGuards = 4096;
Guard guards[kMostGuards];

void Register(uintptr_t page) {
  for (Guard& g : guards) {
    uintptr_t none = 0;
    if (g.page.compare_exchange_strong(none, page)) return;
  }
}

void Unregister(uintptr_t page) {
  for (Guard& g : guards) {
    uintptr_t expected = page;
    if (g.page.compare_exchange_strong(expected, 0)) return;
  }
}

size_t PageBytes() {
  static const auto kBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kBytes;
}

struct Report {
  int fd = -1, status = 0;
  const char* message = nullptr;
  size_t bytes = 0;
} report;

void OnFault(int signal_number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Guard& g : guards) {
    const uintptr_t page = g.page;
    if (page == 0 || address < page || address - page >= PageBytes()) continue;
    [[maybe_unused]] const ssize_t written = write(report.fd, report.message, report.bytes);
    _exit(report.status);
  }
  signal(signal_number, SIG_DFL);  // the instruction is tried again, and ends the process
}

}  // namespace

Expected<GuardedMemory> GuardedMemory::Make(size_t bytes) {
  const size_t page = PageBytes();
  const size_t inner = std::max<size_t>((bytes + page - 1) / page, 1) * page;
  void* memory =
      mmap(nullptr, inner + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return MakeError(fmt::format("there is no memory for an operand of {} bytes", bytes));
  auto* pages = static_cast<std::byte*>(memory);
  mprotect(pages, page, PROT_NONE);
  mprotect(pages + page + inner, page, PROT_NONE);
  Register(reinterpret_cast<uintptr_t>(pages));
  Register(reinterpret_cast<uintptr_t>(pages + page + inner));
  std::byte* data = pages + page + inner - (bytes + kAlign - 1) / kAlign * kAlign;
  std::fill(pages + page, data, kPattern);
  std::fill(data + bytes, pages + page + inner, kPattern);
  return GuardedMemory(pages, inner + 2 * page, data, bytes);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)),
      page_bytes_(other.page_bytes_),
      data_(other.data_),
      bytes_(other.bytes_) {}

GuardedMemory::~GuardedMemory() {
  if (!pages_) return;
  Unregister(reinterpret_cast<uintptr_t>(pages_));
  Unregister(reinterpret_cast<uintptr_t>(pages_ + page_bytes_ - PageBytes()));
  munmap(pages_, page_bytes_);
}

bool GuardedMemory::IsWhole() const {
  auto whole = [](const std::byte* from, const std::byte* to) {
    return std::all_of(from, to, [](std::byte b) { return b == kPattern; });
  };
  return whole(pages_ + PageBytes(), data_) &&
         whole(data_ + bytes_, pages_ + page_bytes_ - PageBytes());
}

void ReportTouchedGuards(int fd, const char* message, int status) {
  report = {fd, status, message, std::strlen(message)};
  struct sigaction action{};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tenon::measure
