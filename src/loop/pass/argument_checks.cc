#include "loop/pass/argument_checks.h"

#include <fmt/format.h>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "loop/pass/packed_abi.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in the one file made of
                         // them

namespace {

uint8_t DlCode(DType type) {
  switch (type.code) {
    case TypeCode::kInt:
    case TypeCode::kIndex: return 0;
    case TypeCode::kUInt: return 1;
    case TypeCode::kFloat: return 2;
    case TypeCode::kHandle: return 3;
    case TypeCode::kBFloat: return 4;
    case TypeCode::kBool: return 6;
  }
  TN_UNREACHABLE();
}

Expr Product(const std::vector<Expr>& factors, size_t first) {
  Expr product = IndexConst(1);
  for (size_t i = first; i < factors.size(); ++i) product = product * factors[i];
  return product;
}

}  // namespace

int64_t packed::PackedDType(DType type) {
  return DlCode(type) | int64_t{type.StorageBits()} << 8 | int64_t{type.lanes} << 16;
}

std::string SignatureText(const PrimFunc& func, const std::string& name, size_t num_params) {
  std::vector<std::string> params;
  for (size_t i = 0; i < num_params; ++i) {
    const BufferNode& b = *func.buffers[i];
    std::vector<std::string> dims;
    for (const Expr& d : b.shape) dims.push_back(ToString(d));
    params.push_back(
        fmt::format("{}: Tensor([{}], {})", b.name, Join(dims, ", "), LongName(b.dtype)));
  }
  return fmt::format("{}({})", name, Join(params, ", "));
}

/// One argument while it is being checked.
struct ArgumentChecker::Argument {
  const BufferNode& buffer;
  Expr tensor;  // address of the DLTensor
  Expr shape;   // address of its dims

  Expr Dim(size_t d) const { return LoadAt(DType::Index(), shape, static_cast<int64_t>(d) * 8); }
  std::string Place(size_t d) const { return fmt::format("{}.shape[{}]", buffer.name, d); }
};

ArgumentChecker::ArgumentChecker(const PrimFunc& func, std::string signature, Expr args,
                                 Expr closure, int pointer_bits)
    : func_(func),
      fields_(pointer_bits == 32 ? kFields32 : kFields64),
      signature_(std::move(signature)),
      args_(std::move(args)),
      closure_(std::move(closure)) {}

Stmt ArgumentChecker::Fail(Expr condition, const char* kind, std::vector<Expr> parts) const {
  parts.push_back(Text(fmt::format("\nwhen calling: `{}`", signature_)));
  return Assert::Make(std::move(condition), kind, std::move(parts));
}

void ArgumentChecker::Check(size_t i, StmtList* list) {
  const BufferNode& b = *func_.buffers[i];
  const int64_t any = static_cast<int64_t>(i) * kAnyBytes;
  auto expects = [&](const std::string& what) {
    return Text(fmt::format("Parameter `{}` expects {}", b.name, what));
  };

  Var type = list->Define(b.name + ".type_index", LoadAt(DType::Int(32), args_, any));
  list->Add(Fail(Or(Eq(type, I32(kTensor)), Eq(type, I32(kDlTensorPtr))), "TypeError",
                 {expects("tensor but got type_index="), type}));
  Var object = list->Define(b.name + ".object", LoadAt(DType::Handle(), args_, any + kAnyValue));
  Expr behind_header = At(object, kObjectHeaderBytes);
  Var tensor =
      list->Define(b.name + ".tensor", Select::Make(Eq(type, I32(kTensor)), behind_header, object));

  Expr ndim = LoadAt(DType::Int(32), tensor, fields_.ndim);
  list->Add(Fail(Eq(ndim, I32(b.rank())), "ValueError",
                 {expects(fmt::format("ndim={} but got ndim=", b.rank())), ndim}));
  Expr dtype = LoadAt(DType::UInt(32), tensor, fields_.dtype);
  list->Add(Fail(Eq(dtype, IntConst::Make(DType::UInt(32), PackedDType(b.dtype))), "TypeError",
                 {expects(fmt::format("dtype={} but got dtype=", LongName(b.dtype))),
                  Call::Make(Intrinsic::kDTypeName, {dtype}, DType::Handle())}));
  Expr device = LoadAt(DType::Int(32), tensor, fields_.device_type);
  list->Add(Fail(Eq(device, I32(kCpu)), "ValueError",
                 {expects("device=cpu but got device="),
                  Call::Make(Intrinsic::kDeviceName, {device}, DType::Handle())}));

  Var shape = list->Define(b.name + ".shape", LoadAt(DType::Handle(), tensor, fields_.shape));
  Argument a{b, tensor, shape};
  for (size_t d = 0; d < b.shape.size(); ++d) CheckDim(a, d, list);
  CheckStrides(a, list);

  Expr offset = LoadAt(DType::Index(), tensor, fields_.byte_offset);
  Expr start = LoadAt(DType::Handle(), tensor, fields_.data);
  Var data = list->Define(b.name + ".data", Call::Make(Intrinsic::kPtrOffset, {start, offset}));
  const int64_t align = std::max<int64_t>(b.dtype.Bytes(), b.align);
  if (align > 1) {
    Expr rest = Binary::Make(BinaryOp::kBitAnd, Bits(data), I64(align - 1));
    list->Add(Fail(Eq(rest, I64(0)), "ValueError",
                   {expects(fmt::format("data aligned to {} bytes but its address modulo {} is ",
                                        align, align)),
                    rest}));
  }
  list->Add(StoreAt(closure_, static_cast<int64_t>(i) * kSlotBytes, data));
}

void ArgumentChecker::CheckDim(const Argument& a, size_t d, StmtList* list) {
  const Expr& expected = a.buffer.shape[d];
  Expr got = a.Dim(d);
  const auto* var = As<VarNode>(expected);
  if (var && known_.count(var) == 0) return DefineDim(a, d, Var(var), list);
  if (var) {
    list->Add(Fail(Eq(got, expected), "ValueError",
                   {Text(fmt::format("Shape mismatch: {}=", var->name)), expected,
                    Text(fmt::format(" (from {}) but {}=", known_[var], a.Place(d))), got}));
    return;
  }
  Expr value = Simplify(expected);
  std::string text = AsInt(value) ? ToString(value) : ToString(expected) + "=";
  std::vector<Expr> parts = {
      Text(fmt::format("Parameter `{}` expects shape[{}]={}", a.buffer.name, d, text))};
  if (!AsInt(value)) parts.push_back(value);
  parts.push_back(Text(fmt::format(" but got shape[{}]=", d)));
  parts.push_back(got);
  list->Add(Fail(Eq(got, value), "ValueError", std::move(parts)));
}

void ArgumentChecker::DefineDim(const Argument& a, size_t d, const Var& dim, StmtList* list) {
  size_t index = 0;
  while (func_.dims[index] != dim) ++index;
  DimRange range = func_.dim_range(index);
  Expr got = a.Dim(d);
  auto expects = [&](const std::string& what) {
    return std::vector<Expr>{
        Text(fmt::format("Parameter `{}` expects shape[{}] {} but got shape[{}]=", a.buffer.name, d,
                         what, d)),
        got};
  };
  if (range.hi >= 0) {
    list->Add(Fail(And(Ge(got, IndexConst(range.lo)), Le(got, IndexConst(range.hi))), "ValueError",
                   expects(fmt::format("in {}..={}", range.lo, range.hi))));
  } else {
    list->Add(Fail(Ge(got, IndexConst(range.lo)), "ValueError",
                   expects(fmt::format("at least {}", range.lo))));
  }
  if (range.step > 1) {
    list->Add(Fail(Eq((got - range.lo) % range.step, IndexConst(0)), "ValueError",
                   expects(fmt::format("in {} + multiples of {}", range.lo, range.step))));
  }
  known_[dim.get()] = a.Place(d);
  list->Open([dim, got](Stmt body) { return Let::Make(dim, got, std::move(body)); });
  int64_t slot = static_cast<int64_t>(func_.buffers.size() + index);
  list->Add(StoreAt(closure_, slot * kSlotBytes, dim));
}

void ArgumentChecker::CheckStrides(const Argument& a, StmtList* list) {
  if (a.buffer.rank() == 0) return;
  // A null pointer says compact. The strides of an empty tensor lead nowhere.
  Expr strides = LoadAt(DType::Handle(), a.tensor, fields_.strides);
  Expr given = Ne(Bits(strides), I64(0));
  std::vector<Stmt> checks;
  Expr empty = Eq(Product(a.buffer.shape, 0), IndexConst(0));
  for (size_t d = 0; d < a.buffer.shape.size(); ++d) {
    Expr stride = LoadAt(DType::Index(), strides, static_cast<int64_t>(d) * 8);
    Expr compact = Product(a.buffer.shape, d + 1);
    Expr fine = Or(Eq(stride, compact), Or(Eq(a.buffer.shape[d], IndexConst(1)), empty));
    checks.push_back(
        Fail(Simplify(fine), "ValueError",
             {Text(fmt::format(
                  "Parameter `{}` expects compact strides, strides[{}]=", a.buffer.name, d)),
              Simplify(compact), Text(fmt::format(" but got strides[{}]=", d)), stride}));
  }
  list->Add(If::Make(given, Seq::Make(std::move(checks))));
}

void ArgumentChecker::CheckApart(size_t i, size_t j, StmtList* list) {
  auto start = [&](size_t k) {
    return Bits(LoadAt(DType::Handle(), closure_, static_cast<int64_t>(k) * kSlotBytes));
  };
  auto bytes = [&](size_t k) {
    const BufferNode& b = *func_.buffers[k];
    return CastExpr::Make(DType::Int(64), Simplify(Product(b.shape, 0) * b.dtype.Bytes()));
  };
  Expr apart = Or(Le(start(i) + bytes(i), start(j)), Le(start(j) + bytes(j), start(i)));
  Expr empty = Or(Eq(bytes(i), I64(0)), Eq(bytes(j), I64(0)));
  list->Add(Fail(Simplify(Or(apart, empty)), "ValueError",
                 {Text(fmt::format("Parameter `{}` expects memory of its own but it overlaps `{}`",
                                   func_.buffers[i]->name, func_.buffers[j]->name))}));
}

}  // namespace tenon
