// Type rules of operators with regions: their results are what the regions give, and what stands
// at a region's border must be the same on both sides.
#include "graph/graph.h"
#include "graph/rules.h"

namespace tenon::graph {
namespace {

using rules::Bad;

Types TypesOf(const Graph& g, std::span<const ValueId> values) {
  Types out;
  for (ValueId v : values) out.push_back(g.value(v).type);
  return out;
}

// `what` in the singular, and what it is of: "result", " of the second region".
Status CheckSame(const char* what, const char* of, const Types& want, const Types& got) {
  if (want.size() != got.size())
    return Bad("expected {} {}{}{}, but got {}", want.size(), what, want.size() == 1 ? "" : "s", of,
               got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == got[i]) continue;
    return Bad("expected {} {}{} to be {}, but got {}", what, i, of, want[i].ToString(),
               got[i].ToString());
  }
  return Ok();
}

Status CheckScalar(const char* what, DType dtype, const Type& got) {
  if (got == Type(TensorType{dtype, {}})) return Ok();
  return Bad("expected {} to be {}[], but got {}", what, dtype.ToString(), got.ToString());
}

// Which way control takes is known at run time only, so nothing of what kernels agree on beforehand
// crosses its borders.
Status CheckPlain(const char* what, const Types& types) {
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorType& t = types[i].leaf();
    if (t.layout || t.place != Place{})
      return Bad("expected {} {} to be row-major on the host, but got {}", what, i, t.ToString());
  }
  return Ok();
}

Expected<size_t> CarriedOf(const Node& n, size_t inputs, size_t results) {
  const int64_t carried = n.attrs.GetInt("carried");
  const size_t most = std::min(inputs, results);
  if (carried < 0 || static_cast<size_t>(carried) > most)
    return Bad("expected carried in 0..{}, but got {}", most, carried);
  return static_cast<size_t>(carried);
}

Expected<Types> TypeIf(const Types& in, const Node& n) {
  TN_RETURN_IF_ERROR(CheckScalar("the condition", DType::Bool(), in[0]));
  const Types captured(in.begin() + 1, in.end());
  Types out[2];
  for (size_t i = 0; i < 2; ++i) {
    const Graph& region = *n.regions[i];
    TN_RETURN_IF_ERROR(CheckSame("input", i == 0 ? " of the first region" : " of the second region",
                                 captured, TypesOf(region, region.inputs)));
    out[i] = TypesOf(region, region.outputs);
  }
  TN_RETURN_IF_ERROR(CheckSame("result", " of the second region", out[0], out[1]));
  return out[0];
}

Expected<Types> TypeWhile(const Types& in, const Node& n) {
  const Graph& region = *n.regions[0];
  TN_RETURN_IF_ERROR(CheckScalar("the condition", DType::Bool(), in[0]));
  const Types passed(in.begin() + 1, in.end());
  TN_RETURN_IF_ERROR(CheckSame("input", " of the region", passed, TypesOf(region, region.inputs)));
  Types out = TypesOf(region, region.outputs);
  if (out.empty()) return Bad("expected a region that gives a condition, but it gives nothing");
  TN_RETURN_IF_ERROR(CheckScalar("the region's condition", DType::Bool(), out[0]));
  out.erase(out.begin());
  TN_ASSIGN_OR_RETURN(const size_t carried, CarriedOf(n, passed.size(), out.size()));
  TN_RETURN_IF_ERROR(
      CheckSame("carried result", " of the region",
                {passed.begin(), passed.begin() + static_cast<std::ptrdiff_t>(carried)}, out));
  return out;
}

Expected<Types> TypeLoop(const Types& in, const Node& n) {
  const Graph& region = *n.regions[0];
  const std::vector<Expr>& count = n.exprs.find("count")->second;
  if (count.size() != 1) return Bad("expected one entry in count, but got {}", count.size());
  Types passed = in;
  passed.insert(passed.begin(), TensorType{DType::Int(64), {}});
  TN_RETURN_IF_ERROR(CheckSame("input", " of the region", passed, TypesOf(region, region.inputs)));
  Types out = TypesOf(region, region.outputs);
  TN_ASSIGN_OR_RETURN(const size_t carried, CarriedOf(n, in.size(), out.size()));
  const auto split = static_cast<std::ptrdiff_t>(carried);
  TN_RETURN_IF_ERROR(CheckSame("carried result", " of the region", {in.begin(), in.begin() + split},
                               {out.begin(), out.begin() + split}));
  for (size_t i = carried; i < out.size(); ++i) {
    if (!out[i].IsTensor())
      return Bad("expected collected result {} to be a tensor, but got {}", i - carried,
                 out[i].ToString());
    out[i].tensor().dims.insert(out[i].tensor().dims.begin(), count[0]);
  }
  return out;
}

Expected<Types> TypeFused(const Types& in, const Node& n) {
  const Graph& region = *n.regions[0];
  TN_RETURN_IF_ERROR(CheckSame("input", " of the region", in, TypesOf(region, region.inputs)));
  return TypesOf(region, region.outputs);
}

}  // namespace

Expected<Types> InferRegionTypes(const Graph& g, const Node& n) {
  for (const std::shared_ptr<const Graph>& region : n.regions) {
    if (region->outputs.empty()) return Bad("expected regions with results, but one has none");
  }
  for (ValueId v : n.inputs) {
    if (v == kNoValue) return Bad("expected all inputs, but one is left out");
  }
  const Types in = TypesOf(g, n.inputs);
  if (n.op == OpKind::kFused) return TypeFused(in, n);
  TN_RETURN_IF_ERROR(CheckPlain("input", in));
  Expected<Types> out = n.op == OpKind::kIf      ? TypeIf(in, n)
                        : n.op == OpKind::kWhile ? TypeWhile(in, n)
                                                 : TypeLoop(in, n);
  if (!out) return out;
  if (out->empty()) return Bad("expected at least one result, but there is none");
  TN_RETURN_IF_ERROR(CheckPlain("result", *out));
  for (const Type& type : *out) TN_RETURN_IF_ERROR(CheckType(type));
  return out;
}

}  // namespace tenon::graph
