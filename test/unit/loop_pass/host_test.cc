// Host functions: storage plan, team, wrapper with its checks.
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <set>

#include "loop/pass/packed_abi.h"
#include "pass_test.h"
#include "tenon/kernel_abi.h"

namespace tenon {
namespace {

static_assert(sizeof(tn_ffi_any) == packed::kAnyBytes &&
              offsetof(tn_ffi_any, u) == packed::kAnyValue);
static_assert(TN_FFI_NONE == packed::kNone && TN_FFI_INT == packed::kInt &&
              TN_FFI_BOOL == packed::kBool && TN_FFI_FLOAT == packed::kFloat &&
              TN_FFI_DL_TENSOR_PTR == packed::kDlTensorPtr && TN_FFI_RAW_STR == packed::kRawStr &&
              TN_FFI_TENSOR == packed::kTensor && TN_DL_CPU == packed::kCpu);
static_assert(offsetof(tn_ffi_tensor, dl_tensor) == packed::kObjectHeaderBytes);
static_assert(offsetof(tn_dl_tensor, data) == packed::kFields64.data &&
              offsetof(tn_dl_tensor, device) == packed::kFields64.device_type &&
              offsetof(tn_dl_tensor, ndim) == packed::kFields64.ndim &&
              offsetof(tn_dl_tensor, dtype) == packed::kFields64.dtype &&
              offsetof(tn_dl_tensor, shape) == packed::kFields64.shape &&
              offsetof(tn_dl_tensor, strides) == packed::kFields64.strides &&
              offsetof(tn_dl_tensor, byte_offset) == packed::kFields64.byte_offset);

// y = ((x * 2 + w) * 2 + w) * 2 + w through two temporaries, each step over a team.
const char kNetwork[] = R"(
func @step(A: f32[6, 8], W: f32[8], out B: f32[6, 8]) {
  alloc T: f32[8] in global
  for i in 0..6 parallel {
    for j in 0..8 {
      block T(vj: spatial = j) {
        reads W[vj]; writes T[vj]
        T[vj] = W[vj]
      }
    }
    for k in 0..8 {
      block B(vi: spatial = i, vj: spatial = k) {
        reads A[vi, vj], T[vj]; writes B[vi, vj]
        B[vi, vj] = A[vi, vj] * 2f32 + T[vj]
      }
    }
  }
}
func @main(x: f32[6, 8], out y: f32[6, 8]) kind host {exported: true, weights: ["w"], weight_offsets: [64]} {
  alloc w: f32[8] in const
  alloc t0: f32[6, 8]
  alloc t1: f32[6, 8]
  launch @step(x, w, t0) on host
  launch @step(t0, w, t1) on host
  launch @step(t1, w, y) on host
}
)";

const std::vector<const char*> kHostPasses = {
    "wrap_exports", "compact_buffers", "lower_blocks",    "simplify",       "plan_storage",
    "lower_team",   "make_packed",     "flatten_storage", "lower_parallel", "simplify"};

/// The functions of the core that wrappers call, on this machine; bodies run in the interpreter.
class Core {
 public:
  explicit Core(const Module& module, int team_size) : module_(module) {
    options.team_size = 1;
    auto handle = [](void* p) { return InterpScalar{reinterpret_cast<int64_t>(p), 0}; };
    options.functions["tn_core_check_cpu"] = [](auto) { return InterpScalar{}; };
    options.functions["tn_core_arena_acquire"] = [=, this](std::span<const InterpScalar> a) {
      arena.assign(static_cast<size_t>(a[1].i) + 64, 0x7f);
      auto at = reinterpret_cast<uintptr_t>(arena.data());
      return handle(reinterpret_cast<void*>((at + 63) / 64 * 64));
    };
    options.functions["tn_core_arena_release"] = [this](auto) {
      ++released;
      return InterpScalar{};
    };
    options.functions["tn_core_run_team"] = [=, this](std::span<const InterpScalar> a) {
      std::string body = reinterpret_cast<const char*>(a[0].i) + 1;
      max_team = a[2].i;
      InterpOptions inner;
      inner.weights = options.weights;
      inner.team_size = team_size;
      inner.seed = 3;
      std::vector<InterpArg> args = {InterpArg::Int(a[1].i)};
      Status ran = Interpret(module_, body, args, inner);
      EXPECT_TRUE(ran) << ToString(ran.errors());
      return InterpScalar{ran ? 0 : -1, 0};
    };
    options.functions["tn_core_tensor_alloc"] = [=, this](std::span<const InterpScalar> a) {
      int64_t count = 1;
      for (int64_t d = 0; d < a[1].i; ++d) {
        shape.push_back(reinterpret_cast<const int64_t*>(a[2].i)[d]);
        count *= shape.back();
      }
      made.assign(static_cast<size_t>(count), -1);
      *reinterpret_cast<void**>(a[4].i) = made.data();
      reinterpret_cast<tn_ffi_any*>(a[3].i)->type_index = TN_FFI_TENSOR;
      return InterpScalar{};
    };
    options.functions["tn_core_return"] = [](std::span<const InterpScalar> a) {
      *reinterpret_cast<tn_ffi_any*>(a[2].i) = *reinterpret_cast<tn_ffi_any*>(a[0].i);
      return InterpScalar{};
    };
    options.functions["tn_core_release"] = [](auto) { return InterpScalar{}; };
  }

  Status Call(const std::string& name, std::vector<tn_ffi_any>& args) {
    std::vector<InterpArg> scalars = {InterpArg::Int(0),
                                      InterpArg::Int(reinterpret_cast<int64_t>(args.data())),
                                      InterpArg::Int(static_cast<int64_t>(args.size())),
                                      InterpArg::Int(reinterpret_cast<int64_t>(&result))};
    return Interpret(module_, name, scalars, options);
  }

  InterpOptions options;
  tn_ffi_any result = {};
  std::vector<float> made;
  std::vector<int64_t> shape;
  std::vector<uint8_t> arena;
  int released = 0;
  int64_t max_team = -1;

 private:
  const Module& module_;
};

/// A tensor over its own memory, as DLTensor*.
struct TestTensor {
  std::vector<float> data;
  std::vector<int64_t> shape, strides;
  tn_dl_tensor view = {};

  explicit TestTensor(std::vector<int64_t> s, float first = 0) : shape(std::move(s)) {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    for (int64_t i = 0; i < n; ++i) data.push_back(first + static_cast<float>(i));
    view = {data.data(),
            {TN_DL_CPU, 0},
            static_cast<int32_t>(shape.size()),
            {TN_DL_FLOAT, 32, 1},
            shape.data(),
            nullptr,
            0};
  }
  TestTensor(const TestTensor&) = delete;
  tn_ffi_any Arg() {
    tn_ffi_any any = {TN_FFI_DL_TENSOR_PTR, 0, {}};
    any.u.v_ptr = &view;
    return any;
  }
};

TEST(HostPasses, NetworkWithTemporariesWeightsAndTeam) {
  Module module = RunPasses(Parse(kNetwork), kHostPasses);
  if (getenv("SHOW")) puts(Print(module).c_str());
  std::vector<float> weights(24, 0);
  for (int i = 0; i < 8; ++i) weights[16 + static_cast<size_t>(i)] = static_cast<float>(i);
  for (int team : {1, 2, 5}) {
    Core core(module, team);
    core.options.weights = {reinterpret_cast<const uint8_t*>(weights.data()), weights.size() * 4};
    TestTensor x({6, 8}, 3), y({6, 8});
    std::vector<tn_ffi_any> args = {x.Arg(), y.Arg()};
    Status ran = core.Call("__tvm_ffi_main", args);
    ASSERT_TRUE(ran) << ToString(ran.errors());
    for (size_t i = 0; i < 48; ++i)
      EXPECT_EQ(y.data[i], x.data[i] * 8 + 7 * static_cast<float>(i % 8));
    EXPECT_EQ(core.released, 1);
    args.pop_back();
    ran = core.Call("__tvm_ffi_main", args);
    ASSERT_TRUE(ran) << ToString(ran.errors());
    EXPECT_EQ(core.made, y.data);
    EXPECT_EQ(core.shape, (std::vector<int64_t>{6, 8}));
    EXPECT_EQ(core.result.type_index, TN_FFI_TENSOR);
  }
}

const char kDot[] = R"(
func @add<n0>(a: f32[n0, 4], b: f32[n0, 4], out c: f32[n0]) {exported: true} {
  for i in 0..n0, j in 0..4 {
    block c(vi: spatial = i, vj: reduce = j) {
      reads a[vi, vj], b[vi, vj]; writes c[vi]
      init { c[vi] = 0f32 }
      c[vi] = c[vi] + a[vi, vj] * b[vi, vj]
    }
  }
}
)";

class Checks : public testing::Test {
 protected:
  std::string Message(std::vector<tn_ffi_any> args) {
    Status ran = core.Call("__tvm_ffi_add", args);
    return ran ? "" : ran.errors()[0].message;
  }
  static std::string Says(const std::string& what, bool outputs = false) {
    return what + "\nwhen calling: `add(a: Tensor([n0, 4], float32), b: Tensor([n0, 4], float32)" +
           (outputs ? ", c: Tensor([n0], float32))`" : ")`");
  }

  Module module = RunPasses(Parse(kDot), kHostPasses);
  Core core{module, 1};
  TestTensor a{{3, 4}}, b{{3, 4}}, c{{3}};
};

TEST_F(Checks, AcceptsBothForms) {
  EXPECT_EQ(Message({a.Arg(), b.Arg(), c.Arg()}), "");
  EXPECT_EQ(c.data, (std::vector<float>{14, 126, 366}));
  EXPECT_EQ(core.max_team, 1);  // nothing in it is parallel
  EXPECT_EQ(Message({a.Arg(), b.Arg()}), "");
  EXPECT_EQ(core.made, c.data);
}

TEST_F(Checks, AcceptsTensorObjectsAndOffsets) {
  tn_ffi_tensor object = {};
  object.dl_tensor = a.view;
  object.dl_tensor.byte_offset = 16;
  int64_t two[] = {2, 4};
  object.dl_tensor.shape = two;
  tn_ffi_any any = {TN_FFI_TENSOR, 0, {}};
  any.u.v_ptr = &object;
  TestTensor d({2, 4});
  EXPECT_EQ(Message({any, d.Arg()}), "");
  EXPECT_EQ(core.made, (std::vector<float>{0 + 5 + 12 + 21, 32 + 45 + 60 + 77}));
}

TEST_F(Checks, Count) {
  EXPECT_EQ(Message({a.Arg()}),
            Says("TypeError: Expected 2 arguments, or 3 with outputs, but got 1"));
}

TEST_F(Checks, TypeNdimDtypeDevice) {
  tn_ffi_any number = {TN_FFI_INT, 0, {}};
  EXPECT_EQ(Message({number, b.Arg()}),
            Says("TypeError: Parameter `a` expects tensor but got type_index=1"));
  TestTensor three({3, 4, 1});
  EXPECT_EQ(Message({three.Arg(), b.Arg()}),
            Says("ValueError: Parameter `a` expects ndim=2 but got ndim=3"));
  b.view.dtype = {TN_DL_INT, 64, 1};
  EXPECT_EQ(Message({a.Arg(), b.Arg()}),
            Says("TypeError: Parameter `b` expects dtype=float32 but got dtype=int64"));
  a.view.device.device_type = TN_DL_CUDA;
  EXPECT_EQ(Message({a.Arg(), b.Arg()}),
            Says("ValueError: Parameter `a` expects device=cpu but got device=cuda"));
}

TEST_F(Checks, Shapes) {
  TestTensor wide({3, 5}), longer({5, 4});
  EXPECT_EQ(Message({wide.Arg(), b.Arg()}),
            Says("ValueError: Parameter `a` expects shape[1]=4 but got shape[1]=5"));
  EXPECT_EQ(Message({a.Arg(), longer.Arg()}),
            Says("ValueError: Shape mismatch: n0=3 (from a.shape[0]) but b.shape[0]=5"));
  TestTensor short_out({2});
  EXPECT_EQ(Message({a.Arg(), b.Arg(), short_out.Arg()}),
            Says("ValueError: Shape mismatch: n0=3 (from a.shape[0]) but c.shape[0]=2", true));
}

TEST_F(Checks, StridesAlignmentOverlap) {
  int64_t strides[] = {5, 1};
  a.view.strides = strides;
  EXPECT_EQ(
      Message({a.Arg(), b.Arg()}),
      Says("ValueError: Parameter `a` expects compact strides, strides[0]=4 but got strides[0]=5"));
  strides[0] = 4;
  EXPECT_EQ(Message({a.Arg(), b.Arg()}), "");
  TestTensor row({1, 4}), row2({1, 4});
  int64_t any_stride[] = {-77, 1};  // of a dim of size 1: says nothing
  row.view.strides = any_stride;
  EXPECT_EQ(Message({row.Arg(), row2.Arg()}), "");
  b.view.byte_offset = 2;
  EXPECT_EQ(Message({a.Arg(), b.Arg()}), Says("ValueError: Parameter `b` expects data aligned to 4 "
                                              "bytes but its address modulo 4 is 2"));
  b.view.byte_offset = 0;
  c.view.data = &a.data[2];
  EXPECT_EQ(Message({a.Arg(), b.Arg(), c.Arg()}),
            Says("ValueError: Parameter `c` expects memory of its own but it overlaps `a`", true));
}

TEST_F(Checks, NullPointers) {
  tn_ffi_any nothing = a.Arg();
  for (int32_t type : {TN_FFI_DL_TENSOR_PTR, TN_FFI_TENSOR}) {
    nothing.type_index = type;
    nothing.u.v_ptr = nullptr;
    EXPECT_EQ(Message({nothing, b.Arg()}),
              Says("ValueError: Parameter `a` expects a tensor but got a null pointer"));
  }
  b.view.shape = nullptr;
  EXPECT_EQ(Message({a.Arg(), b.Arg()}),
            Says("ValueError: Parameter `b` expects a shape but got a null pointer"));
  b.view.shape = b.shape.data();
  b.view.data = nullptr;
  b.view.byte_offset = 16;
  EXPECT_EQ(Message({a.Arg(), b.Arg()}),
            Says("ValueError: Parameter `b` expects memory but got a null pointer"));
  b.view.data = b.data.data();
  b.view.byte_offset = 0;
  c.view.data = nullptr;
  EXPECT_EQ(Message({a.Arg(), b.Arg(), c.Arg()}),
            Says("ValueError: Parameter `c` expects memory but got a null pointer", true));
  // Of a tensor without elements nothing is read.
  TestTensor none({0, 4}), none2({0, 4}), out({0});
  none.view.data = none2.view.data = out.view.data = nullptr;
  EXPECT_EQ(Message({none.Arg(), none2.Arg(), out.Arg()}), "");
}

TEST_F(Checks, EmptyTensors) {
  TestTensor none({0, 4}), none2({0, 4}), out({0});
  int64_t odd[] = {9, 9};
  none.view.strides = odd;
  EXPECT_EQ(Message({none.Arg(), none2.Arg(), out.Arg()}), "");
  EXPECT_EQ(Message({none.Arg(), none2.Arg()}), "");
}

TEST_F(Checks, Metadata) {
  std::vector<tn_ffi_any> none;
  ASSERT_TRUE(core.Call("__tvm_ffi__metadata_add", none));
  EXPECT_EQ(core.result.type_index, TN_FFI_RAW_STR);
}

// Inputs that lie as they say: rows apart by what comes, elements by a number.
TEST(StridedInputs, AreReadWhereTheyLie) {
  const Module module = RunPasses(Parse(R"(
func @twice<m, n, row>(a: f32[m, n] strides (row, 2), out c: f32[m, n]) {exported: true} {
  for i in 0..m, j in 0..n {
    block c(vi: spatial = i, vj: spatial = j) {
      reads a[vi, vj]; writes c[vi, vj]
      c[vi, vj] = a[vi, vj] * 2f32
    }
  }
}
)"),
                                  kHostPasses);
  Core core{module, 1};
  auto message = [&](std::vector<tn_ffi_any> args) {
    const Status ran = core.Call("__tvm_ffi_twice", args);
    const std::string text = ran ? "" : ran.errors()[0].message;
    return text.substr(0, text.find('\n'));
  };
  for (int64_t rows : {0, 1, 2, 7}) {
    for (int64_t columns : {0, 1, 3, 5}) {
      for (int64_t row : {int64_t{0}, 2 * columns, 2 * columns + 3}) {
        TestTensor memory({rows * row + 2 * columns + 1}, 1), out({rows, columns});
        int64_t shape[] = {rows, columns}, strides[] = {row, 2};
        memory.view.ndim = 2;
        memory.view.shape = shape;
        memory.view.strides = strides;
        ASSERT_EQ(message({memory.Arg(), out.Arg()}), "") << rows << " " << columns << " " << row;
        for (int64_t i = 0; i < rows * columns; ++i) {
          const int64_t at = i / columns * row + i % columns * 2;
          ASSERT_EQ(out.data[static_cast<size_t>(i)], 2 * memory.data[static_cast<size_t>(at)]);
        }
      }
    }
  }
  TestTensor compact({3, 4}), column({3, 1}), out({3, 4}), thin({3, 1});
  EXPECT_EQ(message({compact.Arg(), out.Arg()}),
            "ValueError: Parameter `a` expects strides[1]=2 but got strides[1]=1");
  EXPECT_EQ(message({column.Arg(), thin.Arg()}), "");
  EXPECT_EQ(thin.data, (std::vector<float>{0, 2, 4}));
  TestTensor memory({40});
  int64_t shape[] = {3, 4}, back[] = {-8, 2}, apart[] = {10, 2};
  memory.view.ndim = 2;
  memory.view.shape = shape;
  memory.view.strides = back;
  EXPECT_EQ(message({memory.Arg(), out.Arg()}),
            "ValueError: Parameter `a` expects strides[0] at least 0 but got strides[0]=-8");
  memory.view.strides = apart;
  out.view.data = &memory.data[26];  // its last element's
  EXPECT_EQ(message({memory.Arg(), out.Arg()}),
            "ValueError: Parameter `c` expects memory of its own but it overlaps `a`");
  out.view.data = &memory.data[27];
  EXPECT_EQ(message({memory.Arg(), out.Arg()}), "");
}

// So many arguments that they are sorted, of 0 to 3 elements each, anywhere in one memory; inputs
// may share theirs.
TEST(ManyArguments, OverlapsAreFound) {
  constexpr size_t kInputs = 5, kAll = 13;
  const auto sizes = [](size_t i) { return static_cast<int64_t>(i * 7 % 4); };
  std::string parameters, body;
  for (size_t i = 0; i < kAll; ++i) {
    const std::string name = (i < kInputs ? "a" : "y") + std::to_string(i);
    parameters += (i > 0 ? ", " : "") + std::string(i < kInputs ? "" : "out ") + name + ": f32[" +
                  std::to_string(sizes(i)) + "]";
    if (i < kInputs) continue;
    body += "  for i" + name + " in 0.." + std::to_string(sizes(i)) + " { block " + name +
            "(v: spatial = i" + name + ") { writes " + name + "[v]\n" + name + "[v] = 1f32 } }\n";
  }
  const Module module = RunPasses(
      Parse("func @many(" + parameters + ") {exported: true} {\n" + body + "}\n"), kHostPasses);
  Core core{module, 1};
  std::mt19937 random(7);
  size_t apart = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<float> memory(round % 2 ? 30 : 400);
    std::vector<std::unique_ptr<TestTensor>> tensors;
    std::vector<tn_ffi_any> args;
    std::vector<int64_t> starts;
    for (size_t i = 0; i < kAll; ++i) {
      tensors.push_back(std::make_unique<TestTensor>(std::vector<int64_t>{sizes(i)}));
      starts.push_back(static_cast<int64_t>(random() % (memory.size() - 3)));
      tensors.back()->view.data = &memory[static_cast<size_t>(starts.back())];
      args.push_back(tensors.back()->Arg());
    }
    const auto meet = [&](size_t i, size_t j) {
      return sizes(i) > 0 && sizes(j) > 0 && starts[i] < starts[j] + sizes(j) &&
             starts[j] < starts[i] + sizes(i);
    };
    std::set<std::string> faults;
    for (size_t i = kInputs; i < kAll; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!meet(i, j)) continue;
        faults.insert("Parameter `y" + std::to_string(i) +
                      "` expects memory of its own but it overlaps `" + (j < kInputs ? "a" : "y") +
                      std::to_string(j) + "`");
      }
    }
    const Status ran = core.Call("__tvm_ffi_many", args);
    apart += faults.empty() ? 1 : 0;
    ASSERT_EQ(static_cast<bool>(ran), faults.empty()) << round;
    if (ran) continue;
    const std::string message = ran.errors()[0].message;
    const std::string what = message.substr(0, message.find('\n')).substr(strlen("ValueError: "));
    EXPECT_EQ(faults.count(what), 1u) << message;
  }
  EXPECT_GT(apart, 20u);
  EXPECT_LT(apart, 300u);
}

const char kScale[] = R"(
func @scale<n: 1..=64, m: 0..>(X: f32[n], out Y: f32[n], alpha: f32, shift: i8, twice: bool)
    {exported: true, arguments: ["n", "X", "alpha", "m", "shift", "twice", "Y"]} {
  for i in 0..n {
    block Y(vi: spatial = i) {
      reads X[vi]; writes Y[vi]
      Y[vi] = (X[vi] * alpha + f32(shift)) * select(twice, 2f32, 1f32) + f32(m)
    }
  }
}
)";

class Numbers : public testing::Test {
 protected:
  static tn_ffi_any Int(int64_t v, int32_t type = TN_FFI_INT) {
    tn_ffi_any any = {type, 0, {}};
    any.u.v_int64 = v;
    return any;
  }
  static tn_ffi_any Bool(bool v) { return Int(v ? 1 : 0, TN_FFI_BOOL); }
  static tn_ffi_any Float(double v) {
    tn_ffi_any any = {TN_FFI_FLOAT, 0, {}};
    any.u.v_float64 = v;
    return any;
  }
  std::string Message(std::vector<tn_ffi_any> args) {
    Status ran = core.Call("__tvm_ffi_scale", args);
    return ran ? "" : ran.errors()[0].message;
  }
  static std::string Says(const std::string& what) {
    return what +
           "\nwhen calling: `scale(n: int64, X: Tensor([n], float32), alpha: float32, m: int64, "
           "shift: int8, twice: bool)`";
  }

  Module module = RunPasses(Parse(kScale), kHostPasses);
  Core core{module, 1};
  TestTensor x{{3}, 1}, y{{3}};
};

TEST_F(Numbers, ArePassedByValueInTheCallersOrder) {
  EXPECT_EQ(Message({Int(3), x.Arg(), Float(0.5), Int(100), Int(-2), Bool(true), y.Arg()}), "");
  EXPECT_EQ(y.data, (std::vector<float>{97, 98, 99}));
  EXPECT_EQ(Message({Int(3), x.Arg(), Int(2), Int(0), Bool(true), Int(0)}), "");
  EXPECT_EQ(core.made, (std::vector<float>{3, 5, 7}));
}

TEST_F(Numbers, AreChecked) {
  auto with = [&](size_t at, tn_ffi_any value) {
    std::vector<tn_ffi_any> args = {Int(3), x.Arg(), Float(1), Int(0), Int(0), Bool(false)};
    args[at] = value;
    return Message(args);
  };
  EXPECT_EQ(with(0, Float(3)), Says("TypeError: Parameter `n` expects int but got type_index=3"));
  EXPECT_EQ(with(1, Int(3)), Says("TypeError: Parameter `X` expects tensor but got type_index=1"));
  EXPECT_EQ(with(2, x.Arg()),
            Says("TypeError: Parameter `alpha` expects float but got type_index=7"));
  EXPECT_EQ(with(5, Float(1)),
            Says("TypeError: Parameter `twice` expects bool but got type_index=3"));
  EXPECT_EQ(with(0, Int(65)),
            Says("ValueError: Parameter `n` expects a value in 1..=64 but got 65"));
  EXPECT_EQ(with(3, Int(-1)),
            Says("ValueError: Parameter `m` expects a value at least 0 but got -1"));
  EXPECT_EQ(with(4, Int(128)),
            Says("ValueError: Parameter `shift` expects a value in -128..=127 but got 128"));
  EXPECT_EQ(with(0, Int(4)), Says("ValueError: Shape mismatch: n=4 (from n) but X.shape[0]=3"));
}

}  // namespace
}  // namespace tenon
