#include "graph/program.h"

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
  void Values(const std::vector<ProgramValue>& values) {
    Word(static_cast<int64_t>(values.size()));
    for (const ProgramValue& v : values) {
      Word(v.slot);
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
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace

std::string Program::Encode() const {
  Encoder e;
  e.Word(TN_PROGRAM_MAGIC);
  e.Word(slots);
  std::vector<int64_t> lengths;
  for (const std::string& s : strings) lengths.push_back(static_cast<int64_t>(s.size()));
  e.List(lengths);
  e.Values(inputs);
  e.Frame(steps);
  e.Values(outputs);
  for (const std::string& s : strings) e.Text(s);
  return e.Take();
}

}  // namespace tenon::graph
