#include "stages/nests.h"

#include "ir/visit.h"

namespace tenon::stages {

const For* Nest::LoopOf(size_t iter) const {
  for (const For* loop : loops) {
    if (loop->var == block->iters[iter]->binding) return loop;
  }
  return nullptr;
}

static void Collect(const NodeRef& node, std::vector<const For*>* loops, std::vector<Nest>* nests) {
  PreOrder(node, [&](const NodeRef& n) {
    if (const auto* block = As<Block>(n)) {
      nests->push_back({block, *loops});
      return false;
    }
    const auto* loop = As<For>(n);
    if (!loop) return !IsA<ExprNode>(n);
    loops->push_back(loop);
    Collect(loop->body, loops, nests);
    loops->pop_back();
    return false;
  });
}

std::vector<Nest> NestsOf(const Func& func) {
  std::vector<const For*> around;
  std::vector<Nest> nests;
  Collect(func->body, &around, &nests);
  return nests;
}

std::map<const For*, int> BlocksUnder(const std::vector<Nest>& nests) {
  std::map<const For*, int> count;
  for (const Nest& nest : nests) {
    for (const For* loop : nest.loops) ++count[loop];
  }
  return count;
}

}  // namespace tenon::stages
