// Loads, stores, and calls: where source text touches memory or the world.
//
// An access of lanes that follow each other, at a multiple of what the machine moves at once, is
// one access of a wide type; everything else is lane by lane. What is known of an index (facts.h: a
// power of two that divides it) and of the buffer's alignment decides. With both known,
//
//   C[ramp(i, 1, 4)] = A[ramp(i, 1, 4)] + B[ramp(i, 1, 4)]
//
// becomes in CUDA
//
//   __align__(16) float v0[4];
//   __align__(16) float v1[4];
//   *(float4*)(v1) = *(const float4*)(A + i);
//   __align__(16) float v2[4];
//   *(float4*)(v2) = *(const float4*)(B + i);
//   #pragma unroll
//   for (int32_t lane = 0; lane < 4; ++lane) {
//     v0[lane] = v1[lane] + v2[lane];
//   }
//   *(float4*)(C + i) = *(const float4*)(v0);
//
// and without, three accesses of single floats in the loop. What is loaded where a condition holds
// that is the same for all lanes (the last tile of a tensor) is wide in a branch of its own.

#include <fmt/format.h>

#include <algorithm>

#include "arith/modular.h"
#include "codegen/c_family/expr.h"
#include "support/check.h"

namespace tenon::codegen {

bool SourceExpr::IsUsable(const Buffer& buffer, const std::vector<Expr>& indices) {
  TN_CHECK(buffers_.count(buffer.get()), "buffer {} of {} is used outside its scope", buffer->name,
           func_.name);
  if (indices.size() > 1 || buffer->layout || buffer->dtype.StorageBits() % 8 != 0) {
    Unsupported("buffer " + buffer->name +
                " with several dimensions, a layout or packed elements in code generation");
    return false;
  }
  return true;
}

SourceText SourceExpr::ElementAddress(const Buffer& buffer, const std::vector<Expr>& indices) {
  if (!IsUsable(buffer, indices)) return {"0", Binding::kPrimary, 0, false};
  SourceText base{NameOf(buffer), Binding::kPrimary, 0, false};
  if (indices.empty() || IsZero(indices[0])) return base;
  SourceText index = Visit(indices[0]);
  return {base.text + " + " + index.As(Binding::kAdd), Binding::kAdd, index.depth + 1, false};
}

SourceText SourceExpr::Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  SourceText index{"0", Binding::kPrimary, 0, true};
  if (!indices.empty()) index = Visit(indices[0]);
  return {fmt::format("{}[{}]", NameOf(buffer), index.text), Binding::kPrimary, index.depth + 1,
          false};
}

// ---- several lanes in one access ----

// The widest access that moves lanes of buffer[index] together; null where they move one by one:
// their addresses must follow each other, and the first be a multiple of what is moved at once.
const WideSpelling* SourceExpr::WideAccess(const Buffer& buffer, const Expr& index) {
  const auto* ramp = As<Ramp>(index);
  if (!ramp || !IsOne(ramp->stride) || buffer->dtype.IsBool()) return nullptr;
  const int64_t element = buffer->dtype.Element().Bytes();
  const int64_t align = std::max({buffer->align, buffers_.at(buffer.get()).align, element});
  const int64_t multiple = MultipleOf(facts_.Modular(ramp->base));
  for (const WideSpelling& wide : values_.language().wide) {
    const int64_t step = wide.bytes / element;
    const bool fits = step > 1 && index->dtype.lanes % step == 0;
    if (fits && align % wide.bytes == 0 && multiple % step == 0) return &wide;
  }
  return nullptr;
}

std::string SourceExpr::ArrayDeclaration(DType type, const std::string& name) {
  const std::span<const WideSpelling> wide = values_.language().wide;
  const std::string align =
      wide.empty() ? "" : fmt::format(fmt::runtime(values_.language().align), wide[0].bytes);
  return fmt::format("{}{} {}[{}];", align, values_.TypeName(type), name, type.lanes);
}

void SourceExpr::MoveWide(const WideSpelling& wide, DType type, const std::string& array,
                          const Buffer& buffer, const Expr& index, bool writes) {
  const int64_t step = wide.bytes / buffer->dtype.Element().Bytes();
  const char* name = buffer->dtype == DType::Float(32) ? wide.of_f32 : wide.name;
  const std::string& space = SpaceOf(buffer);
  SourceText base = ElementAddress(buffer, {As<Ramp>(index)->base});
  for (int64_t lane = 0; lane < type.lanes; lane += step) {
    const std::string offset = lane ? fmt::format(" + {}", lane) : "";
    const std::string at = base.text + offset, part = array + offset;
    const std::string memory =
        fmt::format("({}{}{}*)({})", writes ? "" : "const ", space, name, at);
    const std::string own = fmt::format("({}{}*)({})", writes ? "const " : "", name, part);
    Line(writes ? fmt::format("*{} = *{};", memory, own) : fmt::format("*{} = *{};", own, memory));
  }
}

// Brings a vector that wide accesses serve into an array, before the loop over its lanes. Not from
// a branch inside that loop, whose loads must wait for its condition.
bool SourceExpr::LoadWide(const Expr& e) {
  const auto* load = As<Load>(e);
  if (!load || load->mask || !e->dtype.IsVector() || load->indices.empty()) return false;
  if (now_->kind == Kind::kBranch && LanesOf()) return false;
  const WideSpelling* wide = WideAccess(load->buffer, load->indices[0]);
  if (!wide) return false;
  Section* inside = now_;
  if (inside->kind == Kind::kLanes) now_ = inside->parent;
  const std::string name = Fresh("v");
  Line(ArrayDeclaration(e->dtype, name));
  MoveWide(*wide, e->dtype, name, load->buffer, load->indices[0], /*writes=*/false);
  now_->arrays[e.get()] = name;
  now_ = inside;
  return true;
}

// Whether wide accesses to memory serve a vector somewhere in the expression; what a thread has for
// itself is in registers.
bool SourceExpr::LoadsWide(const Expr& e) {
  bool found = false;
  PreOrder(e, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    const bool plain = load && !load->mask && !load->indices.empty() &&
                       !buffers_.at(load->buffer.get()).is_private;
    found |= plain && load->dtype.IsVector() && WideAccess(load->buffer, load->indices[0]);
    return !found;
  });
  return found;
}

// Likewise brings what stands under one condition for all lanes into an array.
bool SourceExpr::LoadWideWhere(const Expr& e) {
  const auto* select = As<Select>(e);
  if (!select || !e->dtype.IsVector() || select->condition->dtype.IsVector()) return false;
  if (now_->kind == Kind::kBranch && LanesOf()) return false;
  if (!LoadsWide(select->on_true) && !LoadsWide(select->on_false)) return false;
  Section* inside = now_;
  if (inside->kind == Kind::kLanes) now_ = inside->parent;
  const std::string name = Fresh("v");
  Line(ArrayDeclaration(e->dtype, name));
  const SourceText condition = Visit(select->condition);
  const auto side = [&](const Expr& value) {
    Section branch;
    Open(&branch, Kind::kBranch);
    EmitLanes(value, name);
    now_ = branch.parent;
    now_->lines += branch.lines;
  };
  Line(fmt::format("if ({}) {{", condition.text));
  side(select->on_true);
  Line("} else {");
  side(select->on_false);
  Line("}");
  now_->arrays[e.get()] = name;
  now_ = inside;
  return true;
}

SourceText SourceExpr::VisitLoad(const Load& n, const Expr& e) {
  if (!IsUsable(n.buffer, n.indices)) return {"0", Binding::kPrimary, 0, false};
  if (LoadWide(e)) {
    return {fmt::format("{}[{}]", *ArrayOf(e), LanesOf()->lane), Binding::kPrimary, 0, false};
  }
  const DType type = n.dtype.Element();
  // The index may hold names; they are computed for every lane, the load only where the mask holds.
  SourceText element = Element(n.buffer, n.indices);
  if (type.IsBool()) element = values_.Cast(DType::UInt(8), type, element);
  if (!n.mask) return element;
  const bool is_half = type.IsFloat() && type.bits == 16;
  SourceText zero = type.IsFloat() && !is_half ? values_.Float(type, 0)
                                               : values_.Int(is_half ? DType::Int(32) : type, 0);
  if (type.IsHandle()) zero = {"NULL", Binding::kPrimary, 0, false};
  return values_.Select(Visit(n.mask), element, zero);
}

std::string SourceExpr::ToMemory(DType type, const SourceText& v) {
  return type.IsBool() ? values_.Cast(type, DType::UInt(8), v).text : v.text;
}

// ---- stores ----

bool SourceExpr::MayOverlap(const Buffer& a, const Buffer& b) const {
  const BufferSource &x = buffers_.at(a.get()), &y = buffers_.at(b.get());
  return !x.is_private && !y.is_private && !(x.is_distinct && y.is_distinct);
}

// True where a lane could read what another lane has already written: all loads of a vector store
// come before its first write.
bool SourceExpr::ReadsWhatIsWritten(const Buffer& buffer, const std::vector<Expr>& indices,
                                    const Expr& root) {
  bool reads = false;
  PreOrder(root, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    if (!load || reads) return !reads;
    if (load->buffer.get() != buffer.get()) {
      reads = MayOverlap(load->buffer, buffer);
    } else {
      const auto* ramp = indices.empty() ? nullptr : As<Ramp>(indices[0]);
      const bool apart = ramp && AsInt(ramp->stride).value_or(0) != 0;
      reads = !apart || !StructuralEqual(load->indices[0], indices[0]);
    }
    return !reads;
  });
  return reads;
}

void SourceExpr::StoreLanes(const Buffer& buffer, const std::vector<Expr>& indices,
                            const Expr& value, const Expr& mask) {
  const WideSpelling* wide = mask ? nullptr : WideAccess(buffer, indices[0]);
  if (wide) {
    IntoArray(value);
    return MoveWide(*wide, value->dtype, *ArrayOf(value), buffer, indices[0], /*writes=*/true);
  }
  for (const Expr& e : {value, indices[0], mask}) {
    if (e && ReadsWhatIsWritten(buffer, indices, e)) IntoArray(e);
  }
  Section loop;
  OpenLanes(&loop, value->dtype.lanes);
  SourceText at = Element(buffer, indices);
  SourceText v = Visit(value);
  const std::string line = fmt::format("{} = {};", at.text, ToMemory(value->dtype.Element(), v));
  Line(mask ? fmt::format("if ({}) {}", Visit(mask).text, line) : line);
  CloseLanes(&loop);
}

void SourceExpr::EmitStore(const Buffer& buffer, const std::vector<Expr>& indices,
                           const Expr& value, const Expr& mask) {
  if (!IsUsable(buffer, indices)) return;
  const bool vector_index = !indices.empty() && indices[0]->dtype.IsVector();
  if (vector_index != value->dtype.IsVector()) {
    Unsupported(vector_index ? "a vector index with a scalar value"
                             : "a vector value with a scalar index");
    return;
  }
  if (vector_index) return StoreLanes(buffer, indices, value, mask);
  SourceText at = Element(buffer, indices);
  SourceText v = Visit(value);
  const std::string line = fmt::format("{} = {};", at.text, ToMemory(value->dtype, v));
  Line(mask ? fmt::format("if ({}) {}", Visit(mask).text, line) : line);
}

// ---- calls ----

SourceText SourceExpr::OnlyOnCpu(const Call& call) {
  return Unsupported(std::string(Info(call.intrinsic).text) + " on a GPU");
}

SourceText SourceExpr::PtrLoad(const Call& n) {
  const DType memory = n.dtype.IsBool() ? DType::UInt(8) : n.dtype.Element();
  SourceText offset = Visit(n.args[1]);
  if (n.dtype.IsVector()) {
    SourceText lane{LanesOf()->lane, Binding::kPrimary, 0, false};
    offset = values_.Binary(BinaryOp::kAdd, DType::Index(), offset,
                            values_.Binary(BinaryOp::kMul, DType::Index(), lane,
                                           values_.Int(DType::Index(), memory.Bytes()), false),
                            false);
  }
  SourceText v = values_.CallOf(values_.helpers().Use("load", memory), {Visit(n.args[0]), offset});
  return values_.Cast(memory, n.dtype.Element(), v);
}

void SourceExpr::EmitPtrStore(const Call& call) {
  const Expr& value = call.args[2];
  const DType type = value->dtype;
  if (type.IsVector()) {
    Unsupported("ptr_store of a vector");
    return;
  }
  SourceText base = Visit(call.args[0]), offset = Visit(call.args[1]), v = Visit(value);
  const std::string store = values_.helpers().Use("store", type.IsBool() ? DType::UInt(8) : type);
  Line(fmt::format("{}({}, {}, {});", store, base.text, offset.text, ToMemory(type, v)));
}

void SourceExpr::EmitPrefetch(const Call& call) {
  const auto* load = As<Load>(call.args[0]);
  if (!load) {
    Unsupported("prefetch of something that is not a load");
    return;
  }
  SourceText address = ElementAddress(load->buffer, load->indices);
  const auto purpose = static_cast<PrefetchFor>(AsInt(call.args[1]).value_or(0));
  Line(fmt::format("TN_PREFETCH({}, {}, {});", address.text, purpose == PrefetchFor::kWrite ? 1 : 0,
                   purpose == PrefetchFor::kLaterRead ? 2 : 3));
}

SourceText SourceExpr::EmitExtern(const Call& call, bool as_value) {
  if (values_.language().gpu) return OnlyOnCpu(call);
  const auto* name = call.args.empty() ? nullptr : As<StringConst>(call.args[0]);
  if (!name) return Unsupported("extern without a function name");
  std::vector<SourceText> args;
  std::vector<std::string> types;
  for (size_t i = 1; i < call.args.size(); ++i) {
    if (call.args[i]->dtype.IsVector()) return Unsupported("a vector argument of C");
    const auto* text = As<StringConst>(call.args[i]);
    const bool is_text = text && !text->value.starts_with("@");
    args.push_back(is_text ? SourceText{QuoteC(text->value)} : Visit(call.args[i]));
    types.push_back(is_text ? "const char*" : values_.TypeName(call.args[i]->dtype));
  }
  // A C function without result is called with type handle.
  const bool is_void = call.dtype.IsHandle() && !as_value;
  const std::string result = is_void ? "void" : values_.TypeName(call.dtype);
  if (!module_.DeclareC(name->value, result, types))
    return Unsupported("calls of " + name->value + " with different types");
  return values_.CallOf(name->value, args);
}

SourceText SourceExpr::VisitCall(const Call& n, const Expr&) {
  switch (n.intrinsic) {
    case Intrinsic::kReduceAdd:
    case Intrinsic::kReduceMax:
    case Intrinsic::kReduceMin: return Reduce(n);
    case Intrinsic::kReinterpret:
      if (n.args[0]->dtype.lanes != n.dtype.lanes)
        return Unsupported("reinterpret that changes the number of lanes");
      return values_.Reinterpret(n.args[0]->dtype, n.dtype, Visit(n.args[0]));
    case Intrinsic::kTeamRank:  // a team of one
    case Intrinsic::kTeamSize:
      if (values_.language().gpu) return OnlyOnCpu(n);
      return values_.Int(n.dtype, n.intrinsic == Intrinsic::kTeamSize ? 1 : 0);
    case Intrinsic::kWeightsBase:
      if (values_.language().gpu) return OnlyOnCpu(n);
      return {"(void*)" + module_.Symbol("tn_weights_base"), Binding::kUnary, 1, false};
    case Intrinsic::kBufferData: {
      const auto* load = As<Load>(n.args[0]);
      if (!load) return Unsupported("data() of something that is not a load");
      SourceText at = ElementAddress(load->buffer, load->indices);
      return {"(void*)" + at.As(Binding::kUnary), Binding::kUnary, at.depth + 1, false};
    }
    case Intrinsic::kPtrOffset: {
      SourceText base = Visit(n.args[0]), bytes = Visit(n.args[1]);
      return {fmt::format("(void*)((char*){} + {})", base.As(Binding::kUnary),
                          bytes.As(Binding::kMultiply)),
              Binding::kUnary, std::max(base.depth, bytes.depth) + 1, false};
    }
    case Intrinsic::kPtrLoad: return PtrLoad(n);
    case Intrinsic::kExtern: return EmitExtern(n, /*as_value=*/true);
    case Intrinsic::kVScale: return Unsupported("vscale in code generation");
    case Intrinsic::kPtrStore:
    case Intrinsic::kPrefetch:
      return Unsupported(std::string(Info(n.intrinsic).text) + " as a value");
    case Intrinsic::kDTypeName:
    case Intrinsic::kDeviceName:
      return Unsupported(std::string(Info(n.intrinsic).text) + " outside a message");
    default: break;  // NOLINT: arithmetic, below
  }
  std::vector<SourceText> args;
  for (const Expr& a : n.args) args.push_back(Visit(a));
  SourceText v = values_.Math(n.intrinsic, n.args[0]->dtype, args);
  if (!v.text.empty()) return v;
  return Unsupported(std::string(Info(n.intrinsic).text) + " that expand_math has not expanded");
}

}  // namespace tenon::codegen
