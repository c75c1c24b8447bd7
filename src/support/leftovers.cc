// Two kinds of files are left by who is killed, and both are told by a lock that nobody holds:
//
//   m.h.tmp-4711-0         written in part or as a whole, never put in its place: removed
//   .tenon-commit-4711-1   all files of an output were whole and some are in their places: the
//                          others follow, as it says
//
// A record is a list of words, each with a zero behind it: one that names the format, then two for
// each rename, the temporary file and the target, and "end". One that lacks it was not complete,
// and so nothing was renamed. Names are those of files in the record's own folder, and only what is
// a target's temporary file by its name takes the target's place: a record from a stranger can do
// no more than that.

#include "support/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "support/file_descriptor.h"
#include "support/file_errors.h"
#include "support/strings.h"

namespace tenon {

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";

// "4711-0"
bool IsTwoNumbers(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash + 1 == text.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i != dash && !std::isdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  return true;
}

constexpr std::string_view kRecordMark = ".tenon-commit-";
constexpr std::string_view kRecordHead = "tenon-commit-1", kRecordEnd = "end";

using Folder = std::unique_ptr<DIR, decltype(&closedir)>;

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The names in a folder of `begin` and two numbers.
std::vector<std::string> Numbered(DIR* folder, std::string_view begin) {
  std::vector<std::string> out;
  rewinddir(folder);
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(begin) && IsTwoNumbers(name.substr(begin.size()))) out.emplace_back(name);
  }
  return out;
}

// A file of the folder, locked; none where it is gone, no file or somebody's who is alive.
FileDescriptor TakeLeftover(DIR* folder, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  FileDescriptor file(openat(dirfd(folder), name.c_str(), kFlags));
  return file.get() >= 0 && LockFile(file.get(), false) ? std::move(file) : FileDescriptor(-1);
}

std::string ReadRecord(int fd) {
  constexpr size_t kMost = size_t{1} << 20;
  std::string text(kMost, '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

// What a record says is to be renamed; nothing where it is not complete.
std::vector<Rename> ParseRecord(std::string_view text) {
  const std::vector<std::string> words = Split(text, '\0');
  const size_t end = words.size() - std::min<size_t>(words.size(), 2);
  if (words.front() != kRecordHead || words[end] != kRecordEnd) return {};
  std::vector<Rename> out;
  for (size_t i = 1; i + 1 < end; i += 2) out.push_back({words[i], words[i + 1]});
  return out;
}

void Finish(DIR* folder, const Rename& rename) {
  const std::string prefix = TemporaryPrefix(rename.target);
  const bool fits = prefix.find('/') == std::string::npos && rename.temporary.starts_with(prefix) &&
                    IsTwoNumbers(std::string_view(rename.temporary).substr(prefix.size()));
  if (!fits || TakeLeftover(folder, rename.temporary).get() < 0) return;
  renameat(dirfd(folder), rename.temporary.c_str(), dirfd(folder), rename.target.c_str());
}

void FinishRecords(DIR* folder) {
  for (const std::string& name : Numbered(folder, kRecordMark)) {
    const FileDescriptor record = TakeLeftover(folder, name);
    if (record.get() < 0) continue;
    for (const Rename& rename : ParseRecord(ReadRecord(record.get()))) Finish(folder, rename);
    unlinkat(dirfd(folder), name.c_str(), 0);
  }
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const size_t name = path.rfind('/') + 1;
  return name == 0 ? "." : path.substr(0, name);
}

std::string TemporaryPrefix(const std::string& target) {
  constexpr size_t kNumbers = 24;  // "4711-0"
  const size_t name = target.rfind('/') + 1;
  const size_t room = NAME_MAX - kTemporaryMark.size() - kNumbers;
  return target.substr(0, name) + target.substr(name, room) + std::string(kTemporaryMark);
}

bool LockFile(int fd, bool without) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  return errno != EWOULDBLOCK && without;
}

Expected<RenameRecord> RenameRecord::Create(const std::string& folder,
                                            const std::vector<Rename>& renames) {
  std::string text;
  const auto append = [&](std::string_view word) { (text += word) += '\0'; };
  append(kRecordHead);
  for (const Rename& rename : renames) {
    append(NameOf(rename.temporary));
    append(NameOf(rename.target));
  }
  append(kRecordEnd);
  static std::atomic<uint32_t> counter = 0;
  for (;;) {
    std::string path = fmt::format("{}/{}{}-{}", folder, kRecordMark, getpid(), counter++);
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) return ErrnoError("create", path);
    RenameRecord record(std::move(path), fd);
    struct stat info;  // before it was locked, somebody may have taken it for a leftover
    if (!LockFile(fd, true) || fstat(fd, &info) != 0 || info.st_nlink == 0) continue;
    if (write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return record;
    return ErrnoError("write", record.path_);
  }
}

RenameRecord::RenameRecord(RenameRecord&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

RenameRecord::~RenameRecord() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  close(fd_);
}

void ClearLeftovers(const std::string& target) {
  const Folder folder(opendir(FolderOf(target).c_str()), &closedir);
  if (!folder) return;
  FinishRecords(folder.get());
  for (const std::string& name : Numbered(folder.get(), NameOf(TemporaryPrefix(target)))) {
    if (TakeLeftover(folder.get(), name).get() >= 0) unlinkat(dirfd(folder.get()), name.c_str(), 0);
  }
}

}  // namespace tenon
