// The rule for kernels that work row by row (rows.cc): rows are shared out, every step of a row
// runs under its row.
#include "ops/rules.h"
#include "ops/tile.h"

namespace tenon::ops {

// Vectorizes the loop of a block that runs along the row; a tail is masked.
static void VectorizeAlong(Schedule& s, const std::string& loop, int64_t lanes) {
  if (s.GetExtent(loop) <= lanes * 4 && s.GetExtent(loop) % lanes == 0) {
    s.Vectorize(loop);
  } else {
    s.Vectorize(s.Tile(loop, lanes)[1]);
  }
}

void ScheduleRows(Schedule& s, const Target& target) {
  int64_t lanes = Lanes32(target);
  std::string out = BlocksOfRole(s, "output").at(0);
  Names axes = s.GetLoops(out);
  Names rows(axes.begin(), axes.end() - 1);
  std::string along = axes.back();
  Names steps;
  for (const std::string& b : s.GetBlocks()) {
    std::string role = BlockAttrs(s, b).GetString("role");
    if (role == "lanes" || role == "across" || role == "row") steps.push_back(b);
  }
  std::string row = rows.empty() ? "" : rows.size() == 1 ? rows[0] : s.Fuse(rows);
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    std::string role = BlockAttrs(s, *it).GetString("role");
    s.SetScope(WrittenBuffer(s, *it), role == "row" ? Scope::kLocal : Scope::kRegister);
    if (!row.empty()) s.ComputeAt(*it, row);
    InnerLoops in = LoopsInside(s, *it, row);
    if (!s.ok()) return;
    if (role == "lanes") {
      if (!in.reduce.empty()) {  // more than one vector in a row
        s.Reorder({in.reduce[0], in.spatial.back()});
        std::string init = s.DecomposeReduction(*it, in.reduce[0]);
        s.Vectorize(s.GetLoops(init).back());
      }
      s.Vectorize(in.spatial.back());
    } else if (role == "across" && !in.reduce.empty()) {
      s.DecomposeReduction(*it, in.reduce.at(0));
      s.Vectorize(in.reduce.at(0));
    } else if (role == "row") {
      VectorizeAlong(s, in.spatial.back(), lanes);
    }
  }
  VectorizeAlong(s, along, lanes);
  if (!row.empty()) s.Parallel(row);
}

}  // namespace tenon::ops
