// What the rules of the verifier share.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "ir/print.h"
#include "ir/visit.h"
#include "loop/verify.h"

namespace tenon {

/// One function under one rule.
class VerifyContext {
 public:
  VerifyContext(const Module& module, const Func& func, Diagnostics* errors);

  const Module& module;
  const PrimFunc& func;
  const NodeRef root;

  template <class... Args>
  void Error(fmt::format_string<Args...> message, Args&&... args) const {
    errors_->push_back(
        MakeError(fmt::format(message, std::forward<Args>(args)...), {"", 0, 0, "@" + func.name}));
  }
  void Unsupported(const std::string& construct) const { Error("unsupported: {}", construct); }

  /// Every node of the function, parents first, each once; buffers that are bound included.
  void ForEach(const std::function<void(const NodeRef&)>& visit) const;

 private:
  Diagnostics* errors_;
  std::vector<NodeRef> nodes_;  // in the order of ForEach: walked once for all rules
};

#define TN_VERIFY_RULE(function, name, stage, doc) void function(const VerifyContext& context);
#include "loop/verify_rules.def"
#undef TN_VERIFY_RULE

/// "for 'i'", "block 'C'", "store to 'A'": how messages name a statement.
std::string Describe(const NodeRef& stmt);

}  // namespace tenon
