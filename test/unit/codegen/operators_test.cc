// Every operator on every type and several lane counts, compiled in several ways, against the
// interpreter.
#include <random>

#include "differential.h"
#include "operators.h"

namespace tenon {
namespace {

using test::Applies;
using test::Compiled;
using test::DataTypes;
using test::EdgeValues;
using test::Elementwise;
using test::ExpectSame;
using test::kBinaryOps;

constexpr int64_t kCount = 151;  // a prime: no lane count divides it

InterpArg Input(DType type, uint64_t seed) {
  return InterpArg::Tensor(type, {kCount}, EdgeValues(type, kCount, seed));
}

class OperatorTest : public ::testing::TestWithParam<int32_t> {};

TEST_P(OperatorTest, Binary) {
  const int32_t lanes = GetParam();
  for (const Target& target : test::TargetsToTry(lanes)) {
    SCOPED_TRACE(target.ToString());
    Module m;
    for (DType type : DataTypes()) {
      for (BinaryOp op : kBinaryOps) {
        if (!Applies(op, type)) continue;
        const DType out = Info(op).is_comparison ? DType::Bool() : type;
        m.Add(Elementwise(fmt::format("f_{}_{}", static_cast<int>(op), type.ToString()),
                          {type, type}, out, lanes,
                          [&](const auto& a) { return Binary::Make(op, a[0], a[1]); }));
      }
    }
    Compiled code(m, target);
    for (const auto& [name, func] : m.funcs) {
      const DType in = func->buffers[0]->dtype, out = func->buffers[2]->dtype;
      const int op = std::stoi(name.substr(2));
      const bool minmax =
          op == static_cast<int>(BinaryOp::kMin) || op == static_cast<int>(BinaryOp::kMax);
      SCOPED_TRACE(Info(static_cast<BinaryOp>(op)).text);
      ExpectSame(m, code, name, {Input(in, 1), Input(in, 2), InterpArg::Output(out, {kCount})}, 2,
                 {kCount}, minmax);
    }
  }
}

TEST_P(OperatorTest, Casts) {
  const int32_t lanes = GetParam();
  for (const Target& target : test::TargetsToTry(lanes)) {
    SCOPED_TRACE(target.ToString());
    Module m;
    for (DType from : DataTypes()) {
      for (DType to : DataTypes()) {
        m.Add(Elementwise(from.ToString() + "_to_" + to.ToString(), {from}, to, lanes,
                          [&](const auto& a) { return CastExpr::Make(to, a[0]); }));
      }
    }
    Compiled code(m, target);
    for (const auto& [name, func] : m.funcs) {
      const DType from = func->buffers[0]->dtype, to = func->buffers[1]->dtype;
      ExpectSame(m, code, name, {Input(from, 3), InterpArg::Output(to, {kCount})}, 1, {kCount});
    }
  }
}

TEST_P(OperatorTest, UnaryAndMath) {
  const int32_t lanes = GetParam();
  for (const Target& target : test::TargetsToTry(lanes)) {
    SCOPED_TRACE(target.ToString());
    Module m;
    for (DType t : DataTypes()) {
      auto add = [&](const std::string& name, DType out, auto f) {
        m.Add(Elementwise(name + "_" + t.ToString(), {t}, out, lanes, f));
      };
      auto call = [&](const std::string& name, Intrinsic i, DType out) {
        add(name, out, [i](const auto& a) { return Call::Make(i, {a[0]}); });
      };
      if (t.IsBool()) {
        add("not", t, [](const auto& a) { return Not(a[0]); });
        continue;
      }
      add("neg", t, [](const auto& a) { return -a[0]; });
      call("abs", Intrinsic::kAbs, t);
      if (t.IsInt()) {
        add("bitnot", t, [](const auto& a) { return Unary::Make(UnaryOp::kBitNot, a[0]); });
        call("popcount", Intrinsic::kPopCount, t);
        call("clz", Intrinsic::kClz, t);
      }
      if (!t.IsFloat()) continue;
      call("sqrt", Intrinsic::kSqrt, t);
      call("floor", Intrinsic::kFloor, t);
      call("ceil", Intrinsic::kCeil, t);
      call("trunc", Intrinsic::kTrunc, t);
      call("round", Intrinsic::kRoundEven, t);
      call("isnan", Intrinsic::kIsNan, DType::Bool());
      call("isinf", Intrinsic::kIsInf, DType::Bool());
    }
    Compiled code(m, target);
    for (const auto& [name, func] : m.funcs) {
      const DType from = func->buffers[0]->dtype, to = func->buffers[1]->dtype;
      ExpectSame(m, code, name, {Input(from, 5), InterpArg::Output(to, {kCount})}, 1, {kCount});
    }
  }
}

TEST_P(OperatorTest, FmaRoundsOnce) {
  const int32_t lanes = GetParam();
  const DType f32 = DType::Float(32);
  for (const Target& target : test::TargetsToTry(lanes)) {
    SCOPED_TRACE(target.ToString());
    Module m;
    m.Add(Elementwise("fused", {f32, f32, f32}, f32, lanes, [](const auto& a) {
      return Call::Make(Intrinsic::kFma, {a[0], a[1], a[2]});
    }));
    Compiled code(m, target);
    std::mt19937 random(1);
    auto values = [&](int exponents) {
      std::vector<double> v;
      for (int64_t i = 0; i < kCount; ++i) {
        const float f = std::uniform_real_distribution<float>(-2, 2)(random);
        v.push_back(std::ldexp(
            f, static_cast<int>(random() % static_cast<unsigned>(exponents)) - exponents / 2));
      }
      return v;
    };
    for (int exponents : {1, 8, 60, 200}) {
      ExpectSame(
          m, code, "fused",
          {InterpArg::Tensor(f32, {kCount}, values(exponents)),
           InterpArg::Tensor(f32, {kCount}, values(exponents)),
           InterpArg::Tensor(f32, {kCount}, values(exponents)), InterpArg::Output(f32, {kCount})},
          3, {kCount});
    }
    ExpectSame(m, code, "fused",
               {Input(f32, 1), Input(f32, 2), Input(f32, 3), InterpArg::Output(f32, {kCount})}, 3,
               {kCount});
  }
}

// Floor division: all sign combinations, constant divisors, and operands known not to be negative.
TEST_P(OperatorTest, IndexDivision) {
  const int32_t lanes = GetParam();
  const DType i64 = DType::Int(64), index = DType::Index();
  Module m;
  auto add = [&](const std::string& name, auto f) {
    m.Add(Elementwise(name, {i64, i64}, i64, lanes, [&](const auto& a) {
      // Lanes under the tail's mask load 0, which must not divide.
      Expr one = MakeIntConst(a[1]->dtype, 1), zero = MakeIntConst(a[1]->dtype, 0);
      Expr divisor = Select::Make(Eq(a[1], zero), one, a[1]);
      return CastExpr::Make(i64, f(CastExpr::Make(index, a[0]), CastExpr::Make(index, divisor)));
    }));
  };
  add("quotient", [](Expr a, Expr b) { return Binary::Make(BinaryOp::kDiv, a, b); });
  add("modulo", [](Expr a, Expr b) { return Binary::Make(BinaryOp::kMod, a, b); });
  for (int64_t d : {1, 3, 8, 12}) {
    add(fmt::format("div{}", d),
        [d](Expr a, Expr) { return Binary::Make(BinaryOp::kDiv, a, MakeIntConst(a->dtype, d)); });
    add(fmt::format("mod{}", d),
        [d](Expr a, Expr) { return Binary::Make(BinaryOp::kMod, a, MakeIntConst(a->dtype, d)); });
    auto positive = [](Expr a) { return Max(a, MakeIntConst(a->dtype, 0)); };
    add(fmt::format("udiv{}", d), [&, d](Expr a, Expr) {
      return Binary::Make(BinaryOp::kDiv, positive(a), MakeIntConst(a->dtype, d));
    });
    add(fmt::format("umod{}", d), [&, d](Expr a, Expr) {
      return Binary::Make(BinaryOp::kMod, positive(a), MakeIntConst(a->dtype, d));
    });
  }
  Compiled code(m);
  std::vector<double> a, b;
  for (int64_t i = 0; i < kCount; ++i) {
    a.push_back(static_cast<double>(i % 31 - 15));
    b.push_back(static_cast<double>(i % 7 < 3 ? i % 7 - 3 : i % 7 - 2));
  }
  for (const auto& [name, func] : m.funcs) {
    ExpectSame(m, code, name,
               {InterpArg::Tensor(i64, {kCount}, a), InterpArg::Tensor(i64, {kCount}, b),
                InterpArg::Output(i64, {kCount})},
               2, {kCount});
  }
}

INSTANTIATE_TEST_SUITE_P(Lanes, OperatorTest, ::testing::ValuesIn(test::LanesToTry()));

}  // namespace
}  // namespace tenon
