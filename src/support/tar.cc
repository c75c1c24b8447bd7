#include "support/tar.h"

#include <fmt/format.h>

#include <cstring>

#include "support/check.h"

namespace tenon {

namespace {

constexpr size_t kBlock = 512;

// The fields of a header, as POSIX lays them out.
struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
  char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
static_assert(sizeof(Header) == kBlock);

// Octal digits and a null.
template <size_t N>
void SetOctal(char (&field)[N], uint64_t value) {
  std::string text = fmt::format("{:0{}o}", value, N - 1);
  TN_CHECK(text.size() == N - 1, "{} does not fit into a tar header", value);
  memcpy(field, text.c_str(), N);
}

}  // namespace

void TarWriter::Add(std::string_view name, std::string_view content) {
  TN_CHECK(name.size() <= sizeof(Header::name), "{} is too long for a tar header", name);
  Header header;
  memset(&header, 0, sizeof header);
  memcpy(header.name, name.data(), name.size());
  SetOctal(header.mode, 0644);
  SetOctal(header.uid, 0);
  SetOctal(header.gid, 0);
  SetOctal(header.size, content.size());
  SetOctal(header.mtime, 0);
  header.type = '0';
  memcpy(header.magic, "ustar", 6);
  memcpy(header.version, "00", 2);
  // The sum is over the header with blanks in its own place.
  memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += reinterpret_cast<const unsigned char*>(&header)[i];
  char digits[7];
  SetOctal(digits, sum);
  memcpy(header.checksum, digits, sizeof digits);
  bytes_.append(reinterpret_cast<const char*>(&header), kBlock);
  bytes_ += content;
  bytes_.append((kBlock - content.size() % kBlock) % kBlock, '\0');
}

std::string TarWriter::Finish() {
  bytes_.append(2 * kBlock, '\0');
  return std::move(bytes_);
}

}  // namespace tenon
