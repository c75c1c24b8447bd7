#include "dependence/access.h"

#include "ir/visit.h"

namespace tenon {

void Accesses::Add(const Accesses& other) {
  reads.insert(other.reads.begin(), other.reads.end());
  writes.insert(other.writes.begin(), other.writes.end());
}

bool Accesses::Conflicts(const Accesses& other) const {
  auto meet = [](const auto& a, const auto& b) {
    for (const BufferNode* x : a) {
      if (b.count(x)) return true;
    }
    return false;
  };
  return meet(writes, other.writes) || meet(writes, other.reads) || meet(reads, other.writes);
}

namespace {

// Collects accesses; callees are looked into, up to a depth that only a recursive call could
// exceed.
class Collector {
 public:
  Collector(const Module& module, const BufferFilter& counts, int depth)
      : module_(module), counts_(counts), depth_(depth) {}

  Accesses operator()(const NodeRef& root) {
    PreOrder(root, [&](const NodeRef& n) {
      Visit(n);
      return n->kind != NodeKind::kBuffer;
    });
    return std::move(found_);
  }

 private:
  void Visit(const NodeRef& n) {
    switch (n->kind) {
      case NodeKind::kLoad: return Read(As<Load>(n)->buffer);
      case NodeKind::kStore: return Write(As<Store>(n)->buffer);
      case NodeKind::kAtomic: Read(As<Atomic>(n)->buffer); return Write(As<Atomic>(n)->buffer);
      case NodeKind::kCopy: Read(As<Copy>(n)->src->buffer); return Write(As<Copy>(n)->dst->buffer);
      case NodeKind::kCallFunc: return Callee(As<CallFunc>(n)->callee, As<CallFunc>(n)->buffers);
      case NodeKind::kLaunch: return Callee(As<Launch>(n)->kernel, As<Launch>(n)->buffers);
      case NodeKind::kCall: return OnCall(*As<Call>(n));
      default: return;  // the other kinds touch no buffer themselves
    }
  }

  void OnCall(const Call& call) {
    if (call.intrinsic != Intrinsic::kBufferData) return;
    // Its address is taken: whoever has it may write.
    if (const auto* load = As<Load>(call.args[0])) {
      Read(load->buffer);
      Write(load->buffer);
    }
  }

  void Callee(const std::string& name, const std::vector<Region>& regions) {
    Func callee = depth_ > 0 ? module_.Find(name) : nullptr;
    ParamUse use;
    if (callee) {
      Accesses inner =
          Collector(module_, [](const Buffer&) { return true; }, depth_ - 1)(callee->body);
      for (const Buffer& b : callee->buffers) {
        use.reads.push_back(inner.reads.count(b.get()) != 0);
        use.writes.push_back(inner.writes.count(b.get()) != 0);
      }
    }
    for (size_t i = 0; i < regions.size(); ++i) {
      if (!callee || use.reads[i]) Read(regions[i]->buffer);
      if (!callee || use.writes[i]) Write(regions[i]->buffer);
    }
  }

  void Read(const Buffer& b) {
    if (counts_(b)) found_.reads.insert(b.get());
  }
  void Write(const Buffer& b) {
    if (counts_(b)) found_.writes.insert(b.get());
  }

  const Module& module_;
  const BufferFilter& counts_;
  int depth_;
  Accesses found_;
};

constexpr int kMaxCallDepth = 8;

}  // namespace

Accesses AccessesOf(const NodeRef& node, const Module& module, const BufferFilter& counts) {
  return Collector(module, counts, kMaxCallDepth)(node);
}

ParamUse ParamUseOf(const PrimFunc& func, const Module& module) {
  Accesses found = AccessesOf(func.body, module, [](const Buffer&) { return true; });
  ParamUse use;
  for (const Buffer& b : func.buffers) {
    use.reads.push_back(found.reads.count(b.get()) != 0);
    use.writes.push_back(found.writes.count(b.get()) != 0);
  }
  return use;
}

}  // namespace tenon
