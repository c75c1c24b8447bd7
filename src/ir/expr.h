// Expressions: what a scalar or a vector is computed from. Pure values; statements live in `loop`.
//
// Semantics
// ---------
//  * Every expression has one DType, fixed when it is made. Operands of a Binary have equal types
//  (Shl/Shr too).
//  * index: arithmetic must not overflow (proved, or guarded at entry); Div and Mod floor; Mod has
//  the divisor's sign;
//    division by zero must not happen.
//  * Data integers wrap. Div truncates, Mod has the dividend's sign; x / 0 = 0, x % 0 = 0 and
//  INT_MIN / -1 = INT_MIN,
//    INT_MIN % -1 = 0: defined, so that no input can trap.
//  * Floats follow IEEE 754 (round to nearest even). Min and Max return the other operand where one
//  is NaN unless the
//    block says otherwise, so a NaN-propagating maximum is written with Select. Div by zero is
//    IEEE.
//  * And/Or on bool evaluate both sides; a Load guarded by a condition must be inside Select (whose
//  untaken side is not
//    evaluated: the interpreter and the back ends guard loads of the untaken side) or under an If.
//  * Cast float→int truncates and saturates; NaN becomes 0. int→bool and float→bool are x != 0.
//  bool→number is 0 or 1.
//    Narrowing integers wraps. index↔int casts are exact or wrap like narrowing.
//  * A Load reads buffer[indices]; with a mask, lanes whose mask is false read as 0 and touch no
//  memory.
//  * Ramp(b, s, n) is b, b+s, …, b+(n-1)s. Broadcast(v, n) repeats v.
//  * `fp` freedom (contraction of a*b+c, reassociation) is an attribute of the enclosing block,
//  never of an expression.
#pragma once

#include <string>
#include <vector>

#include "ir/node.h"

namespace tenon {

enum class UnaryOp : uint8_t {
#define TN_UNARY(name, text) k##name,
#define TN_BINARY(name, text, prec, result)
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
};

enum class BinaryOp : uint8_t {
#define TN_UNARY(name, text)
#define TN_BINARY(name, text, prec, result) k##name,
#include "ir/ops.def"
#undef TN_UNARY
#undef TN_BINARY
};

enum class Intrinsic : uint8_t {
#define TN_INTRINSIC(name, text, arity, type, purity, doc) k##name,
#include "ir/intrinsics.def"
#undef TN_INTRINSIC
};

/// What a `prefetch` is for, its second argument. What is read next goes into the nearest cache;
/// what is read after much else would be gone from there by then, and goes into the second.
enum class PrefetchFor : uint8_t { kRead, kWrite, kLaterRead };
enum class IntrinsicType : uint8_t { kSame, kBool, kGiven };
enum class Purity : uint8_t { kPure, kRead, kEffect };
struct IntrinsicInfo {
  const char* text;
  int arity;  // -1: any
  IntrinsicType type;
  Purity purity;
};
const IntrinsicInfo& Info(Intrinsic intrinsic);
struct BinaryInfo {
  const char* text;
  int precedence;  // 0: written as a call
  bool is_comparison;
};
const BinaryInfo& Info(BinaryOp op);
const char* Text(UnaryOp op);

struct ExprNode : Node {
  DType dtype;
  static bool Classof(NodeKind k) { return k <= NodeKind::kCall; }

 protected:
  explicit ExprNode(NodeKind k) : Node(k) {}
};
using Expr = Ref<const ExprNode>;

struct VarNode;
using Var = Ref<const VarNode>;
struct BufferNode;
using Buffer = Ref<const BufferNode>;

struct IntConst final : NodeOf<IntConst, NodeKind::kIntConst, ExprNode> {
  int64_t value = 0;  // sign- or zero-extended to 64 bits; bool: 0 or 1
  static Expr Make(DType type, int64_t value);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("value", s.value, FieldRole::kAttribute);
  }
};

struct FloatConst final : NodeOf<FloatConst, NodeKind::kFloatConst, ExprNode> {
  double value = 0;  // already rounded to the type
  static Expr Make(DType type, double value);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("value", s.value, FieldRole::kAttribute);
  }
};

/// A string argument of an effectful intrinsic; its type is handle.
struct StringConst final : NodeOf<StringConst, NodeKind::kStringConst, ExprNode> {
  std::string value;
  static Expr Make(std::string value);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("value", s.value, FieldRole::kAttribute);
  }
};

/// A variable; identity is the node, the name is for people (unique within a function by the
/// verifier).
struct VarNode final : NodeOf<VarNode, NodeKind::kVar, ExprNode> {
  std::string name;
  bool counts = false;  // a size of a graph that may be 0; other sizes are at least 1
  static Var Make(std::string name, DType type = DType::Index());
  static Var MakeCount(std::string name);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("name", s.name, FieldRole::kIgnore);
    f("counts", s.counts, FieldRole::kIgnore);
  }
};

struct Unary final : NodeOf<Unary, NodeKind::kUnary, ExprNode> {
  UnaryOp op{};
  Expr value;
  static Expr Make(UnaryOp op, Expr value);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("op", s.op, FieldRole::kAttribute);
    f("value", s.value, FieldRole::kChild);
  }
};

struct Binary final : NodeOf<Binary, NodeKind::kBinary, ExprNode> {
  BinaryOp op{};
  Expr lhs, rhs;
  static Expr Make(BinaryOp op, Expr lhs, Expr rhs);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("op", s.op, FieldRole::kAttribute);
    f("lhs", s.lhs, FieldRole::kChild);
    f("rhs", s.rhs, FieldRole::kChild);
  }
};

struct Select final : NodeOf<Select, NodeKind::kSelect, ExprNode> {
  Expr condition, on_true, on_false;
  static Expr Make(Expr condition, Expr on_true, Expr on_false);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("condition", s.condition, FieldRole::kChild);
    f("on_true", s.on_true, FieldRole::kChild);
    f("on_false", s.on_false, FieldRole::kChild);
  }
};

struct CastExpr final : NodeOf<CastExpr, NodeKind::kCast, ExprNode> {
  Expr value;
  /// `value` itself when it already has the type (lanes follow the value).
  static Expr Make(DType type, Expr value);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("value", s.value, FieldRole::kChild);
  }
};

/// buffer[indices], one index per logical dimension. A vector index makes a vector load; at most
/// one may be a vector until a pass flattens. `mask` is null or a bool with the load's lanes.
struct Load final : NodeOf<Load, NodeKind::kLoad, ExprNode> {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr mask;
  static Expr Make(Buffer buffer, std::vector<Expr> indices, Expr mask = nullptr);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("buffer", s.buffer, FieldRole::kChild);
    f("indices", s.indices, FieldRole::kChild);
    f("mask", s.mask, FieldRole::kChild);
  }
};

struct Ramp final : NodeOf<Ramp, NodeKind::kRamp, ExprNode> {
  Expr base, stride;  // scalars of one type
  static Expr Make(Expr base, Expr stride, int32_t lanes, bool scalable = false);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("base", s.base, FieldRole::kChild);
    f("stride", s.stride, FieldRole::kChild);
  }
};

struct Broadcast final : NodeOf<Broadcast, NodeKind::kBroadcast, ExprNode> {
  Expr value;  // scalar
  static Expr Make(Expr value, int32_t lanes, bool scalable = false);
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("value", s.value, FieldRole::kChild);
  }
};

struct Call final : NodeOf<Call, NodeKind::kCall, ExprNode> {
  Intrinsic intrinsic{};
  std::vector<Expr> args;
  /// `given` is the result type of a kGiven intrinsic.
  static Expr Make(Intrinsic intrinsic, std::vector<Expr> args, DType given = DType::Index());
  template <class S, class F>
  static void Fields(S& s, F&& f) {
    f("dtype", s.dtype, FieldRole::kAttribute);
    f("intrinsic", s.intrinsic, FieldRole::kAttribute);
    f("args", s.args, FieldRole::kChild);
  }
};

// ---- Building by hand. Mixed index constants are welcome: `i * 4 + 1`. ----

Expr IndexConst(int64_t value);
/// A constant of any numeric type or bool, broadcast to its lanes; floats are rounded to the type.
Expr MakeConst(DType type, double value);
Expr MakeIntConst(DType type, int64_t value);
Expr BoolConst(bool value);
/// The ends of a type, broadcast to its lanes: -inf and inf (or the largest numbers of floats
/// without them), INT_MIN and INT_MAX, false and true.
Expr LowestOf(DType type);
Expr HighestOf(DType type);
/// What `op` leaves any x of the type as it is with, on either side: of a sum of floats all but the
/// sign of a zero. Null: nothing does.
Expr NeutralOf(BinaryOp op, DType type);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator%(Expr a, Expr b);
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
Expr operator/(Expr a, int64_t b);
Expr operator%(Expr a, int64_t b);
Expr operator-(Expr a);
Expr Min(Expr a, Expr b);
Expr Max(Expr a, Expr b);
Expr Lt(Expr a, Expr b);
Expr Le(Expr a, Expr b);
Expr Gt(Expr a, Expr b);
Expr Ge(Expr a, Expr b);
Expr Eq(Expr a, Expr b);
Expr Ne(Expr a, Expr b);
Expr And(Expr a, Expr b);
Expr Or(Expr a, Expr b);
Expr Not(Expr a);

/// The value of an integer constant (through Broadcast), or nullopt.
std::optional<int64_t> AsInt(const Expr& e);
/// The value of a float or integer constant (through Broadcast), or nullopt.
std::optional<double> AsFloat(const Expr& e);
bool IsZero(const Expr& e);
bool IsOne(const Expr& e);
/// ceil(a / b) on index.
Expr CeilDiv(Expr a, Expr b);

/// Rounds a double to the nearest value of a float type (f16, bf16, f32, f64, floats of 8 bits).
double RoundToType(DType type, double value);
/// The ends of a float type: infinity, or the largest number where it has none.
double LeastOf(DType type);
double GreatestOf(DType type);

}  // namespace tenon

// Load names Buffer; whoever sees expressions sees the complete type.
#include "ir/buffer.h"  // IWYU pragma: export
