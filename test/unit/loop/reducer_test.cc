// Reducers: reading them off bodies; combiners are associative and have their identities.
#include "loop/reducer.h"

#include <gtest/gtest.h>

#include "arith/analyzer.h"
#include "loop/parse.h"
#include "loop/print.h"

namespace tenon {
namespace {

// The reduction of the only block of a function `body`.
std::string Detect(const std::string& params, const std::string& body,
                   const std::string& attributes = "") {
  auto func = ParseFunc("func @f(" + params +
                        ") { for i in 0..4, k in 0..8 {\nblock b(vi: spatial = i, vk: reduce = k)" +
                        attributes + " {\n" + body + "\n} } }");
  if (!func) return ToString(func.errors());
  Stmt s = (*func)->body;
  while (const auto* loop = As<For>(s)) s = loop->body;
  auto found = DetectReducer(*As<Block>(s));
  if (!found) return "none";
  std::string out = found->reducer->name;
  for (const Expr& v : found->values) out += " " + Print(v);
  return out;
}

constexpr char kParams[] = "A: f32[4, 8], B: f32[8], out C: f32[4], out I: i64[4]";

TEST(Reducer, ReadOffBodies) {
  EXPECT_EQ(Detect(kParams, "C[vi] = C[vi] + A[vi, vk] * B[vk]"), "add A[vi, vk] * B[vk]");
  EXPECT_EQ(Detect(kParams, "C[vi] = A[vi, vk] + C[vi]"), "add A[vi, vk]");
  EXPECT_EQ(Detect(kParams, "C[vi] = fma(A[vi, vk], B[vk], C[vi])"), "add A[vi, vk] * B[vk]");
  EXPECT_EQ(Detect(kParams, "C[vi] = max(C[vi], A[vi, vk])"), "max A[vi, vk]");
  EXPECT_EQ(Detect(kParams, "C[vi] = C[vi] - A[vi, vk]"), "none");
  EXPECT_EQ(Detect(kParams, "C[vi] = C[vi] + C[vi]"), "none");
  EXPECT_EQ(Detect(kParams, "C[vi] = C[vi + 1] + A[vi, vk]"), "none");
}

TEST(Reducer, ReadOffTuples) {
  EXPECT_EQ(Detect(kParams,
                   "I[vi] = select(A[vi, vk] > C[vi] || A[vi, vk] == C[vi] && i64(vk) < I[vi], "
                   "i64(vk), I[vi])\n"
                   "C[vi] = max(C[vi], A[vi, vk])"),
            "argmax i64(vk) A[vi, vk]");
}

TEST(Reducer, NamedReducerMustFit) {
  EXPECT_EQ(Detect(kParams, "C[vi] = max(C[vi], A[vi, vk])", " reducer: max"), "max A[vi, vk]");
  EXPECT_EQ(Detect(kParams, "C[vi] = max(C[vi], A[vi, vk])", " reducer: add"), "none");
}

// combine(identity, x) simplifies to x for constants x.
TEST(Reducer, Identities) {
  for (const Reducer& r : AllReducers()) {
    std::string_view name = r.name;
    if (name == "sum_exp") continue;  // e^x is not folded
    DType type = name == "and" || name == "or" ? DType::Bool() : DType::Int(32);
    std::vector<DType> types(static_cast<size_t>(r.arity), type);
    std::vector<Expr> identity = r.identity(types);
    ASSERT_EQ(identity.size(), types.size()) << name;
    for (int64_t v : {-5, 0, 1, 77}) {
      std::vector<Expr> x(types.size(), MakeIntConst(type, v));
      std::vector<Expr> left = r.combine(identity, x), right = r.combine(x, identity);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_EQ(AsInt(Simplify(left[i])), AsInt(x[i])) << name << " of " << v;
        EXPECT_EQ(AsInt(Simplify(right[i])), AsInt(x[i])) << name << " of " << v;
      }
    }
  }
}

TEST(Reducer, NoIdentityForOtherTypes) {
  std::vector<DType> handle{DType::Handle()}, f32{DType::Float(32)};
  EXPECT_TRUE(FindReducer("add")->identity(handle).empty());
  EXPECT_TRUE(FindReducer("and")->identity(f32).empty());
  EXPECT_EQ(FindReducer("nothing"), nullptr);
}

}  // namespace
}  // namespace tenon
