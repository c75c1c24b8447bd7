// Running functions through the interpreter on random inputs and comparing what they leave.
//
//   EXPECT_TRUE(SameResults(before, after, "matmul", {{"m", 7}}));
//
// Inputs are small integers stored in the parameter's type, so that sums come out the same in any
// order; outputs must be equal to the last bit. Everything is a template-free header, so that any
// unit test may include it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "interp/arguments.h"
#include "interp/interp.h"
#include "loop/func.h"

namespace tenon::testing {

using Dims = DimValues;

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
  Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*f, dims, seed, options.team_size);
  if (!args) return {ToString(args.errors()), {}};
  out.args = std::move(*args);
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

/// What a function leaves on random inputs: run once for each list of dims, however often it is
/// asked.
class Reference {
 public:
  Reference(Module module, std::string func) : module_(std::move(module)), name_(std::move(func)) {}

  const Module& module() const { return module_; }
  const std::string& name() const { return name_; }
  Func func() const { return module_.Find(name_); }
  const RunResult& At(const Dims& dims, uint32_t seed = 1) {
    auto [it, added] = results_.try_emplace({dims, seed});
    if (added) it->second = RunRandom(module_, name_, dims, seed);
    return it->second;
  }

 private:
  Module module_;
  std::string name_;
  std::map<std::pair<Dims, uint32_t>, RunResult> results_;
};

/// Runs the function of `after` on the reference's inputs: as written, with permuted parallel loops
/// and threads, and over teams of 1, 2 and 3. It may have workspaces that the reference lacks.
inline ::testing::AssertionResult SameResults(Reference& before, const Module& after,
                                              const Dims& dims = {}, uint32_t seed = 1) {
  const RunResult& want = before.At(dims, seed);
  if (!want.error.empty()) return ::testing::AssertionFailure() << "before: " << want.error;
  for (int team : {1, 2, 3}) {
    InterpOptions options;
    options.team_size = team;
    options.seed = static_cast<uint64_t>(team - 1);  // 0: as written
    if (options.seed != 0) options.order = ThreadOrder::kShuffled;
    RunResult got = RunRandom(after, before.name(), dims, seed, options);
    if (!got.error.empty())
      return ::testing::AssertionFailure() << "after, team of " << team << ": " << got.error;
    ::testing::AssertionResult same = SameTensors(want.args, got.args, before.func());
    if (!same) return same << " (team of " << team << ")";
  }
  return ::testing::AssertionSuccess();
}

/// The same of `func` of both modules.
inline ::testing::AssertionResult SameResults(const Module& before, const Module& after,
                                              const std::string& func, const Dims& dims = {},
                                              uint32_t seed = 1) {
  Reference reference(before, func);
  return SameResults(reference, after, dims, seed);
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
