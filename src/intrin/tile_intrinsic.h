// The table of tile intrinsics: machine operations on whole tiles, as data.
//
// A row says what an operation means (a device function in the text of loop IR: its buffers are the
// operands, their layouts are how the operands lie in registers, its blocks are what a schedule
// matches), what the machine must have and must have set up, and how it is written in the code of
// each back end. Schedules replace a block that equals the meaning by a call of the intrinsic; the
// interpreter runs the meaning; back ends emit the row.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// An argument of the emitted operation: an operand's elements seen as one register.
struct RegisterArg {
  int operand;  // index of the meaning's buffer parameter
  DType type;   // what the register is for the operation, e.g. i32x16 for 64 bytes
};

/// How the operation is written.
struct Emission {
  enum class Kind {
    kLlvm,      // `text` is the name of an LLVM intrinsic; its result goes to the last operand
    kTemplate,  // `text` is C-family source in which {0}, {1}, … are the arguments
  };
  Kind kind;
  const char* text;
  std::vector<RegisterArg> args;
};

struct TileIntrinsic {
  const char* name;     // unique; "isa.operation.shape"
  const char* feature;  // of the target, as LLVM spells it
  const char*
      state;  // what must be set up once per worker; "" for none ("amx": one tile configuration)
  const char* meaning;  // see above; the function's name is the intrinsic's
  std::vector<Emission> emissions;
};

/// The rows known so far. Filled by the Register functions below; no order matters.
class TileIntrinsics {
 public:
  /// A name may be added once.
  void Add(TileIntrinsic row);
  const TileIntrinsic* Find(std::string_view name) const;
  std::span<const TileIntrinsic> rows() const { return rows_; }

 private:
  std::vector<TileIntrinsic> rows_;
};

/// All rows of this library.
const TileIntrinsics& BuiltinTileIntrinsics();
void RegisterX86Vnni(TileIntrinsics* table);

/// The meaning as a function.
Expected<Func> MeaningOf(const TileIntrinsic& intrinsic);

}  // namespace tenon
