#include "graph/program_waits.h"

#include <algorithm>

namespace tenon::graph {
namespace {

// Sides that a value may be on, as bits.
using Sides = uint8_t;
constexpr Sides kHost = 1, kDevice = 2;

// Whether an operation's results are inputs, or made of them as they are.
bool HandsOn(int32_t operation) {
  switch (operation) {
    case TN_STEP_MOVE:
    case TN_STEP_SEQUENCE:
    case TN_STEP_AT:
    case TN_STEP_INSERT:
    case TN_STEP_ERASE:
    case TN_STEP_GET: return true;
    default: return false;
  }
}

bool Reads(int32_t operation, size_t input) {
  return (tn_step_reads(operation) >> std::min<size_t>(input, 2) & 1U) != 0;
}

class Walk {
 public:
  Walk(const Program& program, const std::vector<Waits>& of_parts)
      : of_parts_(of_parts), sides_(static_cast<size_t>(program.slots)) {
    for (const ProgramValue& v : program.inputs) Enter(v);
    Frame(program.steps);
    for (const ProgramValue& v : program.outputs) Leave(v);
  }

  const Waits& waits() const { return waits_; }

 private:
  // Tensors stay where they are; the elements of sequences are copied on the host.
  void Enter(const ProgramValue& v) {
    const bool plain = v.type[0] == TN_TYPE_TENSOR;
    Set(v.slot, plain ? kDevice : kHost);
    if (!plain && EndsInNumbers(v)) Wait();
  }

  void Leave(const ProgramValue& v) {
    const Sides wrong = EndsInNumbers(v) ? kHost : kDevice;
    if ((Get(v.slot) & wrong) != 0) Wait();
  }

  static bool EndsInNumbers(const ProgramValue& v) {
    size_t at = 0;
    while (v.type[at] == TN_TYPE_SEQUENCE || v.type[at] == TN_TYPE_OPTIONAL) ++at;
    return v.type[at] == TN_TYPE_TENSOR;
  }

  Sides Get(Slot slot) const { return slot < 0 ? Sides{0} : sides_[static_cast<size_t>(slot)]; }
  void Set(Slot slot, Sides sides) {
    if (slot >= 0) sides_[static_cast<size_t>(slot)] = sides;
  }

  void Wait(Waits more = {1, 0}) {
    waits_.places += more.places;
    waits_.in_loops += loops_ > 0 ? more.places : more.in_loops;
  }

  void Frame(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      Inputs(step);
      switch (step.operation) {
        case TN_STEP_PART: SetAll(step.outputs, kDevice); break;
        case TN_STEP_IF:
        case TN_STEP_BY_RANK:
        case TN_STEP_BY_LENGTH: Branches(step); break;
        case TN_STEP_LOOP: Loop(step); break;
        case TN_STEP_MAP: Map(step); break;
        default: SetAll(step.outputs, HandsOn(step.operation) ? Handed(step) : kHost);
      }
    }
  }

  // A step's inputs wait at once.
  void Inputs(const Step& step) {
    const bool part = step.operation == TN_STEP_PART;
    bool waits = false;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      waits |= part ? (Get(step.inputs[i]) & kHost) != 0
                    : Reads(step.operation, i) && (Get(step.inputs[i]) & kDevice) != 0;
    }
    if (waits) Wait();
    if (part) Wait(of_parts_[static_cast<size_t>(step.numbers[0])]);
  }

  Sides Handed(const Step& step) const {
    Sides sides = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (!Reads(step.operation, i)) sides |= Get(step.inputs[i]);
    return sides;
  }

  void SetAll(const std::vector<Slot>& slots, Sides sides) {
    for (const Slot slot : slots) Set(slot, sides);
  }

  void Branches(const Step& step) {
    std::vector<Sides> results(step.outputs.size());
    for (const StepBody& body : step.bodies) {
      Frame(body.steps);
      for (size_t i = 0; i < results.size(); ++i) results[i] |= Get(body.outputs[i]);
    }
    for (size_t i = 0; i < results.size(); ++i) Set(step.outputs[i], results[i]);
  }

  // What comes back to a loop's body may be on another side than what went in: until nothing is
  // new. Numbers of iterations come from the host.
  void Loop(const Step& step) {
    const StepBody& body = step.bodies[0];
    const auto carried = static_cast<size_t>(step.numbers[0]);
    std::vector<Sides> now(carried);
    for (size_t i = 0; i < carried; ++i) now[i] = Get(step.inputs[2 + i]);
    const Waits before = waits_;
    ++loops_;
    for (bool more = true; more;) {
      waits_ = before;
      SetAll({body.inputs[0], body.inputs[1]}, kHost);
      for (size_t i = 0; i < carried; ++i) Set(body.inputs[2 + i], now[i]);
      Frame(body.steps);
      if ((Get(body.outputs[0]) & kDevice) != 0) Wait();
      more = false;
      for (size_t i = 0; i < carried; ++i) {
        const Sides all = now[i] | Get(body.outputs[1 + i]);
        more |= all != now[i];
        now[i] = all;
      }
    }
    --loops_;
    for (size_t i = 0; i < carried; ++i) Set(step.outputs[i], now[i]);
    for (size_t i = carried; i < step.outputs.size(); ++i) {
      if ((Get(body.outputs[1 + i]) & kDevice) != 0) Wait();
      Set(step.outputs[i], kHost);
    }
  }

  void Map(const Step& step) {
    const StepBody& body = step.bodies[0];
    for (size_t i = 0; i < step.inputs.size(); ++i) Set(body.inputs[i], Get(step.inputs[i]));
    ++loops_;
    Frame(body.steps);
    --loops_;
    for (size_t i = 0; i < step.outputs.size(); ++i) Set(step.outputs[i], Get(body.outputs[i]));
  }

  const std::vector<Waits>& of_parts_;
  std::vector<Sides> sides_;
  Waits waits_;
  int loops_ = 0;
};

}  // namespace

Waits DeviceWaits(const Program& program, const std::vector<Waits>& of_parts) {
  return Walk(program, of_parts).waits();
}

}  // namespace tenon::graph
