// What every back end refuses because a pass should have taken it away.
#pragma once

#include <functional>
#include <string>

#include "harness.h"

namespace tenon::test {

/// The errors that a back end has for kernel f(b0: f32[n]; n) of this body.
inline void ExpectNotLowered(
    const std::function<
        std::string(const std::function<Stmt(const std::vector<Buffer>&, Expr n)>&)>& error_of) {
  const DType f32 = DType::Float(32);
  auto store = [](const auto& b, Expr v) {
    return Store::Make(b[0], {IndexConst(0)}, std::move(v));
  };
  auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(error_of([&](const auto& b, Expr) {
        return store(b, Call::Make(Intrinsic::kExp, {MakeConst(f32, 1)}));
      }),
      "expand_math");
  has(error_of([&](const auto& b, Expr n) {
        return For::Make(VarNode::Make("i"), IndexConst(0), n, ForKind::kParallel,
                         store(b, MakeConst(f32, 1)));
      }),
      "parallel loop i");
  has(error_of([&](const auto& b, Expr n) {
        Buffer big = FlatBuffer("big", f32, n);
        return Alloc::Make(big, store(b, Load::Make(big, {IndexConst(0)})));
      }),
      "buffer 'big' in global has the size n");
  has(error_of([](const auto&, Expr) { return CallFunc::Make("nowhere", {}, {}); }),
      "call of nowhere");
  has(error_of([](const auto&, Expr) { return Launch::Make("k", {}, {}); }), "Launch");
}

}  // namespace tenon::test
