// Functions and modules of the loop IR.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loop/stmt.h"
#include "target/target.h"

namespace tenon {

/// What a function is, which decides its signature in machine code.
enum class FuncKind : uint8_t {
  kKernel,  // void k(buffers…, dims…, rank, team): run by every worker of a team; launched
  kDevice,  // void f(buffers…, scalars…): called in place (micro-kernels); never launched
  kHost,  // int32 f(closure…, rank, team): the network's main body or a prepare function: launches
          // kernels
  kPacked,  // int32 f(void* self, const tn_ffi_any* args, int32 n, tn_ffi_any* result): an export
};
const char* Name(FuncKind kind);

/// A symbolic size: m: lo..=hi step s. hi < 0: unbounded.
struct DimRange {
  int64_t lo = 0;
  int64_t hi = -1;
  int64_t step = 1;
  friend bool operator==(const DimRange&, const DimRange&) = default;
};

/// func @name<dims>(params) target "…" { body }. Immutable; made by Make.
struct PrimFunc final : NodeOf<PrimFunc, NodeKind::kPrimFunc> {
  std::string name;
  FuncKind func_kind = FuncKind::kKernel;
  std::vector<Var> dims;                          // index; come before the parameters that use them
  std::vector<int64_t> dim_lo, dim_hi, dim_step;  // parallel to dims
  std::vector<Buffer> buffers;                    // buffer parameters, in order
  std::vector<Var> scalars;  // scalar parameters, after the buffers (handles, indices, data)
  int64_t num_outputs = 0;   // the last num_outputs buffers are written
  TargetRef target;          // null: not yet chosen
  Attrs attrs;               // "exported", "role", "flops", …
  Stmt body;

  PrimFunc();
  PrimFunc(const PrimFunc&);
  PrimFunc(PrimFunc&&) noexcept;
  ~PrimFunc() override;
  static Ref<const PrimFunc> Make(PrimFunc fields);
  /// What it runs on is a device that a host launches it on.
  bool IsForDevice() const { return target && target->IsDevice(); }
  DimRange dim_range(size_t i) const { return {dim_lo[i], dim_hi[i], dim_step[i]}; }
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("name", s.name, FieldRole::kAttribute);
    f("func_kind", s.func_kind, FieldRole::kAttribute);
    f("dims", s.dims, FieldRole::kBinds);
    f("dim_lo", s.dim_lo, FieldRole::kAttribute);
    f("dim_hi", s.dim_hi, FieldRole::kAttribute);
    f("dim_step", s.dim_step, FieldRole::kAttribute);
    f("scalars", s.scalars, FieldRole::kBinds);  // strides of buffers may be scalars
    f("buffers", s.buffers, FieldRole::kBinds);
    f("num_outputs", s.num_outputs, FieldRole::kAttribute);
    f("target", s.target, FieldRole::kAttribute);
    f("attrs", s.attrs, FieldRole::kAttribute);
    f("body", s.body, FieldRole::kChild);
  }
};
using Func = Ref<const PrimFunc>;

/// Functions by name, in name order. A value: copying is cheap (shared immutable functions).
struct Module {
  std::map<std::string, Func> funcs;
  Attrs attrs;

  void Add(Func f) { funcs.insert_or_assign(f->name, f); }
  Func Find(const std::string& name) const {
    auto it = funcs.find(name);
    return it == funcs.end() ? nullptr : it->second;
  }
};

}  // namespace tenon
