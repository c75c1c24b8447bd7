// Several interleavings of one call, compared.
#include <algorithm>

#include "interp/interp.h"
#include "loop/threads.h"

namespace tenon {

namespace {

struct OrderOf {
  const char* name;
  ThreadOrder order;
  uint64_t seed;
};
constexpr OrderOf kOrders[] = {{"reversed", ThreadOrder::kReversed, 0},
                               {"shuffled", ThreadOrder::kShuffled, 1},
                               {"shuffled again", ThreadOrder::kShuffled, 2},
                               {"switching at accesses", ThreadOrder::kSwitching, 3}};

Diagnostics Under(const char* order, Diagnostics errors) {
  for (Diagnostic& d : errors) d.message += std::string(" (threads ") + order + ")";
  return errors;
}

}  // namespace

Status InterpretOrders(const Module& module, const std::string& func, std::vector<InterpArg>& args,
                       const InterpOptions& options) {
  const std::vector<InterpArg> inputs = args;
  TN_RETURN_IF_ERROR(Interpret(module, func, args, options));
  const bool threads = std::any_of(module.funcs.begin(), module.funcs.end(),
                                   [](const auto& f) { return IsBound(*f.second); });
  for (const OrderOf& order : kOrders) {
    if (!threads) break;
    std::vector<InterpArg> again = inputs;
    InterpOptions run = options;
    run.order = order.order;
    run.seed += order.seed;
    Status ran = Interpret(module, func, again, run);
    if (!ran) return Under(order.name, ran.errors());
    for (size_t i = 0; i < args.size(); ++i) {
      if (again[i].bytes == args[i].bytes) continue;
      return MakeError("function " + func + ": argument " + std::to_string(i) +
                       " has other values with threads " + order.name);
    }
  }
  return Ok();
}

}  // namespace tenon
