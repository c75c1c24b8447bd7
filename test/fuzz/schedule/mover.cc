#include "fuzz/schedule/mover.h"

#include <algorithm>
#include <numeric>

#include "ir/visit.h"
#include "loop/threads.h"

namespace tenon::fuzz {

using primitive::Args;
using primitive::Place;

Mover::Mover(Schedule* schedule, Random& random, const MoveOptions& options, Counts* counts)
    : schedule_(schedule),
      random_(random),
      options_(options),
      counts_(counts),
      body_(schedule->func()) {
  for (const Place& p : body_.loops()) loops_.push_back(p.loop()->var->name);
  for (const Place& p : body_.blocks()) blocks_.push_back(p.block()->name);
  for (const tenon::Buffer& b : schedule->func()->buffers) buffers_.push_back(b->name);
  for (const tenon::Buffer& b : body_.allocs()) buffers_.push_back(b->name);
}

std::string Mover::Loop() { return Sometimes(100) ? "nothing" : Pick(loops_, random_); }
std::string Mover::Block() { return Sometimes(100) ? "nothing" : Pick(blocks_, random_); }
std::string Mover::Buffer() { return Sometimes(100) ? "nothing" : Pick(buffers_, random_); }
std::string Mover::Scope() {
  if (options_.gpu && !Sometimes(4))
    return Pick<std::string>({"shared", "shared", "local", "register"}, random_);
  const std::string scope =
      Pick<std::string>({"local", "local", "register", "shared", "global", "", "heaven"}, random_);
  return scope == "shared" && !options_.threads ? "local" : scope;
}

std::vector<std::string> Mover::LoopsOf(const std::string& block) const {
  std::vector<std::string> out;
  const Place* place = body_.FindBlock(block);
  if (place == nullptr) return out;
  for (const For* loop : place->Loops()) out.push_back(loop->var->name);
  return out;
}

std::string Mover::LoopOf(const std::string& block) {
  std::vector<std::string> own = LoopsOf(block);
  return own.empty() ? Loop() : Pick(own, random_);
}

std::string Mover::ReduceLoopOf(const std::string& block) {
  const Place* place = body_.FindBlock(block);
  if (place == nullptr) return Loop();
  std::vector<std::string> found;
  for (const For* loop : place->Loops()) {
    for (const IterVar& iter : place->block()->iters) {
      const bool runs =
          iter->iter_kind == IterKind::kReduce && UsesVar(iter->binding, loop->var.get());
      if (runs) found.push_back(loop->var->name);
    }
  }
  return found.empty() ? LoopOf(block) : Pick(found, random_);
}

std::string Mover::Axis() {
  if (options_.meet && Sometimes(4)) return "clusterCtaIdx.x";
  static const Names kThreads = {"threadIdx.x", "threadIdx.y", "blockIdx.x", "vthread"};
  static const Names kMore = {"threadIdx.x", "threadIdx.x", "threadIdx.y", "threadIdx.z",
                              "blockIdx.x",  "blockIdx.x",  "blockIdx.y",  "vthread"};
  static const Names kOther = {"threadIdx.q"};
  return Pick(options_.gpu ? kMore : options_.threads ? kThreads : kOther, random_);
}

void Mover::BindLoopOf(const std::string& block) {
  // What earlier steps of the move have made is looked up anew.
  const Body now(schedule_->func());
  const Place* place = now.FindBlock(block);
  if (place == nullptr || place->Loops().empty()) return;
  Names own;
  for (const For* loop : place->Loops()) own.push_back(loop->var->name);
  std::string loop = Pick(own, random_);
  if (Sometimes(3)) {
    Done s = Try("split", {loop, std::vector<int64_t>{-1, Number(1, 5)}});
    if (s.ok) loop = s.results.back();
  }
  Try("bind", {loop, Axis()});
}

std::string Mover::WrittenBy(const std::string& block) {
  const Body now(schedule_->func());
  const Place* place = now.FindBlock(block);
  if (place == nullptr || place->block()->writes.empty()) return "";
  return place->block()->writes[0]->buffer->name;
}

std::string Mover::BufferOf(const std::string& block) {
  const Place* place = body_.FindBlock(block);
  if (place == nullptr) return Buffer();
  std::vector<std::string> found;
  for (const Region& r : place->block()->reads) found.push_back(r->buffer->name);
  for (const Region& r : place->block()->writes) found.push_back(r->buffer->name);
  return found.empty() ? Buffer() : Pick(found, random_);
}

std::string Mover::Neighbour(const std::string& block, bool reader) {
  const Place* place = body_.FindBlock(block);
  if (place == nullptr) return Block();
  std::vector<std::string> found;
  for (const Place& other : body_.blocks()) {
    const auto& from = reader ? *place->block() : *other.block();
    const auto& to = reader ? *other.block() : *place->block();
    if (&other == place) continue;
    for (const Region& w : from.writes) {
      for (const Region& r : to.reads) {
        if (r->buffer == w->buffer) found.push_back(other.block()->name);
      }
    }
  }
  return found.empty() ? Block() : Pick(found, random_);
}

std::vector<std::string> Mover::SomeLoopsOf(const std::string& block, size_t most, bool in_order) {
  std::vector<std::string> own = LoopsOf(block);
  std::vector<size_t> chosen(own.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  std::shuffle(chosen.begin(), chosen.end(), random_);
  chosen.resize(std::min(own.size(), most));
  if (in_order) std::sort(chosen.begin(), chosen.end());
  std::vector<std::string> out;
  for (size_t i : chosen) out.push_back(own[i]);
  return out;
}

std::string Mover::Map(size_t rank) {
  std::vector<std::string> coords, storage;
  for (size_t d = 0; d < rank; ++d) coords.push_back("c" + std::to_string(d));
  storage = coords;
  if (rank > 0 && !Sometimes(4)) {
    const std::string tile = std::to_string(Number(2, 4));
    const size_t split = random_() % rank;
    storage[split] = coords[split] + " / " + tile;
    storage.push_back(coords[split] + " % " + tile);
  }
  if (Sometimes(2)) std::shuffle(storage.begin(), storage.end(), random_);
  if (Sometimes(12) && !storage.empty()) storage.pop_back();
  if (Sometimes(12) && !storage.empty()) storage[0] += Sometimes(2) ? " + 1" : " * 2";
  auto list = [](const std::vector<std::string>& items) {
    std::string out;
    for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
    return "(" + out + ")";
  };
  return list(coords) + " -> " + list(storage);
}

size_t Mover::RankOf(const std::string& buffer) const {
  Expected<tenon::Buffer> found = body_.NeedBuffer(buffer);
  return found ? (*found)->shape.size() : 1;
}

std::pair<std::string, size_t> Mover::Intrinsic() {
  std::vector<std::pair<std::string, size_t>> found;
  for (const auto& [name, func] : schedule_->module().funcs) {
    if (func->func_kind != FuncKind::kDevice || func->attrs.Has("outlined")) continue;
    size_t depth = 0;
    for (Stmt s = func->body; IsA<For>(s); s = As<For>(s)->body) ++depth;
    if (depth > 0) found.emplace_back(name, depth);
  }
  return found.empty() ? std::pair<std::string, size_t>() : Pick(found, random_);
}

std::string Mover::Condition() {
  const std::vector<Var>& dims = schedule_->func()->dims;
  if (dims.empty()) return Pick<std::string>({"3 > 2", "n == 1", "1 +", ""}, random_);
  auto one = [&] {
    const std::string op = Pick<std::string>({" == ", " >= ", " < ", " % 4 == "}, random_);
    return Pick(dims, random_)->name + op + std::to_string(Number(0, 5));
  };
  return Sometimes(3) ? one() + " && " + one() : one();
}

Mover::Done Mover::Try(const std::string& primitive, Args args, Names chosen) {
  const size_t before = schedule_->trace().steps.size();
  TraceStep step{primitive, std::move(args), std::move(chosen)};
  if (!TryStep(schedule_, step, counts_)) {
    last_refused_ = std::move(step);
    return {};
  }
  const std::vector<TraceStep>& steps = schedule_->trace().steps;
  return {true, steps.size() > before ? steps.back().results : Names()};
}

namespace {

using Ints = std::vector<int64_t>;

// ---- Primitives, one by one ----

void Split(Mover& m) {
  const int64_t f = m.Number(2, 5);
  const std::vector<Ints> shapes = {{-1, f}, {-1, f},    {-1, f},
                                    {f, -1}, {-1, 2, f}, {2, -1, f},
                                    {f, 4},  {-1, 1},    {m.Number(1, 16), m.Number(1, 4)}};
  const std::vector<Ints> odd = {{}, {0, -1}, {-1, -1}, {-2, 3}, {int64_t{1} << 40, -1}, {1}};
  m.Try("split", {m.Loop(), Pick(m.Sometimes(20) ? odd : shapes, m.random())});
}
void Tile(Mover& m) {
  Names loops = m.SomeLoopsOf(m.Block(), static_cast<size_t>(m.Number(1, 3)), !m.Sometimes(4));
  Ints factors(loops.size());
  for (int64_t& f : factors) f = m.Number(m.Sometimes(20) ? 0 : 1, 4);
  if (m.Sometimes(20)) factors.push_back(2);
  m.Try("tile", {loops, factors});
}
void Partition(Mover& m) {
  Ints points = {m.Number(-1, 5)};
  while (m.Sometimes(3)) points.push_back(points.back() + m.Number(m.Sometimes(8) ? 0 : 1, 4));
  m.Try("partition", {m.Loop(), points});
}
void PartitionEqual(Mover& m) { m.Try("partition_equal", {m.Loop(), m.Number(0, 3)}); }
void Fuse(Mover& m) {
  Names loops = m.LoopsOf(m.Block());
  if (m.Sometimes(8)) {
    m.Try("fuse", {m.SomeLoopsOf(m.Block(), 3, false)});
  } else if (loops.size() >= 2) {
    const auto first = static_cast<ptrdiff_t>(m.random()() % (loops.size() - 1));
    const auto left = static_cast<ptrdiff_t>(loops.size()) - first;
    const ptrdiff_t count = std::min<ptrdiff_t>(left, m.Number(2, 3));
    m.Try("fuse", {Names(loops.begin() + first, loops.begin() + first + count)});
  }
}
void Reorder(Mover& m) {
  Names loops = m.SomeLoopsOf(m.Block(), static_cast<size_t>(m.Number(2, 4)), false);
  if (m.Sometimes(30)) loops.push_back(m.Loop());
  m.Try("reorder", {loops});
}
void Parallel(Mover& m) { m.Try("parallel", {m.Loop()}); }
void Vectorize(Mover& m) { m.Try("vectorize", {m.Loop()}); }
void Unroll(Mover& m) { m.Try("unroll", {m.Loop()}); }
void Bind(Mover& m) { m.Try("bind", {m.Loop(), m.Axis()}); }
void ComputeAt(Mover& m) {
  const std::string block = m.Block();
  m.Try("compute_at", {block, m.Sometimes(5) ? m.Loop() : m.LoopOf(m.Neighbour(block, true))});
}
void ReverseComputeAt(Mover& m) {
  const std::string block = m.Block();
  m.Try("reverse_compute_at",
        {block, m.Sometimes(5) ? m.Loop() : m.LoopOf(m.Neighbour(block, false))});
}
void ComputeRoot(Mover& m) { m.Try("compute_root", {m.Block()}); }
void ComputeInline(Mover& m) { m.Try("compute_inline", {m.Block()}); }
void ReverseComputeInline(Mover& m) { m.Try("reverse_compute_inline", {m.Block()}); }
void CacheRead(Mover& m) {
  const std::string block = m.Block();
  m.Try("cache_read", {block, m.Sometimes(8) ? m.Buffer() : m.BufferOf(block), m.Scope()});
}
void CacheWrite(Mover& m) {
  const std::string block = m.Block();
  m.Try("cache_write", {block, m.Sometimes(8) ? m.Buffer() : m.BufferOf(block), m.Scope()});
}
void SetScope(Mover& m) { m.Try("set_scope", {m.Buffer(), m.Scope()}); }
void DecomposeReduction(Mover& m) {
  const std::string block = m.Block();
  m.Try("decompose_reduction", {block, m.Sometimes(8) ? m.Loop() : m.LoopOf(block)});
}
void RFactor(Mover& m) {
  m.Try("rfactor", {m.Sometimes(8) ? m.Loop() : m.ReduceLoopOf(m.Block()), m.Number(-3, 3)});
}
void TransformLayout(Mover& m) {
  const std::string buffer = m.Buffer();
  const size_t rank = m.Sometimes(20) ? 2 : m.RankOf(buffer);
  m.Try("transform_layout", {buffer, m.Sometimes(20) ? "" : m.Map(rank)});
}
void StorageAlign(Mover& m) {
  const std::string buffer = m.Buffer();
  if (m.Sometimes(4)) {
    m.Try("storage_align", {buffer, m.Number(-2, 3), m.Number(0, 8), m.Number(-1, 8)});
    return;
  }
  const auto last = std::max<int64_t>(static_cast<int64_t>(m.RankOf(buffer)) - 2, 0);
  const int64_t factor = m.Number(1, 8);
  m.Try("storage_align", {buffer, m.Number(0, last), factor, m.Number(0, factor - 1)});
}
void TransformBlockLayout(Mover& m) {
  const std::string block = m.Block();
  m.Try("transform_block_layout", {block, m.Map(m.LoopsOf(block).size())});
}
void PadEinsum(Mover& m) {
  const std::string block = m.Block();
  Ints padding(m.LoopsOf(block).size() + (m.Sometimes(20) ? 1 : 0));
  for (int64_t& p : padding) p = m.Number(m.Sometimes(30) ? 0 : 1, 4);
  m.Try("pad_einsum", {block, padding});
}
void Prefetch(Mover& m) {
  const std::string block = m.Block();
  m.Try("prefetch", {block, m.BufferOf(block), m.Sometimes(8) ? m.Loop() : m.LoopOf(block),
                     m.Number(m.Sometimes(10) ? -1 : 1, 3)});
}
void SpreadPrefetch(Mover& m) {
  const std::string block = m.Block();
  m.Try("spread_prefetch", {block, m.BufferOf(block), m.Sometimes(8) ? m.Loop() : m.LoopOf(block),
                            m.Number(m.Sometimes(10) ? -1 : 1, 3), m.LoopOf(block)});
}
void SoftwarePipeline(Mover& m) {
  const auto count = static_cast<size_t>(m.Number(2, 4));
  Ints stages(count), order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t& stage : stages) stage = m.Number(0, 2);
  if (!m.Sometimes(20)) stages[m.random()() % count] = 0;
  if (m.Sometimes(2)) std::shuffle(order.begin(), order.end(), m.random());
  Mover::Done done = m.Try("software_pipeline", {m.Loop(), stages, order});
  if (done.ok && m.Sometimes(2)) m.Try("partition", {done.results[0], Ints{m.Number(1, 3)}});
}
void DoubleBuffer(Mover& m) {
  if (!m.options().gpu) m.Try("double_buffer", {m.Block()});
}
void RollingBuffer(Mover& m) {
  const std::string block = m.Block();
  m.Try("rolling_buffer", {block, m.Sometimes(8) ? m.Loop() : m.LoopOf(block)});
}
void Blockize(Mover& m) { m.Try("blockize", {m.Loop()}); }
void Tensorize(Mover& m) {
  m.Try("tensorize",
        {m.Loop(), Pick<std::string>({"mma2", "x86.vpdpbusd.512", "none"}, m.random())});
}
void Specialize(Mover& m) { m.Try("specialize", {m.Condition()}); }
// Not for a GPU, as double_buffer: what fills memory that a block shares is not seen there as done
// by all of its threads alike.
void Outline(Mover& m) {
  if (m.options().gpu) return;
  m.Try("outline", {m.Sometimes(3) ? m.Block() : m.Loop(), "piece"});
}
// What is not asked for: launches that begin early, and copies made ahead, need a place of their
// own.
void Annotate(Mover& m) {
  m.Try("annotate", {m.Sometimes(2) ? m.Block() : m.Loop(), std::string(kDependentAttr), false});
}

// ---- What chance would not put together ----

// All intrinsics of the subjects have two elements in each dimension.
void TileForIntrinsic(Mover& m) {
  const std::string block = m.Block();
  const auto [intrinsic, depth] = m.Intrinsic();
  Names loops = m.LoopsOf(block);
  if (depth == 0 || loops.size() < depth) return;
  if (m.Sometimes(2)) m.Try("pad_einsum", {block, Ints(loops.size(), 2)});
  loops.erase(loops.begin(), loops.end() - static_cast<ptrdiff_t>(depth));
  Mover::Done t = m.Try("tile", {loops, Ints(depth, 2)});
  if (!t.ok) return;
  m.Try("decompose_reduction", {block, t.results[depth - 1]});
  m.Try("tensorize", {t.results[depth], intrinsic});
}
void TileAsBlock(Mover& m) {
  const std::string block = m.Block();
  Names loops = m.LoopsOf(block);
  if (loops.empty()) return;
  Mover::Done t = m.Try("tile", {loops, Ints(loops.size(), m.Number(2, 3))});
  if (t.ok) m.Try("blockize", {t.results[loops.size()]});
}
void SampledSplit(Mover& m) {
  const std::string loop = m.Loop(), name = "tile_" + loop;
  const int64_t parts = m.Sometimes(10) ? m.Number(-1, 0) : 2;
  if (!m.Try("sample_perfect_tile", {name, loop, parts, m.Number(m.Sometimes(10) ? 0 : 1, 5)}).ok) {
    return;
  }
  m.Try("split", {loop, Names{"$" + name + ".0", "$" + name + ".1"}});
}
void DecidedSplit(Mover& m) {
  const Ints factors = {2, 3, 4};
  std::vector<double> probabilities = {0.25, 0.5, 0.25};
  if (m.Sometimes(8)) probabilities.pop_back();
  const std::string chosen = m.Sometimes(8) ? "5" : "3";  // 5 is not in the domain
  const bool decide = m.Sometimes(2);
  const Args args = decide ? Args{"f", factors, m.Sometimes(8) ? int64_t{1} : int64_t{3}}
                           : Args{"f", factors, probabilities};
  if (!m.Try(decide ? "decide" : "sample_categorical", args, {chosen}).ok) return;
  m.Try("split", {m.Loop(), Names{"-1", "$f"}});
}
void RollUnder(Mover& m) {
  const std::string block = m.Block(), loop = m.LoopOf(m.Neighbour(block, true));
  if (m.Try("compute_at", {block, loop}).ok) m.Try("rolling_buffer", {block, loop});
}
void CacheTile(Mover& m) {
  const std::string block = m.Block(), loop = m.LoopOf(block);
  Mover::Done s = m.Try("split", {loop, Ints{-1, m.Number(2, 4)}});
  if (!s.ok) return;
  Mover::Done c = m.Try("cache_read", {block, m.BufferOf(block), m.Scope()});
  if (!c.ok || !m.Try("compute_at", {c.results[0], s.results[0]}).ok) return;
  if (!m.options().gpu && m.Sometimes(2)) m.Try("double_buffer", {c.results[0]});
}
void CacheResult(Mover& m) {
  const std::string block = m.Block();
  Mover::Done c = m.Try("cache_write", {block, m.BufferOf(block), m.Scope()});
  if (c.ok) m.Try("reverse_compute_at", {c.results[0], m.LoopOf(block)});
}
void FactorReduction(Mover& m) {
  Mover::Done s = m.Try("split", {m.ReduceLoopOf(m.Block()), Ints{-1, m.Number(2, 4)}});
  if (s.ok) m.Try("rfactor", {s.results[m.random()() % 2], int64_t{0}});
}
void VectorInside(Mover& m) {
  const std::string block = m.Block();
  Names loops = m.LoopsOf(block);
  if (loops.empty()) return;
  const std::string loop = Pick(loops, m.random());
  Mover::Done s = m.Try("split", {loop, Ints{-1, m.Number(2, 8)}});
  if (!s.ok) return;
  Names order;
  for (const std::string& l : loops) order.push_back(l == loop ? s.results[0] : l);
  order.push_back(s.results[1]);
  m.Try("reorder", {order});
  m.Try("vectorize", {s.results[1]});
  if (m.Sometimes(2)) m.Try("parallel", {order[0]});
}

// ---- What kernels of a GPU are made of ----

// The loops of a block for threads: some of them split, the outer parts over blocks.
void BindTiles(Mover& m) {
  const std::string block = m.Block();
  static const Names kBlocks = {"blockIdx.x", "blockIdx.y"}, kAxes = {"threadIdx.x", "threadIdx.y"};
  const Names loops = m.SomeLoopsOf(block, static_cast<size_t>(m.Number(1, 2)), true);
  for (size_t i = 0; i < loops.size(); ++i) {
    const bool virtual_too = m.Sometimes(4);
    const Ints factors =
        virtual_too ? Ints{-1, m.Number(1, 3), m.Number(1, 4)} : Ints{-1, m.Number(1, 5)};
    Mover::Done s = m.Try("split", {loops[i], factors});
    if (!s.ok) return;
    m.Try("bind", {s.results[0], kBlocks[i]});
    if (virtual_too) m.Try("bind", {s.results[1], "vthread"});
    m.Try("bind", {s.results.back(), kAxes[i]});
  }
}
// A tile that the threads of a block read together, each a part of it or all of them everything.
void SharedTile(Mover& m) {
  const std::string block = m.Block(), loop = m.LoopOf(block);
  Mover::Done c = m.Try("cache_read", {block, m.BufferOf(block), "shared"});
  if (!c.ok) return;
  if (!m.Sometimes(4)) m.Try("compute_at", {c.results[0], loop});
  if (!m.Sometimes(3)) m.BindLoopOf(c.results[0]);
}
void LocalResult(Mover& m) {
  const std::string block = m.Block(), loop = m.LoopOf(block);
  Mover::Done c = m.Try("cache_write", {block, m.BufferOf(block), m.Scope()});
  if (!c.ok) return;
  if (!m.Sometimes(4)) m.Try("reverse_compute_at", {c.results[0], loop});
  if (m.Sometimes(3)) m.BindLoopOf(c.results[0]);
}
void StorePredicate(Mover& m) {
  m.Try("set_store_predicate",
        {m.Block(), m.Sometimes(2) ? "threadIdx.x == 1" : "threadIdx.y < 1"});
}
// Partial results by threads, in memory that they share, and what adds them up.
void FactorAcrossThreads(Mover& m) {
  Mover::Done s = m.Try("split", {m.ReduceLoopOf(m.Block()), Ints{-1, m.Number(2, 4)}});
  if (!s.ok) return;
  const std::string factor = s.results[m.random()() % 2];
  Mover::Done f = m.Try("rfactor", {factor, int64_t{0}});
  if (!f.ok) return;
  m.Try("bind", {factor, "threadIdx.x"});
  const std::string partial = m.WrittenBy(f.results[0]);
  if (!partial.empty()) m.Try("set_scope", {partial, m.Scope()});
}
// The same left to the compiler; one of the threads may store.
void ReduceByThreads(Mover& m) {
  const std::string block = m.Block();
  Mover::Done s = m.Try("split", {m.ReduceLoopOf(block), Ints{-1, m.Number(2, 5)}});
  if (!s.ok) return;
  Mover::Done b =
      m.Try("bind", {s.results[m.random()() % 2], m.Sometimes(2) ? "threadIdx.x" : "threadIdx.y"});
  if (b.ok && m.Sometimes(2)) StorePredicate(m);
}
void Cooperative(Mover& m) { m.Try("annotate", {m.Loop(), std::string(kCooperativeAttr), true}); }
void SharedScope(Mover& m) { m.Try("set_scope", {m.Buffer(), "shared"}); }

struct Row {
  const char* primitive;  // or what leads up to one
  void (*move)(Mover&);
  int weight;
  bool gpu = false;   // only where schedules are for one
  bool meet = false;  // and blocks may wait for each other
};
constexpr Row kRows[] = {
    {"split", Split, 4},
    {"tile", Tile, 2},
    {"partition", Partition, 1},
    {"partition_equal", PartitionEqual, 1},
    {"fuse", Fuse, 2},
    {"reorder", Reorder, 3},
    {"parallel", Parallel, 1},
    {"vectorize", Vectorize, 1},
    {"unroll", Unroll, 1},
    {"bind", Bind, 1},
    {"compute_at", ComputeAt, 3},
    {"reverse_compute_at", ReverseComputeAt, 3},
    {"compute_root", ComputeRoot, 1},
    {"compute_inline", ComputeInline, 1},
    {"reverse_compute_inline", ReverseComputeInline, 1},
    {"cache_read", CacheRead, 2},
    {"cache_write", CacheWrite, 2},
    {"set_scope", SetScope, 1},
    {"decompose_reduction", DecomposeReduction, 2},
    {"rfactor", RFactor, 2},
    {"transform_layout", TransformLayout, 1},
    {"storage_align", StorageAlign, 1},
    {"transform_block_layout", TransformBlockLayout, 1},
    {"pad_einsum", PadEinsum, 1},
    {"prefetch", Prefetch, 1},
    {"spread_prefetch", SpreadPrefetch, 1},
    {"software_pipeline", SoftwarePipeline, 2},
    {"double_buffer", DoubleBuffer, 1},
    {"rolling_buffer", RollingBuffer, 1},
    {"blockize", Blockize, 1},
    {"tensorize", Tensorize, 1},
    {"specialize", Specialize, 1},
    {"outline", Outline, 1},
    {"annotate", Annotate, 1},
    {"tensorize after tiling", TileForIntrinsic, 3},
    {"blockize after tiling", TileAsBlock, 1},
    {"split by sample_perfect_tile", SampledSplit, 1},
    {"split by decide", DecidedSplit, 1},
    {"rolling_buffer after compute_at", RollUnder, 1},
    {"double_buffer after cache_read", CacheTile, 2},
    {"reverse_compute_at after cache_write", CacheResult, 1},
    {"rfactor after split", FactorReduction, 1},
    {"vectorize after split", VectorInside, 2},
    {"bind", Bind, 6, true},
    {"bind after split", BindTiles, 12, true},
    {"cache_read for a block of threads", SharedTile, 8, true},
    {"cache_write for threads", LocalResult, 4, true},
    {"rfactor across threads", FactorAcrossThreads, 5, true},
    {"reduction by threads", ReduceByThreads, 8, true},
    {"set_store_predicate", StorePredicate, 1},
    {"set_scope to shared", SharedScope, 3, true},
    {"annotate a cooperative launch", Cooperative, 20, true, true},
};

}  // namespace

void Mover::Move() {
  auto weight = [&](const Row& row) {
    return (row.gpu && !options_.gpu) || (row.meet && !options_.meet) ? 0 : row.weight;
  };
  int total = 0;
  for (const Row& row : kRows) total += weight(row);
  int64_t at = Number(0, total - 1);
  for (const Row& row : kRows) {
    at -= weight(row);
    if (at < 0) return row.move(*this);
  }
}

bool Mover::HasMove(const std::string& primitive) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [&](const Row& row) { return primitive == row.primitive; });
}

}  // namespace tenon::fuzz
