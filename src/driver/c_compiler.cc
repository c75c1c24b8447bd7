#include "driver/c_compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "support/atomic_file.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

namespace fs = std::filesystem;

/// A folder of its own, gone at the end.
class Folder {
 public:
  static Expected<std::unique_ptr<Folder>> Create() {
    std::error_code none;
    std::string name = (fs::temp_directory_path(none) / "tenon-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      return MakeLimitError(fmt::format("cannot make the folder {}: {}", name, strerror(errno)));
    }
    auto folder = std::make_unique<Folder>();
    folder->path_ = name;
    return folder;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string File(const char* name) const { return (fs::path(path_) / name).string(); }

 private:
  std::string path_;
};

// The status of a program with its output in a file; -1 where there is no such program.
int Run(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::vector<std::string> Compilers() {
  const char* chosen = getenv("CC");
  if (chosen && *chosen) return {chosen};
  return {"cc", "gcc", "clang", "clang-19"};
}

}  // namespace

// What the first compiler that is there makes of a file in the folder.
static Expected<std::string> Compile(const Folder& folder, const char* file,
                                     std::vector<std::string> options) {
  const std::string output = folder.File("output"), messages = folder.File("messages");
  std::vector<std::string> command = {
      "",     "-std=c11",       "-O2", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden", "-o",
      output, folder.File(file)};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& compiler : Compilers()) {
    command[0] = compiler;
    int status = Run(command, messages);
    if (status < 0 || status == 127) continue;
    if (status == 0) return ReadFile(output);
    Expected<std::string> said = ReadFile(messages);
    return MakeError(
        fmt::format("{} does not compile the source: {}", compiler, said ? *said : std::string()));
  }
  return MakeError(
      "there is no C compiler for target c: none of cc, gcc and clang is on the path; set CC");
}

Expected<std::string> CompileObject(const std::string& source) {
  TN_ASSIGN_OR_RETURN(std::unique_ptr<Folder> folder, Folder::Create());
  TN_RETURN_IF_ERROR(WriteFile(folder->File("code.c"), source));
  return Compile(*folder, "code.c",
                 {"-c", "-DTN_WITH_CORE", "-DTN_EXPORT=__attribute__((visibility(\"default\")))"});
}

Expected<std::string> SharedLibraryOf(const std::string& object, const std::string& soname,
                                      bool open) {
  TN_ASSIGN_OR_RETURN(std::unique_ptr<Folder> folder, Folder::Create());
  TN_RETURN_IF_ERROR(WriteFile(folder->File("code.o"), object));
  std::vector<std::string> options = {"-shared", open ? "-Wl,-z,undefs" : "-Wl,--no-undefined",
                                      "-lm"};
  if (!soname.empty()) options.insert(options.end(), {"-Xlinker", "-soname", "-Xlinker", soname});
  return Compile(*folder, "code.o", options);
}

}  // namespace tenon::driver
