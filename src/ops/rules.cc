#include "ops/rules.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "graph/graph.h"
#include "ir/visit.h"

namespace tenon::ops {

const Rule* FindRule(const std::string& name) {
  static constexpr Rule kRules[] = {{"map", ScheduleMap},
                                    {"tile", ScheduleTile},
                                    {"window", ScheduleTile},
                                    {"matmul", ScheduleMatMul},
                                    {"implicit_gemm", ScheduleImplicitGemm},
                                    {"rows", ScheduleRows},
                                    {"attention", ScheduleAttention}};
  for (const Rule& r : kRules) {
    if (name == r.name) return &r;
  }
  return nullptr;
}

static const Block* FindBlock(const Func& f, const std::string& name) {
  const Block* found = nullptr;
  PreOrder(f->body, [&](const NodeRef& n) {
    if (const auto* b = As<Block>(n)) {
      if (b->name == name) found = b;
      return false;
    }
    return !IsA<ExprNode>(n);
  });
  return found;
}

Attrs BlockAttrs(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b ? b->attrs : Attrs{};
}

std::vector<std::string> BlocksOfRole(const Schedule& s, const std::string& role) {
  std::vector<std::string> out;
  for (const std::string& b : s.GetBlocks()) {
    if (BlockAttrs(s, b).GetString("role") == role) out.push_back(b);
  }
  return out;
}

int64_t TypicalExtent(const Schedule& s, const std::string& loop) {
  const Func& f = s.func();
  int64_t extent = 1;
  PreOrder(f->body, [&](const NodeRef& n) {
    const auto* l = As<For>(n);
    if (!l || l->var->name != loop) return !IsA<ExprNode>(n);
    VarMap typical;
    for (size_t i = 0; i < f->dims.size(); ++i) {
      const DimRange r = f->dim_range(i);
      const graph::Dim dim{f->dims[i], r.lo, r.hi < 0 ? graph::Dim::kNoMax : r.hi, r.step};
      typical[f->dims[i].get()] = IndexConst(dim.Typical());
    }
    extent = AsInt(Simplify(Substitute(l->extent, typical))).value_or(1);
    return false;
  });
  return extent;
}

std::string ParallelOuter(Schedule& s, const std::vector<std::string>& loops) {
  // Enough parts for any team that shares them evenly to within a few percent.
  constexpr int64_t kEnough = 64;
  std::vector<std::string> outer;
  int64_t certain = 1, typical = 1;  // parts at all sizes of dims, and at the typical ones
  for (const std::string& l : loops) {
    if (certain >= kEnough) break;
    const int64_t extent = s.GetExtent(l);
    // The last loop has the smallest parts: where others are mostly enough, it stays whole.
    if (&l == &loops.back() && !outer.empty() && typical >= kEnough) break;
    outer.push_back(l);
    certain *= std::max<int64_t>(extent, 1);
    typical *= extent < 0 ? TypicalExtent(s, l) : extent;
  }
  if (outer.empty() || typical <= 1) return "";
  std::string fused = outer.size() == 1 ? outer[0] : s.Fuse(outer);
  s.Parallel(fused);
  return fused;
}

Names Concat(std::initializer_list<Names> lists) {
  Names out;
  for (const Names& l : lists) out.insert(out.end(), l.begin(), l.end());
  out.erase(std::remove(out.begin(), out.end(), std::string()), out.end());
  return out;
}

InnerLoops LoopsInside(Schedule& s, const std::string& block, const std::string& loop) {
  InnerLoops in;
  Names all = s.GetLoops(block), reduce = s.GetReduceLoops(block);
  auto at = std::find(all.begin(), all.end(), loop);
  for (auto it = at == all.end() ? all.begin() : at + 1; it != all.end(); ++it) {
    bool reduces = std::find(reduce.begin(), reduce.end(), *it) != reduce.end();
    (reduces ? in.reduce : in.spatial).push_back(*it);
  }
  return in;
}

std::string WrittenBuffer(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && !b->writes.empty() ? b->writes[0]->buffer->name : "";
}

DType WrittenType(const Schedule& s, const std::string& block) {
  const Block* b = FindBlock(s.func(), block);
  return b && !b->writes.empty() ? b->writes[0]->buffer->dtype : DType::Float(32);
}

void ComputeInRegisters(Schedule& s, const std::string& block, const std::string& at, int64_t nv,
                        int64_t lanes, size_t lanes_axis, const Names& unrolled_reduce) {
  s.SetScope(WrittenBuffer(s, block), "register");
  s.ComputeAt(block, at);
  InnerLoops in = LoopsInside(s, block, at);
  if (in.spatial.empty()) return;
  lanes_axis = std::min(lanes_axis, in.spatial.size() - 1);
  std::string vector_loop = in.spatial[lanes_axis];
  Names tile = in.spatial;
  tile.erase(tile.begin() + static_cast<long>(lanes_axis));
  std::string vectors, lane = vector_loop;
  if (s.GetExtent(vector_loop) > lanes) {
    Names parts = s.Split(vector_loop, {nv, lanes});
    vectors = parts[0];
    lane = parts[1];
  }
  s.Reorder(Concat({in.reduce, tile, {vectors, lane}}));
  Names unroll = Concat({tile, {vectors}});
  if (!in.reduce.empty()) {
    std::string init = s.DecomposeReduction(block, in.reduce[0]);
    InnerLoops start = LoopsInside(s, init, at);
    if (!start.spatial.empty()) {
      s.Vectorize(start.spatial.back());
      for (size_t i = 0; i + 1 < start.spatial.size(); ++i) s.Unroll(start.spatial[i]);
    }
  }
  s.Vectorize(lane);
  for (const std::string& l : unroll) s.Unroll(l);
  for (const std::string& l : unrolled_reduce) {
    if (s.HasLoop(l)) s.Unroll(l);
  }
}

}  // namespace tenon::ops
