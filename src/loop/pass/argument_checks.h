// The loop IR that takes a tensor argument of the packed convention apart and checks it.
#pragma once

#include <string>
#include <unordered_map>

#include "loop/func.h"
#include "loop/pass/packed_abi.h"
#include "loop/pass/stmt_list.h"

namespace tenon {

/// "main(a: Tensor([n0, 256], float32), b: Tensor([n0, 256], float32))", of the first num_params
/// parameters.
std::string SignatureText(const PrimFunc& func, const std::string& name, size_t num_params);

/// Checks the arguments of one function and fills its closure.
class ArgumentChecker {
 public:
  /// `args`: address of the array of values; `closure`: address of the slots. Messages end with the
  /// signature. `pointer_bits` are those of the machine that runs it.
  ArgumentChecker(const PrimFunc& func, std::string signature, Expr args, Expr closure,
                  int pointer_bits);
  void set_signature(std::string signature) { signature_ = std::move(signature); }

  /// Appends the checks of buffer parameter i, given as argument i; stores its address in slot i.
  /// Dims that stand as such in its shape for the first time are bound in `list` for all that
  /// follows, and stored in their slots.
  void Check(size_t i, StmtList* list);
  /// Appends the check that parameter i's memory does not meet parameter j's; both have been
  /// checked.
  void CheckApart(size_t i, size_t j, StmtList* list);
  /// True when every dim of the function has been found.
  bool AllDimsKnown() const { return known_.size() == func_.dims.size(); }

  /// assert condition, kind, parts and the signature.
  Stmt Fail(Expr condition, const char* kind, std::vector<Expr> parts) const;

 private:
  struct Argument;

  void CheckDim(const Argument& a, size_t d, StmtList* list);
  void DefineDim(const Argument& a, size_t d, const Var& dim, StmtList* list);
  void CheckStrides(const Argument& a, StmtList* list);

  const PrimFunc& func_;
  const packed::TensorFields& fields_;
  std::string signature_;
  const Expr args_, closure_;
  std::unordered_map<const VarNode*, std::string> known_;  // dim → where it came from, "a.shape[0]"
};

}  // namespace tenon
