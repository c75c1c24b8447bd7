// Attention on CPUs by its meaning: by rows of queries, in pairs and in tiles.
#include "unit/ops/kernel_cases.h"

namespace tenon::ops {
namespace {

TEST(Kernel, Attention) {
  for (int64_t queries : {1, 13}) {
    for (int64_t keys : {16, 19}) {
      SCOPED_TRACE(fmt::format("{} queries, {} keys", queries, keys));
      Case c;
      c.op = OpKind::kAttention;
      c.inputs = {F32({1, 2, queries, 20}), F32({1, 2, keys, 20}), F32({1, 2, keys, 24}),
                  F32({1, 1, 1, keys})};
      c.attrs = Attrs{{"scale", 0.25}};
      Check(c, "attention", 1e-6);
    }
  }
}

TEST(Kernel, AttentionOfOpenSizes) {
  Case c;
  c.op = OpKind::kAttention;
  c.inputs = {Open(F32({1, 2, 1, 20}), 2, &c), Open(F32({1, 2, 1, 20}), 2, &c),
              Open(F32({1, 2, 1, 24}), 2, &c), Open(F32({1, 1, 1, 1}), 3, &c)};
  c.attrs = Attrs{{"scale", 0.25}};
  c.at = {{{"m", 1}}, {{"m", 17}}};
  Check(c, "attention", 1e-6);
}

bool KeysAreInRows(const Point& p) { return ValueOf(p, "keys_in_rows") == 1; }

// Scores as dot products of rows: depths of one vector, of more and a rest, of several sums; with
// masks of every kind.
TEST(Kernel, AttentionOfKeysInRows) {
  const Machine avx2 = MachineOf("x86-64-v3");
  for (const Machine* machine : {&TestMachine(), &avx2}) {
    for (int64_t depth : {16, 20, 67}) {
      SCOPED_TRACE(fmt::format("{} lanes, depth {}", machine->Lanes(DType::Float(32)), depth));
      Case c;
      c.op = OpKind::kAttention;
      c.attrs = Attrs{{"scale", 0.25}};
      c.inputs = {F32({1, 2, 3, depth}), F32({1, 2, 19, depth}), F32({1, 2, 19, 24})};
      Check(c, "attention", 1e-6, *machine, kPoints, KeysAreInRows);
      c.inputs.push_back(TypeOf(DType::Bool(), {1, 1, 3, 19}));
      Check(c, "attention", 1e-6, *machine, kPoints, KeysAreInRows);
      c.inputs = {Open(F32({1, 2, 1, depth}), 2, &c), Open(F32({1, 2, 1, depth}), 2, &c),
                  Open(F32({1, 2, 1, 24}), 2, &c), Open(F32({1, 1, 1, 1}), 3, &c)};
      Check(c, "attention", 1e-6, *machine, kPoints, KeysAreInRows);
    }
  }
}

// They are what transposed keys give; and few queries take them, where keys lie in rows.
TEST(Kernel, KeysInRowsAreForFewQueries) {
  const Algorithm& algorithm = *FindAlgorithm("attention");
  const auto case_of = [](int64_t queries) {
    Case c;
    c.op = OpKind::kAttention;
    c.attrs = Attrs{{"scale", 0.25}};
    c.inputs = {F32({1, 2, queries, 64}), F32({1, 2, 130, 64}), F32({1, 2, 130, 64})};
    return c;
  };
  const auto takes = [&](int64_t queries) {
    const graph::Graph region = RegionOf(case_of(queries));
    return KeysAreInRows(
        CheapestPoint(algorithm, {region, AnchorOf(region), TestMachine()}, nullptr)->point);
  };
  EXPECT_TRUE(takes(1));
  EXPECT_TRUE(takes(2));
  EXPECT_FALSE(takes(64));

  const graph::Graph region = RegionOf(case_of(3));
  const Site site{region, AnchorOf(region), TestMachine()};
  const auto kernel = [&](bool in_rows) {
    const Allowed allowed = [&](const Point& p) { return KeysAreInRows(p) == in_rows; };
    const Point point = CheapestPoint(algorithm, site, allowed)->point;
    const graph::Plan plan = MakePlan(algorithm, algorithm.space(site), point, 0);
    return *Build(Placed(region, algorithm, point, TestMachine()), &plan, TestMachine());
  };
  testing::Reference of_transposed = ReferenceOf(kernel(false));
  EXPECT_TRUE(
      Alike(of_transposed, ScheduleKernel(kernel(true), TestMachine())->module(), 1e-6, {}));

  graph::Builder b("region");
  const ValueId q = b.Input("q", F32({2, 1, 64})), k = b.Input("k", F32({2, 64, 130}));
  const ValueId v = b.Input("v", F32({2, 130, 64}));
  const ValueId kt =
      *b.Add(OpKind::kTranspose, {k}, "kt", {{"perm", std::vector<int64_t>{0, 2, 1}}});
  b.Output("y", *b.Add(OpKind::kAttention, {q, kt, v}, "y", {{"scale", 0.25}}));
  const graph::Graph turned = std::move(b).Finish();
  EXPECT_FALSE(CheapestPoint(algorithm, {turned, AnchorOf(turned), TestMachine()}, KeysAreInRows));
}

// Factors that are multiplied in pairs: odd depths, numbers of keys and widths that fill no vector.
TEST(Kernel, AttentionOfPairs) {
  const DType bf16 = DType::BFloat16();
  const auto check = [&](int64_t queries, int64_t keys, int64_t depth, int64_t width, int points) {
    SCOPED_TRACE(fmt::format("{} queries, {} keys, {} deep, {} wide", queries, keys, depth, width));
    Case c;
    c.op = OpKind::kAttention;
    c.inputs = {TypeOf(bf16, {2, queries, depth}), TypeOf(bf16, {2, keys, depth}),
                TypeOf(bf16, {2, keys, width}), F32({1, 1, keys})};
    c.attrs = Attrs{{"scale", 0.25}};
    Check(c, "attention", 1e-2, MachineOf("cooperlake"), points);
  };
  check(1, 16, 2, 16, 2);
  check(13, 19, 5, 24, 3);
  check(3, 33, 4, 17, 2);
}

// Both products in tiles: fewer than a tile of each, and some that are cut; with a mask for each
// row, one for all, and none; queries of any number.
TEST(Kernel, AttentionOfTiles) {
  const DType bf16 = DType::BFloat16();
  const Machine amx = MachineOf("sapphirerapids");
  const auto check = [&](int64_t queries, int64_t keys, int64_t depth, int64_t width,
                         int64_t mask_rows, size_t points) {
    SCOPED_TRACE(fmt::format("{} queries, {} keys, {} deep, {} wide", queries, keys, depth, width));
    Case c;
    c.op = OpKind::kAttention;
    c.inputs = {TypeOf(bf16, {2, queries, depth}), TypeOf(bf16, {2, keys, depth}),
                TypeOf(bf16, {2, keys, width})};
    if (mask_rows > 0) c.inputs.push_back(F32({1, mask_rows, keys}));
    c.attrs = Attrs{{"scale", 0.25}};
    Check(c, "tile_attention", 1e-2, amx, points);
  };
  check(1, 16, 2, 16, 1, 1);
  check(16, 32, 32, 16, 0, 1);
  check(17, 33, 33, 17, 17, 2);
  check(37, 19, 64, 40, 37, 2);
  check(5, 260, 4, 16, 1, 1);
  Case open;
  open.op = OpKind::kAttention;
  open.inputs = {Open(TypeOf(bf16, {2, 1, 20}), 1, &open), TypeOf(bf16, {2, 21, 20}),
                 TypeOf(bf16, {2, 21, 24})};
  open.at = {{{"m", 1}}, {{"m", 33}}};
  Check(open, "tile_attention", 1e-2, amx, 1);
  open.dims[0].max = 16;  // one block of tiles is all of them
  open.at = {{{"m", 1}}, {{"m", 16}}};
  Check(open, "tile_attention", 1e-2, amx);
}

}  // namespace
}  // namespace tenon::ops
