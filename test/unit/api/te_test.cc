// What te.hpp and schedule.hpp offer beyond what is built in build_test.cc: functions of numbers,
// scans of several states, choices in schedules, and loops where they do not belong.
#include "tenon/te.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tenon/compiler.hpp"

namespace {

using tenon::DataType;
using tenon::Error;
namespace te = tenon::te;

constexpr float kInf = std::numeric_limits<float>::infinity();

template <class F>
std::string Message(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

tenon::Tensor View(std::vector<float>& v, const std::vector<int64_t>& shape) {
  return tenon::Tensor::Wrap(v.data(), shape, DataType::kFloat32);
}

bool Same(float a, float b, float units) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return std::signbit(a) == std::signbit(b);
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::abs(a - b) <= units * std::abs(std::nextafter(b, kInf) - b);
}

struct OfOne {
  const char* name;
  te::Expr (*function)(const te::Expr&);
  double (*reference)(double);
  float units;
};
const OfOne kOfOne[] = {
    {"Abs", te::Abs, std::fabs, 0},
    {"Acos", te::Acos, std::acos, 2},
    {"Acosh", te::Acosh, std::acosh, 2},
    {"Asin", te::Asin, std::asin, 2},
    {"Asinh", te::Asinh, std::asinh, 2},
    {"Atan", te::Atan, std::atan, 2},
    {"Atanh", te::Atanh, std::atanh, 2},
    {"Ceil", te::Ceil, std::ceil, 0},
    {"Cos", te::Cos, std::cos, 4},
    {"Cosh", te::Cosh, std::cosh, 2},
    {"Erf", te::Erf, std::erf, 8},
    {"Exp10", te::Exp10, [](double x) { return std::pow(10.0, x); }, 2},
    {"Rsqrt", te::Rsqrt, [](double x) { return 1 / std::sqrt(x); }, 2},
    {"Sigmoid", te::Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 8},
    {"Exp", te::Exp, std::exp, 2},
    {"Exp2", te::Exp2, std::exp2, 2},
    {"Expm1", te::Expm1, std::expm1, 2},
    {"Floor", te::Floor, std::floor, 0},
    {"Log", te::Log, std::log, 2},
    {"Log10", te::Log10, std::log10, 2},
    {"Log1p", te::Log1p, std::log1p, 2},
    {"Log2", te::Log2, std::log2, 3},
    {"Round", te::Round, std::rint, 0},
    {"Sin", te::Sin, std::sin, 4},
    {"Sinh", te::Sinh, std::sinh, 2},
    {"Sqrt", te::Sqrt, std::sqrt, 1},
    {"Tan", te::Tan, std::tan, 5},
    {"Tanh", te::Tanh, std::tanh, 5},
    {"Trunc", te::Trunc, std::trunc, 0},
};

TEST(Functions, OfOneNumber) {
  const std::vector<float> samples = {0.0F,  -0.0F, 0.25F, -0.5F,  0.7F, 1.0F,  -1.0F, 1.5F,
                                      -2.5F, 3.0F,  10.0F, -20.0F, kInf, -kInf, NAN,   1e-30F};
  const auto n = static_cast<int64_t>(samples.size());
  te::Tensor x = te::Placeholder({n}, DataType::kFloat32, "x");
  std::vector<te::Tensor> y = te::ComputeTuple(
      {n},
      [&](const std::vector<te::Var>& i) {
        te::Tuple all;
        for (const OfOne& row : kOfOne) all.values.push_back(row.function(x.At({i[0]})));
        return all;
      },
      "y");
  std::vector<std::vector<float>> got(y.size(), std::vector<float>(samples.size()));
  std::vector<float> in = samples;
  te::Arguments args = {x};
  args.insert(args.end(), y.begin(), y.end());
  tenon::Library library = tenon::Build(tenon::CreateSchedule(y), args);
  std::vector<tenon::Tensor> tensors = {View(in, {n})};
  for (std::vector<float>& g : got) tensors.push_back(View(g, {n}));
  std::vector<tn_ffi_any> values;
  for (const tenon::Tensor& t : tensors) values.push_back(tenon::detail::ToAny(t));
  library.GetFunction("main").Call(values.data(), static_cast<int32_t>(values.size()));
  for (size_t f = 0; f < y.size(); ++f) {
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto want = static_cast<float>(kOfOne[f].reference(samples[i]));
      EXPECT_TRUE(Same(got[f][i], want, kOfOne[f].units))
          << kOfOne[f].name << " of " << samples[i] << " is " << got[f][i] << ", not " << want;
    }
  }
}

struct OfTwo {
  const char* name;
  te::Expr (*function)(const te::Expr&, const te::Expr&);
  float (*reference)(float, float);
  float units;
};
const OfTwo kOfTwo[] = {
    {"Atan2", te::Atan2, std::atan2, 2}, {"CopySign", te::CopySign, std::copysign, 0},
    {"Fmod", te::Fmod, std::fmod, 0},    {"Hypot", te::Hypot, std::hypot, 2},
    {"Pow", te::Pow, std::pow, 8},       {"NextAfter", te::NextAfter, std::nextafter, 0},
};

TEST(Functions, OfTwoNumbers) {
  const std::vector<float> samples = {0.0F, -0.0F,  0.7F, -1.0F, 1.0F,
                                      5.5F, -1e30F, kInf, -kInf, NAN};
  const auto n = static_cast<int64_t>(samples.size());
  for (const OfTwo& row : kOfTwo) {
    te::Tensor x = te::Placeholder({n}, DataType::kFloat32, "x");
    te::Tensor y =
        te::Compute({n, n}, [&](te::Var i, te::Var j) { return row.function(x(i), x(j)); }, "y");
    std::vector<float> in = samples, got(samples.size() * samples.size());
    tenon::Build(tenon::CreateSchedule({y}), {x, y})
        .GetFunction("main")(View(in, {n}), View(got, {n, n}));
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t j = 0; j < in.size(); ++j) {
        const float want = row.reference(in[i], in[j]), is = got[i * in.size() + j];
        EXPECT_TRUE(Same(is, want, row.units))
            << row.name << " of " << in[i] << ", " << in[j] << " is " << is << ", not " << want;
      }
    }
  }
}

TEST(Functions, OfFloatsAndIntegers) {
  te::Tensor x = te::Placeholder({4}, DataType::kFloat32, "x");
  te::Tensor p = te::Placeholder({4}, DataType{TN_DL_INT, 32}, "p");
  te::Tensor scaled = te::Compute({4}, [&](te::Var i) { return te::LdExp(x(i), p(i)); }, "scaled");
  te::Tensor bits =
      te::Compute({4}, [&](te::Var i) { return te::PopCount(p(i)) * 100 + te::Clz(p(i)); }, "bits");
  te::Tensor finite = te::Compute(
      {4}, [&](te::Var i) { return te::Select(te::IsFinite(x(i)), 1.0, 0.0); }, "finite");
  std::vector<float> in = {1.5F, -1, kInf, 3}, y(4), z(4);
  std::vector<int32_t> powers = {3, -149, 1, 200}, counts(4);
  auto of_ints = [](std::vector<int32_t>& v) {
    return tenon::Tensor::Wrap(v.data(), {4}, DataType{TN_DL_INT, 32});
  };
  tenon::Build(tenon::CreateSchedule({scaled, bits, finite}), {x, p, scaled, bits, finite})
      .GetFunction("main")(View(in, {4}), of_ints(powers), View(y, {4}), of_ints(counts),
                           View(z, {4}));
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], std::ldexp(in[i], powers[i])) << i;
  EXPECT_EQ(counts, (std::vector<int32_t>{230, 2900, 131, 324}));
  EXPECT_EQ(z, (std::vector<float>{1, 1, 0, 1}));
}

TEST(Functions, OfNumbersThatATypeHas) {
  auto of = [](int64_t value, uint8_t code, uint8_t bits) {
    return Message([&] { te::ConstantInt(value, {code, bits}); });
  };
  EXPECT_EQ(of(300, TN_DL_INT, 8), "300 is no value of type int8");
  EXPECT_EQ(of(-129, TN_DL_INT, 8), "-129 is no value of type int8");
  EXPECT_EQ(of(0x10000, TN_DL_UINT, 16), "65536 is no value of type uint16");
  for (int64_t fits : {-128, 0, 127, 0xff}) EXPECT_EQ(of(fits, TN_DL_INT, 8), "no error");
  EXPECT_EQ(of(std::numeric_limits<int64_t>::min(), TN_DL_INT, 64), "no error");
  EXPECT_EQ(of(-1, TN_DL_UINT, 64), "no error");
}

// Fibonacci's numbers by pairs, and a running sum of the products.
TEST(Scans, OfSeveralStates) {
  te::Var t("t", 1), n("n");
  te::Tensor x = te::Placeholder({t, n}, DataType::kFloat32, "x");
  te::Tensor a = te::Placeholder({t, n}, DataType::kFloat32, "a");
  te::Tensor b = te::Placeholder({t, n}, DataType::kFloat32, "b");
  auto first = [&](const char* name) {
    return te::Compute({1, n}, [&](te::Var, te::Var i) { return x(0, i); }, name);
  };
  te::Tensor sum =
      te::Compute({t, n}, [&](te::Var r, te::Var i) { return a(r - 1, i) + b(r - 1, i); }, "sum");
  te::Tensor next_a =
      te::Compute({t, n}, [&](te::Var r, te::Var i) { return sum(r, i) - x(r, i); }, "next_a");
  te::Tensor next_b =
      te::Compute({t, n}, [&](te::Var r, te::Var i) { return a(r - 1, i) * 0.5; }, "next_b");
  std::vector<te::Tensor> out =
      te::Scan({first("a0"), first("b0")}, {next_a, next_b}, {a, b}, "pair");
  ASSERT_EQ(out.size(), 2U);
  tenon::Schedule s = tenon::CreateSchedule(out);
  auto [outer, inner] = s[next_a].Split(next_a.op().axis()[1], 4);
  s[next_a].Vectorize(inner);
  s[sum].ComputeAt(s[out[0].op()], out[0].op().scan_axis());
  tenon::Function f = tenon::Build(s, {x, out[0], out[1]}).GetFunction("main");
  for (auto [rows, cols] : {std::pair{1, 3}, {2, 1}, {5, 9}}) {
    std::vector<float> in(static_cast<size_t>(rows * cols));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>((i * 7) % 5) - 2;
    std::vector<float> got_a(in.size()), got_b(in.size()), p = in, q = in;
    f(View(in, {rows, cols}), View(got_a, {rows, cols}), View(got_b, {rows, cols}));
    for (size_t i = static_cast<size_t>(cols); i < in.size(); ++i) {
      const size_t before = i - static_cast<size_t>(cols);
      p[i] = p[before] + q[before] - in[i];
      q[i] = p[before] * 0.5F;
    }
    EXPECT_EQ(got_a, p);
    EXPECT_EQ(got_b, q);
  }
  EXPECT_EQ(
      Message([&] { te::Scan({first("a0")}, {next_a, next_b}, {a, b}, "pair"); }).substr(0, 4),
      "scan");
}

TEST(Choices, AreReadByNameAndReplayed) {
  te::Tensor x = te::Placeholder({48}, DataType::kFloat32, "x");
  te::Tensor y = te::Compute({48}, [&](te::Var i) { return x(i) * 2; }, "y");
  auto schedule = [&](const std::map<std::string, int64_t>& decisions) {
    tenon::Schedule s = tenon::CreateSchedule({y});
    s.UseDecisions(decisions);
    te::IterVar i = y.op().axis()[0];
    EXPECT_EQ(s.SamplePerfectTile("tile", i, 3, 8).size(), 3U);
    s.Decide("lanes", {4, 8}, 8);
    std::vector<te::IterVar> parts = s[y].SplitFactors(i, {"$tile.0", "$tile.1", "$tile.2"});
    EXPECT_EQ(parts.size(), 3U);
    auto [outer, inner] = s[y].Split(parts[1], "$lanes");
    s[y].Unroll(inner);
    return s;
  };
  const tenon::Schedule guessed = schedule({});
  const tenon::Schedule given =
      schedule({{"tile.0", 2}, {"tile.1", 8}, {"tile.2", 3}, {"lanes", 4}});
  const std::string text = tenon::Lower(given, {x, y}).str();
  EXPECT_NE(text.find("in 0..2"), std::string::npos) << text;
  EXPECT_NE(text.find("in 0..3"), std::string::npos) << text;
  const std::string code = given.trace().ToCpp();
  EXPECT_NE(code.find("\"$tile.0\", \"$tile.1\", \"$tile.2\""), std::string::npos) << code;
  EXPECT_NE(code.find("\"$lanes\""), std::string::npos) << code;

  // The trace of one with the decisions of the other gives the other.
  tenon::IrSchedule again(tenon::CreateFunc({x, y}));
  again.UseDecisions({{"tile.0", 2}, {"tile.1", 8}, {"tile.2", 3}, {"lanes", 4}});
  again.Replay(guessed.trace());
  EXPECT_EQ(again.module().str(), text);

  tenon::Schedule s = tenon::CreateSchedule({y});
  EXPECT_NE(Message([&] { s[y].Split(y.op().axis()[0], "$none"); }), "no error");
}

TEST(Choices, ThatAreGivenMustBeMade) {
  te::Tensor x = te::Placeholder({48}, DataType::kFloat32, "x");
  te::Tensor y = te::Compute({48}, [&](te::Var i) { return x(i) * 2; }, "y");
  tenon::Schedule s = tenon::CreateSchedule({y});
  s.UseDecisions({{"row", 2}});
  EXPECT_EQ(Message([&] { tenon::Lower(s, {x, y}); }),
            "use_decisions: the schedule has no choice 'row'; it has none");
  EXPECT_EQ(s.Decide("rows", {2, 4}, 4), 4);
  EXPECT_EQ(Message([&] { tenon::Build(s, {x, y}); }),
            "use_decisions: the schedule has no choice 'row'; it has rows");
  EXPECT_EQ(Message([&] { s.UseDecisions({{"rows", 2}}); }),
            "use_decisions: the choice 'rows' is made already, as 4; its value is given before");
  s.UseDecisions({{"rows", 4}});
  EXPECT_EQ(Message([&] { tenon::Lower(s, {x, y}); }), "no error");

  s.UseDecisions({{"unroll", 3}});
  EXPECT_EQ(Message([&] { s.Decide("unroll", {2, 4}, 4); }),
            "use_decisions: the choice 'unroll' is among 2, 4, but was given as 3");

  tenon::IrSchedule t(tenon::CreateFunc({x, y}));
  t.UseDecisions({{"row", 2}});
  EXPECT_EQ(Message([&] { t.CheckDecisions(); }),
            "use_decisions: the schedule has no choice 'row'; it has none");
  EXPECT_EQ(t.Decide("row", {2, 4}, 4), 2);
  t.CheckDecisions();
}

TEST(Loops, BelongToTheirTensor) {
  te::Var n("n"), m("m");
  te::Tensor a = te::Placeholder({n, m}, DataType::kFloat32, "A");
  te::IterVar k = te::ReduceAxis(0, m, "k"), other = te::ReduceAxis(0, m, "other");
  auto of = [&](const std::vector<te::Expr>& shape, auto element) {
    return Message([&] { te::Compute(shape, element, "C"); });
  };
  EXPECT_EQ(of({n}, [&](te::Var i) { return a(i, k + 1); }),
            "compute 'C': the reduce axis 'k' is used outside of a reduction over it");
  EXPECT_EQ(of({n}, [&](te::Var i) { return te::Sum(a(i, k) * a(i, other), {k}); }),
            "compute 'C': the reduce axis 'other' is used outside of a reduction over it");
  EXPECT_EQ(of({n}, [&](te::Var i) { return te::Sum(a(i, k), {k, other, k}); }),
            "the reduce axis 'k' is twice among the axes");
  EXPECT_EQ(of({n}, [&](te::Var i) { return te::Sum(a(i, k) * a(i, other), {k, other}); }),
            "no error");
  EXPECT_EQ(of({m * k}, [&](te::Var i) { return a(0, i); }),
            "'C': the dim 'm * k' of its shape has the loop 'k' in it; a shape is made of numbers "
            "and sizes");
  EXPECT_EQ(of({n},
               [&](te::Var i) {
                 te::IterVar part = te::ReduceAxis(0, i + 1, "part");
                 return te::Sum(a(i, part), {part});
               }),
            "reduce_axis 'part': its bound 'i0 + 1' has the loop 'i0' in it; reduce to a size and "
            "select inside");
  EXPECT_EQ(Message([] { te::ReduceAxis(5, 2, "k"); }),
            "reduce_axis 'k': from 5 to 2 is less than nothing");
  te::Tensor b = te::Compute({n}, [&](te::Var i) { return a(i, 0); }, "B");
  EXPECT_EQ(of({n}, [&](te::Var i) { return a(i, 0) + b(b.op().axis()[0]); }),
            "compute 'C': the loop 'i0' of 'B' is used outside of it");
}

}  // namespace
