#include "guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "console.h"
#include "support/atomic_file.h"

namespace tenon::tools {

namespace {

void OnSignal(int signal_number) {
  RemoveTemporaryFiles();
  signal(signal_number, SIG_DFL);
  raise(signal_number);  // delivered when this handler returns
}

// Touching a page of a mapped file that is no longer there: somebody made it shorter meanwhile.
void OnLostPage(int) {
  constexpr char kMessage[] =
      "tenon: error: a file that was being read has become shorter, or a disk is full\n";
  RemoveTemporaryFiles();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  _exit(kInputAtFault);
}

// A number and one of the units, in lower or upper case.
Expected<double> ParseQuantity(const std::string& text, const std::string& units,
                               const double* factors, const char* expected) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, fault] = std::from_chars(text.data(), end, value);
  double factor = 1;
  bool good = fault == std::errc() && std::isfinite(value) && value > 0;
  if (good && rest != end) {
    size_t unit = units.find(static_cast<char>(*rest | 0x20));
    good = rest + 1 == end && unit != std::string::npos;
    factor = good ? factors[unit] : 1;
  }
  if (!good) return MakeError(fmt::format("expected {} but got '{}'", expected, text));
  return value * factor;
}

int64_t ResidentBytes() {
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128];
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  char* second = nullptr;
  std::strtoll(text, &second, 10);
  return std::strtoll(second, nullptr, 10) * sysconf(_SC_PAGESIZE);
}

}  // namespace

void RemoveOutputsOnSignals() {
  for (int signal_number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction before{};
    sigaction(signal_number, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // as under nohup
    struct sigaction action{};
    action.sa_handler = OnSignal;
    sigaction(signal_number, &action, nullptr);
  }
  struct sigaction lost_page{};
  lost_page.sa_handler = OnLostPage;
  sigaction(SIGBUS, &lost_page, nullptr);
  // A file beyond the size that is allowed is an error of write() like others.
  signal(SIGXFSZ, SIG_IGN);
}

Expected<int64_t> ParseBytes(const std::string& text) {
  constexpr double kFactors[] = {0x1p10, 0x1p20, 0x1p30, 0x1p40};
  TN_ASSIGN_OR_RETURN(double bytes,
                      ParseQuantity(text, "kmgt", kFactors, "a size such as 512M or 2G"));
  return static_cast<int64_t>(std::min(bytes, 0x1p62));
}

Expected<double> ParseSeconds(const std::string& text) {
  constexpr double kFactors[] = {1, 60, 3600};
  return ParseQuantity(text, "smh", kFactors, "a time such as 30s or 5m");
}

Watchdog::Watchdog(int64_t max_bytes, double max_seconds, const Common& common)
    : common_(common), max_bytes_(max_bytes), max_seconds_(max_seconds) {
  if (max_bytes_ > 0 || max_seconds_ > 0) thread_ = std::thread([this] { Watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Leave(const std::string& message) const {
  RemoveTemporaryFiles();
  if (isatty(STDERR_FILENO)) WriteError("\r\033[K");  // the line of progress
  _exit(Report({MakeLimitError(message)}, common_));
}

void Watchdog::Watch() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kInterval = std::chrono::milliseconds(5);
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, kInterval, [this] { return stop_; })) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    if (max_seconds_ > 0 && elapsed.count() > max_seconds_) {
      Leave(fmt::format("compiling took longer than the {:g} s of --max-time", max_seconds_));
    }
    const int64_t resident = max_bytes_ > 0 ? ResidentBytes() : 0;
    if (resident > max_bytes_) {
      Leave(fmt::format("compiling needed more than the {:.1f} MB of --max-memory",
                        static_cast<double>(max_bytes_) / 0x1p20));
    }
  }
}

}  // namespace tenon::tools
