// Every operator at dims of 0 and 1: whatever its type rule takes compiles, plainly and with
// everything, with its operands given at run time or known before, and touches nothing beyond its
// operands, whose memory ends at pages that nobody may touch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "driver/build.h"
#include "driver/graph_pipeline.h"
#include "driver/pipeline.h"
#include "graph/builder.h"
#include "graph/dims.h"
#include "graph/lower/lower.h"
#include "graph/text.h"
#include "support/guarded_buffer.h"
#include "support/strings.h"
#include "tenon/c_api.h"
#include "unit/driver/folder.h"

namespace tenon::driver::test {
namespace {

using graph::OpKind;
using graph::ValueId;
using Ints = std::vector<int64_t>;
using Sizes = std::map<char, int64_t>;

// An operator and operands that it takes. Sizes are letters, so that those which must agree do.
struct Sample {
  OpKind op;
  std::string inputs;  // "f32[m,k] f32[k,n]"
  Attrs attrs = {};
  std::map<std::string, std::string> exprs = {};  // "m n 3"
  size_t results = 1;
};

// What a function of a user's computes.
const std::string kBody = R"(func @turned<n, m>(x: f32[n, m], w: f32[m], out y: f32[m, n]) {
  for i in 0..m {
    for j in 0..n {
      block y(vi: spatial = i, vj: spatial = j) {
        reads x[vj, vi], w[vi]; writes y[vi, vj]
        y[vi, vj] = x[vj, vi] * w[vi]
      }
    }
  }
}
)";

constexpr const char* kFloats = "f32[a,b,c]";
constexpr const char* kTwoFloats = "f32[a,b,c] f32[b,c]";

// One element of each result from one of each operand.
void AddElementwise(std::vector<Sample>& s) {
  for (OpKind op : {OpKind::kRelu,     OpKind::kSigmoid, OpKind::kTanh,        OpKind::kExp,
                    OpKind::kLog,      OpKind::kSqrt,    OpKind::kSin,         OpKind::kCos,
                    OpKind::kErf,      OpKind::kFloor,   OpKind::kCeil,        OpKind::kRound,
                    OpKind::kNeg,      OpKind::kAbs,     OpKind::kSign,        OpKind::kReciprocal,
                    OpKind::kSoftplus, OpKind::kGelu,    OpKind::kHardSigmoid, OpKind::kHardSwish,
                    OpKind::kClip,     OpKind::kIsNan,   OpKind::kIsInf,       OpKind::kTan,
                    OpKind::kAsin,     OpKind::kAcos,    OpKind::kAtan,        OpKind::kSinh,
                    OpKind::kCosh,     OpKind::kAsinh,   OpKind::kAcosh,       OpKind::kAtanh})
    s.push_back({op, kFloats});
  s.push_back({OpKind::kBitCast, "f32[a,b]", {{"to", std::string("i32")}}});
  s.push_back({OpKind::kNot, "bool[a,b]"});
  s.push_back({OpKind::kBitNot, "i32[a,b]"});
  s.push_back({OpKind::kCast, "f32[a,b]", {{"to", std::string("i8")}}});
  for (OpKind op : {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kDiv, OpKind::kPow,
                    OpKind::kMod, OpKind::kMin, OpKind::kMax, OpKind::kEqual, OpKind::kLess,
                    OpKind::kGreater, OpKind::kLessEqual, OpKind::kGreaterEqual})
    s.push_back({op, kTwoFloats});
  for (OpKind op : {OpKind::kAnd, OpKind::kOr, OpKind::kXor})
    s.push_back({op, "bool[a,b] bool[b]"});
  for (OpKind op : {OpKind::kBitAnd, OpKind::kBitOr, OpKind::kBitXor, OpKind::kShl, OpKind::kShr})
    s.push_back({op, "u32[a,b] u32[b]"});
  s.push_back({OpKind::kWhere, "bool[b] f32[a,b] f32[a,b]"});
}

// Sums and their like: over axes, windows, products.
void AddReductions(std::vector<Sample>& s) {
  for (const char* kind :
       {"sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp"}) {
    for (const Ints& axes : {Ints{1}, Ints{0, 2}})
      s.push_back({OpKind::kReduce, kFloats, {{"kind", std::string(kind)}, {"axes", axes}}});
  }
  s.push_back({OpKind::kReduce, "bool[a,b]", {{"kind", std::string("all")}, {"axes", Ints{1}}}});
  s.push_back({OpKind::kReduce, "bool[a,b]", {{"kind", std::string("any")}, {"axes", Ints{0}}}});
  for (int64_t axis : {0, 1})
    s.push_back({OpKind::kArgReduce, "f32[a,b]", {{"kind", std::string("max")}, {"axis", axis}}});
  s.push_back({OpKind::kTopK, "f32[a,b]", {{"axis", int64_t{1}}}, {{"k", "b"}}, 2});
  s.push_back({OpKind::kTopK, "f32[a,b]", {{"axis", int64_t{0}}}, {{"k", "1"}}});
  s.push_back({OpKind::kCumSum, kFloats, {{"axis", int64_t{1}}}});
  s.push_back({OpKind::kSearchSorted, "i64[a] i64[b,c]"});
  for (OpKind op : {OpKind::kSoftmax, OpKind::kLogSoftmax}) {
    for (int64_t axis : {1, 2}) s.push_back({op, kFloats, {{"axis", axis}}});
  }
  s.push_back({OpKind::kLayerNorm, "f32[a,b,c] f32[c] f32[c]", {{"axis", int64_t{2}}}});
  s.push_back({OpKind::kBatchNorm, "f32[a,b,c] f32[b] f32[b] f32[b] f32[b]"});
  s.push_back({OpKind::kMatMul, "f32[m,k] f32[k,n]"});
  s.push_back({OpKind::kMatMul, "f32[a,m,k] f32[n,k]", {{"trans_b", true}}});
  s.push_back({OpKind::kMatMul, "f16[m,k] f16[k,n]"});
  s.push_back({OpKind::kMatMul, "u8[m,k] i8[k,n]"});
  s.push_back({OpKind::kBlockMatMul,
               "f32[a,m,32] u8[5,16] f32[5,2] f32[5,2]",
               {{"bits", int64_t{4}}, {"block", int64_t{16}}}});
  s.push_back({OpKind::kSplitMatMul, "f32[a,m,8] bf16[2,8,5]"});
  s.push_back({OpKind::kConv, "f32[a,k,h,w] f32[n,k,3,3] f32[n]", {{"pads", Ints{1, 1, 1, 1}}}});
  s.push_back({OpKind::kConv, "f32[a,k,h] f32[n,k,1]"});
  s.push_back({OpKind::kConv, "f32[a,2,h] f32[n,1,2]", {{"group", int64_t{2}}}});
  for (const char* inputs : {"f32[a,k,h,w] f32[n,k,4,4] f32[n]", "f32[a,k,h,w] f32[n,k,6,6]"})
    s.push_back({OpKind::kWinogradConv, inputs, {{"pads", Ints{1, 1, 1, 1}}}});
  for (size_t results : {1, 2})
    s.push_back({OpKind::kMaxPool,
                 "f32[a,k,h,w]",
                 {{"kernel", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
                 {},
                 results});
  s.push_back({OpKind::kAvgPool, "f32[a,k,h]", {{"kernel", Ints{2}}, {"pads", Ints{1, 1}}}});
  s.push_back({OpKind::kAttention, "f32[a,m,k] f32[a,n,k] f32[a,n,e]"});
}

// What moves elements.
void AddMovement(std::vector<Sample>& s) {
  s.push_back({OpKind::kReshape, "f32[a,b,c]", {}, {{"shape", "c b a"}}});
  s.push_back({OpKind::kCall,
               "f32[a,b] f32[b]",
               {{"body", kBody}, {"dtypes", std::vector<std::string>{"f32"}}, {"ranks", Ints{2}}},
               {{"sizes", "b a"}}});
  s.push_back({OpKind::kTranspose, kFloats, {{"perm", Ints{2, 0, 1}}}});
  s.push_back(
      {OpKind::kSlice, "f32[a,b]", {{"steps", Ints{1, 1}}}, {{"starts", "0 0"}, {"sizes", "a b"}}});
  s.push_back({OpKind::kConcat, "f32[a,b] f32[c,b] f32[a,b]", {{"axis", int64_t{0}}}});
  s.push_back({OpKind::kExpand, "f32[1,b]", {}, {{"shape", "a b"}}});
  for (const char* mode : {"constant", "reflect", "edge", "wrap"})
    s.push_back({OpKind::kPad, "f32[a,b]", {{"mode", std::string(mode)}}, {{"pads", "1 0 0 2"}}});
  s.push_back({OpKind::kPad, "f32[a,b]", {}, {{"pads", "c 0 1 b"}}});
  s.push_back({OpKind::kGather, "f32[a,b,c] i64[m,n]", {{"axis", int64_t{1}}}});
  s.push_back({OpKind::kGather, "f32[a,b] i32[m]", {{"axis", int64_t{0}}}});
  s.push_back({OpKind::kGatherElements, "f32[a,b] i64[a,c]", {{"axis", int64_t{1}}}});
  s.push_back({OpKind::kGatherNd, "f32[a,b,c] i64[m,2]"});
  s.push_back({OpKind::kGatherNd, "f32[a,b,c] i64[a,1]", {{"batch_dims", int64_t{1}}}});
  for (const char* how : {"none", "add", "max"})
    s.push_back({OpKind::kScatter,
                 "f32[a,b] i64[c,b] f32[c,b]",
                 {{"axis", int64_t{0}}, {"reduction", std::string(how)}}});
  for (const char* mode : {"nearest", "linear", "cubic"})
    s.push_back(
        {OpKind::kResize, "f32[a,b,h,w]", {{"mode", std::string(mode)}}, {{"sizes", "a b m n"}}});
  s.push_back({OpKind::kShape, "f32[a,b]", {{"start", int64_t{0}}, {"end", int64_t{2}}}});
  s.push_back({OpKind::kRange, "i64[] i64[]", {}, {{"size", "a"}}});
  s.push_back({OpKind::kOneHot, "i64[a,b] f32[2]", {{"axis", int64_t{1}}}, {{"depth", "c"}}});
}

const std::vector<Sample>& Samples() {
  static const std::vector<Sample> kSamples = [] {
    std::vector<Sample> s;
    AddElementwise(s);
    AddReductions(s);
    AddMovement(s);
    return s;
  }();
  return kSamples;
}

Expr SizeOf(const std::string& word, const Sizes& sizes) {
  const auto letter = sizes.find(word[0]);
  return IndexConst(letter != sizes.end() ? letter->second : std::stoll(word));
}

graph::TensorType TypeOf(const std::string& text, const Sizes& sizes) {
  const size_t open = text.find('[');
  graph::TensorType type;
  type.dtype = *DType::Parse(text.substr(0, open));
  const std::string dims = text.substr(open + 1, text.size() - open - 2);
  if (dims.empty()) return type;
  for (const std::string& word : Split(dims, ',')) type.dims.push_back(SizeOf(word, sizes));
  return type;
}

std::vector<int64_t> Numbers(const graph::TensorType& type, std::mt19937* random) {
  std::vector<int64_t> out(static_cast<size_t>(*graph::StaticCount(type.dims)));
  for (int64_t& v : out) v = static_cast<int64_t>((*random)() % 2);
  return out;
}

// The operator with `known` of its last operands constants; nothing where it does not take these
// sizes.
std::optional<graph::Graph> GraphOf(const Sample& sample, const Sizes& sizes, size_t known) {
  graph::Builder b;
  std::mt19937 random(3);
  std::vector<ValueId> inputs;
  const std::vector<std::string> words = Split(sample.inputs, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    const graph::TensorType type = TypeOf(words[i], sizes);
    const std::string name = fmt::format("x{}", i);
    if (i + known < words.size()) {
      inputs.push_back(b.Input(name, type));
      continue;
    }
    const std::vector<int64_t> numbers = Numbers(type, &random);
    std::vector<double> reals(numbers.begin(), numbers.end());
    inputs.push_back(b.Constant(name, type,
                                type.dtype.IsFloat()
                                    ? graph::MakePayload(type.dtype, std::span<const double>(reals))
                                    : graph::MakePayload(type.dtype, std::span(numbers))));
  }
  graph::ExprAttrs exprs;
  for (const auto& [name, text] : sample.exprs) {
    for (const std::string& word : Split(text, ' ')) exprs[name].push_back(SizeOf(word, sizes));
  }
  auto results =
      sample.results == 1
          ? std::vector<Expected<ValueId>>{b.Add(sample.op, inputs, "y", sample.attrs, exprs)}
          : std::vector<Expected<ValueId>>{};
  std::vector<ValueId> values;
  if (sample.results == 1) {
    if (!results[0]) return std::nullopt;
    values.push_back(*results[0]);
  } else {
    auto all = b.AddAll(sample.op, sample.results, inputs, "y", sample.attrs, exprs);
    if (!all) return std::nullopt;
    values = *all;
  }
  for (size_t i = 0; i < values.size(); ++i) b.Output(fmt::format("y{}", i), values[i]);
  return std::move(b).Finish();
}

Status CompileGraph(graph::Graph g, int opt_level, const std::string& path) {
  CompileOptions options;
  options.opt_level = opt_level;
  TN_ASSIGN_OR_RETURN(const Target target, Target::Parse("llvm"));
  TN_ASSIGN_OR_RETURN(const Target host, PlainHost());
  const Machine machine = Machine::Of(target), build_machine = Machine::Of(host);
  TN_ASSIGN_OR_RETURN(g, RunGraphPasses(std::move(g), machine, options, nullptr, {}));
  TN_ASSIGN_OR_RETURN(const graph::LoweredNetwork network,
                      graph::Lower(g, {&machine, &build_machine, "main", opt_level > 1}));
  BuildRequest request = RequestOf(network, machine, build_machine);
  request.outputs = {{"so", path}};
  TN_RETURN_IF_ERROR(Build(request));
  return Ok();
}

/// A tensor in guarded memory.
struct Guarded {
  std::vector<int64_t> shape;
  tenon::test::GuardedBytes bytes;
  tn_dl_tensor view;

  explicit Guarded(const graph::TensorType& type)
      : shape(*type.StaticDims()),
        bytes(static_cast<size_t>(*graph::StaticCount(type.dims) * type.dtype.Bytes())),
        view{bytes.data(),
             {TN_DL_CPU, 0},
             type.rank(),
             AbiTypeOf(type.dtype),
             shape.data(),
             nullptr,
             0} {}

  static tn_dl_data_type AbiTypeOf(DType type) {
    const uint8_t code = type.IsBool()                    ? TN_DL_BOOL
                         : type.code == TypeCode::kBFloat ? TN_DL_BFLOAT
                         : type.IsFloat()                 ? TN_DL_FLOAT
                         : type.code == TypeCode::kUInt   ? TN_DL_UINT
                                                          : TN_DL_INT;
    return {code, static_cast<uint8_t>(type.StorageBits()), 1};
  }
};

// The bytes of all results.
Expected<std::vector<std::string>> Run(const std::string& path, const graph::Graph& g) {
  tn_module_t* module = nullptr;
  tn_packed_fn main = nullptr;
  if (tn_module_load(path.c_str(), &module) != 0 ||
      tn_module_get_function(module, "main", &main) != 0)
    return MakeError(tn_last_error(nullptr));
  std::mt19937 random(5);
  std::vector<std::unique_ptr<Guarded>> tensors;
  for (ValueId v : g.inputs) {
    const graph::TensorType& type = g.type(v);
    tensors.push_back(std::make_unique<Guarded>(type));
    std::vector<int64_t> numbers = Numbers(type, &random);
    std::vector<double> reals(numbers.begin(), numbers.end());
    const graph::Payload payload =
        type.dtype.IsFloat() ? graph::MakePayload(type.dtype, std::span<const double>(reals))
                             : graph::MakePayload(type.dtype, std::span<const int64_t>(numbers));
    const auto from = payload.bytes();
    if (!from.empty()) std::memcpy(tensors.back()->bytes.data(), from.data(), from.size());
  }
  for (ValueId v : g.outputs) tensors.push_back(std::make_unique<Guarded>(g.type(v)));
  std::vector<tn_ffi_any> args;
  for (const auto& t : tensors) {
    args.push_back({TN_FFI_DL_TENSOR_PTR, 0, {}});
    args.back().u.v_ptr = &t->view;
  }
  tn_ffi_any result;
  const int32_t status =
      tn_call(main, nullptr, args.data(), static_cast<int32_t>(args.size()), &result);
  std::vector<std::string> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(tensors[i]->bytes.FrontIntact());
    if (i < g.inputs.size()) continue;
    out.emplace_back(static_cast<const char*>(tensors[i]->bytes.data()), tensors[i]->bytes.size());
  }
  const std::string error = status == 0 ? "" : tn_last_error(nullptr);
  tn_module_free(module);
  if (status != 0) return MakeError(error);
  return out;
}

void ExpectSame(const graph::TensorType& type, const std::string& want, const std::string& got) {
  if (!type.dtype.IsFloat() || type.dtype.bits != 32) {
    if (!type.dtype.IsFloat()) EXPECT_EQ(want, got);
    return;
  }
  for (size_t i = 0; i < want.size(); i += sizeof(float)) {
    float a, b;
    std::memcpy(&a, want.data() + i, sizeof a);
    std::memcpy(&b, got.data() + i, sizeof b);
    const bool same = a == b || (std::isnan(a) && std::isnan(b)) ||
                      std::fabs(a - b) <= 1e-4f * (1 + std::fabs(a));
    EXPECT_TRUE(same) << "element " << i / sizeof a << ": " << a << " and " << b;
  }
}

void Check(const Sample& sample, const Sizes& sizes, const Folder& folder) {
  const size_t operands = Split(sample.inputs, ' ').size();
  for (const size_t known : std::set<size_t>{0, operands - 1}) {
    const std::optional<graph::Graph> g = GraphOf(sample, sizes, known);
    if (!g) continue;
    std::vector<std::vector<std::string>> results;
    for (int opt_level : {0, 2}) {
      SCOPED_TRACE(graph::Print(*g) + fmt::format("-O{}", opt_level));
      const std::string path = folder / "m.so";
      const Status compiled = CompileGraph(*g, opt_level, path);
      ASSERT_TRUE(compiled) << ToString(compiled.errors());
      auto result = Run(path, *g);
      ASSERT_TRUE(result) << ToString(result.errors());
      results.push_back(std::move(*result));
    }
    SCOPED_TRACE(graph::Print(*g));
    for (size_t i = 0; i < g->outputs.size(); ++i)
      ExpectSame(g->type(g->outputs[i]), results[0][i], results[1][i]);
  }
}

TEST(SmallDims, EveryOperatorIsThere) {
  // One defines a size and takes a scalar alone; the other gives what it takes.
  std::set<OpKind> there = {OpKind::kDim, OpKind::kRequire};
  for (const Sample& s : Samples()) there.insert(s.op);
  for (const graph::OpInfo& info : graph::AllOps())
    EXPECT_TRUE(info.num_regions > 0 || there.contains(info.kind)) << info.name;
}

class SmallDims : public testing::TestWithParam<size_t> {};

TEST_P(SmallDims, CompileAndStayInside) {
  const Sample& sample = Samples()[GetParam()];
  Sizes usual;
  for (const std::string& word : Split(sample.inputs, ' ')) {
    for (char c : word.substr(word.find('['))) {
      if (std::isalpha(static_cast<unsigned char>(c)))
        usual.try_emplace(c, static_cast<int64_t>(usual.size() % 4) + 2);
    }
  }
  for (const auto& [name, text] : sample.exprs) {
    for (char c : text) {
      if (std::isalpha(static_cast<unsigned char>(c))) usual.try_emplace(c, 3);
    }
  }
  // Element by element, one size is like another.
  const graph::IndexMapClass map = graph::Info(sample.op).map;
  const bool is_plain = map == graph::IndexMapClass::kElementwise ||
                        (map == graph::IndexMapClass::kBroadcast && sample.attrs.empty());
  const Folder folder;
  for (int64_t size : {0, 1}) {
    Sizes all;
    for (const auto& [letter, is] : usual) {
      Sizes one = usual;
      one[letter] = all[letter] = size;
      if (!is_plain || letter == 'b') Check(sample, one, folder);
    }
    Check(sample, all, folder);
  }
}

std::string NameOf(const testing::TestParamInfo<size_t>& info) {
  return fmt::format("{}_{}", graph::Name(Samples()[info.param].op), info.param);
}
INSTANTIATE_TEST_SUITE_P(Operators, SmallDims, testing::Range(size_t{0}, Samples().size()), NameOf);

}  // namespace
}  // namespace tenon::driver::test
