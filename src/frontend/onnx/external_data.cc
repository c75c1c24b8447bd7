#include "frontend/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>

#include "support/strings.h"

namespace tenon::onnx {
namespace {

using graph::Quoted;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// A relative path of plain components: no "", ".", "..", no NUL, no root.
Status CheckLocation(const std::string& location) {
  auto fail = [&](const char* why) {
    return MakeError(
        fmt::format("expected external data inside the model's directory, but location {} {}",
                    Quoted(location), why));
  };
  if (location.empty()) return fail("is empty");
  if (location.size() > 4096) return fail("is longer than 4096 bytes");
  if (location.find('\0') != std::string::npos) return fail("holds a NUL");
  if (location[0] == '/') return fail("is absolute");
  for (const std::string& part : Split(location, '/')) {
    if (part == "..") return fail("goes up");
  }
  return Ok();
}

// Opens component by component, refusing links: what openat2 does in one call, for kernels and
// sandboxes without it.
int OpenStepwise(int directory, const std::string& location) {
  Descriptor at(dup(directory));
  const std::vector<std::string> parts = Split(location, '/');
  for (size_t i = 0; i < parts.size() && at.get() >= 0; ++i) {
    if (parts[i].empty() || parts[i] == ".") continue;
    const bool last = i + 1 == parts.size();
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    at = Descriptor(openat(at.get(), parts[i].c_str(), flags));
  }
  return at.get() < 0 ? -1 : dup(at.get());
}

int OpenBeneath(int directory, const std::string& location) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = syscall(__NR_openat2, directory, location.c_str(), &how, sizeof(how));
  if (fd >= 0) return static_cast<int>(fd);
  if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return -1;
  return OpenStepwise(directory, location);
}

int OpenIn(const std::string& root, const std::string& location) {
  const Descriptor directory(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.get() < 0 ? -1 : OpenBeneath(directory.get(), location);
}

Expected<uint64_t> ParseNumber(std::string_view text, const char* key) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return MakeError(
        fmt::format("expected a number as external data {}, but got {}", key, Quoted(text)));
  }
  return value;
}

}  // namespace

// What a location with links on its way stands for, which is then opened without any: where it
// changes in between, that fails.
int ExternalData::OpenLinked(const std::string& location) const {
  namespace fs = std::filesystem;
  std::error_code fault;
  const fs::path file = fs::canonical(fs::path(directory_) / location, fault);
  if (fault) {
    errno = fault.value();
    return -1;
  }
  for (const std::string& allowed : {directory_, linked_}) {
    if (allowed.empty()) continue;
    const fs::path root = fs::canonical(allowed, fault);
    const fs::path inside = fault ? fs::path() : file.lexically_relative(root);
    if (!inside.empty() && *inside.begin() != "..") return OpenIn(root.string(), inside.string());
  }
  errno = ELOOP;
  return -1;
}

Expected<std::shared_ptr<const graph::WeightFile>> ExternalData::Open(const std::string& location) {
  if (auto it = files_.find(location); it != files_.end()) return it->second;
  TN_RETURN_IF_ERROR(CheckLocation(location));
  auto fail = [&](const std::string& why) {
    return MakeError(fmt::format("cannot open external data {} in {}: {}", Quoted(location),
                                 Quoted(directory_), why));
  };
  Descriptor file(OpenIn(directory_, location));
  if (file.get() < 0 && errno == ELOOP) file = Descriptor(OpenLinked(location));
  if (file.get() < 0) {
    return fail(errno == ELOOP   ? "it is a link that leads out of the model's folder"
                : errno == EXDEV ? "it leaves the directory"
                                 : std::generic_category().message(errno));
  }
  struct stat info;
  if (fstat(file.get(), &info) != 0) return fail(std::generic_category().message(errno));
  if (!S_ISREG(info.st_mode)) return fail("it is not a regular file");
  if (info.st_nlink > 1)
    return fail("it has several hard links, so it may be somebody else's file");
  TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::OpenDescriptor(file.get(), location));
  auto opened = std::make_shared<const graph::WeightFile>(location, std::move(map));
  files_.emplace(location, opened);
  return opened;
}

Expected<graph::Payload> ExternalData::Find(const TensorProto& tensor, uint64_t size) {
  if (directory_.empty())
    return MakeError("external data in a model that was not read from a file");
  std::optional<std::string> location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  std::set<std::string_view> seen;
  for (const auto& [key, value] : tensor.external_data) {
    if (!seen.insert(key).second)
      return MakeError(fmt::format("external data key {} is given twice", Quoted(key)));
    if (key == "location") {
      location = std::string(value);
    } else if (key == "offset") {
      TN_ASSIGN_OR_RETURN(offset, ParseNumber(value, "offset"));
    } else if (key == "length") {
      TN_ASSIGN_OR_RETURN(length, ParseNumber(value, "length"));
    } else if (key != "checksum") {
      return MakeError(
          fmt::format("unknown external data key {}; expected location, offset, length or checksum",
                      Quoted(key)));
    }
  }
  if (!location) return MakeError("external data without a location");
  if (length && *length != size) {
    return MakeError(
        fmt::format("expected {} bytes of external data for the tensor's type, but length is {}",
                    size, *length));
  }
  TN_ASSIGN_OR_RETURN(std::shared_ptr<const graph::WeightFile> file, Open(*location));
  if (offset > file->map.size() || size > file->map.size() - offset) {
    return MakeError(
        fmt::format("external data of {} bytes at {} lies beyond the end of {} ({} bytes)", size,
                    offset, Quoted(*location), file->map.size()));
  }
  return graph::Payload::InFile(std::move(file), offset, size);
}

}  // namespace tenon::onnx
