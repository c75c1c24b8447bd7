#include "graph/pass/raise_gelu.h"

#include <numbers>

#include "graph/pass/pattern.h"
#include "graph/pass/rewrite.h"

namespace tenon::graph {

namespace {

constexpr int kX = 0;
constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kSqrtTwoOverPi = 0.7978845608028654;
constexpr double kCubic = 0.044715;

Pattern Gelu(const Pattern& inner) {
  return Product({Any(kX), Number(0.5), Sum({Number(1), inner})});
}

Pattern ErfForm() {
  static const Pattern p = Gelu(Op(OpKind::kErf, {Product({Any(kX), Number(kSqrtHalf)})}));
  return p;
}

// The argument as c · (x + a x³) or c · x · (1 + a x²).
Pattern TanhForm() {
  static const Pattern p = [] {
    Pattern x = Any(kX), c = Number(kSqrtTwoOverPi), a = Number(kCubic);
    Pattern square = Op(OpKind::kPow, {x, Number(2)}), cube = Op(OpKind::kPow, {x, Number(3)});
    Pattern cubic = OneOf({Product({a, cube}), Product({a, x, square}), Product({a, x, x, x})});
    Pattern quadratic = OneOf({Product({a, square}), Product({a, x, x})});
    Pattern sum = Product({c, Sum({x, cubic})});
    Pattern factored = Product({c, x, Sum({Number(1), quadratic})});
    return Gelu(Op(OpKind::kTanh, {OneOf({sum, factored})}));
  }();
  return p;
}

}  // namespace

Graph RaiseGelu(const Graph& g, const GraphPassContext& context) {
  return Rewrite(g, [](Builder& b, NodeId id) -> Expected<ValueId> {
    const Node n = b.graph().node(id);
    for (const char* form : {"none", "tanh"}) {
      const bool erf = form[0] == 'n';
      std::optional<Match> m = FindMatch(b.graph(), n.outputs[0], erf ? ErfForm() : TanhForm());
      if (m)
        return b.Add(OpKind::kGelu, {m->value(kX)}, n.name, {{"approximate", std::string(form)}});
    }
    return kNoValue;
  });
}

}  // namespace tenon::graph
