// What a schedule tells about its function.

#include <algorithm>

#include "schedule/analysis/conflicts.h"
#include "schedule/steps.h"

namespace tenon {

namespace {

Names BlockNames(const std::vector<const primitive::Place*>& places) {
  Names out;
  for (const primitive::Place* p : places) out.push_back(p->block()->name);
  return out;
}

Names LoopNames(const std::vector<const For*>& loops) {
  Names out;
  for (const For* loop : loops) out.push_back(loop->var->name);
  return out;
}

// Blocks other than `self` that write what it reads, or read what it writes.
Names Neighbours(const Body& body, const primitive::Place* self, bool producers) {
  const Block& block = *self->block();
  std::vector<Region> regions = producers ? block.reads : block.writes;
  std::vector<const primitive::Place*> out;
  for (const primitive::Place& p : body.blocks()) {
    if (&p == self || p.inner) continue;
    std::vector<Region> theirs = producers ? p.block()->writes : p.block()->reads;
    bool meet = std::any_of(regions.begin(), regions.end(), [&](const Region& r) {
      return std::any_of(theirs.begin(), theirs.end(),
                         [&](const Region& t) { return t->buffer == r->buffer; });
    });
    if (meet) out.push_back(&p);
  }
  return BlockNames(out);
}

// Loops around the block that its variables of one kind alone run over.
Names LoopsOfOneKind(const primitive::Place& place, IterKind kind) {
  Names out;
  for (const For* loop : place.Loops()) {
    bool only = BindsLoop(*place.block(), kind, loop);
    for (IterKind other : {IterKind::kSpatial, IterKind::kReduce, IterKind::kOrdered})
      only = only && (other == kind || !BindsLoop(*place.block(), other, loop));
    if (only) out.push_back(loop->var->name);
  }
  return out;
}

}  // namespace

Names Schedule::GetBlocks() const {
  Names out;
  if (!func()) return out;
  Body body(func());
  for (const primitive::Place& p : body.blocks()) out.push_back(p.block()->name);
  return out;
}

bool Schedule::HasBlock(const std::string& block) const {
  return func() && Body(func()).FindBlock(block) != nullptr;
}
bool Schedule::HasLoop(const std::string& loop) const {
  return func() && Body(func()).FindLoop(loop) != nullptr;
}

Names Schedule::GetLoops(const std::string& block) {
  return Steps::Look<Names>(*this, "get_loops", block, [&](const Body& body) -> Expected<Names> {
    TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedBlock(block));
    return LoopNames(place->Loops());
  });
}

Names Schedule::GetChildBlocks(const std::string& loop) {
  return Steps::Look<Names>(
      *this, "get_child_blocks", loop, [&](const Body& body) -> Expected<Names> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedLoop(loop));
        return BlockNames(body.BlocksUnder(place->stmt.get()));
      });
}

Names Schedule::GetProducers(const std::string& block) {
  return Steps::Look<Names>(
      *this, "get_producers", block, [&](const Body& body) -> Expected<Names> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedBlock(block));
        return Neighbours(body, place, true);
      });
}

Names Schedule::GetConsumers(const std::string& block) {
  return Steps::Look<Names>(
      *this, "get_consumers", block, [&](const Body& body) -> Expected<Names> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedBlock(block));
        return Neighbours(body, place, false);
      });
}

std::string Schedule::GetBlockOf(const std::string& buffer) {
  return Steps::Look<std::string>(*this, "get_block_of", buffer,
                                  [&](const Body& body) -> Expected<std::string> {
                                    TN_ASSIGN_OR_RETURN(Buffer b, body.NeedBuffer(buffer));
                                    std::vector<const primitive::Place*> writers = body.Writers(b);
                                    if (writers.empty())
                                      return Because("no block writes the buffer");
                                    return writers.back()->block()->name;
                                  });
}

int64_t Schedule::GetExtent(const std::string& loop) {
  return Steps::Look<int64_t>(
      *this, "get_extent", loop, [&](const Body& body) -> Expected<int64_t> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedLoop(loop));
        return AsInt(place->loop()->extent).value_or(-1);
      });
}

Names Schedule::GetSpatialLoops(const std::string& block) {
  return Steps::Look<Names>(
      *this, "get_spatial_loops", block, [&](const Body& body) -> Expected<Names> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedBlock(block));
        return LoopsOfOneKind(*place, IterKind::kSpatial);
      });
}

Names Schedule::GetReduceLoops(const std::string& block) {
  return Steps::Look<Names>(
      *this, "get_reduce_loops", block, [&](const Body& body) -> Expected<Names> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedBlock(block));
        return LoopsOfOneKind(*place, IterKind::kReduce);
      });
}

Names Schedule::GetOrderedLoops(const std::string& block) {
  return Steps::Look<Names>(
      *this, "get_ordered_loops", block, [&](const Body& body) -> Expected<Names> {
        TN_ASSIGN_OR_RETURN(const primitive::Place* place, body.NeedBlock(block));
        return LoopsOfOneKind(*place, IterKind::kOrdered);
      });
}

}  // namespace tenon
