// Runs passes on loop IR given as text, and compares what it means before and after.
#pragma once

#include <gtest/gtest.h>

#include "interp/arguments.h"
#include "interp/interp.h"
#include "loop/parse.h"
#include "loop/pass/pass.h"
#include "loop/print.h"
#include "loop/verify.h"

namespace tenon {

inline Module Parse(const std::string& text) {
  auto module = ParseModule(text, "test");
  EXPECT_TRUE(module) << (module ? "" : ToString(module.errors()));
  return module ? *module : Module{};
}

inline Module RunPasses(Module module, const std::vector<const char*>& passes,
                        const PassContext& context = {}) {
  for (const char* name : passes) {
    const PassInfo* pass = FindLoopPass(name);
    EXPECT_NE(pass, nullptr) << name;
    if (!pass) continue;
    Expected<Module> after = RunPass(*pass, module, context);
    EXPECT_TRUE(after) << name << ": " << (after ? "" : ToString(after.errors()));
    if (!after) return {};
    module = std::move(*after);
    Status ok = Verify(module, Stage::kSchedulable);
    EXPECT_TRUE(ok) << "after " << name << ": " << ToString(ok.errors()) << Print(module);
  }
  return module;
}

/// The outputs' bytes after running `name` of both modules on the same arguments are the same.
/// Parameters may have been flattened in between (same elements in the same order); a workspace
/// parameter gets memory.
inline void ExpectSameMeaning(const Module& before, const Module& after, const std::string& name,
                              const std::map<std::string, int64_t>& dims = {}, int team_size = 1,
                              uint64_t seed = 0) {
  Func f = before.Find(name), g = after.Find(name);
  ASSERT_TRUE(f && g);
  InterpOptions options;
  options.dims = dims;
  Expected<std::vector<InterpArg>> args = SmallIntegerArgs(*f, dims, 1);
  ASSERT_TRUE(args) << ToString(args.errors());
  std::vector<InterpArg> a = *args, b = a;
  Status ran = Interpret(before, name, a, options);
  ASSERT_TRUE(ran) << ToString(ran.errors()) << Print(before);
  for (size_t i = 0; i < b.size(); ++i) {
    if (g->buffers[i]->rank() == f->buffers[i]->rank()) continue;
    int64_t count = 1;
    for (int64_t d : b[i].shape) count *= d;
    b[i].shape = {count};
  }
  if (g->scalars.size() > f->scalars.size()) b.push_back(InterpArg::Memory(1 << 20));
  options.team_size = team_size;
  options.seed = seed;
  ran = Interpret(after, name, b, options);
  ASSERT_TRUE(ran) << ToString(ran.errors()) << Print(after);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(a[i].bytes, b[i].bytes) << f->buffers[i]->name << "\n" << Print(after);
}

}  // namespace tenon
