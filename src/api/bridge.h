// The façades' view of both sides: the compiler's own classes and the public ones over them.
//
// The order matters, and this is why no other header is included by the façades: the internal
// headers come first, then the names that the public headers make ambiguous get others in
// tenon::inner, then come the public headers (docs/decisions/005).
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/memory_file.h"
#include "codegen/codegen.h"
#include "driver/compile.h"
#include "driver/custom_operators.h"
#include "driver/describe.h"
#include "driver/functions.h"
#include "graph/dims.h"
#include "interp/interp.h"
#include "intrin/tile_intrinsic.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/arguments.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/requirements.h"
#include "loop/rewrite.h"
#include "loop/threads.h"
#include "loop/verify.h"
#include "schedule/apply.h"
#include "schedule/schedule.h"
#include "stages/auto_unroll.h"
#include "stages/stage_schedule.h"
#include "support/file.h"
#include "support/strings.h"
#include "te/program.h"
#include "te/te.h"

namespace tenon::inner {
namespace te = tenon::te;
using Expr = tenon::Expr;
using Var = tenon::Var;
using Module = tenon::Module;
using Schedule = tenon::Schedule;
using Target = tenon::Target;
using Trace = tenon::Trace;
using Select = tenon::Select;
inline constexpr tenon::Stage kSchedulable = tenon::Stage::kSchedulable;

/// What v0 has functions of the same name for.
inline std::string Text(const NodeRef& node) { return ToString(node); }
inline std::string Text(const Diagnostics& errors) {
  std::string text;
  for (const Diagnostic& d : errors) {
    if (!text.empty()) text += "\n";
    text += d.loc.ToString() + d.message;
    for (const std::string& note : d.notes) text += "\n  note: " + note;
  }
  return text;
}
}  // namespace tenon::inner

#include "tenon/compiler.hpp"
#include "tenon/schedule.hpp"
#include "tenon/te.hpp"
#include "tenon/tenon.hpp"

namespace tenon::inline v0 {

[[noreturn]] inline void ThrowValue(const std::string& message) {
  throw Error("ValueError", message);
}
[[noreturn]] inline void ThrowType(const std::string& message) {
  throw Error("TypeError", message);
}
/// The value, or its diagnostics as an exception.
template <class T>
T Take(Expected<T> result) {
  if (!result) ThrowValue(inner::Text(result.errors()));
  return std::move(*result);
}

/// The same, with the loops in messages called as people call them.
template <class T>
T Take(Expected<T> result, const stages::UsersNames& names) {
  if (result) return std::move(*result);
  return Take(Expected<T>(stages::InUsersNames(std::move(result.errors()), names)));
}

DType FromPublic(DataType dtype);
DataType ToPublic(DType dtype);

struct TargetData {
  inner::Target target;
};

struct IrData {
  inner::Module module;
  /// Its functions say what they require of their sizes (loop/requirements.h).
  bool has_requirements = false;
  /// What people call its loops.
  stages::UsersNames names = {};
};

namespace te {

/// A reduction: `values` over `axes`. Its place in a Compute is the whole body.
struct ReduceData {
  BinaryOp combiner = BinaryOp::kAdd;
  inner::Expr value, identity;
  std::vector<IterVar> axes;
};

struct IterVarData;
/// The loops whose variables occur in an expression, each once, by first occurrence.
using Loops = std::vector<std::shared_ptr<const IterVarData>>;

struct ExprData {
  inner::Expr expr;
  std::string loop;      // of a loop that a schedule made, which has no value: its name
  bool literal = false;  // a plain number, which takes the type of what it meets
  double number = 0;     // of a literal that is not an integer
  std::shared_ptr<const ReduceData> reduce;
  DimRange range;  // of a size
  int depth = 1;   // of its nesting, which is bounded: walks over expressions recurse
  std::shared_ptr<const Loops> loops;  // null: none
};

enum class LoopKind : uint8_t { kSpatial, kReduce, kThread };

struct IterVarData {
  std::string name;
  LoopKind kind = LoopKind::kSpatial;
  inner::Var var;      // null: a loop that a schedule made
  inner::Expr min;     // null: 0
  inner::Expr extent;  // null: not known here
  tenon::ThreadAxis thread = tenon::ThreadAxis::kNone;
  std::string of;  // the compute that a spatial loop belongs to
};

struct OperationData {
  std::string name;
  std::vector<inner::te::Tensor> outputs;
  std::vector<Expr> shape;
  std::vector<IterVar> axis, reduce_axis;
  std::vector<Tensor> inputs;
  std::vector<Expr> values;  // what an element of each output is; none where a schedule made it,
  NodeRef block_body;        //   whose block does this
  bool computed = false;
  // Of a scan: the placeholders of its rows, and the loop over them.
  std::vector<std::shared_ptr<const OperationData>> scan_states;
  IterVar scan_axis;
  // Of an extern: the functions, the name of the one that is called, the outputs' shapes.
  std::shared_ptr<const IrData> extern_body;
  std::string extern_name;
  std::vector<std::vector<Expr>> extern_shapes;
};

/// Handles around internal values.
Expr Wrap(inner::Expr expr);
/// The same for one made of these; throws where it is nested too deep.
Expr Wrap(inner::Expr expr, std::initializer_list<const Expr*> operands);
Expr Wrap(inner::Expr expr, const std::vector<Expr>& operands);
const inner::Expr& Unwrap(const Expr& expr);
/// The type that two operands are computed in, and an operand in a type.
DType CommonType(const ExprData& a, const ExprData& b);
inner::Expr Convert(const ExprData& e, DType type);
/// Throws where it is a reduction, which is no operand.
void RequireScalarValue(const ExprData& e);
/// An index expression; a data integer is converted.
inner::Expr AsIndex(const Expr& expr);
const inner::te::Tensor& Unwrap(const Tensor& tensor);

}  // namespace te
}  // namespace tenon::inline v0
