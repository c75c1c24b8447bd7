// The passes of a compilation, in order, as data, and the one loop that runs them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "loop/pass/pass.h"
#include "support/expected.h"

namespace tenon::driver {

struct Step {
  const char* pass;  // of passes.def
  const char* why;   // why it stands here
};

/// From a scheduled kernel to what code generation takes: on a CPU, and on a device.
const std::vector<Step>& KernelPipeline();
const std::vector<Step>& DevicePipeline();
/// The one that the target's kind names.
const std::vector<Step>& KernelPipelineOf(const Target& target);
/// From a host function that launches kernels to what code generation takes. Kernels are
/// declarations here.
const std::vector<Step>& HostPipeline();

/// Debug builds check the IR after every pass unless told not to.
#ifdef NDEBUG
inline constexpr bool kVerifyByDefault = false;
#else
inline constexpr bool kVerifyByDefault = true;
#endif

/// Looks at every pass from outside: dumps, timing, verification. Called from several threads.
struct PassHooks {
  std::function<void(const char* pass, const Module& before, const Module& after, double seconds)>
      after_pass;
  std::set<std::string> disabled;
  bool verify = kVerifyByDefault;  // after every pass; and the result by the rules of back ends
};

/// What a verifier says of the result of a phase or pass. A violation is a bug of that one: it
/// throws.
void CheckVerified(const Status& verified, std::string_view after);

/// This machine, without what only some of its kind have: what weights are computed on, so that
/// every machine that compiles gets the same bytes (no fused multiply-add on x86, one width of
/// vectors).
Expected<Target> PlainHost();

/// What passes are told of a target.
PassContext ContextOf(const Target& target);

/// Ends after a pass that reported something, with that.
Expected<Module> RunPipeline(const std::vector<Step>& steps, Module module,
                             const PassContext& context, const PassHooks& hooks);

}  // namespace tenon::driver
