// Attributes of loops and blocks that passes read: what schedules may annotate. Where each is
// declared says what it means.
#pragma once

#include "loop/promises.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon {

inline constexpr const char* kAnnotations[] = {kCooperativeAttr, kDependentAttr, kIndependentAttr,
                                               kProducerStagesAttr};

}  // namespace tenon
