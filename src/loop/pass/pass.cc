#include "loop/pass/pass.h"

namespace tenon {

#define TN_LOOP_PASS(function, name, doc) \
  Module function(const Module& module, const PassContext& context);
#include "loop/pass/passes.def"
#undef TN_LOOP_PASS

const std::vector<PassInfo>& LoopPasses() {
  static const std::vector<PassInfo> passes = {
#define TN_LOOP_PASS(function, name, doc) {#name, function, doc},
#include "loop/pass/passes.def"
#undef TN_LOOP_PASS
  };
  return passes;
}

const PassInfo* FindLoopPass(std::string_view name) {
  for (const PassInfo& pass : LoopPasses()) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace tenon
