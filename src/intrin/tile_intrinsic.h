// The table of tile intrinsics: machine operations on whole tiles, as data.
//
// A row says what an operation means (a device function in the text of loop IR: its buffers are the
// operands, their layouts are how the operands lie in registers), what a schedule replaces by it,
// what the machine must have and must have set up, and how it is written in the code of each back
// end. The interpreter runs the meaning, and so does code for a machine without the unit.
//
// Where the machine's arithmetic is not what a person writes (VDPBF16PS takes denormals for zero),
// the meaning says what the machine does, to the bit, and `pattern` what a schedule may replace by
// it: code that asks for the intrinsic by its name accepts the difference.
//
// An operand in scope `fragment` makes it an operation of a warp: its lanes do it together, and the
// operand's layout says which element lies in which lane (its first coordinate, on threadIdx.x) and
// where among that lane's registers. `distribute` gives the caller's buffers such layouts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "loop/func.h"
#include "support/expected.h"

namespace tenon {

/// How an operand reaches the emitted operation.
enum class ArgKind {
  kValue,    // its elements as one register of `type`
  kSplat,    // its elements, repeated until a register of `type` is full
  kTile,     // the number of the tile that it is in, a constant; its scope is `tile`
  kAddress,  // the address of its first element
  kStride,   // scalar `operand` of the call, a distance in elements of `type`, in bytes
};

struct EmissionArg {
  ArgKind kind;
  int operand;  // index of the meaning's buffer parameter (kStride: of its dims)
  DType type = DType::Handle();
};

/// How the operation is written.
struct Emission {
  enum class Kind {
    kLlvm,  // `text` is the name of an LLVM intrinsic; a result goes to the last operand
    kC,     // `text` is a statement of C in which {0}, {1}, … point to the operands
    kCuda,  // the same of CUDA C++, with the scalars after the operands; fragments are what a lane
            // has of them
  };
  Kind kind;
  std::string text;
  std::vector<EmissionArg> args;  // of kLlvm
  std::string macro;              // of kC: defined where the compiler knows the operation
};

struct TileIntrinsic {
  std::string name;     // unique; "isa.operation.shape"
  std::string feature;  // of the target, as LLVM spells it; of a GPU, the first architecture
  std::string state;    // what a worker sets up before; "" for none, "amx": a tile configuration
  std::string meaning;  // see above; the function's name is the intrinsic's
  std::string pattern;  // the same parameters; empty: the meaning is the pattern
  std::vector<Emission> emissions;
  std::string start = {};  // the row that sets its result to zero; "": any code does
  /// Of a product of tiles: the rows that bring its operands from memory, in their order, and the
  /// row that takes its result there. Of one of fragments: those that load the left factor, the
  /// right one of which memory holds columns, and, where there is one, the right one by rows; any
  /// code stores its result. Empty: the operands are values like any other.
  std::vector<std::string> moves = {};

  /// Null where the back end has no way to write it.
  const Emission* EmissionOf(Emission::Kind kind) const;
  /// The same for a code generator, by its name.
  const Emission* EmissionFor(std::string_view code_generator) const;
};

/// A tile of a target with such: a buffer in scope `tile` holds as many as it has of these bytes.
inline constexpr int64_t kTileBytes = 1024, kNumTiles = 8;

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
void RegisterX86Bf16(TileIntrinsics* table);
void RegisterX86Amx(TileIntrinsics* table);
void RegisterPtxMma(TileIntrinsics* table);
void RegisterPtxWmma(TileIntrinsics* table);
void RegisterPtxAsync(TileIntrinsics* table);
void RegisterPtxQuad(TileIntrinsics* table);
void RegisterPtxLaunch(TileIntrinsics* table);

/// Of a dependent launch: waits for those before it to end, and lets the next one begin.
inline constexpr const char* kLaunchWaitRow = "ptx.griddepcontrol.wait";
inline constexpr const char* kLaunchBeginRow = "ptx.griddepcontrol.launch_dependents";

/// Asynchronous copies: what their rows' names begin with, those of them that copy where a
/// condition holds and write zeros elsewhere, what closes a group of them, and, with the number of
/// groups that may stay under way behind it, what waits.
inline constexpr const char* kAsyncCopyRows = "ptx.cp.async.copy.";
inline constexpr const char* kAsyncCopyWhereRows = "ptx.cp.async.copy.where.";
inline constexpr const char* kAsyncCommitRow = "ptx.cp.async.commit";
inline constexpr const char* kAsyncWaitRows = "ptx.cp.async.wait.";
inline constexpr int64_t kMostAsyncGroups = 31;

/// The meaning, and the pattern, as functions.
Expected<Func> MeaningOf(const TileIntrinsic& intrinsic);
Expected<Func> PatternOf(const TileIntrinsic& intrinsic);

/// The attribute of a device function that is a row's meaning, for a target that has the unit: the
/// row's name. The pass select_intrinsics sets it, and back ends write the operation instead.
inline constexpr const char* kIntrinsicAttr = "intrinsic";
/// The row that such a function stands for; null for all others.
const TileIntrinsic* IntrinsicOf(const PrimFunc& func);

}  // namespace tenon
