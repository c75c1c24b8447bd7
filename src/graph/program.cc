#include "graph/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/text.h"

namespace tenon::graph {
namespace {

class Encoder {
 public:
  void Word(int64_t word) {
    for (int i = 0; i < 4; ++i) out_ += static_cast<char>(word >> (8 * i));
  }
  template <class T>
  void List(const std::vector<T>& list) {
    Word(static_cast<int64_t>(list.size()));
    for (const T& entry : list) Word(entry);
  }
  void Values(const std::vector<ProgramValue>& values, bool with_names) {
    Word(static_cast<int64_t>(values.size()));
    for (const ProgramValue& v : values) {
      Word(v.slot);
      if (with_names) Name(v.name);
      for (uint32_t word : v.type) Word(word);
    }
  }
  void Frame(const std::vector<Step>& steps) {
    Word(static_cast<int64_t>(steps.size()));
    for (const Step& step : steps) {
      Word(step.operation);
      Encoder inside;
      inside.List(step.inputs);
      inside.List(step.outputs);
      inside.List(step.numbers);
      inside.Word(static_cast<int64_t>(step.bodies.size()));
      for (const StepBody& body : step.bodies) {
        inside.List(body.inputs);
        inside.List(body.outputs);
        inside.Frame(body.steps);
      }
      Word(static_cast<int64_t>(inside.out_.size() / 4));
      out_ += inside.out_;
    }
  }
  void Text(const std::string& text) { out_ += text; }
  void Name(const std::string& name) {
    Word(static_cast<int64_t>(name.size()));
    out_ += name;
    out_.append((4 - name.size() % 4) % 4, '\0');
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

void Renumber(const std::vector<int32_t>& numbers, std::vector<Step>* steps) {
  for (Step& step : *steps) {
    if (step.operation == TN_STEP_PART)
      step.numbers[0] = numbers[static_cast<size_t>(step.numbers[0])];
    for (StepBody& body : step.bodies) Renumber(numbers, &body.steps);
  }
}

std::string NamesOf(const Graph& g) {
  std::string names;
  for (const ValueId v : g.inputs) names += g.value(v).name + '\n';
  for (const std::string& name : g.output_names) names += '\n' + name;
  return names;
}

}  // namespace

void ShareParts(Program* program) {
  std::vector<Graph> kept;
  std::vector<int32_t> numbers;
  std::map<std::string, std::vector<int32_t>> alike;  // by their names
  for (Graph& part : program->parts) {
    std::vector<int32_t>& others = alike[NamesOf(part)];
    const auto same = std::find_if(others.begin(), others.end(), [&](int32_t other) {
      return StructuralEqual(kept[static_cast<size_t>(other)], part);
    });
    if (same != others.end()) {
      numbers.push_back(*same);
      continue;
    }
    numbers.push_back(static_cast<int32_t>(kept.size()));
    others.push_back(numbers.back());
    part.name = fmt::format("part{}", kept.size());
    kept.push_back(std::move(part));
  }
  program->parts = std::move(kept);
  Renumber(numbers, &program->steps);
}

std::string Program::Encode() const {
  Encoder e;
  e.Word(TN_PROGRAM_MAGIC);
  e.Word(slots);
  std::vector<int64_t> lengths;
  for (const std::string& s : strings) lengths.push_back(static_cast<int64_t>(s.size()));
  e.List(lengths);
  e.Values(inputs, true);
  e.Frame(steps);
  e.Values(outputs, false);
  for (const std::string& s : strings) e.Text(s);
  return e.Take();
}

}  // namespace tenon::graph
