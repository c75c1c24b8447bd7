// Type and value rules, through the builder and through text.
#include "graph/infer.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/dims.h"
#include "graph/text.h"
#include "ir/visit.h"

namespace tenon::graph {
namespace {

// Types are written as in the text form; symbolic dims are a, b, c.
class Infer : public ::testing::Test {
 protected:
  ValueId In(const std::string& type) {
    Expected<Graph> g =
        Parse("graph @g<a, b, c>(%0: " + type + ", %1 \"y\": f32[a, b, c]) {\n return %0 \"y\"\n}");
    EXPECT_TRUE(g) << (g ? "" : ToString(g.errors()));
    TensorType t = g->type(g->inputs[0]);
    VarMap rename;
    for (const graph::Dim& d : g->dims) rename[d.var.get()] = Sym(d.var->name);
    for (Expr& d : t.dims) d = Substitute(d, rename);
    return b_.Input("x" + std::to_string(b_.graph().inputs.size()), t);
  }
  // The dim of this name, made at its first use.
  Expr Sym(const std::string& name) {
    std::vector<graph::Dim>& dims = b_.graph().dims;
    for (const graph::Dim& d : dims) {
      if (d.var->name == name) return d.var;
    }
    dims.push_back({.var = VarNode::Make(name)});
    return dims.back().var;
  }
  ValueId Ints(std::vector<int64_t> v, DType dtype = DType::Int(64)) {
    return b_.Constant("", {dtype, {IndexConst(static_cast<int64_t>(v.size()))}},
                       MakePayload(dtype, std::span<const int64_t>(v)));
  }
  std::string Type(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {}, ExprAttrs exprs = {}) {
    Expected<ValueId> v = b_.Add(op, std::move(inputs), "n", std::move(attrs), std::move(exprs));
    return v ? b_.type(*v).ToString() : v.errors()[0].message;
  }
  std::string Value(OpKind op, std::vector<ValueId> inputs, Attrs attrs = {},
                    ExprAttrs exprs = {}) {
    Expected<ValueId> v = b_.Add(op, std::move(inputs), "n", std::move(attrs), std::move(exprs));
    if (!v) return v.errors()[0].message;
    const Elements* e = b_.Known(*v);
    return e ? DimsText(*e) : "unknown";
  }
  using Ints64 = std::vector<int64_t>;
  Builder b_;
};

TEST_F(Infer, Broadcasting) {
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[4, 1, 3]"), In("f32[5, 1]")}), "f32[4, 5, 3]");
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[]"), In("f32[0]")}), "f32[0]");
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[a, 1]"), In("f32[1, b]")}), "f32[a, b]");
  EXPECT_EQ(Type(OpKind::kMul, {In("f32[4]"), In("f32[3]")}),
            "expected shapes that broadcast together, but got [4] and [3]");
  EXPECT_EQ(Type(OpKind::kMul, {In("f32[4]"), In("i32[4]")}),
            "expected both inputs to have one dtype, but got f32 and i32");
  EXPECT_EQ(Type(OpKind::kAnd, {In("f32[4]"), In("f32[4]")}), "expected bool inputs, but got f32");
  EXPECT_EQ(Type(OpKind::kLess, {In("i8[4]"), In("i8[]")}), "bool[4]");
  EXPECT_EQ(Type(OpKind::kWhere, {In("bool[2, 1]"), In("f32[3]"), In("f32[]")}), "f32[2, 3]");
}

TEST_F(Infer, WhetherASymbolicDimIsOneTheCallDecides) {
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[a]"), In("f32[8]")}), "f32[8]");
  ASSERT_EQ(b_.graph().constraints.size(), 1u);
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[a]"), In("f32[8]")}), "f32[8]");
  EXPECT_EQ(b_.graph().constraints.size(), 1u);
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[b]"), In("f32[a]")}), "f32[select(a == 1, b, a)]");
  EXPECT_EQ(b_.graph().constraints.size(), 2u);
  EXPECT_EQ(Type(OpKind::kAdd, {In("f32[a]"), In("f32[b]")}), "f32[select(a == 1, b, a)]");
}

TEST_F(Infer, SymbolicBroadcastingIsAFlatChoice) {
  EXPECT_EQ(Type(OpKind::kWhere, {In("bool[c]"), In("f32[b]"), In("f32[a]")}),
            "f32[select(a == 1, select(b == 1, c, b), a)]");
}

TEST_F(Infer, BlockMatMul) {
  const Attrs attrs = {{"bits", int64_t{4}}, {"block", int64_t{16}}};
  EXPECT_EQ(Type(OpKind::kBlockMatMul,
                 {In("f32[a, 2, 20]"), In("u8[5, 16]"), In("f32[5, 2]"), In("f32[5, 2]")}, attrs),
            "f32[a, 2, 5]");
  EXPECT_EQ(Type(OpKind::kBlockMatMul,
                 {In("f32[2, 20]"), In("u8[5, 10]"), In("f32[5, 2]"), In("f32[5, 2]")}, attrs),
            "expected codes, scales and offsets of 2 blocks of 16 codes of 4 bits, but got [5, "
            "10], [5, 2] and [5, 2]");
}

TEST_F(Infer, SplitMatMul) {
  EXPECT_EQ(Type(OpKind::kSplitMatMul, {In("f32[a, 2, 20]"), In("bf16[2, 20, 5]")}),
            "f32[a, 2, 5]");
  EXPECT_EQ(
      Type(OpKind::kSplitMatMul, {In("f32[3, 20]"), In("bf16[2, 5, 20]")}, {{"trans_b", true}}),
      "f32[3, 5]");
  EXPECT_EQ(Type(OpKind::kSplitMatMul, {In("f32[3, 20]"), In("bf16[2, 5, 20]")}),
            "expected equal inner dims that are numbers, but got [3, 20] and [2, 5, 20]");
  EXPECT_EQ(Type(OpKind::kSplitMatMul, {In("f32[3, 20]"), In("bf16[3, 20, 5]")}),
            "expected a matrix and two parts of one, but got [3, 20] and [3, 20, 5]");
  EXPECT_EQ(Type(OpKind::kSplitMatMul, {In("f32[3, 20]"), In("f32[2, 20, 5]")}),
            "expected f32 and bf16, but got f32 and f32");
}

TEST_F(Infer, MatMul) {
  EXPECT_EQ(Type(OpKind::kMatMul, {In("f32[2, 1, 3, 4]"), In("f32[5, 4, 6]")}), "f32[2, 5, 3, 6]");
  EXPECT_EQ(Type(OpKind::kMatMul, {In("f32[3, 4]"), In("f32[6, 4]")}, {{"trans_b", true}}),
            "f32[3, 6]");
  EXPECT_EQ(Type(OpKind::kMatMul, {In("f32[4, 3]"), In("f32[4, 6]")}, {{"trans_a", true}}),
            "f32[3, 6]");
  EXPECT_EQ(Type(OpKind::kMatMul, {In("f32[a, 0]"), In("f32[0, b]")}), "f32[a, b]");
  EXPECT_EQ(Type(OpKind::kMatMul, {In("f32[3, 4]"), In("f32[5, 6]")}),
            "expected equal inner dims, but got 4 and 5 in [3, 4] and [5, 6]");
}

TEST_F(Infer, Windows) {
  const ValueId x = In("f32[1, 8, 7, 7]"), w = In("f32[16, 4, 3, 3]");
  EXPECT_EQ(Type(OpKind::kConv, {x, w},
                 {{"group", int64_t{2}}, {"strides", Ints64{2, 2}}, {"pads", Ints64{1, 1, 1, 1}}}),
            "f32[1, 16, 4, 4]");
  EXPECT_EQ(Type(OpKind::kConv, {x, w}),
            "expected 4 input channels (weight [16, 4, 3, 3] and group 1), but got [1, 8, 7, 7]");
  EXPECT_EQ(Type(OpKind::kConv, {x, In("f32[15, 4, 3, 3]")}, {{"group", int64_t{2}}}),
            "expected group 2 to divide the 15 output channels");
  EXPECT_EQ(Type(OpKind::kConv, {x, w}, {{"group", int64_t{0}}}),
            "expected group of at least 1, but got 0");
  EXPECT_EQ(Type(OpKind::kConv, {x, w}, {{"group", int64_t{2}}, {"strides", Ints64{0, 1}}}),
            "expected strides in 1..2147483648, but got [0, 1]");
  EXPECT_EQ(Type(OpKind::kConv, {x, In("f32[8, 8, 9, 9]")}),
            "expected spatial axis 0 to hold its window, but 7 padded by 0 and 0 is less than 9");
  EXPECT_EQ(Type(OpKind::kMaxPool, {x}, {{"kernel", Ints64{2, 2}}, {"strides", Ints64{2, 2}}}),
            "f32[1, 8, 3, 3]");
  EXPECT_EQ(Type(OpKind::kMaxPool, {x},
                 {{"kernel", Ints64{2, 2}}, {"strides", Ints64{2, 2}}, {"ceil_mode", true}}),
            "f32[1, 8, 4, 4]");
  // A window that would begin in the end padding is left out.
  EXPECT_EQ(Type(OpKind::kMaxPool, {In("f32[1, 1, 2, 2]")},
                 {{"kernel", Ints64{1, 1}}, {"strides", Ints64{2, 2}}, {"ceil_mode", true}}),
            "f32[1, 1, 1, 1]");
  EXPECT_EQ(Type(OpKind::kConv, {In("f32[a, 3, b, 32]"), In("f32[8, 3, 3, 3]")},
                 {{"strides", Ints64{2, 2}}, {"pads", Ints64{1, 1, 1, 1}}}),
            "f32[a, 8, (b + 1) / 2, 16]");
}

TEST_F(Infer, Reductions) {
  const ValueId x = In("f32[a, 3, 4]");
  const auto kind = [](const char* k) { return std::string(k); };
  EXPECT_EQ(Type(OpKind::kReduce, {x}, {{"kind", kind("sum")}, {"axes", Ints64{0, 2}}}), "f32[3]");
  EXPECT_EQ(
      Type(OpKind::kReduce, {x}, {{"kind", kind("mean")}, {"axes", Ints64{1}}, {"keepdims", true}}),
      "f32[a, 1, 4]");
  EXPECT_EQ(Type(OpKind::kReduce, {x}, {{"kind", kind("max")}, {"axes", Ints64{3}}}),
            "expected axes to be sorted, distinct and below the rank 3, but got [3]");
  EXPECT_EQ(Type(OpKind::kReduce, {x}, {{"kind", kind("all")}, {"axes", Ints64{0}}}),
            "expected a bool input for reduce of kind all, but got f32");
  EXPECT_EQ(Type(OpKind::kReduce, {x}, {{"kind", kind("median")}, {"axes", Ints64{0}}}),
            "expected attribute kind of reduce to be one of "
            "sum|mean|max|min|prod|l1|l2|sum_square|log_sum|log_sum_exp|any|all, but got 'median'");
  EXPECT_EQ(Type(OpKind::kSoftmax, {x}, {{"axis", int64_t{-1}}}),
            "expected axis in 0..2, but got -1");
}

TEST_F(Infer, MovementAndGathers) {
  const ValueId x = In("f32[2, 3, 4]");
  EXPECT_EQ(Type(OpKind::kReshape, {x}, {}, {{"shape", {IndexConst(6), IndexConst(4)}}}),
            "f32[6, 4]");
  EXPECT_EQ(Type(OpKind::kReshape, {x}, {}, {{"shape", {IndexConst(5)}}}),
            "expected a shape of 24 elements like the input's [2, 3, 4], but got [5] with 5");
  EXPECT_EQ(Type(OpKind::kTranspose, {x}, {{"perm", Ints64{2, 0, 1}}}), "f32[4, 2, 3]");
  EXPECT_EQ(Type(OpKind::kTranspose, {x}, {{"perm", Ints64{2, 2, 1}}}),
            "expected perm to permute 3 axes, but got [2, 2, 1]");
  EXPECT_EQ(Type(OpKind::kConcat, {x, In("f32[2, 5, 4]")}, {{"axis", int64_t{1}}}), "f32[2, 8, 4]");
  EXPECT_EQ(Type(OpKind::kGather, {x, In("i64[7, 8]")}, {{"axis", int64_t{1}}}), "f32[2, 7, 8, 4]");
  EXPECT_EQ(Type(OpKind::kGather, {x, In("f32[7, 8]")}, {{"axis", int64_t{1}}}),
            "expected indices of i32 or i64, but got f32");
  EXPECT_EQ(Type(OpKind::kGatherNd, {x, In("i64[5, 2]")}), "f32[5, 4]");
  EXPECT_EQ(Type(OpKind::kGatherNd, {x, In("i64[2, 1]")}, {{"batch_dims", int64_t{1}}}),
            "f32[2, 4]");
  const ValueId i = In("i64[2, 5, 1]"), updates = In("f32[2, 5, 4]");
  EXPECT_EQ(Type(OpKind::kScatter, {x, i, updates}, {{"axis", int64_t{1}}}), "f32[2, 3, 4]");
  EXPECT_EQ(Type(OpKind::kScatter, {x, i, updates}, {{"axis", int64_t{0}}}),
            "expected updates within the input's axes, but got [2, 5, 4] for [2, 3, 4]");
  EXPECT_EQ(Type(OpKind::kScatter, {x, In("i64[5]"), updates}, {{"axis", int64_t{1}}}),
            "expected updates and indices of the input's rank, but got [2, 5, 4] and [5] for "
            "[2, 3, 4]");
  EXPECT_EQ(Type(OpKind::kScatter, {x, i, In("i32[2, 5, 4]")}, {{"axis", int64_t{1}}}),
            "expected updates of f32, but got i32[2, 5, 4]");
  EXPECT_EQ(Type(OpKind::kBitCast, {x}, {{"to", std::string("u32")}}), "u32[2, 3, 4]");
  EXPECT_EQ(Type(OpKind::kBitCast, {x}, {{"to", std::string("i64")}}),
            "expected a type of as many bits as f32, but got i64");
  EXPECT_EQ(Type(OpKind::kCumSum, {x}, {{"axis", int64_t{1}}, {"kind", std::string("prod")}}),
            "f32[2, 3, 4]");
  EXPECT_EQ(Type(OpKind::kSlice, {x}, {{"steps", Ints64{1, -1, 2}}},
                 {{"starts", {IndexConst(1), IndexConst(2), IndexConst(1)}},
                  {"sizes", {IndexConst(1), IndexConst(3), IndexConst(2)}}}),
            "f32[1, 3, 2]");
  EXPECT_EQ(Type(OpKind::kSlice, {x}, {{"steps", Ints64{1, 1, 1}}},
                 {{"starts", {IndexConst(1), IndexConst(0), IndexConst(0)}},
                  {"sizes", {IndexConst(2), IndexConst(3), IndexConst(4)}}}),
            "expected a slice inside axis 0 of 2, but got start 1, size 2, step 1");
}

TEST_F(Infer, LimitsOnSizes) {
  const ValueId x = In("f32[1, 1]");
  const Expr huge = IndexConst(int64_t{1} << 60);
  Expected<ValueId> v = b_.Add(OpKind::kExpand, {x}, "bomb", {}, {{"shape", {huge, huge}}});
  ASSERT_FALSE(v);
  EXPECT_EQ(v.errors()[0].kind, ErrorKind::kLimit);
  EXPECT_EQ(v.errors()[0].loc.item, "node 'bomb' (expand)");
  EXPECT_FALSE(CheckType(TensorType{DType::Float(32), std::vector<Expr>(65, IndexConst(1))}));
  EXPECT_FALSE(CheckType(TensorType{DType::Float(32), {IndexConst(-1)}}));
}

TEST_F(Infer, ShapesAreFollowedThroughArithmetic) {
  const ValueId x = In("f32[a, 3, b]");
  Expected<ValueId> shape =
      b_.Add(OpKind::kShape, {x}, "s", {{"start", int64_t{0}}, {"end", int64_t{3}}});
  EXPECT_EQ(Value(OpKind::kGather, {*shape, Ints({2, -3})}, {{"axis", int64_t{0}}}), "[b, a]");
  EXPECT_EQ(Value(OpKind::kMul, {*shape, Ints({2, 2, 2})}), "[a * 2, 6, b * 2]");
  EXPECT_EQ(Value(OpKind::kDiv, {*shape, Ints({2})}), "[a / 2, 1, b / 2]");
  EXPECT_EQ(Value(OpKind::kConcat, {*shape, Ints({-1})}, {{"axis", int64_t{0}}}), "[a, 3, b, -1]");
  EXPECT_EQ(Value(OpKind::kReduce, {*shape}, {{"kind", std::string("prod")}, {"axes", Ints64{0}}}),
            "[a * b * 3]");
  EXPECT_EQ(Value(OpKind::kCast, {*shape}, {{"to", std::string("i32")}}), "[a, 3, b]");
  EXPECT_EQ(Value(OpKind::kEqual, {*shape, Ints({-1})}), "[false, false, false]");
  EXPECT_EQ(Value(OpKind::kSlice, {*shape}, {{"steps", Ints64{-2}}},
                  {{"starts", {IndexConst(2)}}, {"sizes", {IndexConst(2)}}}),
            "[b, a]");
}

TEST_F(Infer, IntegersFoldAsTheyWouldRun) {
  EXPECT_EQ(Value(OpKind::kDiv, {Ints({-7, 7, 5}), Ints({2, -2, 0})}), "[-3, -3, 0]");
  EXPECT_EQ(Value(OpKind::kMod, {Ints({-7, 7, 5}), Ints({2, -2, 0})}), "[1, -1, 0]");
  EXPECT_EQ(Value(OpKind::kMod, {Ints({-7, 7, 5}), Ints({2, -2, 0})}, {{"fmod", true}}),
            "[-1, 1, 0]");
  EXPECT_EQ(Value(OpKind::kAdd, {Ints({127}, DType::Int(8)), Ints({1}, DType::Int(8))}), "[-128]");
  EXPECT_EQ(Value(OpKind::kSub, {Ints({0}, DType::UInt(8)), Ints({1}, DType::UInt(8))}), "[255]");
  EXPECT_EQ(Value(OpKind::kMul, {Ints({INT64_MIN}), Ints({-1})}), fmt::format("[{}]", INT64_MIN));
  EXPECT_EQ(Value(OpKind::kDiv, {Ints({INT64_MIN}), Ints({-1})}), fmt::format("[{}]", INT64_MIN));
  EXPECT_EQ(Value(OpKind::kSub, {Ints({0}, DType::UInt(64)), Ints({1}, DType::UInt(64))}),
            "unknown");
  EXPECT_EQ(Value(OpKind::kCast, {Ints({300, -1})}, {{"to", std::string("u8")}}), "[44, 255]");
}

TEST_F(Infer, WhatIsKnownBecomesAConstantAndNoOpsVanish) {
  Expected<ValueId> sum = b_.Add(OpKind::kAdd, {Ints({1, 2}), Ints({3, 4})}, "s");
  EXPECT_TRUE(b_.graph().value(*sum).IsConstant());
  EXPECT_EQ(*ReadInts(b_.graph().value(*sum)), (Ints64{4, 6}));
  const ValueId x = In("f32[a, 4]");
  EXPECT_EQ(*b_.Add(OpKind::kReshape, {x}, "r", {}, {{"shape", {Sym("a"), IndexConst(4)}}}), x);
  EXPECT_EQ(*b_.Add(OpKind::kTranspose, {x}, "t", {{"perm", Ints64{0, 1}}}), x);
  EXPECT_EQ(*b_.Add(OpKind::kCast, {x}, "c", {{"to", std::string("f32")}}), x);
  EXPECT_TRUE(b_.graph().nodes.empty());
}

TEST(OpTable, RowsAreSane) {
  for (const OpInfo& info : AllOps()) {
    EXPECT_EQ(ParseOp(info.name), info.kind);
    EXPECT_TRUE(info.max_inputs < 0 || info.min_inputs <= info.max_inputs) << info.name;
    for (const AttrSpec& spec : info.attrs) {
      EXPECT_EQ(FindAttr(info, spec.name), &spec) << info.name << " " << spec.name;
      if (spec.text && spec.choices)
        EXPECT_NE(std::string(spec.choices).find(spec.text), std::string::npos);
    }
  }
  EXPECT_EQ(ParseOp("no_such_op"), std::nullopt);
}

TEST(Payloads, EncodeEveryType) {
  const std::vector<double> values = {0, 1, -2, 0.5, 65504, 1e-5};
  for (DType t : {DType::Float(16), DType::BFloat16(), DType::Float(32), DType::Float(64)}) {
    const Value v{.type = TensorType{t, {IndexConst(6)}},
                  .payload = MakePayload(t, std::span<const double>(values))};
    const std::vector<double> back = *ReadFloats(v);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(back[i], RoundToType(t, values[i])) << t.ToString();
  }
  const std::vector<int64_t> ints = {0, 1, 127, -1, -128};
  for (DType t : {DType::Int(8), DType::Int(16), DType::Int(32), DType::Int(64)}) {
    EXPECT_EQ(*ReadInts({.type = TensorType{t, {IndexConst(5)}},
                         .payload = MakePayload(t, std::span<const int64_t>(ints))}),
              ints);
  }
}

}  // namespace
}  // namespace tenon::graph
