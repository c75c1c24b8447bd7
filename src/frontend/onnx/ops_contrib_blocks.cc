// Operators of the domain com.microsoft on weights of few bits: MatMulNBits, GatherBlockQuantized.
#include "frontend/onnx/blocks.h"
#include "frontend/onnx/index_checks.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/ops.h"

namespace tenon::onnx {

Expected<int64_t> ReadBits(OpContext& c, const char* name, int64_t fallback) {
  TN_ASSIGN_OR_RETURN(const int64_t bits, c.Int(name, fallback));
  if (bits == 2 || bits == 4 || bits == 8) return bits;
  return c.Error("expected {} 2, 4 or 8, but got {}", name, bits);
}

Val Unpacked(const Val& bytes, int64_t bits, const Expr& count) {
  if (!bytes) return bytes;
  Val codes = bytes;
  if (bits < 8) {
    const Formula& f = bytes.formula();
    const DType u8 = DType::UInt(8);
    std::vector<Val> parts;
    for (int64_t at = 0; at < 8; at += bits) {
      const Val moved =
          at == 0 ? bytes : f.Emit(OpKind::kShr, {bytes, f.Number(u8, static_cast<double>(at))});
      parts.push_back(
          f.Emit(OpKind::kBitAnd, {moved, f.Number(u8, static_cast<double>((1 << bits) - 1))}));
    }
    Dims dims = bytes.dims();
    dims.back() = graph::DimMul(dims.back(), IndexConst(8 / bits));
    codes = Reshape(Stack(parts, -1), dims);
  }
  return count ? Slice(codes, -1, IndexConst(0), count) : codes;
}

Val OfBlocks(const Val& codes, const Val& scales, const Val& zeros, double otherwise, int64_t axis,
             int64_t block) {
  const DType f32 = DType::Float(32);
  const auto spread = [&](const Val& v) {
    const Val each = Repeat(v, axis, IndexConst(block));
    return graph::ProveEqual(each.dim(axis), codes.dim(axis))
               ? each
               : Slice(each, axis, IndexConst(0), codes.dim(axis));
  };
  const auto beside = [&](const Val& v) {
    return block == 0 || IsOne(v.dim(axis)) ? v : spread(v);
  };
  const Val zero = zeros ? Cast(zeros, f32) : Val();
  const Val number = Cast(codes, f32);
  const Val moved = zero ? number - beside(zero) : otherwise == 0 ? number : number - otherwise;
  return moved * beside(Cast(scales, f32));
}

namespace {

Status ImportMatMulNBits(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 6));
  TN_ASSIGN_OR_RETURN(const int64_t depth, c.Int("K", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t columns, c.Int("N", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t block, c.Int("block_size", std::nullopt));
  TN_ASSIGN_OR_RETURN(const int64_t bits, ReadBits(c, "bits", 4));
  TN_RETURN_IF_ERROR(c.Int("accuracy_level", 0));  // the least
  TN_ASSIGN_OR_RETURN(const int64_t prepacked, c.Int("weight_prepacked", 0));
  if (prepacked != 0) return c.Error("weights that are packed for a device are not supported");
  if (depth < 1 || columns < 1 || depth > INT32_MAX || columns > INT32_MAX || block < 16 ||
      block > 1 << 20 || (block & (block - 1)) != 0) {
    return c.Error(
        "expected sensible K and N and a power of two of at least 16 as block_size, but got {}, {} "
        "and {}",
        depth, columns, block);
  }
  const int64_t blocks = (depth + block - 1) / block, bytes = block * bits / 8;
  const auto has = [&](size_t i, int64_t count) { return graph::StaticCount(c.Dims(i)) == count; };
  const DType byte = DType::UInt(8);
  if (c.Rank(0) < 1 || AsInt(c.Dims(0).back()) != depth || c.Type(1).dtype != byte ||
      !has(1, columns * blocks * bytes) || !has(2, columns * blocks)) {
    return c.Error(
        "expected an input of {} columns, {} x {} x {} bytes of weights and {} scales of each row, "
        "but "
        "got {}, {} and {}",
        depth, columns, blocks, bytes, blocks, c.Type(0).ToString(), c.Type(1).ToString(),
        c.Type(2).ToString());
  }
  const int64_t zero_bytes = (blocks * bits + 7) / 8;
  const bool packed_zeros = c.Has(3) && c.Type(3).dtype == byte;
  if (c.Has(3) && !has(3, columns * (packed_zeros ? zero_bytes : blocks)))
    return c.Error("expected a zero point for each block, but got {}", c.Type(3).ToString());
  if (c.Has(5) && !has(5, columns))
    return c.Error("expected a bias of {} numbers, but got {}", columns, c.Type(5).ToString());
  const Formula f(c);
  const Expr n = IndexConst(columns), k = IndexConst(depth);
  const Val x = f.In(0);
  const Val bytes_of_rows = Reshape(f.In(1), {n, IndexConst(blocks * bytes)});
  Val scales = Reshape(f.In(2), {n, IndexConst(blocks)}), zeros;
  if (c.Has(3)) {
    zeros = packed_zeros
                ? Unpacked(Reshape(f.In(3), {n, IndexConst(zero_bytes)}), bits, IndexConst(blocks))
                : Reshape(f.In(3), {n, IndexConst(blocks)});
  }
  if (c.Has(4)) {  // which block a row of weights belongs to
    const Val all = InRange(c, 4, f.In(4), IndexConst(blocks));
    const Val of_row = Slice(Reshape(all, {graph::DimProduct(c.Dims(4))}), 0, IndexConst(0), k);
    scales = Gather(scales, of_row, 1);
    zeros = zeros ? Gather(zeros, of_row, 1) : zeros;
  }
  const double half = static_cast<double>(int64_t{1} << (bits - 1));
  const Val rows = x.rank() == 1 ? Unsqueeze(x, 0) : x;
  const auto finished = [&](Val y) {
    if (c.Has(5)) y = y + Cast(Reshape(f.In(5), {n}), y.dtype());
    y = Cast(y, x.dtype());
    return f.Result(x.rank() == 1 ? Squeeze(y, 0) : y);
  };
  if (!c.Has(4)) {
    const DType f32 = DType::Float(32);
    const Val scale = Cast(scales, f32);
    const Val offset = zeros ? Cast(zeros, f32) * scale : scale * half;
    return finished(f.Emit(OpKind::kBlockMatMul, {Cast(rows, f32), bytes_of_rows, scale, offset},
                           {{"bits", bits}, {"block", block}}));
  }
  const Val codes = Slice(Unpacked(bytes_of_rows, bits), 1, IndexConst(0), k);
  const Val weights = OfBlocks(codes, scales, zeros, half, 1, 0);
  return finished(MatMul(Cast(rows, weights.dtype()), weights, false, true));
}

// Rows are picked first and become numbers then.
Status ImportGatherBlockQuantized(OpContext& c) {
  TN_RETURN_IF_ERROR(c.Arity(3, 4));
  const int64_t rank = c.Rank(0);
  TN_ASSIGN_OR_RETURN(const int64_t gathered, c.AxisAttr("gather_axis", 0, rank));
  TN_ASSIGN_OR_RETURN(const int64_t quantised, c.AxisAttr("quantize_axis", 1, rank));
  TN_ASSIGN_OR_RETURN(const int64_t block, c.Int("block_size", 128));
  TN_ASSIGN_OR_RETURN(int64_t bits, ReadBits(c, "bits", 4));
  const NarrowType* narrow = c.Narrow(0);
  if (narrow) bits = 8;  // one in each byte
  if (block < 0 || block > 1 << 30 || (block == 0 && !(narrow && narrow->is_float)))
    return c.Error("expected a sensible block_size, but got {}", block);
  if (c.Rank(2) != rank || (c.Has(3) && c.Rank(3) != rank))
    return c.Error("expected scales and zero points of rank {}, but got {}", rank,
                   c.Type(2).ToString());
  if (bits < 8 && (gathered == rank - 1 || gathered == quantised))
    return c.Error(
        "expected gather_axis to be neither that of packed codes nor that of blocks, but got {}",
        gathered);
  const Formula f(c);
  const Val data = f.In(0), scales = f.In(2);
  const Val given = Cast(IndicesInto(c, 1, f.In(1), 0, gathered), DType::Int(64));
  const Val size = Size(data, gathered), at = Where(given < 0, given + size, given);
  const Val zeros = c.Has(3) ? Unpacked(f.In(3), bits, scales.dim(-1)) : Val();
  const double middle = narrow ? 0 : static_cast<double>(int64_t{1} << (bits - 1));
  const auto numbers = [&](const Val& v) {
    return v && narrow ? Decoded(v, *narrow, DType::Float(32)) : v;
  };
  // What belongs to a row of the table; where rows share blocks, that of the block.
  const auto picked = [&](const Val& v) {
    if (!v || IsOne(v.dim(gathered))) {  // one for all rows
      Val w = v;
      for (int64_t i = 1; v && i < given.rank(); ++i) w = Unsqueeze(w, gathered);
      return v && given.rank() == 0 ? Squeeze(v, gathered) : w;
    }
    return Gather(v, gathered == quantised && block > 0 ? at / static_cast<double>(block) : at,
                  gathered);
  };
  const int64_t more = given.rank() - 1;
  const int64_t axis = quantised > gathered ? quantised + more : quantised;
  const Val codes = Unpacked(Gather(data, at, gathered), bits);
  const Val y = OfBlocks(numbers(codes), picked(scales), numbers(picked(zeros)), middle, axis,
                         gathered == quantised ? 0 : block);
  return f.Result(Cast(y, scales.dtype()));
}

constexpr char kContrib[] = "com.microsoft";
constexpr OpRow kRows[] = {
    {.name = "MatMulNBits", .since = 1, .import = ImportMatMulNBits, .domain = kContrib},
    {.name = "GatherBlockQuantized",
     .since = 1,
     .import = ImportGatherBlockQuantized,
     .domain = kContrib},
};

}  // namespace

std::span<const OpRow> ContribBlockRows() { return kRows; }

}  // namespace tenon::onnx
