// expand_math as compiled code against long double, over all exponents and many mantissas.
#include <cmath>
#include <limits>
#include <random>

#include "harness.h"

namespace tenon {
namespace {

using test::Apply;
using test::Compiled;
using test::Elementwise;

constexpr float kInf = std::numeric_limits<float>::infinity();

// Error in units of the last place of the exact result, as the type has it there.
template <class T>
double Ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : 1e30;
  if (std::isinf(rounded) || std::isinf(got)) {
    // The last half unit before infinity is nobody's fault.
    if (got == rounded) return 0;
    const T most = std::numeric_limits<T>::max();
    return std::fabs(got) >= most && std::fabs(rounded) >= most && (got > 0) == (rounded > 0)
               ? 1
               : 1e30;
  }
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const int digits = std::numeric_limits<T>::digits;
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const long double unit = std::ldexp(1.0L, exponent - digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / unit);
}

// Every exponent and sign with a sample of mantissas, and the values where things happen.
std::vector<float> FloatSamples() {
  std::vector<float> out;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099) {
    const auto b = static_cast<uint32_t>(bits);
    float f;
    std::memcpy(&f, &b, 4);
    out.push_back(f);
  }
  for (int i = -200000; i <= 200000; ++i) out.push_back(static_cast<float>(i) * 0.0007f);
  for (float f : {0.0f,    -0.0f,     1.0f,        -1.0f,      kInf,     -kInf,   1e-45f,
                  -1e-45f, 88.72283f, 88.722839f,  -87.33655f, -103.97f, -104.0f, 128.0f,
                  -149.0f, -150.0f,   0.70710678f, 1.4142135f, 9.02f,    3.93f}) {
    out.push_back(f);
  }
  out.push_back(std::numeric_limits<float>::quiet_NaN());
  return out;
}

struct Case {
  const char* name;
  Intrinsic intrinsic;
  long double (*exact)(long double);
  double ulps32, ulps64;
  bool trig = false;  // of f64, arguments up to 2^20
};

long double ExactSigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double ExactRsqrt(long double x) { return 1 / std::sqrt(x); }

const Case kCases[] = {
    {"exp", Intrinsic::kExp, [](long double x) { return std::exp(x); }, 1.5, 4},
    {"exp2", Intrinsic::kExp2, [](long double x) { return std::exp2(x); }, 1.5, 4},
    {"log", Intrinsic::kLog, [](long double x) { return std::log(x); }, 1.5, 4},
    {"log2", Intrinsic::kLog2, [](long double x) { return std::log2(x); }, 2, 4},
    {"tanh", Intrinsic::kTanh, [](long double x) { return std::tanh(x); }, 4, 4},
    {"erf", Intrinsic::kErf, [](long double x) { return std::erf(x); }, 4.5, 4},
    {"sigmoid", Intrinsic::kSigmoid, ExactSigmoid, 3, 4},
    {"rsqrt", Intrinsic::kRsqrt, ExactRsqrt, 1.5, 1.5},
    {"sin", Intrinsic::kSin, [](long double x) { return std::sin(x); }, 1, 4, true},
    {"cos", Intrinsic::kCos, [](long double x) { return std::cos(x); }, 1, 4, true},
    {"tan", Intrinsic::kTan, [](long double x) { return std::tan(x); }, 1, 4, true},
    {"exp10", Intrinsic::kExp10, [](long double x) { return std::pow(10.0L, x); }, 1, 4},
    {"expm1", Intrinsic::kExpm1, [](long double x) { return std::expm1(x); }, 1, 4},
    {"log10", Intrinsic::kLog10, [](long double x) { return std::log10(x); }, 1, 4},
    {"log1p", Intrinsic::kLog1p, [](long double x) { return std::log1p(x); }, 1, 4},
    {"asin", Intrinsic::kAsin, [](long double x) { return std::asin(x); }, 1, 4},
    {"acos", Intrinsic::kAcos, [](long double x) { return std::acos(x); }, 1, 4},
    {"atan", Intrinsic::kAtan, [](long double x) { return std::atan(x); }, 1, 4},
    {"sinh", Intrinsic::kSinh, [](long double x) { return std::sinh(x); }, 1, 4},
    {"cosh", Intrinsic::kCosh, [](long double x) { return std::cosh(x); }, 1, 4},
    {"asinh", Intrinsic::kAsinh, [](long double x) { return std::asinh(x); }, 1, 4},
    {"acosh", Intrinsic::kAcosh, [](long double x) { return std::acosh(x); }, 1, 4},
    {"atanh", Intrinsic::kAtanh, [](long double x) { return std::atanh(x); }, 1, 4},
};

class MathTest : public ::testing::TestWithParam<Case> {};

template <class T>
void Check(const Case& c, int32_t lanes, const std::vector<T>& xs, double bound,
           const Target& target) {
  Module m;
  m.Add(Elementwise("f", {DType::Float(sizeof(T) * 8)}, DType::Float(sizeof(T) * 8), lanes,
                    [&](const auto& a) { return Call::Make(c.intrinsic, {a[0]}); }));
  Compiled code(m, target);
  const std::vector<T> got = Apply(code.Get<void(const T*, T*, int64_t)>("f"), xs);
  double worst = 0;
  T worst_x = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const long double want = c.exact(xs[i]);
    const double error = Ulps<T>(got[i], want);
    if (want == 0 && got[i] == 0) EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << xs[i];
    if (error > worst) worst = error, worst_x = xs[i];
  }
  EXPECT_LE(worst, bound) << c.name << " at " << worst_x << " with " << lanes << " lanes";
}

TEST_P(MathTest, F32) {
  const std::vector<float> xs = FloatSamples();
  Check(GetParam(), 16, xs, GetParam().ulps32, Target::Host());
  const std::vector<float> few(xs.end() - 5003, xs.end());
  Check(GetParam(), 1, few, GetParam().ulps32, Target::Host());
  Check(GetParam(), 7, few, GetParam().ulps32, Target::Host());
}

TEST_P(MathTest, F32WithoutFma) {
  const std::vector<float> xs = FloatSamples();
  auto target = Target::Parse("llvm -mtriple=" + Target::Host().triple() + " -mcpu=x86-64");
  ASSERT_TRUE(target) << ToString(target.errors());
  Check(GetParam(), 4, xs, GetParam().ulps32 + 1, *target);
}

TEST_P(MathTest, F64) {
  std::vector<double> xs;
  std::mt19937_64 random(7);
  const bool trig = GetParam().trig;
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    double d;
    std::memcpy(&d, &bits, 8);
    xs.push_back(trig ? std::remainder(d, 1e6) : d);
    xs.push_back(std::uniform_real_distribution<double>(-50, 50)(random));
    xs.push_back(std::uniform_real_distribution<double>(-2, 2)(random));
    if (!trig) xs.push_back(std::uniform_real_distribution<double>(-800, 800)(random));
  }
  for (double d : {0.0, -0.0, 1.0, 0.5, HUGE_VAL, -HUGE_VAL, 5e-324, 709.78, -745.13, std::nan("")})
    xs.push_back(d);
  Check(GetParam(), 8, xs, GetParam().ulps64, Target::Host());
}

INSTANTIATE_TEST_SUITE_P(All, MathTest, ::testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(PowTest, AsC) {
  std::vector<float> x, y;
  const float special[] = {0.0f,   -0.0f,         1.0f,  -1.0f,       kInf,  -kInf, 2.0f,
                           -2.0f,  0.5f,          -0.5f, 3.0f,        -3.0f, 1e30f, -1e30f,
                           1e-40f, std::nanf(""), 1.5f,  16777216.0f, -7.0f};
  for (float a : special) {
    for (float b : special) x.push_back(a), y.push_back(b);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 300000; ++i) {
    x.push_back(std::exp(std::uniform_real_distribution<float>(-20, 20)(random)));
    y.push_back(std::uniform_real_distribution<float>(-10, 10)(random));
  }
  Module m;
  m.Add(Elementwise("f", {DType::Float(32), DType::Float(32)}, DType::Float(32), 16,
                    [&](const auto& a) { return Call::Make(Intrinsic::kPow, {a[0], a[1]}); }));
  Compiled code(m);
  auto got = Apply(code.Get<void(const float*, const float*, float*, int64_t)>("f"), x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want =
        std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
    ASSERT_LE(Ulps<float>(got[i], want), 1) << x[i] << " ^ " << y[i] << " = " << got[i];
    if (!std::isnan(got[i]))
      ASSERT_EQ(std::signbit(got[i]), std::signbit(want)) << x[i] << " ^ " << y[i];
  }
}

// Functions of two numbers: all pairs of the values where things happen, and random ones.
template <class T>
void CheckPairs(Intrinsic intrinsic, long double (*exact)(long double, long double), double bound) {
  std::vector<T> x, y;
  const T inf = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::denorm_min(),
          most = std::numeric_limits<T>::max();
  const T special[] = {
      T(0), T(-0.0), 1,     -1,     inf,  -inf,  2,   T(-0.5),
      3,    -3,      least, -least, most, -most, 1.5, std::numeric_limits<T>::quiet_NaN()};
  for (T a : special) {
    for (T b : special) x.push_back(a), y.push_back(b);
  }
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-60, 60), mantissa(-2, 2);
  for (int i = 0; i < 100000; ++i) {
    x.push_back(static_cast<T>(mantissa(random) * std::exp(exponent(random))));
    y.push_back(static_cast<T>(mantissa(random) * std::exp(exponent(random) / 20) * x.back()));
  }
  const DType type = DType::Float(sizeof(T) * 8);
  Module m;
  m.Add(Elementwise("f", {type, type}, type, 8,
                    [&](const auto& a) { return Call::Make(intrinsic, {a[0], a[1]}); }));
  Compiled code(m);
  const auto got = Apply(code.Get<void(const T*, const T*, T*, int64_t)>("f"), x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    const long double want = exact(x[i], y[i]);
    ASSERT_LE(Ulps<T>(got[i], want), bound) << x[i] << ", " << y[i] << ": " << got[i];
    if (!std::isnan(want)) ASSERT_EQ(std::signbit(got[i]), std::signbit(want)) << x[i] << y[i];
  }
}

long double ExactAtan2(long double y, long double x) { return std::atan2(y, x); }
long double ExactHypot(long double x, long double y) { return std::hypot(x, y); }

TEST(PairTest, Atan2) {
  CheckPairs<float>(Intrinsic::kAtan2, ExactAtan2, 1);
  CheckPairs<double>(Intrinsic::kAtan2, ExactAtan2, 4);
}

TEST(PairTest, Hypot) {
  CheckPairs<float>(Intrinsic::kHypot, ExactHypot, 1);
  CheckPairs<double>(Intrinsic::kHypot, ExactHypot, 4);
}

// e^x under a condition that says where x lies is as exact there, and keeps NaNs of all bits; what
// it is elsewhere does not come out.
template <class T>
void CheckWeights(const std::vector<T>& xs, double least, const Target& target, double bound) {
  const DType type = DType::Float(sizeof(T) * 8);
  Module m;
  m.Add(Elementwise("f", {type}, type, 16, [&](const auto& a) {
    const Expr below = -Call::Make(Intrinsic::kAbs, {a[0]});
    const Expr x = MakeConst(below->dtype, least);
    return Select::Make(Lt(below, x), MakeConst(below->dtype, 0),
                        Call::Make(Intrinsic::kExp, {below}));
  }));
  m.Add(Elementwise("g", {type}, type, 16, [&](const auto& a) {
    return Call::Make(Intrinsic::kExp, {-Call::Make(Intrinsic::kAbs, {a[0]})});
  }));
  Compiled code(m, target);
  const std::vector<T> f = Apply(code.Get<void(const T*, T*, int64_t)>("f"), xs),
                       g = Apply(code.Get<void(const T*, T*, int64_t)>("g"), xs);
  for (size_t i = 0; i < xs.size(); ++i) {
    const T below = -std::fabs(xs[i]);
    const long double want = std::exp(static_cast<long double>(below));
    ASSERT_LE(Ulps<T>(g[i], want), bound) << xs[i];
    ASSERT_LE(Ulps<T>(f[i], below < static_cast<T>(least) ? 0 : want), bound) << xs[i];
  }
}

TEST(MathInBounds, WeightsOfASoftmax) {
  std::vector<float> xs = FloatSamples();
  for (uint32_t bits : {0x7fc00001u, 0x7fc001ffu, 0xffc12345u, 0x7fffffffu}) {
    float f;
    std::memcpy(&f, &bits, 4);
    xs.push_back(f);
  }
  for (float f : {87.3365f, 87.33649f, 87.33651f, 87.33655f, 87.0f, 88.0f}) xs.push_back(f);
  const auto old = Target::Parse("llvm -mtriple=" + Target::Host().triple() + " -mcpu=x86-64");
  ASSERT_TRUE(old) << ToString(old.errors());
  CheckWeights<float>(xs, -87.3365, Target::Host(), 1.5);
  CheckWeights<float>(xs, -87.3365, *old, 2.5);
  const std::vector<double> wide(xs.begin(), xs.end());
  CheckWeights<double>(wide, -708.396, Target::Host(), 4);
}

}  // namespace
}  // namespace tenon
