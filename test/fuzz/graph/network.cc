#include "fuzz/graph/network.h"

#include <numeric>
#include <set>

#include "frontend/onnx/ops.h"

namespace tenon::fuzz {

namespace {

const std::vector<std::span<const Rule>>& AllRules() {
  static const std::vector<std::span<const Rule>> kFamilies = {
      ElementwiseRules(),     ReductionRules(), ContractionRules(),
      MovementRules(),        IndexRules(),     NormalizationRules(),
      QuantizeRules(),        ControlRules(),   PatternRules(),
      RecurrentRules(),       SignalRules(),    VisionRules(),
      LearnedRules(),         ContribRules(),   ContribAttentionRules(),
      ContribQuantizeRules(), ValueRules(),     OldRules()};
  return kFamilies;
}

constexpr int64_t kOpsets[] = {21, 21, 22, 23, 17, 18, 20, 24, 25, 26, 28};
constexpr int64_t kOldest = 8;  // where Min and Max, which keep operands in range, broadcast
constexpr size_t kTries = 8;    // of a rule, which may find nothing to do

}  // namespace

const std::vector<Subject>& AllSubjects() {
  static const std::vector<Subject> kSubjects = [] {
    std::vector<Subject> subjects;
    for (std::span<const Rule> family : AllRules()) {
      for (const Rule& rule : family) {
        for (const ElemInfo& info : kElems) {
          if (In(rule.types, info.elem)) subjects.push_back({&rule, info.elem});
        }
      }
    }
    return subjects;
  }();
  return kSubjects;
}

std::vector<std::string> OperatorsWithoutRule() {
  std::set<std::string> names;
  for (std::span<const onnx::OpRow> family : onnx::AllRows()) {
    for (const onnx::OpRow& row : family) {
      const std::string domain = row.domain;
      names.insert(domain.empty() ? row.name : domain + "." + row.name);
    }
  }
  for (const Subject& s : AllSubjects()) names.erase(s.rule->name());
  return {names.begin(), names.end()};
}

const Subject& SubjectOf(uint64_t seed) {
  const std::vector<Subject>& all = AllSubjects();
  // A step that shares no factor with the number of subjects visits each.
  uint64_t step = 7919;
  while (all.size() % step == 0 || std::gcd(step, static_cast<uint64_t>(all.size())) != 1) ++step;
  return all[seed % all.size() * step % all.size()];
}

Network RandomNetwork(uint64_t seed, int steps, bool infos) {
  const Subject& subject = SubjectOf(seed);
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + 1);
  Maker::Options options;
  options.open = random() % 3 == 0;
  options.empty = random() % 6 == 0;
  options.infos = random() % 2 == 0 || infos;
  const int64_t since = std::max(subject.rule->since, InfoOf(subject.elem).since);
  options.opset = std::max(kOpsets[random() % std::size(kOpsets)], since);
  if (options.opset >= subject.rule->before) {
    const int64_t first = std::max(since, kOldest);
    options.opset = first + static_cast<int64_t>(
                                random() % static_cast<uint64_t>(subject.rule->before - first));
  }
  const bool control = random() % 10 == 0;
  Maker m(random(), options);
  std::map<std::pair<std::string, Elem>, int> counts;
  const auto make = [&](const Subject& s) {
    for (size_t tries = 0; tries < kTries; ++tries) {
      if (!s.rule->make(m, *s.rule, s.elem)) continue;
      ++counts[{s.rule->row(), s.elem}];
      return true;
    }
    return false;
  };
  // The subject stands among others, of its type where they know it: it is fused with them.
  const int at = static_cast<int>(m.Below(static_cast<size_t>(steps)));
  for (int i = 0; i < steps; ++i) {
    if (i == at) {
      make(subject);
      continue;
    }
    const std::vector<Subject>& all = AllSubjects();
    for (int tries = 0; tries < 40; ++tries) {
      const Subject& s = all[m.Below(all.size())];
      const bool is_control =
          ControlRules().data() <= s.rule && s.rule < ControlRules().data() + ControlRules().size();
      if (!s.rule->IsOf(options.opset) || InfoOf(s.elem).since > options.opset ||
          (is_control && !control))
        continue;
      if (s.elem != subject.elem && m.Chance(4) == false) continue;
      if (make(s)) break;
    }
  }
  if (control) {
    const Rule& rule = ControlRules()[m.Below(ControlRules().size())];
    if (rule.IsOf(options.opset) && In(rule.types, subject.elem)) make({&rule, subject.elem});
  }
  return m.Finish(std::move(counts));
}

}  // namespace tenon::fuzz
