// Host() for the core inside a model.so.
#include <atomic>

#include "runtime/core/foreign.h"
#include "runtime/core/host.h"
#include "runtime/core/query.h"

namespace tenon::runtime {
namespace {

// Stands for "looked, and there is none": the decision is taken once, at the first need, so that
// calls do not search.
const tn_host_services no_host{};
std::atomic<const tn_host_services*> chosen;

const tn_host_services* Search() {
  static ForeignLibrary library{"libtenon_runtime.so", TN_HOST_SYMBOL};
  auto* host = static_cast<const tn_host_services*>(FindForeign(&library, TN_HOST_SYMBOL));
  return host && host->abi_version == TN_ABI_VERSION ? host : &no_host;
}

}  // namespace

void Adopt(const tn_host_services* host) {
  if (host->abi_version == TN_ABI_VERSION) chosen.store(host, std::memory_order_release);
}

const tn_host_services* Host() {
  const tn_host_services* host = chosen.load(std::memory_order_acquire);
  if (!host) {
    const tn_host_services* found = Search();
    // Whoever was first, an adopting loader above all, keeps its choice.
    if (chosen.compare_exchange_strong(host, found, std::memory_order_acq_rel)) host = found;
  }
  return host == &no_host ? nullptr : host;
}

}  // namespace tenon::runtime
