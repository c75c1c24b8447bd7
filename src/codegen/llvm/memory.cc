// Loads and stores: how an index expression becomes an address and an access.
//
// An index that is a vector is read as base + lane * stride. Stride 0 is one load and a splat, 1 a
// vector load, -1 a vector load turned around, 2 of elements of 16 bits one half of the words of a
// vector load. Lanes at other distances that are known and small are picked from the few vectors
// that have them, anything else is a gather. The alignment that LLVM is
// told is what divides both the buffer's and the offset's known multiple:
//
//   B[ramp(k * 32 + 8, 1, 8)]    with B at 64 bytes:
//   %30 = getelementptr inbounds float, ptr %1, i64 %29        %29 = k * 32 + 8
//   %31 = load <8 x float>, ptr %30, align 32
//
// since k * 32 + 8 floats are a multiple of 32 bytes. A buffer on the stack whose places are
// constants needs no masks: all of its lanes exist.

#include <llvm/IR/Constants.h>

#include <bit>
#include <numeric>

#include "arith/modular.h"
#include "codegen/llvm/expr_emitter.h"
#include "codegen/llvm/lane_distances.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

unsigned LanesOf(llvm::Type* type) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return v ? v->getNumElements() : 1;
}

// The largest power of two that divides both; both are positive or `offset` is 0.
llvm::Align CommonAlign(int64_t align, int64_t offset) {
  const uint64_t g = static_cast<uint64_t>(std::gcd(align, offset));
  return llvm::Align(std::min<uint64_t>(g & (~g + 1), 4096));
}

std::vector<int> Reversed(unsigned lanes) {
  std::vector<int> order;
  for (unsigned i = 0; i < lanes; ++i) order.push_back(static_cast<int>(lanes - 1 - i));
  return order;
}

}  // namespace

/// How the lanes of an access lie in memory.
struct ExprEmitter::Access {
  enum class Shape { kScalar, kSplat, kContiguous, kReversed, kScattered };
  Shape shape = Shape::kScalar;
  Value* address =
      nullptr;  // of the lowest lane in memory; of all lanes when scattered. Null: failed
  llvm::Align align{1};
};

const BufferPlace* ExprEmitter::PlaceOf(const Buffer& buffer) {
  auto it = buffers_.find(buffer.get());
  return it == buffers_.end() ? nullptr : &it->second;
}

ExprEmitter::Affine ExprEmitter::AsAffineBinary(const Binary& b) {
  if (b.op == BinaryOp::kMul) {
    const auto factor = AsInt(b.rhs) ? AsInt(b.rhs) : AsInt(b.lhs);
    if (!factor) return {};
    Affine a = AsAffine(AsInt(b.rhs) ? b.lhs : b.rhs);
    if (!a.base) return {};
    Value* scale = llvm::ConstantInt::getSigned(a.base->getType(), *factor);
    return {ir_.CreateNSWMul(a.base, scale), a.stride * *factor, a.multiple * std::abs(*factor)};
  }
  if (b.op != BinaryOp::kAdd && b.op != BinaryOp::kSub) return {};
  Affine l = AsAffine(b.lhs);
  Affine r = l.base ? AsAffine(b.rhs) : Affine{};
  if (!r.base) return {};
  const int64_t multiple = std::gcd(l.multiple, r.multiple);
  if (b.op == BinaryOp::kAdd) {
    return {ir_.CreateNSWAdd(l.base, r.base), l.stride + r.stride, multiple};
  }
  return {ir_.CreateNSWSub(l.base, r.base), l.stride - r.stride, multiple};
}

// A vector of indices as base + lane × constant.
ExprEmitter::Affine ExprEmitter::AsAffine(const Expr& index) {
  if (const auto* ramp = As<Ramp>(index)) {
    auto stride = AsInt(ramp->stride);
    if (!stride) return {};
    return {Emit(ramp->base), *stride, MultipleOf(facts_.Modular(ramp->base))};
  }
  if (const auto* b = As<Broadcast>(index)) {
    return {Emit(b->value), 0, MultipleOf(facts_.Modular(b->value))};
  }
  if (const auto* b = As<Binary>(index)) return AsAffineBinary(*b);
  return {};
}

ExprEmitter::Access ExprEmitter::Locate(const Buffer& buffer, const std::vector<Expr>& indices,
                                        bool in_bounds) {
  const BufferPlace* place = PlaceOf(buffer);
  TN_CHECK(place, "buffer {} of {} is used outside its scope", buffer->name, func_.name);
  if (indices.size() > 1 || buffer->layout || buffer->dtype.StorageBits() % 8 != 0) {
    Unsupported("buffer " + buffer->name +
                    " with several dimensions, a layout or packed elements in code generation",
                buffer->dtype);
    return {};
  }
  llvm::Type* element = values_.MemoryTypeOf(buffer->dtype);
  const int64_t bytes = buffer->dtype.Bytes();
  auto address = [&](Value* index) {
    return in_bounds ? ir_.CreateInBoundsGEP(element, place->base, index)
                     : ir_.CreateGEP(element, place->base, index);
  };
  if (indices.empty()) return {Access::Shape::kScalar, place->base, CommonAlign(place->align, 0)};
  const Expr& index = indices[0];
  if (index->dtype.IsScalar()) {
    const int64_t offset = MultipleOf(facts_.Modular(index)) * bytes;
    return {Access::Shape::kScalar, address(Emit(index)), CommonAlign(place->align, offset)};
  }
  const int32_t lanes = index->dtype.lanes;
  Affine a = AsAffine(index);
  if (a.base && (a.stride == 0 || a.stride == 1)) {
    auto shape = a.stride == 0 ? Access::Shape::kSplat : Access::Shape::kContiguous;
    return {shape, address(a.base), CommonAlign(place->align, a.multiple * bytes)};
  }
  if (a.base && a.stride == -1) {
    Value* lowest = ir_.CreateNSWSub(
        a.base, llvm::ConstantInt::get(a.base->getType(), static_cast<uint64_t>(lanes - 1)));
    return {Access::Shape::kReversed, address(lowest), CommonAlign(place->align, bytes)};
  }
  return {Access::Shape::kScattered, address(Emit(index)), CommonAlign(place->align, bytes)};
}

Value* ExprEmitter::ElementAddress(const Buffer& buffer, const std::vector<Expr>& indices) {
  Access access = Locate(buffer, indices, /*in_bounds=*/false);
  return access.address ? access.address : llvm::PoisonValue::get(ir_.getPtrTy());
}

static std::vector<Expr> FirstOf(const Region& region) {
  std::vector<Expr> first;
  for (const Range& r : region->ranges) first.push_back(r->min);
  return first;
}

Value* ExprEmitter::LoadAt(const Region& region, llvm::Type* type) {
  Access access = Locate(region->buffer, FirstOf(region), /*in_bounds=*/true);
  if (!access.address) return llvm::PoisonValue::get(type);
  return ir_.CreateAlignedLoad(type, access.address, access.align);
}

void ExprEmitter::StoreAt(const Region& region, Value* value) {
  Access access = Locate(region->buffer, FirstOf(region), /*in_bounds=*/true);
  if (access.address) ir_.CreateAlignedStore(value, access.address, access.align);
}

// ---- loads ----

Value* ExprEmitter::LoadVector(const Access& access, llvm::Type* type, Value* mask) {
  Value* none = llvm::Constant::getNullValue(type);
  const unsigned lanes = LanesOf(type);
  switch (access.shape) {
    case Access::Shape::kScalar: break;
    case Access::Shape::kSplat: {
      llvm::Type* element = type->getScalarType();
      auto load = [&] {
        Value* v = ir_.CreateAlignedLoad(element, access.address, access.align);
        return ir_.CreateVectorSplat(lanes, v);
      };
      if (!mask) return load();
      Value* v = Branch(values_.Any(mask), load, [&] { return none; });
      return ir_.CreateSelect(mask, v, none);
    }
    case Access::Shape::kContiguous:
      if (!mask) return ir_.CreateAlignedLoad(type, access.address, access.align);
      return ir_.CreateMaskedLoad(type, access.address, access.align, mask, none);
    case Access::Shape::kReversed: {
      if (mask) mask = ir_.CreateShuffleVector(mask, Reversed(lanes));
      Value* v =
          mask ? ir_.CreateMaskedLoad(type, access.address, access.align, mask, none)
               : static_cast<Value*>(ir_.CreateAlignedLoad(type, access.address, access.align));
      return ir_.CreateShuffleVector(v, Reversed(lanes));
    }
    case Access::Shape::kScattered:
      return ir_.CreateMaskedGather(type, access.address, access.align, mask,
                                    mask ? none : nullptr);
  }
  TN_UNREACHABLE();
}

Value* ExprEmitter::LoadFrom(const Access& access, DType type, Value* mask) {
  llvm::Type* memory = values_.MemoryTypeOf(type);
  if (access.shape != Access::Shape::kScalar) {
    return values_.FromMemory(type, LoadVector(access, memory, mask));
  }
  auto load = [&] {
    return values_.FromMemory(type, ir_.CreateAlignedLoad(memory, access.address, access.align));
  };
  if (!mask) return load();
  return Branch(mask, load, [&] { return values_.Zero(type); });
}

// Every other element of 16 bits, as the first or the second halves of words: who converts them to
// f32 shifts or masks these, and the words that both halves come from are loaded once. A word that
// has one half in a caller's memory is on one page with it. Null: it is no such load.
Value* ExprEmitter::LoadHalves(const Load& n) {
  constexpr int64_t kWordBytes = 4;
  const auto* ramp = n.indices.size() == 1 ? As<Ramp>(n.indices[0]) : nullptr;
  const BufferPlace* place = PlaceOf(n.buffer);
  if (!ramp || !place || AsInt(ramp->stride) != 2 || n.buffer->scope != Scope::kGlobal ||
      n.buffer->dtype.StorageBits() != 16 || place->align % kWordBytes != 0) {
    return nullptr;
  }
  const ModularSet at = facts_.Modular(ramp->base);
  if (at.coefficient % 2 != 0) return nullptr;
  const bool second = at.base % 2 != 0;
  Value* word = ir_.CreateAShr(Emit(ramp->base), 1);
  const auto lanes = static_cast<unsigned>(ramp->dtype.lanes);
  auto* words = llvm::FixedVectorType::get(ir_.getInt32Ty(), lanes);
  const int64_t multiple = MultipleOf(FloorDiv(at, 2)) * kWordBytes;
  Value* loaded =
      ir_.CreateAlignedLoad(words, ir_.CreateInBoundsGEP(ir_.getInt32Ty(), place->base, word),
                            CommonAlign(place->align, multiple));
  if (second) loaded = ir_.CreateLShr(loaded, 16);
  Value* halves = ir_.CreateTrunc(loaded, llvm::FixedVectorType::get(ir_.getInt16Ty(), lanes));
  llvm::Type* memory = values_.MemoryTypeOf(n.dtype);
  return values_.FromMemory(n.dtype, ir_.CreateBitCast(halves, memory));
}

// Lanes that lie near each other, at distances that are known: of the vectors that span them. What
// lies between two elements of a buffer may be read. Null: it is no such load.
Value* ExprEmitter::LoadNear(const Load& n) {
  constexpr int64_t kMostVectors = 4;
  const BufferPlace* place = PlaceOf(n.buffer);
  if (!place || n.indices.size() != 1 || n.buffer->layout ||
      n.buffer->dtype.StorageBits() % 8 != 0) {
    return nullptr;
  }
  const std::optional<LaneDistances> at = DistancesOf(n.indices[0], &facts_);
  if (!at || at->IsRow()) return nullptr;
  const int64_t lanes = n.dtype.lanes, span = at->Span();
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(span)));
  const int64_t width = std::min<int64_t>(lanes, whole), count = (span + width - 1) / width;
  if (count > kMostVectors || 2 * count > lanes) return nullptr;
  llvm::Type* element = values_.MemoryTypeOf(n.buffer->dtype);
  auto* part = llvm::FixedVectorType::get(element, static_cast<unsigned>(width));
  const int64_t bytes = n.buffer->dtype.Bytes(), multiple = MultipleOf(facts_.Modular(at->base));
  Value* base = ir_.CreateInBoundsGEP(element, place->base, Emit(at->base));
  const auto begin = [&](int64_t i) { return std::min(i * width, span - width); };
  const auto load = [&](int64_t i) -> Value* {
    if (i >= count) return llvm::PoisonValue::get(part);
    Value* address = ir_.CreateConstInBoundsGEP1_64(element, base, static_cast<uint64_t>(begin(i)));
    return ir_.CreateAlignedLoad(part, address,
                                 CommonAlign(place->align, std::gcd(multiple, begin(i)) * bytes));
  };
  // Of two vectors beside each other, the lanes that they have.
  const auto pick = [&](int64_t first) {
    std::vector<int> lane_of;
    for (const int64_t d : at->distance) {
      const int64_t in = std::min(d / width, count - 1);
      const int64_t lane = d - begin(in) + (in - first) * width;
      lane_of.push_back(in == first || in == first + 1 ? static_cast<int>(lane) : -1);
    }
    return ir_.CreateShuffleVector(load(first), load(first + 1), lane_of);
  };
  Value* out = pick(0);
  if (count > 2) {
    std::vector<int> from;
    for (size_t l = 0; l < at->distance.size(); ++l) {
      const bool behind = at->distance[l] / width >= 2;
      from.push_back(static_cast<int>(behind ? at->distance.size() + l : l));
    }
    out = ir_.CreateShuffleVector(out, pick(2), from);
  }
  return values_.FromMemory(n.dtype, out);
}

Value* ExprEmitter::VisitLoad(const Load& n, const Expr& e) {
  if (Value* value = Known(e, &Memo::loads)) return value;
  Value* mask = n.mask ? Emit(n.mask) : nullptr;
  Value* guard = nullptr;      // a scalar condition for the whole load
  if (guard_ && !IsSafe(n)) {  // a masked load would keep the buffer in memory
    const bool lanewise = LanesOf(guard_->getType()) == static_cast<unsigned>(n.dtype.lanes);
    if (!lanewise) guard = values_.Any(guard_);
    if (lanewise) mask = mask ? ir_.CreateAnd(mask, guard_) : guard_;
  }
  auto load = [&]() -> Value* {
    if (!mask) {
      if (Value* halves = LoadHalves(n)) return halves;
      if (Value* near = LoadNear(n)) return near;
    }
    Access access = Locate(n.buffer, n.indices, /*in_bounds=*/!mask);
    if (!access.address) return llvm::PoisonValue::get(values_.TypeOf(n.dtype));
    return LoadFrom(access, n.dtype, mask);
  };
  Value* v = nullptr;
  if (guard) {
    scopes_.emplace_back();
    v = Branch(guard, load, [&] { return values_.Zero(n.dtype); });
    scopes_.pop_back();
  } else {
    v = load();
  }
  scopes_.back().loads.emplace_back(e, v);
  return v;
}

// ---- stores ----

void ExprEmitter::StoreVector(const Access& access, Value* value, Value* mask) {
  const unsigned lanes = LanesOf(value->getType());
  switch (access.shape) {
    case Access::Shape::kScalar: break;
    case Access::Shape::kContiguous:
    case Access::Shape::kReversed:
      if (access.shape == Access::Shape::kReversed) {
        value = ir_.CreateShuffleVector(value, Reversed(lanes));
        if (mask) mask = ir_.CreateShuffleVector(mask, Reversed(lanes));
      }
      if (mask) {
        ir_.CreateMaskedStore(value, access.address, access.align, mask);
      } else {
        ir_.CreateAlignedStore(value, access.address, access.align);
      }
      return;
    case Access::Shape::kSplat:  // the last lane that is on stays
    case Access::Shape::kScattered: {
      Value* addresses = access.address;
      if (!addresses->getType()->isVectorTy()) addresses = ir_.CreateVectorSplat(lanes, addresses);
      ir_.CreateMaskedScatter(value, addresses, access.align, mask);
      return;
    }
  }
  TN_UNREACHABLE();
}

// True for constant places of a register buffer: the buffer is this worker's own, and all lanes
// exist.
static bool IsWithin(const BufferNode& buffer, const std::vector<Expr>& indices) {
  if (buffer.scope != Scope::kRegister || indices.size() != 1) return false;
  const auto* ramp = As<Ramp>(indices[0]);
  const auto base = ramp ? AsInt(ramp->base) : std::nullopt;
  const auto size = AsInt(buffer.shape[0]);
  return base && size && *base >= 0 && *base + ramp->dtype.lanes <= *size;
}

void ExprEmitter::EmitStore(const Buffer& buffer, const std::vector<Expr>& indices,
                            const Expr& value, const Expr& mask) {
  Value* v = values_.ToMemory(value->dtype, Emit(value));
  Value* on = mask ? Emit(mask) : nullptr;
  Access access = Locate(buffer, indices, /*in_bounds=*/!on);
  if (!access.address) return;
  if (on && access.shape == Access::Shape::kContiguous && IsWithin(*buffer, indices)) {
    // A masked store would keep the buffer in memory.
    v = ir_.CreateSelect(on, v, ir_.CreateAlignedLoad(v->getType(), access.address, access.align));
    on = nullptr;
  }
  if (access.shape != Access::Shape::kScalar) {
    if (v->getType()->isVectorTy()) return StoreVector(access, v, on);
    Unsupported("a vector index with a scalar value", value->dtype);
    return;
  }
  if (!on) {
    ir_.CreateAlignedStore(v, access.address, access.align);
    return;
  }
  llvm::Function* f = ir_.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(module_.context(), "store", f);
  auto* join = llvm::BasicBlock::Create(module_.context(), "join", f);
  ir_.CreateCondBr(on, yes, join);
  ir_.SetInsertPoint(yes);
  ir_.CreateAlignedStore(v, access.address, access.align);
  ir_.CreateBr(join);
  ir_.SetInsertPoint(join);
}

}  // namespace tenon::codegen
