#include "graph/lower/kernel_table.h"

#include "ir/visit.h"

namespace tenon::graph {

std::string KernelTable::Intern(const ops::Kernel& k, bool launched) {
  PrimFunc fields(*k.func);
  std::string wanted = fields.name;
  fields.name = "k";
  Func anonymous = PrimFunc::Make(std::move(fields));
  uint64_t hash = StructuralHash(anonymous);
  for (const auto& [known, name] : known_[hash]) {
    const ops::Kernel& other = scheduled_->at(name);
    if (other.algorithm != k.algorithm || other.point != k.point) continue;
    if (!StructuralEqual(known, anonymous)) continue;
    if (infos_) (*infos_)[index_[name]].launches += launched;
    return name;
  }
  known_[hash].emplace_back(anonymous, wanted);
  module_->Add(k.func);
  for (const Func& callee : k.callees) module_->Add(callee);
  scheduled_->emplace(wanted, k);
  if (infos_) {
    index_[wanted] = infos_->size();
    infos_->push_back({wanted, k.kind, k.flops, k.bytes, launched, k.seconds});
  }
  return wanted;
}

}  // namespace tenon::graph
