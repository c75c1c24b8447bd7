// The passes of a compilation, in order, as data, and the one loop that runs them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "loop/pass/pass.h"
#include "support/expected.h"

namespace tenon::driver {

struct Step {
  const char* pass;  // of passes.def
  const char* why;   // why it stands here
};

/// From a scheduled kernel to what code generation takes.
const std::vector<Step>& KernelPipeline();
/// From a host function that launches kernels to what code generation takes. Kernels are
/// declarations here.
const std::vector<Step>& HostPipeline();

/// Looks at every pass from outside: dumps, timing, verification. Called from several threads.
struct PassHooks {
  std::function<void(const char* pass, const Module& before, const Module& after, double seconds)>
      after_pass;
  std::set<std::string> disabled;
};

Expected<Module> RunPipeline(const std::vector<Step>& steps, Module module,
                             const PassContext& context, const PassHooks& hooks);

}  // namespace tenon::driver
