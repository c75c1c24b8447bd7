// An NVRTC for tests that need code of the right kind, not what is in it: the "machine code" names
// the architecture in its first line and has the source behind that, and so has the "PTX". The fake
// driver takes the one where it runs on that architecture, and the other from there on.
// FAKE_NVRTC_LOG in the environment is what every compilation has to say, FAKE_NVRTC_MARK stands
// behind the code. With FAKE_NVRTC_REFUSES compilations that are told so fail.
// NOLINTBEGIN(readability-identifier-naming): NVRTC's names
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Program {
  std::string source, log, ptx, cubin;
};

int Size(const std::string& text, size_t* out) {
  *out = text.size();
  return 0;
}
int Read(const std::string& text, char* out) {
  memcpy(out, text.data(), text.size());
  return 0;
}
Program* Of(void* program) { return static_cast<Program*>(program); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* nvrtcGetErrorString(int) { return "as asked"; }
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
constexpr int kArchs[] = {75, 80, 86, 89, 90, 100, 103, 110, 120, 121};
int nvrtcGetNumSupportedArchs(int* count) {
  *count = sizeof kArchs / sizeof *kArchs;
  return 0;
}
int nvrtcGetSupportedArchs(int* list) {
  memcpy(list, kArchs, sizeof kArchs);
  return 0;
}
int nvrtcCreateProgram(void** out, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *out = new Program{source, "", "", ""};
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete Of(*program);
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  Program& p = *Of(program);
  std::string arch;
  const char* refused = getenv("FAKE_NVRTC_REFUSES");
  for (int i = 0; i < count; ++i) {
    if (refused && strcmp(options[i], refused) == 0) {
      p.log = "libnvvm : error: " + std::string(refused) + " is an unsupported option\n" + '\0';
      return 6;
    }
    const char* value = strchr(options[i], '=');
    if (value && strncmp(options[i], "--gpu-architecture=", 19) == 0) arch = value + 1;
  }
  const std::string number = arch.substr(arch.find('_') + 1);
  p.log.clear();
  p.cubin = "fake cubin for sm_" + number + "\n" + p.source;
  p.ptx = "fake PTX for compute_" + number + "\n" + p.source + '\0';
  if (const char* mark = getenv("FAKE_NVRTC_MARK")) p.cubin += mark;
  if (const char* log = getenv("FAKE_NVRTC_LOG")) p.log = log;
  p.log += '\0';
  return 0;
}
int nvrtcGetProgramLogSize(void* p, size_t* out) { return Size(Of(p)->log, out); }
int nvrtcGetProgramLog(void* p, char* out) { return Read(Of(p)->log, out); }
int nvrtcGetPTXSize(void* p, size_t* out) { return Size(Of(p)->ptx, out); }
int nvrtcGetPTX(void* p, char* out) { return Read(Of(p)->ptx, out); }
int nvrtcGetCUBINSize(void* p, size_t* out) { return Size(Of(p)->cubin, out); }
int nvrtcGetCUBIN(void* p, char* out) { return Read(Of(p)->cubin, out); }

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
