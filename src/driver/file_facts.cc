#include "driver/file_facts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <system_error>

#include "support/atomic_file.h"
#include "support/file.h"
#include "support/hash.h"

namespace tenon::driver {

namespace {

constexpr int64_t kSettled = 2'000'000'000;  // ns

int64_t Nanoseconds(const timespec& t) { return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec; }

/// What tells that a file is the same; "" where it is not there, or was changed just now.
struct Stamp {
  std::string file, state;
};

Stamp StampOf(const std::string& path) {
  struct stat s = {};
  timespec now = {};
  if (stat(path.c_str(), &s) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) return {};
  const int64_t changed = std::max(Nanoseconds(s.st_mtim), Nanoseconds(s.st_ctim));
  // Times that lie in the future say nothing.
  if (Nanoseconds(now) - changed < kSettled) return {};
  return {fmt::format("{:x}-{:x}", s.st_dev, s.st_ino),
          fmt::format("{} {} {}", s.st_size, Nanoseconds(s.st_mtim), Nanoseconds(s.st_ctim))};
}

}  // namespace

Expected<std::string> FileFacts::Of(const std::string& path, const std::string& kind,
                                    const std::function<Expected<std::string>()>& find) const {
  const Stamp stamp = folder_.empty() ? Stamp() : StampOf(path);
  if (stamp.state.empty()) return find();
  const std::string entry = fmt::format("{}/{}-{}", folder_, stamp.file, kind);
  const std::string head = stamp.state + "\n";
  if (const Expected<std::string> kept = ReadFile(entry, 4096); kept && kept->starts_with(head))
    return kept->substr(head.size());
  TN_ASSIGN_OR_RETURN(std::string fact, find());
  std::error_code none;
  std::filesystem::create_directories(folder_, none);
  // Where it cannot be kept it is found again.
  Expected<AtomicFile> file = AtomicFile::Create(entry);
  if (file && file->Append(head + fact)) (void)file->Commit();
  return fact;
}

}  // namespace tenon::driver
