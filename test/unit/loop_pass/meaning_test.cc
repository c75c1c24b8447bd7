// Every text case of loop passes keeps its functions' meaning: the interpreter gets the same from
// each before and after, at several sizes and over teams. And every row of passes.def has a case.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "arith/analyzer.h"
#include "interp/arguments.h"
#include "ir/visit.h"
#include "pass_test.h"
#include "support/text_cases.h"

namespace tenon {
namespace {

using testing::PassCase;

// Functions that the interpreter cannot run before the pass, and where they are run.
const std::map<std::string, std::string> kNotRun = {
    {"plan_host @main", "its weights have no values yet: host_test.cc"},
    {"overlap_launches @main", "likewise"},
    {"overlap_launches_loaders @main", "likewise"},
    {"plan_dependent @waiting", "likewise"},
    {"plan_handles @main", "device 0 is none of the interpreter: unit/gpu and test_gpu.py"},
    {"wrap_exports @unsafe", "it reads where its argument points"},
};

// Sizes that the function admits: the least, and some around vectors and tiles.
std::vector<DimValues> SizesFor(const PrimFunc& func) {
  std::vector<DimValues> out;
  for (int64_t wanted : {0, 1, 3, 8, 13, 70}) {
    DimValues sizes;
    for (size_t i = 0; i < func.dims.size(); ++i) {
      const DimRange range = func.dim_range(i);
      const int64_t steps = std::max<int64_t>(wanted - range.lo, 0) / range.step;
      const int64_t size = range.lo + steps * range.step + static_cast<int64_t>(i) * range.step;
      const int64_t most = range.lo + (range.hi - range.lo) / range.step * range.step;
      sizes[func.dims[i]->name] = range.hi < 0 ? size : std::min(size, most);
    }
    if (out.empty() || out.back() != sizes) out.push_back(sizes);
  }
  return out;
}

// Everything has a value at the start, outputs too: a case need not write all of them.
Expected<std::vector<InterpArg>> Arguments(const PrimFunc& func, const DimValues& dims) {
  TN_ASSIGN_OR_RETURN(std::vector<InterpArg> args, SmallIntegerArgs(func, dims, 7));
  std::mt19937 random(8);
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    if (!args[i].defined) args[i] = SmallIntegers(args[i].dtype, args[i].shape, random);
  }
  return args;
}

int64_t Number(const Expr& e, const VarMap& values) {
  return AsInt(Simplify(Substitute(e, values))).value();
}

// For each element of a buffer, in row-major order, its place in the buffer's storage; the last
// entry is the storage's size.
std::vector<int64_t> Places(const PrimFunc& func, const Buffer& b, const DimValues& dims) {
  VarMap values;
  for (const Var& v : func.dims) values[v.get()] = IndexConst(dims.at(v->name));
  std::vector<int64_t> shape, extents, strides(b->strides.size());
  for (const Expr& e : b->shape) shape.push_back(Number(e, values));
  for (const Expr& e : StorageExtents(b->shape, b->layout)) extents.push_back(Number(e, values));
  for (size_t i = 0; i < strides.size(); ++i) strides[i] = Number(b->strides[i], values);
  int64_t size = 1, last = 0, elements = 1;
  for (int64_t d : shape) elements *= d;
  if (strides.empty()) {
    strides.resize(extents.size());
    for (size_t i = extents.size(); i-- > 0; size *= extents[i]) strides[i] = size;
  } else {
    for (size_t i = 0; i < strides.size(); ++i) last += (extents[i] - 1) * strides[i];
    size = last + 1;
  }
  std::vector<int64_t> out;
  for (int64_t e = 0; e < elements; ++e) {
    std::vector<Expr> at(shape.size());
    int64_t rest = e;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = IndexConst(rest % shape[d]);
    int64_t place = 0;
    const std::vector<Expr> storage = ApplyLayout(b->layout, at);
    for (size_t i = 0; i < storage.size(); ++i) place += Number(storage[i], values) * strides[i];
    out.push_back(place);
  }
  out.push_back(size);
  return out;
}

// The argument as it lies in storage, pads zero; and back.
InterpArg Stored(const InterpArg& arg, const std::vector<int64_t>& places) {
  InterpArg out = InterpArg::Tensor(arg.dtype, {places.back()},
                                    std::vector<double>(static_cast<size_t>(places.back())));
  const auto width = static_cast<size_t>(arg.dtype.Bytes());
  for (size_t e = 0; e + 1 < places.size(); ++e)
    std::copy_n(&arg.bytes[e * width], width, &out.bytes[static_cast<size_t>(places[e]) * width]);
  return out;
}
InterpArg Loaded(const InterpArg& stored, const InterpArg& like,
                 const std::vector<int64_t>& places) {
  InterpArg out = like;
  const auto width = static_cast<size_t>(like.dtype.Bytes());
  for (size_t e = 0; e + 1 < places.size(); ++e)
    std::copy_n(&stored.bytes[static_cast<size_t>(places[e]) * width], width,
                &out.bytes[e * width]);
  return out;
}

// To the last bit, but for `ulps` units of an element's last place.
bool Equal(const InterpArg& a, const InterpArg& b, double ulps) {
  if (a.bytes == b.bytes || ulps == 0) return a.bytes == b.bytes;
  const double unit = a.dtype.bits == 16 ? 0x1p-10 : a.dtype.bits == 32 ? 0x1p-23 : 0x1p-52;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    if (!(std::abs(a.Get(i) - b.Get(i)) <= ulps * unit * std::abs(b.Get(i)))) return false;
  }
  return true;
}

// Runs `name` of both modules; false where the first one cannot be run at this size.
bool ExpectSame(const Module& before, const Module& after, const std::string& name,
                const DimValues& dims, int team, double ulps) {
  const Func f = before.Find(name), g = after.Find(name);
  Expected<std::vector<InterpArg>> args = Arguments(*f, dims);
  if (!args) return false;
  std::vector<InterpArg> want = *args, got;
  InterpOptions options;
  options.dims = dims;
  if (!Interpret(before, name, want, options)) return false;
  std::map<size_t, std::vector<int64_t>> flat;
  for (size_t i = 0; i < args->size() && i < f->buffers.size(); ++i) {
    const Buffer &a = f->buffers[i], &b = g->buffers[i];
    if (a->rank() != b->rank() || (a->layout && !b->layout) ||
        a->strides.size() != b->strides.size())
      flat[i] = Places(*f, a, dims);
    got.push_back(flat.count(i) ? Stored((*args)[i], flat[i]) : (*args)[i]);
  }
  // Scalars that it had, then the memory that planning asks for.
  Expected<std::vector<InterpArg>> scalars = SmallIntegerArgs(*g, dims, 7, team);
  EXPECT_TRUE(scalars) << ToString(scalars.errors());
  if (!scalars) return true;
  for (size_t i = 0; i < g->scalars.size(); ++i) {
    const size_t at = g->buffers.size() + i;
    const bool had = i < f->scalars.size();
    got.push_back(had ? (*args)[f->buffers.size() + i] : (*scalars)[at]);
    if (!had && !g->attrs.Has("arena_bytes")) got.back().memory_bytes += 1 << 16;  // symbolic sizes
  }
  // What launches take changes no result.
  for (const char* clock : {"tn_core_now", "tn_core_launch_took"})
    options.functions[clock] = [](std::span<const InterpScalar>) { return InterpScalar{}; };
  options.team_size = team;
  options.seed = static_cast<uint64_t>(team - 1);
  Status ran = InterpretOrders(after, name, got, options);
  EXPECT_TRUE(ran) << ToString(ran.errors()) << Print(after);
  for (size_t i = 0; ran && i < f->buffers.size(); ++i) {
    const InterpArg arg = flat.count(i) ? Loaded(got[i], want[i], flat[i]) : got[i];
    EXPECT_TRUE(Equal(arg, want[i], ulps)) << f->buffers[i]->name << " of @" << name << "\n"
                                           << Print(after);
  }
  return true;
}

class LoopPassMeaning : public ::testing::TestWithParam<PassCase> {};

TEST_P(LoopPassMeaning, Stays) {
  const PassCase& c = GetParam();
  const Module before = Parse(c.text);
  Expected<Target> target = Target::Parse(c.target.empty() ? "llvm -mcpu=core-avx2" : c.target);
  ASSERT_TRUE(target);
  PassContext context;
  context.target = &*target;
  std::vector<const char*> passes;
  std::set<std::string> names;
  for (const std::string& name : c.passes) passes.push_back(FindLoopPass(name)->name);
  for (const char* name : passes) names.insert(name);
  // What a network does with a team shows once its kernels divide their work.
  if (names.count("lower_team")) passes.push_back("lower_parallel");
  const bool team = names.count("lower_team") || names.count("lower_parallel");
  const double ulps = names.count("expand_math") ? 4 : 0;  // as its header says
  const Module after = RunPasses(before, passes, context);
  for (const auto& [name, f] : before.funcs) {
    if (f->func_kind == FuncKind::kDevice) continue;
    const Func g = after.Find(name);
    if (!g && after.Find(name + "_0")) continue;  // launches of a device, which nothing here runs
    ASSERT_TRUE(g) << name;
    // What a host function is called with is in its closure then.
    if (names.count("make_packed") && f->func_kind == FuncKind::kHost) continue;
    ASSERT_EQ(g->buffers.size(), f->buffers.size()) << name;
    if (names.count("lower_launches") && f->attrs.Has("device_type")) continue;  // likewise
    int ran = 0;
    for (const DimValues& dims : SizesFor(*f)) {
      for (int size : team ? std::vector<int>{1, 2, 3} : std::vector<int>{1}) {
        ran += ExpectSame(before, after, name, dims, size, ulps);
        if (HasFailure()) return;
      }
    }
    EXPECT_NE(ran > 0, kNotRun.count(c.name + " @" + name) > 0) << name << ": " << ran << " runs";
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LoopPassMeaning,
                         ::testing::ValuesIn(testing::ReadPassCases(TENON_LOOP_PASS_CASES)),
                         [](const auto& info) { return info.param.name; });

TEST(LoopPasses, EachHasATextCase) {
  std::set<std::string> seen;
  for (const PassCase& c : testing::ReadPassCases(TENON_LOOP_PASS_CASES))
    seen.insert(c.passes.begin(), c.passes.end());
  for (const PassInfo& pass : LoopPasses()) EXPECT_TRUE(seen.count(pass.name)) << pass.name;
}

}  // namespace
}  // namespace tenon
