// The rule for attention (attention.cc): heads are shared out; a head's keys are packed, then
// blocks of queries go through all steps.
#include "ops/rules.h"
#include "ops/tile.h"

namespace tenon::ops {

namespace {

std::string Only(const Schedule& s, const std::string& role) {
  Names blocks = BlocksOfRole(s, role);
  return blocks.empty() ? "" : blocks[0];
}

// The innermost loops of a plain block become vectors, tails masked.
void VectorizeLast(Schedule& s, const std::string& loop, int64_t lanes) {
  if (s.GetExtent(loop) == lanes) {
    s.Vectorize(loop);
  } else if (s.GetExtent(loop) > lanes) {
    s.Vectorize(s.Tile(loop, lanes)[1]);
  }
}

// One reduction of a row in two steps, or the factor of a row, under the loop over the block's
// rows.
void ScheduleRowSteps(Schedule& s, const std::string& at, int64_t lanes) {
  Names blocks = s.GetBlocks();
  for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) {
    std::string role = BlockAttrs(s, *it).GetString("role");
    if (role != "lanes" && role != "across" && role != "row" && role != "factor") continue;
    s.SetScope(WrittenBuffer(s, *it), Scope::kLocal);
    s.ComputeAt(*it, at);
    InnerLoops in = LoopsInside(s, *it, at);
    if (!s.ok()) return;
    if (role == "lanes") {
      // A row of one step has no loop over steps.
      if (in.reduce.empty()) {
        s.Vectorize(in.spatial.back());
        continue;
      }
      s.Reorder(Concat({in.spatial.size() > 1 ? Names{in.spatial[0]} : Names{},
                        in.reduce,
                        {in.spatial.back()}}));
      std::string init = s.DecomposeReduction(*it, in.reduce.at(0));
      s.Vectorize(s.GetLoops(init).back());
      s.Vectorize(in.spatial.back());
    } else if (role == "across") {
      s.DecomposeReduction(*it, in.reduce.at(0));
      s.Vectorize(in.reduce.at(0));
    } else if (role == "row") {
      VectorizeLast(s, in.spatial.back(), lanes);
    }
  }
}

}  // namespace

void ScheduleAttention(Schedule& s, const Target& target) {
  const Attrs attrs = s.func()->attrs;
  int64_t lanes = Lanes32(target);
  int64_t rows = attrs.GetInt("rows", 1), score_vectors = attrs.GetInt("score_vectors", 1);
  int64_t out_vectors = attrs.GetInt("out_vectors", 1);
  std::string out = Only(s, "output"), weighted = Only(s, "anchor"), scores = Only(s, "scores");
  std::string masked = Only(s, "masked"), pack = Only(s, "pack");
  Names axes = s.GetLoops(out);
  size_t r = axes.size();
  Names i = s.Split(axes[r - 2], {-1, rows});
  Names e = s.Split(axes[r - 1], {-1, out_vectors, lanes});
  Names lead(axes.begin(), axes.end() - 2);
  s.Reorder(Concat({lead, {i[0], e[0], i[1], e[1], e[2]}}));
  // The weighted sum of values per tile of the output.
  ComputeInRegisters(s, weighted, e[0], out_vectors, lanes, SIZE_MAX, {});
  s.Unroll(i[1]);
  s.Unroll(e[1]);
  s.Vectorize(e[2]);
  // Softmax of a block of queries.
  ScheduleRowSteps(s, i[0], lanes);
  // Scores of a block of queries, with scale and mask as they leave the registers.
  s.SetScope(WrittenBuffer(s, masked), Scope::kLocal);
  s.ComputeAt(masked, i[0]);
  InnerLoops tile = LoopsInside(s, masked, i[0]);
  if (!s.ok()) return;
  Names j = s.Split(tile.spatial.back(), {-1, score_vectors, lanes});
  std::string query = tile.spatial.size() > 1 ? tile.spatial[tile.spatial.size() - 2] : "";
  s.Reorder(Concat({{j[0], query, j[1], j[2]}}));
  ComputeInRegisters(s, scores, j[0], score_vectors, lanes, SIZE_MAX, {});
  if (!query.empty()) s.Unroll(query);
  s.Unroll(j[1]);
  s.Vectorize(j[2]);
  // Keys of a head, transposed. Reads run along memory, writes are scattered: each line is written
  // whole by then.
  s.SetScope(WrittenBuffer(s, pack), Scope::kLocal);
  s.ComputeAt(pack, lead.back());
  if (!s.ok()) return;
  VectorizeLast(s, LoopsInside(s, pack, lead.back()).spatial.back(), lanes);
  ParallelOuter(s, lead);
}

}  // namespace tenon::ops
