// prefetch: what a block will read some iterations later is asked for now.

#include <algorithm>

#include "ir/print.h"
#include "ir/visit.h"
#include "schedule/analysis/conflicts.h"
#include "schedule/analysis/nest.h"
#include "schedule/primitive/primitives.h"

namespace tenon::primitive {

namespace {

constexpr int64_t kLineBytes = 64;  // asking for one element brings its cache line

// One prefetch per cache line of rows; `step` elements apart.
Block PrefetchBlock(const std::string& name, const Buffer& buffer, int64_t step, Body* body) {
  Block out;
  out.name = name;
  std::vector<Expr> at;
  for (size_t d = 0; d < buffer->shape.size(); ++d) {
    Var v = VarNode::Make(body->NewVarName(name + ".v" + std::to_string(d)));
    bool last = d + 1 == buffer->shape.size();
    Expr count = last ? Simplify(CeilDiv(buffer->shape[d], IndexConst(step))) : buffer->shape[d];
    at.push_back(last && step != 1 ? v * step : Expr(v));
    out.iters.push_back(
        IterVarNode::Make(v, IterKind::kSpatial, IndexConst(0), count, IndexConst(0)));
  }
  out.reads = {PointRegion(buffer, at)};
  out.body = Evaluate::Make(Call::Make(Intrinsic::kPrefetch,
                                       {Load::Make(buffer, at), MakeIntConst(DType::Int(32), 0)},
                                       DType::Int(32)));
  return out;
}

// What the block reads of the buffer in one iteration of the loop.
Box BoxIn(const Body& body, const Place& block, const Buffer& buffer, const Place& loop,
          Analyzer* analyzer) {
  Box out;
  std::vector<const For*> inner = block.LoopsInside(loop.stmt.get());
  for (const For* l : inner) Learn(*l, analyzer);
  for (const Access& a : body.AccessesUnder(block.stmt.get())) {
    if (a.write || a.region->buffer != buffer) continue;
    Box box = TouchedBox(a.region, *block.block(), DomainOf(inner, analyzer), analyzer);
    out = out.empty() ? box : Union(out, box, analyzer);
  }
  return out;
}

}  // namespace

Result Prefetch(State& s, const std::string& name, const std::string& buffer_name,
                const std::string& loop_name, const int64_t& distance) {
  Body body(s.func);
  TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(name));
  TN_ASSIGN_OR_RETURN(Buffer buffer, body.NeedBuffer(buffer_name));
  TN_ASSIGN_OR_RETURN(const Place* loop, body.NeedLoop(loop_name));
  if (distance < 1) {
    return Because("expected a distance of at least one iteration, got " +
                   std::to_string(distance));
  }
  if (!place->IsUnder(loop->stmt.get()) || place->inner) {
    return OfBlock(name, "it is not under loop " + loop_name);
  }
  if (loop->loop()->for_kind != ForKind::kSerial) {
    return OfBlock(name, "loop " + loop_name + " is " + Name(loop->loop()->for_kind) +
                             ", so that its iterations do not follow each other");
  }
  if (!body.Writers(buffer).empty()) {
    return OfBlock(name, "block " + body.Writers(buffer)[0]->block()->name + " writes " +
                             buffer_name + ", which may not be there yet");
  }
  Analyzer analyzer;
  Learn(*s.func, &analyzer);
  Learn(loop->path, &analyzer);
  Learn(*loop->loop(), &analyzer);
  Box box = BoxIn(body, *place, buffer, *loop, &analyzer);
  if (box.empty()) return OfBlock(name, "it does not read " + buffer_name);

  int64_t step = buffer->layout ? 1 : std::max<int64_t>(1, kLineBytes / buffer->dtype.Bytes());
  const Var& var = loop->loop()->var;
  std::unordered_map<const VarNode*, Expr> ahead{{var.get(), var + distance}};
  for (size_t d = 0; d < box.size(); ++d) {
    for (Expr* end : {&box[d].min, &box[d].max}) {
      if (!*end) continue;
      *end = Substitute(*end, ahead);
      if (d + 1 == box.size() && step != 1) *end = *end / step;
      *end = analyzer.Simplify(*end);
    }
  }
  std::string made = body.NewBlockName(buffer_name + ".prefetch");
  Stmt nest =
      MakeNest(PrefetchBlock(made, buffer, step, &body), box, Widen::kYes, &body, &analyzer);
  const Stmt& inside = loop->loop()->body;
  s.SetBody(Edit(body.root(), {{inside.get(), Before(nest, inside)}}));
  return Names{made};
}

}  // namespace tenon::primitive
