// The loop IR that takes the arguments of the packed convention apart and checks them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "loop/arguments.h"
#include "loop/pass/host/memory_apart.h"
#include "loop/pass/packed_abi.h"
#include "loop/pass/stmt_list.h"

namespace tenon {

/// "main(n: int64, a: Tensor([n, 256], float32), b: Tensor([n, 256], float32))".
std::string SignatureText(const PrimFunc& func, const std::string& name,
                          std::span<const Argument> arguments);

/// Checks the arguments of one function and fills its closure.
class ArgumentChecker {
 public:
  /// `args`: address of the array of values; `closure`: address of the slots. Messages end with the
  /// signature. `pointer_bits` are those of the machine that runs it.
  ArgumentChecker(const PrimFunc& func, std::string signature, Expr args, Expr closure,
                  int pointer_bits);
  void set_signature(std::string signature) { signature_ = std::move(signature); }

  /// Appends what the checks of all arguments share; before the first one.
  void Begin(StmtList* list);
  /// Appends the checks of one argument, which is given as the one of number `position`; stores the
  /// buffer's address or the number in its slot. Dims that are met for the first time, as numbers
  /// or as such in a shape, are bound in `list` for all that follows, and stored in their slots.
  /// Shapes of dims that are not known yet wait for CheckWaiting.
  void Check(const Argument& argument, size_t position, StmtList* list);
  /// Appends what waited for dims that are known by now, or that the waiting shapes tell: n from
  /// the shape [2 * n + 1]. What needs others goes on waiting.
  void CheckWaiting(StmtList* list);
  /// Appends that a dim has been found to be `value`, which must be in its range; binds it in
  /// `list` for all that follows, and stores it in its slot.
  void Found(const Var& dim, const Expr& value, StmtList* list);
  /// Appends the checks that no output's memory meets that of another parameter; all have been
  /// checked.
  void CheckApart(StmtList* list) const;
  /// What the checks appended so far call: further functions of the module.
  std::vector<Func> functions() const;
  /// Appends what the function requires of its sizes and numbers, and the conditions on its dims;
  /// all of them are known.
  void CheckRequirements(StmtList* list);
  /// Appends the checks of a call whose parameters are those of the function: that its dims are in
  /// their ranges and its buffers somewhere, aligned and apart; what it requires; the memory of
  /// `workspace`, unless that is null. The slots are filled.
  void CheckPlain(const Var& workspace, StmtList* list);
  /// Says which device the call is on, where no input does.
  void SetDevice(const Expr& id, const std::string& from, StmtList* list);
  /// The number of the device that the arguments are on.
  Expr device_id() const;

  /// assert condition, kind, parts and the signature.
  Stmt Fail(Expr condition, const char* kind, std::vector<Expr> parts) const;

 private:
  /// A buffer's argument while it is being checked.
  struct Given {
    Buffer buffer;
    size_t index;  // among the function's buffers
    Expr tensor;   // address of the DLTensor
    Expr shape;    // address of its dims

    Expr Dim(size_t d) const {
      return packed::LoadAt(DType::Index(), shape, static_cast<int64_t>(d) * 8);
    }
  };
  /// A dim of a shape, or memory and strides, to be checked when more dims are known.
  struct Waiting {
    Given given;
    size_t d;
    static constexpr size_t kMemory = ~size_t{0};
  };
  struct Place;

  static bool HasManyPairs(const PrimFunc& func);
  /// Whether the function is a part of a program (kPartAttr); whether the tensor for that buffer is
  /// made by another part; and whether it is known to have the size that axis `d` must have.
  bool is_part() const;
  bool IsMade(size_t i) const;
  bool IsMadeWith(size_t i, size_t d) const;
  Var TensorOf(size_t i, size_t position, StmtList* list) const;
  void CheckType(const BufferNode& b, const Var& tensor, StmtList* list) const;
  std::vector<Expr> About(const std::string& name, const std::string& what,
                          std::vector<Expr> rest) const;
  bool IsAlike(size_t i) const;
  void CheckByCall(size_t i, size_t position, StmtList* list);
  void CheckDevice(size_t i, const Var& tensor, StmtList* list);
  Var CheckData(const Given& a, StmtList* list);
  void CheckAligned(const std::string& name, const Var& data, int64_t align, StmtList* list) const;
  /// Appends who asked for the `i`-th of what the attribute is about to a message.
  void AddAsker(const char* attr, size_t i, std::vector<Expr>* message) const;
  void CheckRange(size_t index, const Place& place, StmtList* list) const;
  void Require(StmtList* list);
  void RequireConditions(StmtList* list) const;
  void CheckBuffer(size_t i, size_t position, StmtList* list);
  void CheckNumber(const Var& var, const Argument& argument, size_t position, StmtList* list);
  void CheckDim(const Given& a, size_t d, StmtList* list);
  void CheckShape(const Given& a, size_t d, StmtList* list);
  bool Solve(const Given& a, size_t d, StmtList* list);
  bool IsKnown(const Expr& e) const;
  void Agree(const Var& dim, const Place& place, StmtList* list);
  void DefineDim(const Var& dim, const Place& place, StmtList* list);
  void CheckMemory(const Given& a, StmtList* list);
  void CheckThere(const std::string& name, const char* what, const Expr& pointer,
                  const Expr& unless, StmtList* list) const;
  void ReadStrides(const Given& a, StmtList* list);
  void TakeStrides(const Given& a, StmtList* list);
  void CheckCompact(const Given& a, StmtList* list);
  Expr NumberOf(const Var& var, size_t position, StmtList* list) const;
  void CheckFits(const Var& var, const Expr& given, StmtList* list) const;
  Stmt StoreSlot(const Argument& argument, Expr value) const;
  Expr BytesOf(size_t i) const;
  Expr StartOf(size_t i) const;
  void StoreFactOf(size_t i, StmtList* list) const;

  const PrimFunc& func_;
  const packed::TensorFields& fields_;
  std::string signature_;
  const Expr args_, closure_;
  const std::vector<std::string> made_;  // kPartAttr
  Var device_id_;
  std::string device_from_;  // the parameter that it came from
  std::unordered_map<const VarNode*, std::string>
      known_;  // dim → where it came from: "a.shape[0]", "n"
  std::vector<Waiting> waiting_;
  Expr facts_;  // address of what CheckApart asks of each buffer; null: nothing
  Var name_;    // of the parameter; null: it is known
  std::map<std::string, Func> alike_;  // by what they check
};

}  // namespace tenon
