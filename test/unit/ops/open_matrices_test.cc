// Products of two computed operands and convolutions of groups at sizes that only the call knows,
// by their meaning.
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

Case Turned(bool trans_a, bool trans_b, std::vector<int64_t> a, std::vector<int64_t> b) {
  Case c;
  c.op = OpKind::kMatMul;
  c.inputs = {F32(std::move(a)), F32(std::move(b))};
  c.attrs = Attrs{{"trans_a", trans_a}, {"trans_b", trans_b}};
  return c;
}

// Rows, columns and depth are dims of their own, at sizes about those of tiles and vectors.
Case OpenProduct(bool trans_a, bool trans_b, std::vector<Expr> lead_a, std::vector<Expr> lead_b) {
  const Var m = VarNode::Make("m"), n = VarNode::Make("n"), k = VarNode::Make("k");
  Case c = Turned(trans_a, trans_b, {1, 1}, {1, 1});
  const auto dims = [](std::vector<Expr> lead, const Expr& rows, const Expr& columns, bool turned) {
    lead.push_back(turned ? columns : rows);
    lead.push_back(turned ? rows : columns);
    return lead;
  };
  c.inputs[0].dims = dims(std::move(lead_a), m, k, trans_a);
  c.inputs[1].dims = dims(std::move(lead_b), k, n, trans_b);
  c.dims = {{m, 0, 400, 1}, {n, 1, 400, 1}, {k, 1, 400, 1}};
  c.at = {{{"m", 1}, {"n", 1}, {"k", 1}},
          {{"m", 7}, {"n", 16}, {"k", 3}},
          {{"m", 8}, {"n", 17}, {"k", 64}},
          {{"m", 17}, {"n", 33}, {"k", 5}},
          {{"m", 0}, {"n", 3}, {"k", 2}}};
  return c;
}

TEST(Kernel, PackedProductsOfOpenMatrices) {
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", trans_a, trans_b));
      Check(OpenProduct(trans_a, trans_b, {}, {}), "packed_matmul", 1e-6);
    }
  }
}

// One matrix for several places of the result, on either side, known or only at the call.
TEST(Kernel, PackedProductsOfSharedMatrices) {
  const Expr two = IndexConst(2), one = IndexConst(1);
  Check(OpenProduct(false, false, {two, two}, {two, two}), "packed_matmul", 1e-6);
  Check(OpenProduct(false, true, {two}, {one}), "packed_matmul", 1e-6);
  Check(OpenProduct(true, false, {one}, {two}), "packed_matmul", 1e-6);
  Check(OpenProduct(false, false, {}, {two}), "packed_matmul", 1e-6);
  Check(OpenProduct(false, false, {two, one}, {two}), "packed_matmul", 1e-6);
  const Var batch = VarNode::Make("b");
  Case c = OpenProduct(false, false, {two}, {batch});
  c.dims.push_back({batch, 1, 2, 1});
  for (size_t i = 0; i < c.at.size(); ++i) c.at[i]["b"] = 1 + static_cast<int64_t>(i % 2);
  Check(c, "packed_matmul", 1e-6);
}

TEST(Kernel, PackedProductsOfATurnedOperand) {
  for (int64_t m : {3, 8, 13}) {
    Check(Turned(true, false, {9, m}, {9, 21}), "packed_matmul", 1e-6);
  }
}

TEST(Kernel, ConvolutionsOfGroupsAtOpenSizes) {
  for (int64_t stride : {1, 2}) {
    SCOPED_TRACE(stride);
    Case c = Conv(6, 8, 1, 3, stride, 1, 2);
    c.inputs[1] = F32({8, 3, 3, 3});
    const Var h = VarNode::Make("h"), w = VarNode::Make("w");
    c.inputs[0].dims = {IndexConst(1), IndexConst(6), h, w};
    c.dims = {{h, 1, 400, 1}, {w, 1, 400, 1}};
    c.at = {{{"h", 1}, {"w", 1}},
            {{"h", 3}, {"w", 15}},
            {{"h", 2}, {"w", 16}},
            {{"h", 2}, {"w", 17}},
            {{"h", 5}, {"w", 33}}};
    Check(c, "implicit_gemm", 1e-6);
  }
}

}  // namespace
}  // namespace tenon::ops
