// Primitives on buffers: their scope, how they are stored and aligned. Also annotations.

#include <algorithm>

#include "arith/injective.h"
#include "ir/visit.h"
#include "loop/annotations.h"
#include "loop/padded_rows.h"
#include "schedule/analysis/retarget.h"
#include "schedule/primitive/primitives.h"
#include "support/strings.h"

namespace tenon::primitive {

namespace {

// The function with `from` replaced by `to`, as a parameter too.
void ReplaceBuffer(State& s, const Buffer& from, const Buffer& to) {
  BufferMap map{{from.get(), to}};
  PrimFunc copy = *s.func;
  for (Buffer& b : copy.buffers) {
    if (b == from) b = to;
  }
  copy.body = SubstituteBuffers(copy.body, map);
  s.func = PrimFunc::Make(std::move(copy));
}

}  // namespace

Result SetScope(State& s, const std::string& name, const Scope& scope) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(Buffer b, body.NeedBuffer(name));
  if (!body.IsAlloc(b)) return Because("buffer " + name + " is not allocated in the function");
  ReplaceBuffer(
      s, b, BufferNode::Make(b->name, b->dtype, b->shape, scope, b->layout, b->strides, b->align));
  return Names{};
}

Result TransformLayout(State& s, const std::string& name, const Layout& layout) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(Buffer b, body.NeedBuffer(name));
  if (!b->strides.empty()) return Because("buffer " + name + " has strides of its own");
  if (auto error = PassedToCall(body, b)) return *error;
  if (layout) {
    if (layout->coords.size() != b->shape.size()) {
      return Because("buffer " + name + " has " + std::to_string(b->shape.size()) +
                     " dimensions, the layout " + std::to_string(layout->coords.size()));
    }
    Analyzer analyzer;
    Learn(*s.func, &analyzer);
    std::unordered_set<const VarNode*> coords;
    for (size_t i = 0; i < b->shape.size(); ++i) {
      analyzer.Bind(layout->coords[i], IndexConst(0), b->shape[i]);
      coords.insert(layout->coords[i].get());
    }
    std::vector<KnownSum> known;
    for (const Expr& e : layout->storage) known.push_back({e});
    if (FixedVars(known, coords, {}, &analyzer).size() != coords.size()) {
      return Because("the layout is not known to give every element of " + name +
                     " a place of its own");
    }
  }
  ReplaceBuffer(s, b,
                BufferNode::Make(b->name, b->dtype, b->shape, b->scope, layout, {}, b->align));
  return Names{};
}

Result StorageAlign(State& s, const std::string& name, const int64_t& axis, const int64_t& factor,
                    const int64_t& offset) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(Buffer b, body.NeedBuffer(name));
  if (!body.IsAlloc(b)) return Because("buffer " + name + " is not allocated in the function");
  if (b->layout || !b->strides.empty()) {
    return Because("buffer " + name + " has a layout or strides of its own");
  }
  if (auto error = PassedToCall(body, b)) return *error;
  if (axis < 0 || axis + 1 >= b->rank()) {
    return Because("axis " + std::to_string(axis) + " of buffer " + name +
                   " has nothing after it to pad: expected 0 <= axis < " +
                   std::to_string(b->rank() - 1));
  }
  if (factor < 1 || offset < 0 || offset >= factor) {
    return Because("expected a positive factor and 0 <= offset < factor, got " +
                   std::to_string(factor) + " and " + std::to_string(offset));
  }
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  const auto dim = static_cast<size_t>(axis);
  const Expr row = analyzer.Simplify(RowSize(b->shape, dim));
  Layout layout = PaddedLayout(b->shape, dim, PaddedExtent(row, {factor, offset}));
  ReplaceBuffer(s, b,
                BufferNode::Make(b->name, b->dtype, b->shape, b->scope, layout, {}, b->align));
  return Names{};
}

Result Annotate(State& s, const std::string& name, const std::string& key, const AttrValue& value) {
  Body body(s.func);
  if (key.empty()) return Because("expected the name of an attribute");
  if (key == kPrivateAttr) {
    return Because("the primitives that run iterations at the same time say what is private");
  }
  if (std::find(std::begin(kAnnotations), std::end(kAnnotations), key) == std::end(kAnnotations)) {
    const Names known(std::begin(kAnnotations), std::end(kAnnotations));
    return Because("nothing reads the key '" + key + "'; expected " + Join(known, ", "));
  }
  if (const Place* place = body.FindLoop(name)) {
    const For& loop = *place->loop();
    Attrs attrs = loop.attrs;
    attrs.Set(key, value);
    Stmt out =
        For::Make(loop.var, loop.min, loop.extent, loop.for_kind, loop.body, attrs, loop.thread);
    s.SetBody(Edit(body.root(), {{place->stmt.get(), out}}));
    return Names{};
  }
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  Block copy = *place->block();
  copy.attrs.Set(key, value);
  s.SetBody(Edit(body.root(), {{place->stmt.get(), Block::Make(std::move(copy))}}));
  return Names{};
}

}  // namespace tenon::primitive
