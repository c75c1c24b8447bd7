// Running functions through the interpreter on random inputs and comparing what they leave.
//
//   EXPECT_TRUE(SameResults(before, after, "matmul", {{"m", 7}}));
//
// Inputs are small integers stored in the parameter's type, so that sums come out the same in any
// order; outputs must be equal to the last bit. Everything is a template-free header, so that any
// unit test may include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "arith/analyzer.h"
#include "interp/interp.h"
#include "ir/visit.h"
#include "loop/func.h"

namespace tenon::testing {

using Dims = std::map<std::string, int64_t>;

/// The shape of a buffer parameter for the given dims; fails the test on a dim that is missing.
inline std::vector<int64_t> ShapeOf(const Func& func, const Buffer& buffer, const Dims& dims) {
  VarMap values;
  for (const Var& v : func->dims) {
    auto it = dims.find(v->name);
    if (it != dims.end()) values[v.get()] = IndexConst(it->second);
  }
  std::vector<int64_t> out;
  for (const Expr& d : buffer->shape) {
    auto value = AsInt(Simplify(Substitute(d, values)));
    EXPECT_TRUE(value) << "a dim of " << buffer->name << " is not given";
    out.push_back(value.value_or(0));
  }
  return out;
}

/// Integers in [-4, 4] (unsigned and index-like types: [0, 7]; bools: 0 or 1).
inline InterpArg RandomTensor(DType dtype, const std::vector<int64_t>& shape,
                              std::mt19937& random) {
  InterpArg sized = InterpArg::Output(dtype, shape);
  std::vector<double> values(static_cast<size_t>(sized.num_elements()));
  for (double& v : values) {
    int64_t bits = random() >> 8;
    v = dtype.IsBool()                  ? static_cast<double>(bits % 2)
        : dtype.code == TypeCode::kUInt ? static_cast<double>(bits % 8)
                                        : static_cast<double>(bits % 9 - 4);
  }
  return InterpArg::Tensor(dtype, shape, values);
}

/// One argument per buffer: random inputs, undefined outputs; then scalars: workspaces of the size
/// that the function's attributes state for the last `workspace` handle, else small integers.
inline std::vector<InterpArg> RandomArgs(const Func& func, const Dims& dims, uint32_t seed,
                                         int team_size = 1) {
  std::mt19937 random(seed);
  std::vector<InterpArg> args;
  size_t inputs = func->buffers.size() - static_cast<size_t>(func->num_outputs);
  for (size_t i = 0; i < func->buffers.size(); ++i) {
    const Buffer& b = func->buffers[i];
    std::vector<int64_t> shape = ShapeOf(func, b, dims);
    args.push_back(i < inputs ? RandomTensor(b->dtype, shape, random)
                              : InterpArg::Output(b->dtype, shape));
  }
  for (const Var& v : func->scalars) {
    if (v->dtype.IsHandle()) {
      int64_t bytes = func->attrs.GetInt("workspace_bytes") +
                      team_size * func->attrs.GetInt("scratch_bytes") +
                      func->attrs.GetInt("arena_bytes");
      args.push_back(InterpArg::Memory(bytes));
    } else {
      int64_t value = static_cast<int64_t>(random() % 4);
      args.push_back(v->dtype.IsFloat() ? InterpArg::Float(static_cast<double>(value))
                                        : InterpArg::Int(value));
    }
  }
  return args;
}

struct RunResult {
  std::string error;  // "" when it ran
  std::vector<InterpArg> args;
};

/// Runs a function on random inputs (the same for the same seed).
inline RunResult RunRandom(const Module& module, const std::string& func, const Dims& dims,
                           uint32_t seed = 1, InterpOptions options = {}) {
  RunResult out;
  Func f = module.Find(func);
  if (!f) return {"no function " + func, {}};
  options.dims = dims;
  out.args = RandomArgs(f, dims, seed, options.team_size);
  Status status = Interpret(module, func, out.args, options);
  if (!status) out.error = ToString(status.errors());
  return out;
}

/// Success when all outputs (tensors that the function writes) of both are the same bytes.
inline ::testing::AssertionResult SameTensors(const std::vector<InterpArg>& a,
                                              const std::vector<InterpArg>& b, const Func& func) {
  for (size_t i = 0; i < func->buffers.size(); ++i) {
    const std::string& name = func->buffers[i]->name;
    if (a[i].dtype != b[i].dtype || a[i].shape != b[i].shape) {
      return ::testing::AssertionFailure() << name << " differs in type or shape";
    }
    for (int64_t e = 0; e < a[i].num_elements(); ++e) {
      auto n = static_cast<size_t>(a[i].dtype.Bytes());
      if (std::memcmp(&a[i].bytes[static_cast<size_t>(e) * n],
                      &b[i].bytes[static_cast<size_t>(e) * n], n) == 0)
        continue;
      return ::testing::AssertionFailure() << name << " differs at element " << e << ": "
                                           << a[i].Get(e) << " and " << b[i].Get(e);
    }
  }
  return ::testing::AssertionSuccess();
}

/// Runs `func` of both modules on the same inputs: as written, with permuted parallel loops, and
/// over teams of 1, 2 and
/// 3. The second module's function may have workspaces that the first lacks.
inline ::testing::AssertionResult SameResults(const Module& before, const Module& after,
                                              const std::string& func, const Dims& dims = {},
                                              uint32_t seed = 1) {
  RunResult want = RunRandom(before, func, dims, seed);
  if (!want.error.empty()) return ::testing::AssertionFailure() << "before: " << want.error;
  for (int team : {1, 2, 3}) {
    InterpOptions options;
    options.team_size = team;
    options.seed = static_cast<uint64_t>(team - 1);  // 0: as written
    RunResult got = RunRandom(after, func, dims, seed, options);
    if (!got.error.empty())
      return ::testing::AssertionFailure() << "after, team of " << team << ": " << got.error;
    ::testing::AssertionResult same = SameTensors(want.args, got.args, before.Find(func));
    if (!same) return same << " (team of " << team << ")";
  }
  return ::testing::AssertionSuccess();
}

/// The same for every list of dims.
inline ::testing::AssertionResult SameResultsAt(const Module& before, const Module& after,
                                                const std::string& func,
                                                const std::vector<Dims>& sizes) {
  uint32_t seed = 1;
  for (const Dims& dims : sizes) {
    ::testing::AssertionResult same = SameResults(before, after, func, dims, seed++);
    if (same) continue;
    std::string text;
    for (const auto& [name, value] : dims) text += " " + name + "=" + std::to_string(value);
    return same << " at" << text;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tenon::testing
