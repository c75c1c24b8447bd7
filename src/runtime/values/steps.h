// What steps do: one function for each operation that is no control flow.
#pragma once

#include "runtime/values/strings.h"

namespace tenon::runtime {

/// A step as its function sees it. Inputs that are left out are None; a function may take inputs
/// for itself. `wanted` outputs get a value.
struct StepArgs {
  Value* in;
  int32_t num_in;
  Value* out;
  int32_t num_out;
  const int32_t* numbers;
  int32_t num_numbers;
  StringTable* strings;

  bool Has(int32_t i) const { return i < num_in && !in[i].IsNone(); }
};

using StepFn = int32_t (*)(const StepArgs& args);

/// Null, with an error, where it is none.
inline const tn_dl_tensor* TensorIn(const StepArgs& args, int32_t i) {
  const tn_dl_tensor* t = i < args.num_in ? args.in[i].tensor() : nullptr;
  if (!t) Fail("ValueError", "expected a tensor, but there is none");
  return t;
}

/// A sequence of the items, unless something has failed before; they are given back.
inline int32_t Finish(int32_t status, List<tn_ffi_any>* items, Value* out) {
  if (status == 0) status = MakeSequence(items, out);
  for (tn_ffi_any& item : *items) Value::Take(item);
  items->Clear();
  return status;
}

/// 0..n-1 in the order that `less` says of two of them; equal ones keep theirs (merge sort).
template <class Less>
int32_t SortedPlaces(int64_t n, Less less, List<int64_t>* out) {
  List<int64_t> other;
  if (!out->Resize(n) || !other.Resize(n)) return OutOfMemory();
  for (int64_t i = 0; i < n; ++i) (*out)[i] = i;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * width) {
      const int64_t middle = begin + width < n ? begin + width : n;
      const int64_t end = middle + width < n ? middle + width : n;
      int64_t a = begin, b = middle;
      for (int64_t i = begin; i < end; ++i) {
        const bool second = a == middle || (b < end && less((*out)[b], (*out)[a]));
        other[i] = (*out)[second ? b++ : a++];
      }
    }
    for (int64_t i = 0; i < n; ++i) (*out)[i] = other[i];
  }
  return 0;
}

// sequence_steps.cc
int32_t MakeSequenceStep(const StepArgs& args);
int32_t AtStep(const StepArgs& args);
int32_t InsertStep(const StepArgs& args);
int32_t EraseStep(const StepArgs& args);
int32_t LengthStep(const StepArgs& args);
int32_t SplitStep(const StepArgs& args);
int32_t JoinStep(const StepArgs& args);
int32_t HasStep(const StepArgs& args);
int32_t GetStep(const StepArgs& args);
/// Tensors one behind the other along an axis, or along a new one.
int32_t JoinTensors(const tn_ffi_any* items, int64_t count, int64_t axis, bool new_axis,
                    Value* out);

// map_steps.cc
int32_t ZipMapStep(const StepArgs& args);
int32_t MapRowStep(const StepArgs& args);
int32_t MapValuesStep(const StepArgs& args);

// string_steps.cc
int32_t StringConcatStep(const StepArgs& args);
int32_t StringSplitStep(const StepArgs& args);
int32_t StringNormalizeStep(const StepArgs& args);
int32_t RegexStep(const StepArgs& args);
int32_t ToStringStep(const StepArgs& args);
int32_t FromStringStep(const StepArgs& args);
int32_t StringRanksStep(const StepArgs& args);

}  // namespace tenon::runtime
