// A file's bytes: the checksum of the rest, then each value behind its length.
#include "support/file_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string_view>
#include <system_error>
#include <tuple>

#include "support/atomic_file.h"
#include "support/file.h"

namespace tenon {

namespace {

namespace fs = std::filesystem;

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kHexDigits = 32;    // of a hash
constexpr size_t kFolderDigits = 2;  // of these, which name the folder

std::string Little(uint64_t value) {
  std::string out(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) out[i] = static_cast<char>(value >> (8 * i));
  return out;
}

uint64_t ReadLittle(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::optional<std::vector<std::string>> Unpack(std::string_view file) {
  if (file.size() < kHexDigits) return std::nullopt;
  std::string_view rest = file.substr(kHexDigits);
  if (HashText(rest).ToHex() != file.substr(0, kHexDigits)) return std::nullopt;
  std::vector<std::string> values;
  while (rest.size() >= kLengthBytes) {
    const uint64_t length = ReadLittle(rest);
    rest.remove_prefix(kLengthBytes);
    if (length > rest.size()) return std::nullopt;
    values.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  if (!rest.empty()) return std::nullopt;
  return values;
}

struct Entry {
  int64_t used = 0, bytes = 0;  // nanoseconds since the epoch
  fs::path path;
};

bool IsHex(const std::string& name, size_t digits) {
  return name.size() == digits && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

int64_t Nanoseconds(const timespec& t) { return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec; }

struct Files {
  std::vector<Entry> entries;
  std::vector<Entry> others;  // that are being written, or were when their writer was killed
};

Files FilesIn(const std::string& folder) {
  Files out;
  for (const fs::path& inner : PathsIn(folder)) {
    if (!IsHex(inner.filename(), kFolderDigits)) continue;
    for (const fs::path& file : PathsIn(inner)) {
      struct stat s = {};
      if (stat(file.c_str(), &s) != 0) continue;
      const bool is_entry = IsHex(file.filename(), kHexDigits - kFolderDigits);
      (is_entry ? out.entries : out.others).push_back({Nanoseconds(s.st_mtim), s.st_size, file});
    }
  }
  return out;
}

}  // namespace

std::vector<fs::path> PathsIn(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code fault;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault))
    out.push_back(it->path());
  return out;
}

std::string FileCache::PathOf(const Hash128& key) const {
  const std::string hex = key.ToHex();
  return folder_ + "/" + hex.substr(0, kFolderDigits) + "/" + hex.substr(kFolderDigits);
}

std::optional<std::vector<std::string>> FileCache::Find(const Hash128& key) const {
  const std::string path = PathOf(key);
  const Expected<std::string> file = ReadFile(path);
  if (!file) return std::nullopt;
  std::optional<std::vector<std::string>> values = Unpack(*file);
  // The time of the last change says when it was used last.
  if (values)
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  else
    unlink(path.c_str());
  return values;
}

void FileCache::Keep(const Hash128& key, std::span<const std::string> values) const {
  std::string bytes;
  for (const std::string& value : values) bytes += Little(value.size()) + value;
  const std::string path = PathOf(key);
  std::error_code none;
  fs::create_directories(fs::path(path).parent_path(), none);
  Expected<AtomicFile> file = AtomicFile::Create(path);
  if (file && file->Append(HashText(bytes).ToHex() + bytes)) (void)file->Commit();
}

void FileCache::Trim() const {
  Files files = FilesIn(folder_);
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  constexpr int64_t kDay = int64_t{24} * 3600 * 1'000'000'000;
  for (const Entry& e : files.others) {
    if (Nanoseconds(now) - e.used > kDay) unlink(e.path.c_str());
  }
  int64_t bytes = 0;
  for (const Entry& e : files.entries) bytes += e.bytes;
  std::sort(files.entries.begin(), files.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const Entry& e : files.entries) {
    if (limit_ == 0 || bytes <= limit_) break;
    unlink(e.path.c_str());
    bytes -= e.bytes;
  }
}

void FileCache::TrimNowAndThen() const {
  const std::string stamp = folder_ + "/trimmed";
  struct stat s = {};
  constexpr time_t kHour = 3600;
  if (stat(stamp.c_str(), &s) == 0 && time(nullptr) - s.st_mtim.tv_sec < kHour) return;
  if (!WriteFile(stamp, "")) return;
  Trim();
}

void FileCache::Clear() const {
  for (const Entry& e : FilesIn(folder_).entries) unlink(e.path.c_str());
}

FileCache::Size FileCache::TakeSize() const {
  Size size;
  for (const Entry& e : FilesIn(folder_).entries) {
    ++size.entries;
    size.bytes += e.bytes;
  }
  return size;
}

void AddImageOf(const void* function, Hasher* hasher) {
  Dl_info image = {};
  dladdr(function, &image);
  struct stat file = {};
  // The loader knows a program by how it was called.
  const bool found = image.dli_fname && stat(image.dli_fname, &file) == 0;
  if (!found) stat("/proc/self/exe", &file);
  hasher->Int(static_cast<uint64_t>(file.st_size));
  hasher->Int(static_cast<uint64_t>(file.st_mtim.tv_sec));
  hasher->Int(static_cast<uint64_t>(file.st_mtim.tv_nsec));
}

}  // namespace tenon
