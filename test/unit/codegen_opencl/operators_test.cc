// Every operator on every type on an OpenCL device, where there is one: a kernel for each type and
// each way of moving its elements.
#include <functional>

#include "opencl.h"
#include "unit/codegen/edge_values.h"
#include "unit/codegen/operators.h"

namespace tenon {
namespace {

using test::Applies;
using test::DataTypes;
using test::EdgeValues;
using test::kBinaryOps;
using test::OpenClCode;

constexpr int64_t kCount = 156;  // of elements, a multiple of the lanes

using Lanewise = std::function<Expr(const std::vector<Expr>&)>;

/// Collects what is computed of the inputs' elements, each into an output of its own.
class Elementwise {
 public:
  Elementwise(std::vector<DType> inputs, int32_t lanes) : lanes_(lanes) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      buffers_.push_back(FlatBuffer("in" + std::to_string(i), inputs[i]));
      args_.push_back(InterpArg::Tensor(inputs[i], {kCount}, EdgeValues(inputs[i], kCount, i + 1)));
    }
    index_ = thread_ * lanes_;
    if (lanes_ > 1) index_ = Ramp::Make(index_, IndexConst(1), lanes_);
    for (const Buffer& b : buffers_) elements_.push_back(Load::Make(b, {index_}));
  }

  void Add(const std::string& name, DType out, const Lanewise& f) {
    buffers_.push_back(FlatBuffer(name, out));
    args_.push_back(InterpArg::Output(out, {kCount}));
    body_.push_back(Store::Make(buffers_.back(), {index_}, f(elements_)));
  }

  void Check(bool any_zero = false) {
    PrimFunc f;
    f.name = "f";
    f.target = Target::Parse("opencl").value();
    f.buffers = buffers_;
    f.num_outputs = static_cast<int64_t>(body_.size());
    f.attrs.Set("bound", true);
    f.body = For::Make(thread_, IndexConst(0), IndexConst(kCount / lanes_), ForKind::kThread,
                       Seq::Make(body_), {}, ThreadAxis::kThreadIdxX);
    Module m;
    m.Add(PrimFunc::Make(std::move(f)));
    OpenClCode code(m);
    test::ExpectSame(m, &code, "f", args_, {}, any_zero);
  }

 private:
  static Buffer FlatBuffer(const std::string& name, DType type) {
    return BufferNode::Make(name, type, {IndexConst(kCount)}, Scope::kGlobal, nullptr, {}, 16);
  }

  int32_t lanes_;
  Var thread_ = VarNode::Make("t");
  Expr index_;
  std::vector<Buffer> buffers_;
  std::vector<InterpArg> args_;
  std::vector<Expr> elements_;
  std::vector<Stmt> body_;
};

void AddBinary(DType type, Elementwise* kernel) {
  for (BinaryOp op : kBinaryOps) {
    if (!Applies(op, type)) continue;
    const DType out = Info(op).is_comparison ? DType::Bool() : type;
    kernel->Add(fmt::format("b{}", static_cast<int>(op)), out,
                [&](const auto& a) { return Binary::Make(op, a[0], a[1]); });
  }
}

void AddUnary(DType type, Elementwise* kernel) {
  if (type.IsBool()) {
    return kernel->Add("not_", type, [](const auto& a) { return Not(a[0]); });
  }
  auto call = [&](Intrinsic i, DType out) {
    kernel->Add(std::string("u_") + Info(i).text, out,
                [i](const auto& a) { return Call::Make(i, {a[0]}); });
  };
  kernel->Add("neg", type, [](const auto& a) { return -a[0]; });
  call(Intrinsic::kAbs, type);
  if (!type.IsFloat()) {
    call(Intrinsic::kPopCount, type);
    call(Intrinsic::kClz, type);
    return kernel->Add("bitnot", type,
                       [](const auto& a) { return Unary::Make(UnaryOp::kBitNot, a[0]); });
  }
  for (Intrinsic i : {Intrinsic::kSqrt, Intrinsic::kFloor, Intrinsic::kCeil, Intrinsic::kTrunc,
                      Intrinsic::kRoundEven}) {
    call(i, type);
  }
  call(Intrinsic::kIsNan, DType::Bool());
  call(Intrinsic::kIsInf, DType::Bool());
}

class OpenClOperators : public ::testing::TestWithParam<int32_t> {};

TEST_P(OpenClOperators, MeanWhatTheInterpreterSays) {
  NEEDS_OPENCL();
  for (DType type : DataTypes()) {
    SCOPED_TRACE(type.ToString());
    Elementwise kernel({type, type}, GetParam());
    AddBinary(type, &kernel);
    AddUnary(type, &kernel);
    kernel.Check(/*any_zero=*/true);
  }
}

TEST_P(OpenClOperators, CastsRoundAndSaturate) {
  NEEDS_OPENCL();
  for (DType from : DataTypes()) {
    SCOPED_TRACE(from.ToString());
    Elementwise kernel({from}, GetParam());
    for (DType to : DataTypes()) {
      kernel.Add("to_" + to.ToString(), to,
                 [&](const auto& a) { return CastExpr::Make(to, a[0]); });
    }
    kernel.Check();
  }
}

// Elements one by one, and four in one access.
INSTANTIATE_TEST_SUITE_P(Lanes, OpenClOperators, ::testing::Values(1, 4));

}  // namespace
}  // namespace tenon
