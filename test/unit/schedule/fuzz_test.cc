// Random sequences of primitives: whatever is accepted must mean the same. Values are small
// integers stored as floats, so that any order of additions is exact. TENON_FUZZ_SEED and
// TENON_FUZZ_COUNT choose; a failure prints its seed and trace.
#include <cstdlib>
#include <random>

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
    {kMatmul, {"M", "N", "K"}},    {kMatmulRelu, {"M", "N", "K"}},
    {kChain, {"M", "N"}},          {kBlur, {"M"}},
    {kConv, {"C", "H", "W", "O"}}, {kSoftmax, {"M", "N"}},
    {kRowSum, {"M", "N"}},         {kScan, {"M", "N"}},
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
  for (const char* name : {"T", "P", "Y", "C", "mx", "ex", "sm"}) out.push_back(name);
  return out;
}

// Tries one random primitive on a copy; keeps the copy when it was legal.
bool Step(Schedule* s, Random& random) {
  Schedule t = *s;
  std::vector<std::string> loops = AllLoops(t), blocks = t.GetBlocks();
  if (loops.empty()) return false;
  std::string loop = Pick(loops, random), block = Pick(blocks, random);
  std::vector<std::string> own = t.GetLoops(block);
  switch (random() % 20) {
    case 0:
    case 1:
    case 2: t.Split(loop, {-1, static_cast<int64_t>(2 + random() % 4)}); break;
    case 3: t.Split(loop, {static_cast<int64_t>(1 + random() % 3), -1}); break;
    case 4:
      if (own.size() >= 2) {
        size_t at = random() % (own.size() - 1);
        t.Fuse({own[at], own[at + 1]});
      }
      break;
    case 5:
    case 6:
    case 7:
      std::shuffle(own.begin(), own.end(), random);
      own.resize(std::min<size_t>(own.size(), 2 + random() % 3));
      t.Reorder(own);
      break;
    case 8: t.Parallel(loop); break;
    case 9: t.Vectorize(loop); break;
    case 10: t.Unroll(loop); break;
    case 11: t.ComputeAt(block, loop); break;
    case 12: t.ReverseComputeAt(block, loop); break;
    case 13: random() % 2 ? t.ComputeInline(block) : t.ReverseComputeInline(block); break;
    case 14: t.CacheRead(block, Pick(BuffersOf(t), random), "local"); break;
    case 15: t.CacheWrite(block, Pick(BuffersOf(t), random), "local"); break;
    case 16: t.DecomposeReduction(block, own.empty() ? loop : Pick(own, random)); break;
    case 17: t.RFactor(loop, static_cast<int64_t>(random() % 2)); break;
    case 18: t.Partition(loop, {static_cast<int64_t>(1 + random() % 4)}); break;
    case 19: random() % 2 ? t.ComputeRoot(block) : (void)t.PartitionEqual(loop, 2); break;
  }
  if (!t.ok() || t.trace().steps.size() == s->trace().steps.size()) return false;
  *s = t;
  return true;
}

TEST(Fuzz, RandomSequencesKeepMeaning) {
  const char* seed_text = std::getenv("TENON_FUZZ_SEED");
  const char* count_text = std::getenv("TENON_FUZZ_COUNT");
  uint64_t first = seed_text ? std::strtoull(seed_text, nullptr, 10) : 1;
  uint64_t count = count_text ? std::strtoull(count_text, nullptr, 10) : 150;
  size_t applied = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const Subject& subject = Pick(kSubjects, random);
    std::map<std::string, int64_t> sizes;
    bool small = subject.sizes.size() > 2;
    for (const std::string& name : subject.sizes) {
      const std::vector<int64_t> all = small ? std::vector<int64_t>{1, 2, 3, 4, 5}
                                             : std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8, 11};
      sizes[name] = Pick(all, random);
    }
    Module before = Parse(Fill(subject.text, sizes));
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

}  // namespace
}  // namespace tenon::test
