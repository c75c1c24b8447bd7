// Steps on sequences and optional values. Sequences are never changed where somebody else has them.
#include "runtime/values/steps.h"

namespace tenon::runtime {
namespace {

const tn_ffi_array* SequenceIn(const StepArgs& args, int32_t i) {
  const tn_ffi_array* array = i < args.num_in ? args.in[i].array() : nullptr;
  if (!array) Fail("ValueError", "expected a sequence, but there is none");
  return array;
}

// References to the elements first..last-1, appended.
int32_t ShareItems(const tn_ffi_array& array, int64_t first, int64_t last, List<tn_ffi_any>* out) {
  if (!out->Reserve(out->size() + last - first)) return OutOfMemory();
  for (int64_t i = first; i < last; ++i) out->Append(Value::Share(array.data[i]).Release());
  return 0;
}

/// A tensor as [before, along, after] of bytes around an axis.
struct Blocks {
  int64_t before = 1, along = 1, after = 1;
  Blocks(const tn_dl_tensor& t, int64_t axis) {
    after = (t.dtype.bits + 7) / 8;
    for (int32_t i = 0; i < t.ndim; ++i)
      (i < axis ? before : i == axis ? along : after) *= t.shape[i];
  }
};

int32_t NormalizeAxis(int64_t* axis, int64_t rank) {
  const int64_t given = *axis;
  if (*axis < 0) *axis += rank;
  if (*axis >= 0 && *axis < rank) return 0;
  return FailWith("ValueError", "expected an axis of a tensor of %lld dims, but got %lld",
                  static_cast<long long>(rank), static_cast<long long>(given));
}

// What lies at start..start+size-1 of an axis, which vanishes where it is not kept.
int32_t Piece(const tn_dl_tensor& t, int64_t axis, int64_t start, int64_t size, bool keep,
              Value* out) {
  int64_t shape[kMaxDims];
  int32_t rank = 0;
  for (int32_t i = 0; i < t.ndim; ++i) {
    if (i == axis && !keep) continue;
    shape[rank++] = i == axis ? size : t.shape[i];
  }
  void* data = nullptr;
  if (MakeTensor(t.dtype, rank, shape, out, &data) != 0) return -1;
  const Blocks b(t, axis);
  auto* to = static_cast<unsigned char*>(data);
  const unsigned char* from = DataOf(t) + start * b.after;
  for (int64_t i = 0; i < b.before && size * b.after > 0; ++i) {
    memcpy(to + i * size * b.after, from + i * b.along * b.after,
           static_cast<size_t>(size * b.after));
  }
  return 0;
}

// How long the pieces are: each as the list says, or all as the number does but for the last.
int32_t ReadSizes(const StepArgs& args, int64_t total, List<int64_t>* sizes) {
  const tn_dl_tensor* given = args.Has(1) ? args.in[1].tensor() : nullptr;
  int64_t sum = 0;
  if (given && given->ndim == 1) {
    for (int64_t i = 0; i < given->shape[0]; ++i) {
      const int64_t size =
          given->dtype.bits == 64 ? DataOf<int64_t>(*given)[i] : DataOf<int32_t>(*given)[i];
      if (size < 0 || size > total - sum || !sizes->Append(size))
        return FailWith("ValueError", "expected sizes that add up to %lld",
                        static_cast<long long>(total));
      sum += size;
    }
    if (sum == total) return 0;
    return FailWith("ValueError", "expected sizes that add up to %lld, but got %lld",
                    static_cast<long long>(total), static_cast<long long>(sum));
  }
  int64_t size = 1;
  if (given && ReadNumber(args.in[1], "the size of pieces", &size) != 0) return -1;
  if (size < 1) return Fail("ValueError", "expected pieces of at least 1");
  for (; sum < total; sum += size) {
    if (size > total - sum) size = total - sum;
    if (!sizes->Append(size)) return OutOfMemory();
  }
  return 0;
}

}  // namespace

int32_t MakeSequenceStep(const StepArgs& args) {
  List<tn_ffi_any> items;
  if (!items.Reserve(args.num_in)) return OutOfMemory();
  for (int32_t i = 0; i < args.num_in; ++i) items.Append(args.in[i].Release());
  return Finish(0, &items, &args.out[0]);
}

int32_t AtStep(const StepArgs& args) {
  const tn_ffi_array* array = SequenceIn(args, 0);
  int64_t at = 0;
  if (!array || ReadPosition(args.in[1], array->size, false, &at) != 0) return -1;
  args.out[0] = Value::Share(array->data[at]);
  return 0;
}

int32_t InsertStep(const StepArgs& args) {
  const tn_ffi_array* array = SequenceIn(args, 0);
  if (!array) return -1;
  int64_t at = array->size;
  if (args.Has(2) && ReadPosition(args.in[2], array->size, true, &at) != 0) return -1;
  List<tn_ffi_any> items;
  int32_t status = items.Reserve(array->size + 1) ? 0 : OutOfMemory();
  if (status == 0) status = ShareItems(*array, 0, at, &items);
  if (status == 0) items.Append(args.in[1].Release());
  if (status == 0) status = ShareItems(*array, at, array->size, &items);
  return Finish(status, &items, &args.out[0]);
}

int32_t EraseStep(const StepArgs& args) {
  const tn_ffi_array* array = SequenceIn(args, 0);
  if (!array) return -1;
  int64_t at = array->size - 1;
  if (args.Has(1) && ReadPosition(args.in[1], array->size, false, &at) != 0) return -1;
  if (array->size == 0) return Fail("IndexError", "nothing can be erased of an empty sequence");
  List<tn_ffi_any> items;
  int32_t status = ShareItems(*array, 0, at, &items);
  if (status == 0) status = ShareItems(*array, at + 1, array->size, &items);
  return Finish(status, &items, &args.out[0]);
}

int32_t LengthStep(const StepArgs& args) {
  const tn_ffi_array* array = SequenceIn(args, 0);
  void* data = nullptr;
  if (!array || MakeTensor(kInt64Type, 0, nullptr, &args.out[0], &data) != 0) return -1;
  *static_cast<int64_t*>(data) = array->size;
  return 0;
}

int32_t SplitStep(const StepArgs& args) {
  const tn_dl_tensor* t = TensorIn(args, 0);
  int64_t axis = args.numbers[0];
  if (!t || NormalizeAxis(&axis, t->ndim) != 0) return -1;
  List<int64_t> sizes;
  if (ReadSizes(args, t->shape[axis], &sizes) != 0) return -1;
  const bool keep = args.Has(1) || args.numbers[1] != 0;
  List<tn_ffi_any> items;
  int32_t status = items.Reserve(sizes.size()) ? 0 : OutOfMemory();
  int64_t start = 0;
  for (int64_t i = 0; status == 0 && i < sizes.size(); ++i) {
    Value piece;
    status = Piece(*t, axis, start, sizes[i], keep, &piece);
    if (status == 0) items.Append(piece.Release());
    start += sizes[i];
  }
  return Finish(status, &items, &args.out[0]);
}

int32_t JoinTensors(const tn_ffi_any* items, int64_t count, int64_t axis, bool new_axis,
                    Value* out) {
  const tn_dl_tensor* first = count > 0 ? Value::TensorOf(items[0]) : nullptr;
  if (!first) return Fail("ValueError", "an empty sequence has no tensors to join");
  if (NormalizeAxis(&axis, first->ndim + (new_axis ? 1 : 0)) != 0) return -1;
  if (first->ndim + 1 > kMaxDims) return Fail("ValueError", "a tensor has too many dims");
  int64_t shape[kMaxDims];
  int64_t along = 0;
  for (int64_t k = 0; k < count; ++k) {
    const tn_dl_tensor* t = Value::TensorOf(items[k]);
    bool fits = t && t->ndim == first->ndim && SameType(t->dtype, first->dtype);
    for (int32_t i = 0; fits && i < t->ndim; ++i)
      fits = t->shape[i] == first->shape[i] || (i == axis && !new_axis);
    if (!fits)
      return FailWith("ValueError", "element %lld of a sequence does not fit the first one",
                      static_cast<long long>(k));
    along += new_axis ? 1 : t->shape[axis];
  }
  int32_t rank = 0;
  for (int32_t i = 0; i < first->ndim; ++i) {
    if (i == axis) shape[rank++] = along;
    if (i != axis || new_axis) shape[rank++] = first->shape[i];
  }
  if (axis == first->ndim) shape[rank++] = along;
  void* data = nullptr;
  if (TensorBytes(first->dtype, rank, shape) < 0)
    return Fail("ValueError", "joined tensors have too many elements");
  if (MakeTensor(first->dtype, rank, shape, out, &data) != 0) return -1;
  const int64_t row = Blocks(*out->tensor(), axis).after * along;
  auto* to = static_cast<unsigned char*>(data);
  for (int64_t k = 0; k < count; ++k) {
    const tn_dl_tensor& t = *Value::TensorOf(items[k]);
    Blocks b(t, axis);
    if (new_axis) b.after *= b.along;  // the blocks of t are whole from `axis` on
    const int64_t bytes = new_axis ? b.after : b.along * b.after;
    for (int64_t i = 0; i < b.before && bytes > 0; ++i)
      memcpy(to + i * row, DataOf(t) + i * bytes, static_cast<size_t>(bytes));
    to += bytes;
  }
  return 0;
}

int32_t JoinStep(const StepArgs& args) {
  const tn_ffi_array* array = SequenceIn(args, 0);
  if (!array) return -1;
  return JoinTensors(array->data, array->size, args.numbers[0], args.numbers[1] != 0, &args.out[0]);
}

int32_t HasStep(const StepArgs& args) {
  void* data = nullptr;
  if (MakeTensor(kBoolType, 0, nullptr, &args.out[0], &data) != 0) return -1;
  *static_cast<bool*>(data) = args.Has(0);
  return 0;
}

int32_t GetStep(const StepArgs& args) {
  if (!args.Has(0))
    return Fail("ValueError", "an optional value is asked for, but it is not there");
  args.out[0] = std::move(args.in[0]);
  return 0;
}

// A map for each row: the keys are the same for all.

}  // namespace tenon::runtime
