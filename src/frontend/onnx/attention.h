// What operators of attention have in common, of whatever domain: heads, what a query may see of
// the keys, the formula itself, and rotary embeddings.
#pragma once

#include <optional>
#include <utility>

#include "frontend/onnx/formula.h"

namespace tenon::onnx {

/// [B, S, H · D] as [B, H, S, D], and back.
Val SplitHeads(const Val& x, int64_t heads);
Val JoinHeads(const Val& x);
/// Keys or values [B, G, T, D] for as many heads as the queries have, each shared by neighbours.
Expected<Val> ShareHeads(const OpContext& c, const Val& x, const Expr& heads);
/// A factor that is a number, or comes with the call.
struct Scale {
  std::optional<double> number;
  Val by_call;  // a scalar of f32

  Val Times(const Val& x) const;
  Scale Root() const;
  /// A number is at least 0.
  bool IsValid() const { return number.value_or(0) >= 0; }
};
/// 1 / √(size of a head), of heads [B, H, S, D].
Expected<Scale> DefaultScale(const OpContext& c, const Val& heads);
/// The attribute `scale`, or the default. Where `zero_is_none` a scale of 0 is left out.
Expected<Scale> ReadScale(OpContext& c, const Val& heads, bool zero_is_none = false);

/// What a query may see of the keys. Without either, everything.
struct Mask {
  Val allowed;                // bool; broadcasts to [B, H, S, T], as `number` does
  Val number;                 // added to the scores
  bool may_be_empty = false;  // some query may see nothing: it gets zeroes

  void Allow(const Val& more) { allowed = allowed ? allowed & more : more; }
  void Add(const Val& more) { number = number ? number + more : more; }
};

/// y [B, H, S, E], of the type of the values, and what stands in between, each [B, H, S, T]: wide,
/// for narrow floats are rounded once, in the end.
struct Attended {
  Val y;
  Val raw;     // scaled products
  Val capped;  // softcap · tanh(raw / softcap)
  Val scores;  // with the mask
  Val weights;
};

struct AttentionForm {
  Scale scale;
  double softcap = 0;              // 0: none
  std::optional<DType> precision;  // of softmax
  Val sink;  // [H]: a score of each head that takes part in softmax, and has no value
};

/// softmax(softcap(√s q · (√s k)ᵀ) + mask) · v, of q [B, H, S, D], k [B, H, T, D], v [B, H, T, E].
Attended Attend(const Val& q, const Val& k, const Val& v, const Mask& mask,
                const AttentionForm& form);

/// The first `turned` numbers of heads [B, H, S, D] turned by angles, whose cosines and sines are
/// [B or 1, 1, S, turned / 2]. A pair lies side by side, or half of `turned` apart.
Val Rotated(const Val& x, const Val& cos, const Val& sin, const Expr& turned, bool interleaved);
/// `part`, or where it is 0 the whole head; an error, where sizes are open one of the call, unless
/// it is an even part of one.
Expected<Expr> TurnedPart(const OpContext& c, int64_t part, const Val& heads);

}  // namespace tenon::onnx
