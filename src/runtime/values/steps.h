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
int32_t ZipMapStep(const StepArgs& args);
/// Tensors one behind the other along an axis, or along a new one.
int32_t JoinTensors(const tn_ffi_any* items, int64_t count, int64_t axis, bool new_axis,
                    Value* out);

// string_steps.cc
int32_t StringConcatStep(const StepArgs& args);
int32_t StringSplitStep(const StepArgs& args);
int32_t StringNormalizeStep(const StepArgs& args);
int32_t RegexStep(const StepArgs& args);
int32_t ToStringStep(const StepArgs& args);
int32_t FromStringStep(const StepArgs& args);

}  // namespace tenon::runtime
