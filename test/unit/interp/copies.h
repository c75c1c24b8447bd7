// Kernels that copy from A to C by way of shared memory, and what the interpreter makes of them.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "loop/parse.h"
#include "support/has.h"

namespace tenon::test {

/// What `threads` threads in one block do, between the functions that they call and the end.
/// A holds 0, 1, … 15. Returns the 8 elements of C after all orders of the threads, or the report.
inline std::string ResultOf(const std::string& functions, int threads, const std::string& body) {
  const std::string text = functions +
                           "func @f(A: f32[16], out C: f32[8]) target \"cuda\" {bound: 1} {\n"
                           "for t in 0.." +
                           std::to_string(threads) + " thread threadIdx.x {\n" + body + "}\n}\n";
  auto module = ParseModule(text, "test");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  if (!module) return "";
  std::vector<double> a;
  for (int i = 0; i < 16; ++i) a.push_back(i);
  std::vector<InterpArg> args{InterpArg::Tensor(DType::Float(32), {16}, a),
                              InterpArg::Tensor(DType::Float(32), {8}, std::vector<double>(8, -1))};
  Status status = InterpretOrders(*module, "f", args);
  if (!status) return ToString(status.errors());
  std::string out;
  for (int64_t i = 0; i < 8; ++i) out += std::to_string(static_cast<int>(args[1].Get(i))) + " ";
  return out;
}

}  // namespace tenon::test
