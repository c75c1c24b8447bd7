// Random sequences of primitives: whatever is accepted must mean the same. Values are small
// integers, exact in any order of additions also as floats. TENON_FUZZ_SEED and TENON_FUZZ_COUNT
// choose; a failure prints its seed and trace.
#include <cstdlib>
#include <random>

#include "ir/visit.h"
#include "unit/schedule/support.h"

namespace tenon::test {
namespace {

using Random = std::mt19937_64;

template <class T>
const T& Pick(const std::vector<T>& list, Random& random) {
  return list[random() % list.size()];
}

struct Subject {
  const char* text;
  std::vector<std::string> sizes;
};

const std::vector<Subject> kSubjects = {
    {kMatmul, {"M", "N", "K"}},
    {kMatmulRelu, {"M", "N", "K"}},
    {kChain, {"M", "N"}},
    {kBlur, {"M"}},
    {kConv, {"C", "H", "W", "O"}},
    {kSoftmax, {"M", "N"}},
    {kRowSum, {"M", "N"}},
    {kScan, {"M", "N"}},
    {kStencil, {"M", "N"}},
    {kIntSum, {"M", "N"}},
    {kPipe, {"M"}},
    {kTileMatmul, {"M", "N", "K"}},
};

std::vector<std::string> AllLoops(Schedule& s) {
  std::vector<std::string> out;
  for (const std::string& b : s.GetBlocks()) {
    for (const std::string& l : s.GetLoops(b)) out.push_back(l);
  }
  return out;
}

std::vector<std::string> BuffersOf(const Schedule& s) {
  std::vector<std::string> out;
  for (const Buffer& b : s.func()->buffers) out.push_back(b->name);
  PreOrder(s.func()->body, [&](const NodeRef& n) {
    if (const auto* alloc = As<Alloc>(n)) out.push_back(alloc->buffer->name);
    return IsA<StmtNode>(n);
  });
  return out;
}

int64_t Between(Random& random, int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(random() % static_cast<uint64_t>(hi - lo + 1));
}

// Where a step may act.
struct Site {
  Random& random;
  std::string loop, block, buffer;
  std::vector<std::string> own;  // the loops around the block

  std::vector<std::string> SomeOwn(size_t most) {
    std::vector<std::string> out = own;
    std::shuffle(out.begin(), out.end(), random);
    out.resize(std::min(out.size(), most));
    return out;
  }
};

Layout MapOf(Random& random, size_t rank) {
  std::vector<Var> coords;
  std::vector<Expr> storage;
  for (size_t d = 0; d < rank; ++d) coords.push_back(VarNode::Make("c" + std::to_string(d)));
  int64_t tile = Between(random, 2, 4);
  size_t split = random() % rank;
  for (size_t d = 0; d < rank; ++d) {
    storage.push_back(d == split ? coords[d] / tile : Expr(coords[d]));
  }
  storage.push_back(coords[split] % tile);
  if (random() % 2) std::swap(storage[0], storage[rank - 1]);
  return LayoutNode::Make(std::move(coords), std::move(storage));
}

void TransformSomeBlock(Schedule& t, Site& at) {
  if (!at.own.empty()) t.TransformBlockLayout(at.block, MapOf(at.random, at.own.size()));
}

void TransformSomeBuffer(Schedule& t, Site& at) {
  for (size_t rank : {1, 2, 3}) {
    Schedule u = t;
    u.TransformLayout(at.buffer, MapOf(at.random, rank));
    if (u.ok()) t = u;
  }
}

void Pipeline(Schedule& t, Site& at) {
  size_t count = 2 + at.random() % 2;
  std::vector<int64_t> stages(count), order(count);
  for (size_t i = 0; i < count; ++i) {
    stages[i] = Between(at.random, 0, 2);
    order[i] = static_cast<int64_t>(i);
  }
  stages[at.random() % count] = 0;
  if (at.random() % 2) std::shuffle(order.begin(), order.end(), at.random);
  std::string pipe = t.SoftwarePipeline(at.loop, stages, order);
  if (t.ok() && at.random() % 2) t.Partition(pipe, {Between(at.random, 1, 3)});
}

// What leads up to an intrinsic is too special for chance.
void TensorizeMatmul(Schedule& t, Site& at) {
  t.Split("k", {-1, 2});
  std::vector<std::string> tile = t.TileLoops({"i", "j"}, {2, 2});
  t.Reorder({tile[0], tile[1], "k.0", tile[2], tile[3], "k.1"});
  t.DecomposeReduction("C", "k.0");
  t.Tensorize(tile[2], "mma2");
}

void SampledSplit(Schedule& t, Site& at) {
  t.SamplePerfectTile("tile_" + at.loop, at.loop, 2, 4);
  t.SplitBy(at.loop, {"$tile_" + at.loop + ".0", "$tile_" + at.loop + ".1"});
}

void RollUnder(Schedule& t, Site& at) {
  t.ComputeAt(at.block, at.loop);
  t.RollingBuffer(at.block, at.loop);
}

using Act = void (*)(Schedule& t, Site& at);
// Rows that are more often of use stand here more than once.
const std::vector<Act> kActs = {
    [](Schedule& t, Site& at) { t.Split(at.loop, {-1, Between(at.random, 2, 5)}); },
    [](Schedule& t, Site& at) { t.Split(at.loop, {-1, Between(at.random, 2, 5)}); },
    [](Schedule& t, Site& at) { t.Split(at.loop, {Between(at.random, 1, 3), -1}); },
    [](Schedule& t, Site& at) { t.Split(at.loop, {-1, 2, Between(at.random, 1, 3)}); },
    [](Schedule& t, Site& at) {
      if (at.own.size() < 2) return;
      size_t i = at.random() % (at.own.size() - 1);
      t.Fuse({at.own[i], at.own[i + 1]});
    },
    [](Schedule& t, Site& at) { t.Reorder(at.SomeOwn(2 + at.random() % 3)); },
    [](Schedule& t, Site& at) { t.Reorder(at.SomeOwn(2 + at.random() % 3)); },
    [](Schedule& t, Site& at) { t.TileLoops(at.SomeOwn(2), {Between(at.random, 2, 4), 2}); },
    [](Schedule& t, Site& at) { t.Partition(at.loop, {Between(at.random, 1, 4)}); },
    [](Schedule& t, Site& at) { t.PartitionEqual(at.loop, 2); },
    [](Schedule& t, Site& at) { t.Parallel(at.loop); },
    [](Schedule& t, Site& at) { t.Vectorize(at.loop); },
    [](Schedule& t, Site& at) { t.Unroll(at.loop); },
    [](Schedule& t, Site& at) { t.Bind(at.loop, at.random() % 2 ? "threadIdx.x" : "vthread"); },
    [](Schedule& t, Site& at) { t.ComputeAt(at.block, at.loop); },
    [](Schedule& t, Site& at) { t.ComputeAt(at.block, at.loop); },
    [](Schedule& t, Site& at) { t.ReverseComputeAt(at.block, at.loop); },
    [](Schedule& t, Site& at) { t.ComputeRoot(at.block); },
    [](Schedule& t, Site& at) { t.ComputeInline(at.block); },
    [](Schedule& t, Site& at) { t.ReverseComputeInline(at.block); },
    [](Schedule& t, Site& at) { t.CacheRead(at.block, at.buffer, "local"); },
    [](Schedule& t, Site& at) { t.CacheWrite(at.block, at.buffer, "local"); },
    [](Schedule& t, Site& at) { t.SetScope(at.buffer, "local"); },
    [](Schedule& t, Site& at) { t.DecomposeReduction(at.block, at.loop); },
    [](Schedule& t, Site& at) {
      if (!at.own.empty()) t.DecomposeReduction(at.block, Pick(at.own, at.random));
    },
    [](Schedule& t, Site& at) { t.RFactor(at.loop, Between(at.random, 0, 1)); },
    TransformSomeBuffer,
    TransformSomeBlock,
    [](Schedule& t, Site& at) { t.StorageAlign(at.buffer, 0, 4, Between(at.random, 0, 3)); },
    [](Schedule& t, Site& at) {
      t.PadEinsum(at.block, std::vector<int64_t>(at.own.size(), Between(at.random, 2, 4)));
    },
    [](Schedule& t, Site& at) {
      t.Prefetch(at.block, at.buffer, at.loop, Between(at.random, 1, 2));
    },
    Pipeline,
    Pipeline,
    [](Schedule& t, Site& at) { t.DoubleBuffer(at.block); },
    [](Schedule& t, Site& at) { t.RollingBuffer(at.block, at.loop); },
    RollUnder,
    [](Schedule& t, Site& at) { t.Blockize(at.loop); },
    TensorizeMatmul,
    SampledSplit,
    [](Schedule& t, Site& at) { t.Annotate(at.loop, "pragma", Between(at.random, 0, 9)); },
};

// Tries one random primitive on a copy; keeps the copy when it was legal.
bool Step(Schedule* s, Random& random) {
  Schedule t = *s;
  std::vector<std::string> loops = AllLoops(t), blocks = t.GetBlocks();
  if (loops.empty()) return false;
  Site at{random, Pick(loops, random), Pick(blocks, random), Pick(BuffersOf(t), random), {}};
  at.own = t.GetLoops(at.block);
  Pick(kActs, random)(t, at);
  if (!t.ok() || t.trace().steps.size() == s->trace().steps.size()) return false;
  *s = t;
  return true;
}

std::map<std::string, int64_t> SizesFor(const Subject& subject, Random& random) {
  // Around the tiles of 2 to 4, and primes.
  const std::vector<int64_t> few = {1, 2, 3, 4, 5}, many = {1, 2, 3, 4, 5, 7, 8, 11, 13};
  std::map<std::string, int64_t> sizes;
  for (const std::string& name : subject.sizes) {
    sizes[name] = Pick(subject.sizes.size() > 2 ? few : many, random);
  }
  return sizes;
}

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

#ifdef NDEBUG
constexpr uint64_t kCases = 2000;
#else
constexpr uint64_t kCases = 200;  // debug and sanitizer builds are slow
#endif

TEST(Fuzz, RandomSequencesKeepMeaning) {
  uint64_t first = FromEnvironment("TENON_FUZZ_SEED", 1);
  uint64_t count = FromEnvironment("TENON_FUZZ_COUNT", kCases);
  size_t applied = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const Subject& subject = Pick(kSubjects, random);
    Module before = Parse(Fill(subject.text, SizesFor(subject, random)));
    Schedule s(before, "f");
    size_t steps = 3 + random() % 10;
    for (size_t tries = 0; tries < 60 && s.trace().steps.size() < steps; ++tries) Step(&s, random);
    applied += s.trace().steps.size();
    if (random() % 4 == 0) {
      Schedule t = s;
      std::vector<std::string> loops = AllLoops(t);
      if (!loops.empty()) t.Outline(Pick(loops, random), "piece");
      if (t.ok()) s = t;
    }
    ExpectSame(before, s);
    if (testing::Test::HasFailure()) {
      FAIL() << "TENON_FUZZ_SEED=" << seed << " TENON_FUZZ_COUNT=1";
    }
  }
  RecordProperty("primitives", static_cast<int>(applied));
}

// A trace made at one size is refused at another, or means the same there.
TEST(Fuzz, TracesSurviveOtherSizes) {
  uint64_t first = FromEnvironment("TENON_FUZZ_SEED", 1);
  uint64_t count = FromEnvironment("TENON_FUZZ_COUNT", kCases) / 4;
  int replayed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const Subject& subject = Pick(kSubjects, random);
    Schedule s(Parse(Fill(subject.text, SizesFor(subject, random))), "f");
    for (size_t tries = 0; tries < 30 && s.trace().steps.size() < 6; ++tries) Step(&s, random);
    Module other = Parse(Fill(subject.text, SizesFor(subject, random)));
    Schedule again(other, "f");
    if (!again.Replay(s.trace())) continue;
    ++replayed;
    ExpectSame(other, again);
    if (testing::Test::HasFailure()) {
      FAIL() << "TENON_FUZZ_SEED=" << seed << " TENON_FUZZ_COUNT=4";
    }
  }
  RecordProperty("replayed", replayed);
}

}  // namespace
}  // namespace tenon::test
