#include "unit/schedule/support.h"

#include <random>

#include "arith/analyzer.h"
#include "ir/visit.h"

namespace tenon::test {

std::string Fill(std::string text, const std::map<std::string, int64_t>& values) {
  for (const auto& [name, value] : values) {
    std::string key = "$" + name;
    for (size_t at; (at = text.find(key)) != std::string::npos;) {
      text.replace(at, key.size(), std::to_string(value));
    }
  }
  return text;
}

Module Parse(const std::string& text) {
  Expected<Module> m = ParseModule(text, "test");
  EXPECT_TRUE(m) << (m ? "" : ToString(m.errors())) << "\n" << text;
  return m ? *m : Module();
}

namespace {

int64_t SizeOf(const Expr& e, const PrimFunc& func, const Dims& dims) {
  VarMap values;
  for (const Var& d : func.dims) {
    auto it = dims.find(d->name);
    if (it != dims.end()) values[d.get()] = IndexConst(it->second);
  }
  std::optional<int64_t> n = AsInt(Simplify(Substitute(e, values)));
  EXPECT_TRUE(n) << ToString(NodeRef(e));
  return n.value_or(0);
}

}  // namespace

std::vector<double> RunFunc(const Module& module, const std::string& name, const Dims& dims,
                            uint64_t seed, int team_size, std::string* error) {
  const Func& func = module.Find(name);
  std::mt19937 random(7);  // the same inputs whatever the seed of the run
  std::vector<InterpArg> args;
  for (size_t i = 0; i < func->buffers.size(); ++i) {
    const Buffer& b = func->buffers[i];
    std::vector<int64_t> shape;
    int64_t n = 1;
    for (const Expr& e : b->shape) {
      shape.push_back(SizeOf(e, *func, dims));
      n *= shape.back();
    }
    bool output = i + static_cast<size_t>(func->num_outputs) >= func->buffers.size();
    std::vector<double> values(static_cast<size_t>(n));
    for (double& v : values) v = static_cast<double>(random() % 9) - 4;
    args.push_back(output ? InterpArg::Output(b->dtype, shape)
                          : InterpArg::Tensor(b->dtype, shape, values));
  }
  InterpOptions options;
  options.seed = seed;
  options.team_size = team_size;
  options.dims = dims;
  Status status = Interpret(module, name, args, options);
  if (!status) {
    *error = ToString(status.errors());
    return {};
  }
  std::vector<double> out;
  for (size_t i = args.size() - static_cast<size_t>(func->num_outputs); i < args.size(); ++i) {
    for (int64_t k = 0; k < args[i].num_elements(); ++k) out.push_back(args[i].Get(k));
  }
  return out;
}

void ExpectSame(const Module& before, const Schedule& after, const Dims& dims) {
  ASSERT_TRUE(after.ok()) << ToString(after.status().errors()) << after.trace().ToString();
  std::string name = after.func()->name;
  std::string text = after.trace().ToString() + Print(after.module());
  Status valid = Verify(after.module(), Stage::kSchedulable);
  ASSERT_TRUE(valid) << ToString(valid.errors()) << text;

  Expected<Module> again = ParseModule(Print(after.module()));
  ASSERT_TRUE(again) << ToString(again.errors()) << text;
  EXPECT_TRUE(StructuralEqual(again->Find(name), after.func())) << text;

  std::string error;
  std::vector<double> want = RunFunc(before, name, dims, 0, 1, &error);
  ASSERT_EQ(error, "") << text;
  for (uint64_t seed : {0, 1, 2}) {
    std::vector<double> got = RunFunc(after.module(), name, dims, seed, 1, &error);
    ASSERT_EQ(error, "") << text;
    ASSERT_EQ(got, want) << "seed " << seed << "\n" << text;
  }

  Expected<Trace> trace = Trace::Parse(after.trace().ToString());
  ASSERT_TRUE(trace) << ToString(trace.errors()) << text;
  EXPECT_EQ(*trace, after.trace()) << text;
  Schedule replayed(before, name);
  Status status = replayed.Replay(*trace);
  ASSERT_TRUE(status) << ToString(status.errors()) << text;
  EXPECT_EQ(Print(replayed.module()), Print(after.module()));
}

void ExpectError(const Schedule& s, const std::string& part) {
  ASSERT_FALSE(s.ok()) << "expected an error that says: " << part << "\n" << Print(s.func());
  std::string all = ToString(s.status().errors());
  EXPECT_NE(all.find(part), std::string::npos) << all;
}

}  // namespace tenon::test
