#include "console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "verbs.h"

namespace tenon::tools {

namespace {

int output_error = 0;  // the errno of the first result that could not be written

}  // namespace

std::string Harmless(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool stays = byte >= ' ' || byte == '\n' || byte == '\t';
    // U+0080 to U+009F, which some terminals obey too.
    const bool is_c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_c1) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else if (!stays || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text[i];
    }
  }
  return out;
}

void WriteOut(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && output_error == 0)
    output_error = errno;
}

void WriteError(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void OpenStandardStreams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // In the direction that nobody uses: writing there fails as it would have.
    [[maybe_unused]] const int opened = open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void FlushOutput() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
}

int FinishOutput(int status) {
  FlushOutput();
  if (output_error == 0) return status;
  PrintError("tenon: error: cannot write to standard output: {}\n",
             std::generic_category().message(output_error));
  return status == kDone ? kInputAtFault : status;
}

}  // namespace tenon::tools
