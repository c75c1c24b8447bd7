// Reductions of a matrix's rows across the threads of a block, as softmax.cc and reduction.cc make
// them.
#pragma once

#include "tenon/compiler.hpp"

constexpr int64_t kThreads = 256, kLanes = 4, kGroup = 16;

struct Partial {
  tenon::te::Tensor thread, group;
};

// A thread's part of a reduction over columns, and a group of threads' part.
inline Partial PartialResults(tenon::Schedule& s, const tenon::te::Tensor& reduction) {
  tenon::Stage stage = s[reduction];
  auto [rest, lanes] = stage.Split(stage.op().reduce_axis()[0], kLanes);
  auto [steps, x] = stage.Split(rest, kThreads);
  tenon::te::Tensor thread = s.RFactor(reduction, x);
  auto [outer, inner] = stage.Split(stage.op().reduce_axis()[0], kGroup);
  return {thread, s.RFactor(reduction, outer)};
}
