#include "codegen/c_family/exchanged.h"

#include <algorithm>

#include "ir/visit.h"
#include "loop/threads.h"

namespace tenon::codegen {

std::unordered_set<const BufferNode*> ExchangedBuffers(const PrimFunc& func) {
  std::unordered_set<const Node*> read, written;
  bool waits = false;
  PreOrder(func.body, [&](const NodeRef& n) {
    waits |= n->kind == NodeKind::kSync;
    if (const auto* load = As<Load>(n)) read.insert(load->buffer.get());
    if (const auto* store = As<Store>(n)) written.insert(store->buffer.get());
    const auto* region = As<RegionNode>(n);
    const auto* atomic = As<Atomic>(n);
    for (const Node* both :
         {region ? region->buffer.get() : nullptr, atomic ? atomic->buffer.get() : nullptr}) {
      read.insert(both);
      written.insert(both);
    }
    return !IsA<BufferNode>(n);
  });
  std::unordered_set<const BufferNode*> out;
  const auto awaited = func.attrs.Get<std::vector<std::string>>(kAwaitsAttr, {});
  for (const Buffer& b : func.buffers) {
    // The launch before may write it while this one has begun.
    if (std::find(awaited.begin(), awaited.end(), b->name) != awaited.end()) out.insert(b.get());
    if (waits && read.count(b.get()) != 0 && written.count(b.get()) != 0) out.insert(b.get());
  }
  return out;
}

}  // namespace tenon::codegen
