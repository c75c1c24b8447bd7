// CUDA C++ → PTX or machine code by NVRTC, which is loaded when it is first needed: one build of
// Tenon serves machines with and without CUDA, and making code needs no GPU.
//
// Where it is looked for: the file or folder that TENON_NVRTC names, and then nowhere else; the
// loader's path; /usr/local/cuda/lib64; the nvidia packages of the Python environment that is
// active (VIRTUAL_ENV, CONDA_PREFIX), of those whose python3 is in PATH, or that Tenon is installed
// in. Version 13 goes before 12.
#pragma once

#include <string>
#include <vector>

#include "support/expected.h"
#include "support/file_cache.h"

namespace tenon::codegen {

enum class CudaFormat {
  kPtx,    // text that drivers compile, for this architecture and later ones
  kCubin,  // an ELF file for this architecture
};

struct NvrtcInfo {
  std::string path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // 75, 80, …: what it compiles for, in order
};

/// What was found, or where was looked in vain. Any number of threads may ask.
Expected<NvrtcInfo> FindNvrtc();
/// Errors: NVRTC is missing, or makes no code for the architecture, with the version that does.
Status CanCompileFor(const std::string& arch);

/// Compiles `source`, which messages call `file`, for `arch` ("sm_90a"). What the compiler says
/// comes back as diagnostics with their lines. Any number of threads may compile at the same time.
Expected<std::string> CompileCuda(const std::string& source, const std::string& file,
                                  const std::string& arch, CudaFormat format);

struct CudaCode {
  std::string ptx, cubin;
  std::string log;  // of what was right: registers, spills, warnings of ptxas, for each kernel
};
/// The same in both formats, by one compilation, or out of the cache where that has what this NVRTC
/// made of this source before; null: none.
Expected<CudaCode> CompileCudaBoth(const std::string& source, const std::string& file,
                                   const std::string& arch, const FileCache* cache);

}  // namespace tenon::codegen
