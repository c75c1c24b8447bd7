// Attributes of loops and blocks that passes read: what schedules may annotate. Where each is
// declared says what it means.
#pragma once

#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon {

inline constexpr const char* kAnnotations[] = {kCooperativeAttr, kDependentAttr,
                                               kProducerStagesAttr};

}  // namespace tenon
