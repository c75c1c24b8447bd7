// The core inside a model.so, or in an object that became part of a program or of somebody's
// library.
#include <stddef.h>

#include <atomic>

#include "runtime/core/copies.h"
#include "runtime/core/error.h"
#include "runtime/core/host.h"
#include "runtime/core/pool.h"
#include "runtime/core/query.h"

extern "C" {

// What cores that were loaded later get of this one: its workers, and where their errors are told.
__attribute__((visibility("hidden"))) extern const tn_host_services tn_core_services;
const tn_host_services tn_core_services = {
    TN_ABI_VERSION,
    sizeof(tn_host_services),
    tenon::runtime::RunTeam,
    tenon::runtime::SetLocalError,
    tenon::runtime::LastError,
    nullptr,
    nullptr,
    nullptr,
    tenon::runtime::TakeBytes,
};
}
TN_NOTE("2", "tn_core_services");

namespace tenon::runtime {
namespace {

// Stands for "looked, and there is none", so that calls do not search.
const tn_host_services no_host{};

/// A copy that was chosen, once; its code stays mapped while this library does.
struct Choice {
  std::atomic<const tn_host_services*> services;
  std::atomic<void*> hold;
};
Choice runtime_choice, team_choice;

bool FindRuntime(Copy* out) {
  for (int32_t i = 0; FindCopy(TN_NOTE_RUNTIME, i, out); ++i) {
    if (out->beside) return true;
  }
  return FindCopy(TN_NOTE_RUNTIME, 0, out);
}

bool FindFirstCore(Copy* out) {
  return FindCopy(TN_NOTE_CORE, 0, out) && out->services != &tn_core_services;
}

const tn_host_services* Take(Choice* choice, bool (*find)(Copy*)) {
  const tn_host_services* known = choice->services.load(std::memory_order_acquire);
  if (!known) {
    Copy copy;
    void* hold = nullptr;
    const tn_host_services* found = find(&copy) && Hold(copy, &hold) ? copy.services : &no_host;
    // Whoever was first, an adopting loader above all, keeps its choice.
    if (choice->services.compare_exchange_strong(known, found, std::memory_order_acq_rel)) {
      known = found;
      choice->hold.store(hold, std::memory_order_relaxed);
    } else {
      Release(hold);
    }
  }
  return known == &no_host ? nullptr : known;
}

}  // namespace

void Adopt(const tn_host_services* host) {
  if (host->abi_version == TN_ABI_VERSION)
    runtime_choice.services.store(host, std::memory_order_release);
}

const tn_host_services* Host() { return Take(&runtime_choice, FindRuntime); }

const tn_host_services* TeamHost() {
  const tn_host_services* host = Host();
  return host ? host : Take(&team_choice, FindFirstCore);
}

bool MayTake(int64_t bytes) {
  const tn_host_services* host = TeamHost();
  const bool has = host && host->struct_bytes > offsetof(tn_host_services, take_bytes);
  return !has || host->take_bytes(bytes) == 0;
}

// Whoever called may ask any runtime: the one that it is linked with need not be the one whose
// workers this library takes.
void TellError(const char* kind, const char* message) {
  const tn_host_services* team = TeamHost();
  if (team) team->set_error(kind, message);
  Copy copy;
  for (int32_t i = 0; FindCopy(TN_NOTE_RUNTIME, i, &copy); ++i) {
    void* hold = nullptr;
    if (copy.services == team || !Hold(copy, &hold)) continue;
    copy.services->set_error(kind, message);
    Release(hold);
  }
}

void TakeError(const tn_host_services* host) {
  const char* kind = "";
  const char* message = host->last_error(&kind);
  SetLocalError(kind, message);
}

namespace {

// When the library is unmapped, or the program ends, its workers, its arenas and its hold on what
// it used of others are given back.
__attribute__((destructor)) void Unload() {
  EndWorkers();
  FreeIdleArenas();
  for (Choice* choice : {&runtime_choice, &team_choice}) {
    Release(choice->hold.exchange(nullptr, std::memory_order_relaxed));
  }
}

}  // namespace

}  // namespace tenon::runtime

extern "C" int32_t tn_core_run_team(tn_body_fn body, void* closure, int32_t max_team) {
  using namespace tenon::runtime;
  const tn_host_services* host = TeamHost();
  if (!host) return RunTeam(body, closure, max_team);
  const int32_t status = host->run_team(body, closure, max_team);
  if (status != 0) TakeError(host);
  return status;
}
