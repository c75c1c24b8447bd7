#include "graph/program_types.h"

#include <algorithm>

namespace tenon::graph {
namespace {

using Made = std::optional<MadeType>;

// What is known of a slot, from nothing that has come there yet to anything that may.
struct Known {
  bool is_written = false;
  Made type;

  // Takes in what else may come there; whether that says less than before.
  bool Join(const Known& more) {
    if (!more.is_written) return false;
    if (!is_written) {
      *this = more;
      return true;
    }
    const Made before = type;
    if (!more.type || !type || more.type->dtype != type->dtype ||
        more.type->dims.size() != type->dims.size()) {
      type.reset();
    } else {
      for (size_t d = 0; d < type->dims.size(); ++d)
        if (type->dims[d] != more.type->dims[d]) type->dims[d] = -1;
    }
    return type != before;
  }
};

// The slots of a program, whatever order its steps run in: what any step may write counts for all
// that read. Bodies are walked again until nothing is new, since loops lead back.
class Walk {
 public:
  explicit Walk(const Program& program)
      : program_(program), slots_(static_cast<size_t>(program.slots)) {
    for (const ProgramValue& v : program.inputs) Write(v.slot, kAnything);
    do {
      is_new_ = false;
      Frame(program.steps);
    } while (is_new_);
  }

  std::vector<std::vector<Made>> OfParts() {
    parts_.resize(program_.parts.size());
    Frame(program_.steps);
    std::vector<std::vector<Made>> out;
    for (const std::vector<Known>& inputs : parts_) {
      std::vector<Made>& types = out.emplace_back();
      for (const Known& known : inputs) types.push_back(known.type);
    }
    return out;
  }

 private:
  inline static const Known kAnything{true, std::nullopt};

  Known Read(Slot slot) const { return slot < 0 ? kAnything : slots_[static_cast<size_t>(slot)]; }
  void Write(Slot slot, const Known& value) {
    if (slot >= 0) is_new_ |= slots_[static_cast<size_t>(slot)].Join(value);
  }
  void WriteAll(const std::vector<Slot>& slots, const Known& value) {
    for (const Slot slot : slots) Write(slot, value);
  }

  void Frame(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      for (const StepBody& body : step.bodies) Frame(body.steps);
      switch (step.operation) {
        case TN_STEP_PART: Part(step); break;
        case TN_STEP_MOVE: Write(step.outputs[0], Read(step.inputs[0])); break;
        case TN_STEP_IF:
        case TN_STEP_BY_RANK:
        case TN_STEP_BY_LENGTH: Branches(step); break;
        case TN_STEP_LOOP: Loop(step); break;
        case TN_STEP_MAP: Map(step); break;
        default: WriteAll(step.outputs, kAnything);
      }
    }
  }

  void Part(const Step& step) {
    const auto part = static_cast<size_t>(step.numbers[0]);
    const Graph& g = program_.parts[part];
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const TensorType& type = g.type(g.outputs[i]);
      MadeType made{type.dtype, {}};
      for (const Expr& d : type.dims) made.dims.push_back(AsInt(d).value_or(-1));
      Write(step.outputs[i], {true, std::move(made)});
    }
    if (parts_.empty()) return;
    std::vector<Known>& inputs = parts_[part];
    inputs.resize(step.inputs.size());
    for (size_t i = 0; i < step.inputs.size(); ++i) inputs[i].Join(Read(step.inputs[i]));
  }

  void Branches(const Step& step) {
    for (const StepBody& body : step.bodies) {
      for (size_t i = 0; i < step.outputs.size(); ++i)
        Write(step.outputs[i], Read(body.outputs[i]));
    }
  }

  void Loop(const Step& step) {
    const StepBody& body = step.bodies[0];
    const auto carried = static_cast<size_t>(step.numbers[0]);
    Write(body.inputs[0], kAnything);
    Write(body.inputs[1], kAnything);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (i >= carried) {
        Write(step.outputs[i], kAnything);
        continue;
      }
      Write(body.inputs[2 + i], Read(step.inputs[2 + i]));
      Write(body.inputs[2 + i], Read(body.outputs[1 + i]));
      Write(step.outputs[i], Read(body.inputs[2 + i]));
    }
  }

  void Map(const Step& step) {
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      Write(step.bodies[0].inputs[i], step.numbers[i] != 0 ? kAnything : Read(step.inputs[i]));
    }
    WriteAll(step.outputs, kAnything);
  }

  const Program& program_;
  std::vector<Known> slots_;
  std::vector<std::vector<Known>> parts_;  // inputs, once slots are known
  bool is_new_ = false;
};

}  // namespace

std::vector<std::vector<std::optional<MadeType>>> MadeInputs(const Program& program) {
  return Walk(program).OfParts();
}

}  // namespace tenon::graph
