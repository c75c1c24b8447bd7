// Statements and memory accesses as compiled code against the interpreter.
#include <map>

#include "differential.h"

namespace tenon {
namespace {

using test::Compiled;
using test::ExpectSame;
using test::Kernel;

const DType kF32 = DType::Float(32);

Expr Vec(Expr base, int32_t lanes, int64_t stride = 1) {
  return Ramp::Make(std::move(base), IndexConst(stride), lanes);
}
Expr Bc(Expr e, int32_t lanes) { return Broadcast::Make(std::move(e), lanes); }
Stmt Loop(const Var& v, Expr extent, Stmt body, Expr min = IndexConst(0)) {
  return For::Make(v, std::move(min), std::move(extent), ForKind::kSerial, std::move(body));
}

std::vector<double> Iota(int64_t n) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<double>(i * 7 % 101 - 50));
  return v;
}

// Kernels (in f32[n], out f32[n]), compiled together when the last is there, each run for awkward
// n.
class CopyLike {
 public:
  explicit CopyLike(DType type = kF32, int64_t align = 0) : type_(type), align_(align) {}
  void Add(const std::function<Stmt(const std::vector<Buffer>&, Expr)>& body,
           const std::vector<int64_t>& sizes) {
    const std::string name = fmt::format("f{}", sizes_.size());
    module_.Add(Kernel(name, {type_, type_}, body, {}, align_));
    sizes_[name] = sizes;
  }
  ~CopyLike() {
    try {
      Run();
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    }
  }

 private:
  void Run() {
    Compiled code(module_);
    for (const auto& [name, sizes] : sizes_) {
      for (int64_t n : sizes) {
        SCOPED_TRACE(n);
        // The output is an input too, so that what a kernel leaves alone is compared.
        ExpectSame(module_, code, name,
                   {InterpArg::Tensor(type_, {n}, Iota(n)), InterpArg::Tensor(type_, {n}, Iota(n))},
                   1, {n});
      }
    }
  }

  const DType type_;
  const int64_t align_;
  Module module_;
  std::map<std::string, std::vector<int64_t>> sizes_;
};

TEST(Memory, ContiguousWithMaskedTail) {
  CopyLike kernels;
  for (int32_t lanes : {2, 3, 8, 16, 40, 64, 128, 255, 256}) {
    if (lanes > test::kMostLanes) break;
    kernels.Add(
        [&](const auto& b, Expr n) {
          Var i = VarNode::Make("i");
          Expr at = Vec(i * lanes, lanes);
          Expr mask = Lt(at, Bc(n, lanes));
          return Loop(
              i, CeilDiv(n, IndexConst(lanes)),
              Store::Make(b[1], {at},
                          Load::Make(b[0], {at}, mask) + MakeConst(kF32.WithLanes(lanes), 1),
                          mask));
        },
        {0, 1, lanes - 1, lanes, lanes + 1, 97});
  }
}

TEST(Memory, StridesReversalGatherScatterAndSplat) {
  CopyLike kernels;
  constexpr int32_t kLanes = 8;
  for (int64_t stride : {2, 3, -1, -2, 0}) {
    for (bool masked : {false, true}) {
      auto at = [&](Expr base) {
        return Vec(stride < 0 ? base + (kLanes - 1) * -stride : base, kLanes, stride);
      };
      Expr mask;
      if (masked)
        mask = Ne(Vec(IndexConst(0), kLanes) % MakeIntConst(DType::Index().WithLanes(kLanes), 3),
                  MakeIntConst(DType::Index().WithLanes(kLanes), 1));
      kernels.Add(  // gather, contiguous store
          [&](const auto& b, Expr) {
            return Store::Make(b[1], {Vec(IndexConst(3), kLanes)},
                               Load::Make(b[0], {at(IndexConst(2))}, mask), mask);
          },
          {31});
      if (stride == 0 && !masked) continue;
      kernels.Add(  // contiguous load, scatter
          [&](const auto& b, Expr) {
            return Store::Make(b[1], {at(IndexConst(2))},
                               Load::Make(b[0], {Vec(IndexConst(3), kLanes)}), mask);
          },
          {31});
    }
  }
}

// Every other element of 16 bits, from even and odd places on, up to the last element: of memory
// that begins at a word, in halves of words.
TEST(Memory, HalvesOfWords) {
  for (const DType type : {DType::BFloat16(), DType::Int(16), DType::UInt(16)}) {
    CopyLike kernels(type, 4);
    for (const int32_t lanes : {2, 8, 16}) {
      for (const int64_t first : {0, 1, 2, 5}) {
        kernels.Add(
            [&](const auto& b, Expr n) {
              const Var i = VarNode::Make("i");
              const Expr at = i * (2 * lanes) + first;
              return Loop(i, (n - first + 1) / (2 * lanes),
                          Store::Make(b[1], {Vec(i * lanes, lanes)},
                                      Load::Make(b[0], {Vec(at, lanes, 2)})));
            },
            {int64_t{4} * lanes + first / 2 * 2, 66});
      }
    }
  }
}

// Every comparison of a ramp with a ramp or a splat, with bounds on both sides of the lanes.
// Lanes at distances that are known, which vectors of what lies between them have: up to the last
// element of the buffer, and one where what is divided leaves another remainder each time.
TEST(Memory, LanesNearEachOther) {
  const auto constant = [](int64_t value, int32_t lanes) {
    return MakeIntConst(DType::Index().WithLanes(lanes), value);
  };
  for (const DType type : {kF32, DType::UInt(8), DType::BFloat16(), DType::Float(64)}) {
    CopyLike kernels(type);
    for (const int32_t lanes : {4, 8, 16, 64}) {
      for (const int64_t by : {2, 3, 4, 5, 7}) {
        const auto add = [&](const std::function<Expr(const Var&)>& at) {
          kernels.Add(
              [&](const auto& b, Expr n) {
                const Var i = VarNode::Make("i");
                return Loop(i, n / (by * lanes),
                            Store::Make(b[1], {Vec(i * lanes, lanes)}, Load::Make(b[0], {at(i)})));
              },
              {by * lanes, 3 * by * lanes});
        };
        const Expr many = constant(by, lanes), one = constant(1, lanes);
        add([&](const Var& i) { return Vec(i * (by * lanes), lanes, by); });
        add([&](const Var& i) { return Vec(i * (by * lanes) + (by - 1), lanes, by); });
        add([&](const Var& i) { return Vec(i * lanes, lanes) / many; });
        add([&](const Var& i) { return (Vec(i * (by * lanes), lanes) + one) / many; });
        add([&](const Var& i) { return Bc(i * lanes, lanes) + Vec(i * by, lanes) % many; });
        add([&](const Var& i) {
          return Bc(i * (by * lanes), lanes) +
                 (constant(lanes, lanes) - Vec(IndexConst(1), lanes)) / constant(2, lanes) * many;
        });
      }
    }
  }
}

TEST(Memory, IndexMasks) {
  CopyLike kernels;
  constexpr BinaryOp kOps[] = {BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt,
                               BinaryOp::kGe, BinaryOp::kEq, BinaryOp::kNe};
  for (int32_t lanes : {2, 5, 16, 32, 40, 255, 256}) {
    if (lanes > test::kMostLanes) break;
    for (int64_t left : {0, 1, -1, 2}) {
      for (int64_t right : {0, 1}) {
        kernels.Add(
            [&](const auto& b, Expr n) {
              Var i = VarNode::Make("i");
              std::vector<Stmt> body;
              for (BinaryOp op : kOps) {
                Expr mask =
                    Binary::Make(op, Vec(i * 3 - 5, lanes, left), Vec(n - i * 2, lanes, right));
                Expr at = Vec(IndexConst(0), lanes);
                const double weight = 1 << static_cast<int>(op);
                Expr more = Load::Make(b[1], {at}) + MakeConst(kF32.WithLanes(lanes), weight);
                body.push_back(Store::Make(b[1], {at}, more, mask));
              }
              return Loop(i, IndexConst(30), Seq::Make(body));
            },
            {lanes, lanes + 9});
      }
    }
  }
}

TEST(Memory, BoolsAreBytes) {
  Module m;
  constexpr int32_t kLanes = 5;
  m.Add(Kernel("f", {DType::Bool(), DType::Bool()}, [&](const auto& b, Expr n) {
    Var i = VarNode::Make("i");
    Expr at = Vec(i * kLanes, kLanes);
    Expr mask = Lt(at, Bc(n, kLanes));
    return Loop(i, CeilDiv(n, IndexConst(kLanes)),
                Store::Make(b[1], {at}, Not(Load::Make(b[0], {at}, mask)), mask));
  }));
  Compiled code(m);
  ExpectSame(m, code, "f",
             {InterpArg::Tensor(DType::Bool(), {13}, test::EdgeValues(DType::Bool(), 13, 1)),
              InterpArg::Output(DType::Bool(), {13})},
             1, {13});
}

// Padding: the untaken side of a select must not be read, though it lies outside the buffer.
TEST(Select, GuardsLoads) {
  CopyLike kernels;
  kernels.Add(  // scalar condition: a branch
      [&](const auto& b, Expr n) {
        Var i = VarNode::Make("i");
        Expr j = i - 2000;
        Expr inside = And(Ge(j, IndexConst(0)), Lt(j, n));
        Expr v = Select::Make(inside, Load::Make(b[0], {j}), MakeConst(kF32, -1));
        return Loop(i, n + 4000,
                    Seq::Make({If::Make(Lt(i, n), Store::Make(b[1], {i}, v)),
                               If::Make(inside, Store::Make(b[1], {j}, v + v))}));
      },
      {0, 1, 5, 17});
  constexpr int32_t kLanes = 8;
  kernels.Add(  // lanes: a mask, here of a select within a select and of a division
      [&](const auto& b, Expr n) {
        Var i = VarNode::Make("i");
        const DType index = DType::Index().WithLanes(kLanes);
        Expr at = Vec(i * kLanes, kLanes);
        Expr far = Vec(i * kLanes - 5000, kLanes);
        Expr tail = Lt(at, Bc(n, kLanes));
        Expr zero = MakeConst(kF32.WithLanes(kLanes), 0);
        Expr shifted = Select::Make(Ge(far, MakeIntConst(index, 0)), Load::Make(b[0], {far}), zero);
        Expr near =
            Select::Make(Lt(at, Bc(n, kLanes)),
                         Load::Make(b[0], {at}) + Bc(Load::Make(b[0], {i * 0}), kLanes), shifted);
        Expr divided =
            Select::Make(Ne(at, MakeIntConst(index, 0)), MakeIntConst(index, 100) / at, at);
        return Loop(i, CeilDiv(n, IndexConst(kLanes)),
                    Store::Make(b[1], {at}, near + CastExpr::Make(kF32, divided), tail));
      },
      {1, 7, 8, 9, 40});
}

TEST(Control, LoopsIfsWhilesLets) {
  CopyLike kernels;
  kernels.Add(
      [&](const auto& b, Expr n) {
        Var i = VarNode::Make("i"), j = VarNode::Make("j"), twice = VarNode::Make("twice");
        Buffer c = BufferNode::Make("c", DType::Index(), {IndexConst(1)}, Scope::kLocal);
        Expr count = Load::Make(c, {IndexConst(0)});
        // c halves until it is small; the loop over j starts above 0 and may be empty.
        Stmt halve =
            While::Make(Gt(count, IndexConst(3)), Store::Make(c, {IndexConst(0)}, count / 2));
        Stmt add = Store::Make(b[1], {i}, Load::Make(b[1], {i}) + CastExpr::Make(kF32, twice + j));
        Stmt inner = Let::Make(twice, count * 2, Loop(j, i % 4, add, IndexConst(2)));
        Stmt odd = If::Make(Eq(i % 2, IndexConst(1)), inner,
                            Store::Make(b[1], {i}, Load::Make(b[0], {i})));
        return Loop(i, n,
                    Alloc::Make(c, Seq::Make({Store::Make(c, {IndexConst(0)}, i), halve, odd})));
      },
      {0, 1, 2, 29});
}

// Divisors that are known when the loop runs: the loop's variable alone, scaled first, by several
// of which one is a multiple of another, and one that is nothing where it is not used.
TEST(Control, QuotientsOfALoopBySizes) {
  CopyLike kernels;
  const std::vector<int64_t> sizes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 64, 97};
  const auto number = [](Expr e) { return CastExpr::Make(kF32, std::move(e)); };
  const auto each = [&](const std::function<Expr(const Var&, const Expr&)>& value,
                        const std::function<Expr(const Expr&)>& first) {
    kernels.Add(
        [&](const auto& b, Expr n) {
          Var i = VarNode::Make("i");
          Stmt put = Store::Make(b[1], {i}, Load::Make(b[0], {i}) + number(value(i, n)));
          return Loop(i, n - first(n), put, first(n));
        },
        sizes);
  };
  const auto zero = [](const Expr&) { return IndexConst(0); };
  const auto third = [](const Expr& n) { return n / 3; };
  for (const auto& first : {std::function<Expr(const Expr&)>(zero), {third}}) {
    each([](const Var& i, const Expr& n) { return i / (n / 5 + 1) * 100 + i % (n / 5 + 1); },
         first);
    each([](const Var& i, const Expr& n) { return i / 3 % (n / 7 + 1) * 50 + i / (n / 7 * 3 + 3); },
         first);
    each(
        [](const Var& i, const Expr& n) {
          const Expr w = n % 3 + 1, h = n / 4 + 1;
          return i % w + i / w % h * 10 + i / (w * h) * 1000 + i % (w * h);
        },
        first);
    each([](const Var& i, const Expr& n) { return i % (n / 2 + 1) * 100 + i % (n / 3 + 1); },
         first);
  }
  kernels.Add(
      [&](const auto& b, Expr n) {
        Var i = VarNode::Make("i");
        Stmt put = Store::Make(b[1], {i}, number(i / (n - 5)));
        return Loop(i, n, If::Make(Lt(IndexConst(5), n), put));
      },
      sizes);
  // What a loop inside changes is no size, and what stands in it may be divided all the same.
  kernels.Add(
      [&](const auto& b, Expr n) {
        Var i = VarNode::Make("i"), j = VarNode::Make("j");
        Expr value = number(i / (j + 1) * 7 + i % (n / 4 + 1));
        return Loop(i, n, Loop(j, i % (n / 2 + 1), Store::Make(b[1], {i}, value)));
      },
      sizes);
}

// A share of a loop begins anywhere.
TEST(Control, QuotientsOfAShare) {
  if (!test::kTeams) return;
  Module m;
  m.Add(Kernel("f", {kF32, kF32}, [&](const auto& b, Expr n) {
    Var i = VarNode::Make("i");
    Expr rank = Call::Make(Intrinsic::kTeamRank, {}, DType::Index());
    Expr size = Call::Make(Intrinsic::kTeamSize, {}, DType::Index());
    Expr first = n * rank / size, w = n / 6 + 1;
    Stmt put = Store::Make(b[1], {i}, CastExpr::Make(kF32, i / w * 100 + i % w));
    return Loop(i, n * (rank + 1) / size - first, put, first);
  }));
  Compiled code(m);
  for (int64_t n : {0, 1, 5, 6, 7, 23, 24, 25}) {
    const auto count = static_cast<size_t>(n);
    std::vector<float> in(count), out(count, -1), all(count);
    for (int32_t rank : {2, 0, 1}) {
      code.Get<void(float*, float*, int64_t, int32_t, int32_t, void*)>("f")(in.data(), out.data(),
                                                                            n, rank, 3, nullptr);
    }
    for (int64_t i = 0; i < n; ++i) {
      all[static_cast<size_t>(i)] = static_cast<float>(i / (n / 6 + 1) * 100 + i % (n / 6 + 1));
    }
    EXPECT_EQ(out, all) << n;
  }
}

TEST(Control, EarlyReturn) {
  CopyLike kernels;
  kernels.Add(
      [&](const auto& b, Expr n) {
        Var i = VarNode::Make("i");
        return Loop(i, n,
                    Seq::Make({If::Make(Ge(i, IndexConst(5)), Return::Make()),
                               Store::Make(b[1], {i}, MakeConst(kF32, 9))}));
      },
      {0, 4, 6, 11});
}

TEST(Memory, RegisterBuffersCopiesAndReductions) {
  CopyLike kernels;
  constexpr int32_t kLanes = 8;
  kernels.Add(
      [&](const auto& b, Expr n) {
        Buffer acc = BufferNode::Make("acc", kF32, {IndexConst(2 * kLanes)}, Scope::kRegister);
        Var i = VarNode::Make("i");
        Expr lo = Vec(IndexConst(0), kLanes), hi = Vec(IndexConst(kLanes), kLanes);
        Expr at = Vec(i * kLanes, kLanes);
        Stmt zero = Seq::Make({Store::Make(acc, {lo}, MakeConst(kF32.WithLanes(kLanes), 0)),
                               Store::Make(acc, {hi}, MakeConst(kF32.WithLanes(kLanes), -1e30))});
        Stmt step =
            Seq::Make({Store::Make(acc, {lo}, Load::Make(acc, {lo}) + Load::Make(b[0], {at})),
                       Store::Make(acc, {hi}, Max(Load::Make(acc, {hi}), Load::Make(b[0], {at})))});
        auto reduce = [&](Intrinsic r, const Expr& part) {
          return Call::Make(r, {Load::Make(acc, {part})}, kF32);
        };
        Stmt out =
            Seq::Make({Store::Make(b[1], {IndexConst(0)}, reduce(Intrinsic::kReduceAdd, lo)),
                       Store::Make(b[1], {IndexConst(1)}, reduce(Intrinsic::kReduceMax, hi)),
                       Store::Make(b[1], {IndexConst(2)}, reduce(Intrinsic::kReduceMin, hi))});
        auto box = [&](const Buffer& x, Expr from) {
          return RegionNode::Make(x, {RangeNode::Make(std::move(from), IndexConst(4))});
        };
        Stmt copy = Copy::Make(box(b[1], IndexConst(5)), box(acc, IndexConst(6)));
        return Alloc::Make(acc, Seq::Make({zero, Loop(i, n / kLanes, step), out, copy}));
      },
      {16, 23, 64});
}

// A device function is called in place with the address of a box and sizes; it sees its worker's
// rank through it.
TEST(Calls, DeviceFunctionsWithRegionsAndTeams) {
  PrimFunc d;
  d.name = "add_rank";
  d.func_kind = FuncKind::kDevice;
  Var m_dim = VarNode::Make("m"), value = VarNode::Make("value", kF32);
  d.dims = {m_dim};
  d.dim_lo = {0}, d.dim_hi = {-1}, d.dim_step = {1};
  d.scalars = {value};
  Buffer x = test::FlatBuffer("x", kF32, m_dim);
  d.buffers = {x};
  d.num_outputs = 1;
  Var k = VarNode::Make("k");
  Expr rank = CastExpr::Make(kF32, Call::Make(Intrinsic::kTeamRank, {}, DType::Index()));
  d.body = Loop(k, m_dim, Store::Make(x, {k}, Load::Make(x, {k}) + value + rank));
  Module m;
  m.Add(PrimFunc::Make(d));
  m.Add(Kernel("f", {kF32, kF32}, [&](const auto& b, Expr n) {
    Region box = RegionNode::Make(b[1], {RangeNode::Make(IndexConst(2), n - 3)});
    return CallFunc::Make("add_rank", {box}, {n - 3, Load::Make(b[0], {IndexConst(1)})});
  }));
  Compiled code(m);
  ExpectSame(m, code, "f",
             {InterpArg::Tensor(kF32, {9}, Iota(9)), InterpArg::Tensor(kF32, {9}, Iota(9))}, 1,
             {9});
  if (!test::kTeams) return;
  std::vector<float> in(9, 1), out(9, 0);
  code.Get<void(float*, float*, int64_t, int32_t, int32_t, void*)>("f")(in.data(), out.data(), 9, 3,
                                                                        4, nullptr);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 4, 4, 4, 4, 4, 4, 0}));
}

}  // namespace
}  // namespace tenon
