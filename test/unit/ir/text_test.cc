// The text of expressions: what is printed reads back, what cannot be read says where and why.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/parse.h"
#include "ir/print.h"

namespace tenon {
namespace {

class ExprText : public testing::Test {
 protected:
  const Var i_ = VarNode::Make("i"), j_ = VarNode::Make("j.0"), odd_ = VarNode::Make("f32");
  const Var p_ = VarNode::Make("p", DType::Bool()), s_ = VarNode::Make("s", DType::Int(32));
  const Var x_ = VarNode::Make("x", DType::Float(32)), h_ = VarNode::Make("h", DType::Handle());
  const Buffer a_ = BufferNode::Make("A", DType::Float(32), {IndexConst(8), IndexConst(16)});
  const std::vector<NodeRef> scope_ = {i_, j_, odd_, p_, s_, x_, h_, a_};

  Expr Parse(const std::string& text) {
    auto e = ParseExpr(text, scope_);
    EXPECT_TRUE(e) << text << "\n" << ToString(e.errors());
    return e ? *e : IndexConst(-1);
  }
  std::string Error(const std::string& text) {
    auto e = ParseExpr(text, scope_);
    return e ? "no error: " + ToString(*e) : e.errors()[0].ToString();
  }
  void ExpectRoundTrip(const Expr& e) {
    const std::string text = ToString(e);
    auto again = ParseExpr(text, scope_);
    ASSERT_TRUE(again) << text << "\n" << ToString(again.errors());
    std::string path;
    EXPECT_TRUE(StructuralEqual(e, *again, &path)) << text << " at " << path;
    EXPECT_EQ(ToString(*again), text);
  }
};

TEST_F(ExprText, PrintsAsWritten) {
  for (const char* text : {"i + j.0 * 4",
                           "(i + j.0) * 4",
                           "i - (j.0 - 1)",
                           "i - j.0 - 1",
                           "-i * j.0",
                           "-(i * j.0)",
                           "-(3)",
                           "-3",
                           "i - -3",
                           "--i",
                           "!(i < 3 && p || i == 4)",
                           "min(i, max(j.0, 0))",
                           "bitxor(s, 3i32)",
                           "~s << 2i32",
                           "i % 16 / 4 * 4",
                           "f32 + f32 % 4",
                           "f32(f32) * x",
                           "x < 1f32 == x > 2f32",
                           "(p < p) > (p || p)",
                           "A[i, j.0]",
                           "A[i, ramp(0, 1, 4) where broadcast(p, 4)]",
                           "select(p, x, 0f32)",
                           "f32(s) + x",
                           "i32(x)",
                           "ramp(i, 2, vscale * 4)",
                           "broadcast(x, 16)",
                           "exp(x)",
                           "fma(x, x, 1f32)",
                           "is_nan(x)",
                           "ptr_load<i32>(h, 8)",
                           "data<handle>(A[0, 0])",
                           "reduce_add<f32>(broadcast(x, 8))",
                           "reinterpret<f32x[4]>(broadcast(s, vscale * 4))",
                           "\"a \\\"b\\\"\\n\"",
                           "true",
                           "false",
                           "inf.f32",
                           "-inf.f16",
                           "nan.bf16",
                           "-0f64",
                           "1e-45f32",
                           "18446744073709551615u64",
                           "-9223372036854775808",
                           "-8i4",
                           "1.5bf16"}) {
    Expr e = Parse(text);
    EXPECT_EQ(ToString(e), text);
    ExpectRoundTrip(e);
  }
}

TEST_F(ExprText, UntypedLiteralsTakeTheOtherOperandsType) {
  EXPECT_EQ(ToString(Parse("s + 1")), "s + 1i32");
  EXPECT_EQ(ToString(Parse("2 * x")), "2f32 * x");
  EXPECT_EQ(ToString(Parse("x < 1.5")), "x < 1.5f32");
  EXPECT_EQ(ToString(Parse("1 + 2.5")), "1f32 + 2.5f32");
  EXPECT_EQ(ToString(Parse("broadcast(x, 4) + 1")), "broadcast(x, 4) + broadcast(1f32, 4)");
  EXPECT_EQ(ToString(Parse("select(p, 0, x)")), "select(p, 0f32, x)");
  EXPECT_EQ(ToString(Parse("fma(2, x, 1)")), "fma(2f32, x, 1f32)");
  EXPECT_EQ(Parse("1 + 2")->dtype, DType::Index());
}

TEST_F(ExprText, ErrorsSayWhereAndWhy) {
  EXPECT_EQ(Error("x + s"), "<text>:1:3: error: operands of + differ: f32 and i32");
  EXPECT_EQ(Error("i +"), "<text>:1:4: error: expected an expression but got the end of the text");
  EXPECT_EQ(Error("i j.0"), "<text>:1:3: error: expected the end of the expression but got 'j.0'");
  EXPECT_EQ(Error("A"), "<text>:1:1: error: 'A' is a buffer: expected its indices in brackets");
  EXPECT_EQ(Error("A[i]"), "<text>:1:1: error: 'A' has 2 dimensions but got 1 indices");
  EXPECT_EQ(Error("A[x, 0]"), "<text>:1:1: error: index of 'A': expected index but got f32");
  EXPECT_EQ(Error("i[0]"), "<text>:1:1: error: 'i' is a variable: expected a buffer");
  EXPECT_EQ(Error("300i8"), "<text>:1:1: error: 300 does not fit i8");
  EXPECT_EQ(Error("-1u8"), "<text>:1:2: error: -1 does not fit u8");
  EXPECT_EQ(Error("1e39f32"), "<text>:1:1: error: 1e39 does not fit f32");
  EXPECT_EQ(Error("70000f16"), "<text>:1:1: error: 70000 does not fit f16");
  EXPECT_EQ(Error("3f31"), "<text>:1:1: error: unknown type 'f31' of a number");
  EXPECT_EQ(Error("!i"), "<text>:1:1: error: operand of !: expected bool but got index");
  EXPECT_EQ(Error("i && p"), "<text>:1:3: error: operands of && differ: index and bool");
  EXPECT_EQ(Error("i || j.0"), "<text>:1:3: error: operands of ||: expected bool but got index");
  EXPECT_EQ(Error("sqr(x)"), "<text>:1:1: error: unknown function 'sqr'; did you mean 'sqrt'?");
  EXPECT_EQ(Error("exp(x, x)"), "<text>:1:1: error: exp takes 1 argument but got 2");
  EXPECT_EQ(Error("fma(x, x, 1index)"), "<text>:1:1: error: operands of fma differ: f32 and index");
  EXPECT_EQ(Error("vscale(3)"),
            "<text>:1:7: error: expected '<' and a type after vscale but got '('");
  EXPECT_EQ(Error("ramp(i, 1, 0)"), "<text>:1:12: error: expected 1 to 1048576 lanes but got 0");
  EXPECT_EQ(Error("\"abc"), "<text>:1:1: error: the quote is not closed on its line");
  EXPECT_EQ(Error("\"\\ud800\""),
            "<text>:1:1: error: expected \\u and four hexadecimal digits that mean a character");
  EXPECT_EQ(Error("\"\xff\""), "<text>:1:1: error: expected UTF-8 between the quotes");
  EXPECT_EQ(Error("i $ j"), "<text>:1:3: error: unexpected character");
}

TEST_F(ExprText, DepthIsBoundedAndSoIsTheTree) {
  auto repeat = [](const std::string& s, int n) {
    std::string out;
    for (int k = 0; k < n; ++k) out += s;
    return out;
  };
  const std::string limit = "error: expected nesting of at most 512";
  EXPECT_NE(Error(repeat("(", 100000) + "i").find(limit), std::string::npos);
  EXPECT_NE(Error(repeat("-", 100000) + "i").find(limit), std::string::npos);
  EXPECT_NE(Error(repeat("exp(", 100000)).find(limit), std::string::npos);
  EXPECT_NE(Error(repeat("A[", 100000)).find(limit), std::string::npos);
  EXPECT_NE(
      Error("i" + repeat(" + i", 100000)).find("expected an expression nested at most 512 deep"),
      std::string::npos);
  EXPECT_TRUE(ParseExpr("i" + repeat(" + i", 500), scope_));
  auto errors = ParseExpr("i" + repeat(" + i", 600), scope_);
  EXPECT_EQ(errors.errors()[0].kind, ErrorKind::kLimit);
}

TEST_F(ExprText, FreeVariablesOfOneNameStayApart) {
  Var other = VarNode::Make("i");
  EXPECT_EQ(ToString(i_ + other), "i + i_1");
}

TEST_F(ExprText, EveryFloatReadsBack) {
  std::mt19937_64 random(7);
  for (int n = 0; n < 20000; ++n) {
    const uint64_t bits = random();
    ExpectRoundTrip(
        FloatConst::Make(DType::Float(32), std::bit_cast<float>(static_cast<uint32_t>(bits))));
    ExpectRoundTrip(FloatConst::Make(DType::Float(64), std::bit_cast<double>(bits)));
    const auto bf16 = std::bit_cast<float>(static_cast<uint32_t>(bits & 0xFFFF) << 16);
    ExpectRoundTrip(FloatConst::Make(DType::BFloat16(), bf16));
    ExpectRoundTrip(FloatConst::Make(
        DType::Float(16),
        std::ldexp(static_cast<double>(bits % 4096) - 2048, static_cast<int>(bits >> 60) - 20)));
  }
}

// Trees of every operator, a few levels deep.
class RandomExpr {
 public:
  RandomExpr(uint64_t seed, Var i, Buffer a, Var x, Var p)
      : random_(seed), i_(i), a_(a), x_(x), p_(p) {}

  Expr Index(int depth) {
    if (depth == 0) return Pick(2) ? Expr(i_) : IndexConst(static_cast<int64_t>(Pick(40)) - 20);
    static constexpr BinaryOp kOps[] = {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul,
                                        BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kMin,
                                        BinaryOp::kMax, BinaryOp::kShl, BinaryOp::kBitAnd};
    switch (Pick(4)) {
      case 0: return Unary::Make(UnaryOp::kNeg, Index(depth - 1));
      case 1: return Select::Make(Bool(depth - 1), Index(depth - 1), Index(depth - 1));
      default: return Binary::Make(kOps[Pick(std::size(kOps))], Index(depth - 1), Index(depth - 1));
    }
  }
  Expr Bool(int depth) {
    if (depth == 0) return Pick(2) ? Expr(p_) : BoolConst(Pick(2));
    static constexpr BinaryOp kCompare[] = {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt,
                                            BinaryOp::kGe};
    switch (Pick(3)) {
      case 0: return Not(Bool(depth - 1));
      case 1:
        return Binary::Make(Pick(2) ? BinaryOp::kAnd : BinaryOp::kOr, Bool(depth - 1),
                            Bool(depth - 1));
      default: return Binary::Make(kCompare[Pick(4)], Float(depth - 1), Float(depth - 1));
    }
  }
  Expr Float(int depth) {
    if (depth == 0)
      return Pick(2) ? Expr(x_)
                     : FloatConst::Make(DType::Float(32), static_cast<double>(Pick(9)) / 8 - 0.5);
    switch (Pick(5)) {
      case 0: return Unary::Make(UnaryOp::kNeg, Float(depth - 1));
      case 1:
        return Call::Make(Intrinsic::kFma, {Float(depth - 1), Float(depth - 1), Float(depth - 1)});
      case 2: return Load::Make(a_, {Index(depth - 1), Index(depth - 1)});
      case 3: return CastExpr::Make(DType::Float(32), Index(depth - 1));
      default: return Binary::Make(BinaryOp::kSub, Float(depth - 1), Float(depth - 1));
    }
  }

 private:
  size_t Pick(size_t n) { return random_() % n; }
  std::mt19937_64 random_;
  Var i_;
  Buffer a_;
  Var x_, p_;
};

TEST_F(ExprText, RandomTreesReadBack) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomExpr make(seed, i_, a_, x_, p_);
    const int depth = 1 + static_cast<int>(seed % 5);
    ExpectRoundTrip(make.Index(depth));
    ExpectRoundTrip(make.Bool(depth));
    ExpectRoundTrip(make.Float(depth));
  }
}

TEST(BufferText, DeclarationsShowAllThatIsNotTheDefault) {
  Var i = VarNode::Make("i"), j = VarNode::Make("j"), m = VarNode::Make("m");
  Layout layout = LayoutNode::Make({i, j}, {i / 4, j * 4 + i % 4}, {IndexConst(8), nullptr},
                                   {ThreadAxis::kThreadIdxX}, 2);
  EXPECT_EQ(ToString(BufferNode::Make("A", DType::Float(32), {m})), "A: f32[m]");
  EXPECT_EQ(ToString(BufferNode::Make("A", DType::Int(4), {m, IndexConst(4)}, Scope::kShared,
                                      layout, {IndexConst(8), IndexConst(1)}, 64)),
            "A: i4[m, 4] layout (i, j) -> (i / 4 size 8 on threadIdx.x, j * 4 + i % 4 size _) "
            "replicas 2 strides (8, 1) "
            "in shared align 64");
  EXPECT_EQ(ToString(layout),
            "(i, j) -> (i / 4 size 8 on threadIdx.x, j * 4 + i % 4 size _) replicas 2");
}

}  // namespace
}  // namespace tenon
