#include "loop/pass/pass.h"

#include <algorithm>

#include "support/check.h"

namespace tenon {

void PassContext::Error(const PrimFunc& func, const std::string& what) const {
  TN_CHECK(errors, "a pass without a place for errors: @{}: {}", func.name, what);
  SourceLoc loc;
  loc.item = "@" + func.name;
  const bool said = std::any_of(errors->begin(), errors->end(), [&](const Diagnostic& d) {
    return d.loc.item == loc.item && d.message == what;
  });
  if (!said) errors->push_back(MakeError(what, std::move(loc)));
}

Expected<Module> RunPass(const PassInfo& pass, const Module& module, PassContext context) {
  Diagnostics errors;
  context.errors = &errors;
  Module after = pass.run(module, context);
  if (!errors.empty()) return errors;
  return after;
}

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
