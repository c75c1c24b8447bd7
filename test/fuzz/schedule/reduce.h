// A smaller schedule that fails still.
#pragma once

#include <functional>
#include <string>

#include "fuzz/schedule/subject.h"
#include "schedule/schedule.h"

namespace tenon::fuzz {

using FailsFn = std::function<bool(const Subject&, const Schedule&)>;

/// The text of a case: the shortest beginning of the trace that fails, less the steps that it fails
/// without. Steps that are illegal without others go with them. With `apart` each try runs in a
/// process of its own, so that crashes count as failures; not for a process with threads (of a
/// device's driver), which a fork leaves behind.
std::string Reduced(const Subject& subject, const Trace& trace, const FailsFn& fails, bool apart);

}  // namespace tenon::fuzz
