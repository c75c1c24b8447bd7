// A compiled library on another machine, an emulated one as a rule: test/remote/runner.c (or
// runner.mjs) runs there and is talked to through pipes.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/check.h"

namespace tenon::test {

class RemoteLibrary {
 public:
  /// `runner`: a command of the shell that the library's path is appended to.
  RemoteLibrary(const std::string& runner, const std::string& library) {
    const std::string command = "exec " + runner + " '" + library + "'";
    int to[2], from[2];
    TN_CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, to[0], 0);
    posix_spawn_file_actions_adddup2(&files, from[1], 1);
    const char* argv[] = {"sh", "-c", command.c_str(), nullptr};
    TN_CHECK(posix_spawn(&child_, "/bin/sh", &files, nullptr, const_cast<char**>(argv), environ) ==
             0);
    posix_spawn_file_actions_destroy(&files);
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  RemoteLibrary(const RemoteLibrary&) = delete;
  RemoteLibrary& operator=(const RemoteLibrary&) = delete;
  ~RemoteLibrary() {
    close(to_);
    close(from_);
    waitpid(child_, nullptr, 0);
  }

  struct Bytes {
    void* data;
    size_t size;
  };

  /// Calls a plain function of buffers and integers; the buffers are as it left them. What it did
  /// wrong, "" where nothing.
  std::string CallPlain(const std::string& name, const std::vector<Bytes>& buffers,
                        const std::vector<int64_t>& ints) const {
    std::string request;
    auto put = [&](const auto& value) {
      request.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    put(uint32_t{0});
    put(static_cast<uint32_t>(name.size()));
    request += name;
    put(static_cast<uint32_t>(buffers.size()));
    put(static_cast<uint32_t>(ints.size()));
    for (const Bytes& b : buffers) {
      put(uint64_t{0});  // neither dtype nor dims
      put(uint64_t{b.size});
      request.append(static_cast<const char*>(b.data), b.size);
    }
    for (int64_t i : ints) put(i);
    for (size_t done = 0; done < request.size();) {
      const ssize_t n = write(to_, request.data() + done, request.size() - done);
      if (n <= 0) return "the runner does not read";
      done += static_cast<size_t>(n);
    }
    int32_t status = -1;
    if (!Read(&status, sizeof status)) return "the runner has ended: the function crashed";
    if (status == 0) {
      for (const Bytes& b : buffers) Read(b.data, b.size);
      return "";
    }
    uint32_t length = 0;
    Read(&length, sizeof length);
    std::string text(length, '\0');
    Read(text.data(), length);
    return text;
  }

 private:
  bool Read(void* out, size_t bytes) const {
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = read(from_, static_cast<char*>(out) + done, bytes - done);
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

  pid_t child_ = 0;
  int to_ = -1, from_ = -1;
};

}  // namespace tenon::test
