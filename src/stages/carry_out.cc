// Carrying a schedule out: what was asked for, applied to the loops that there are.
//
// Consumers come first: a stage is put inside its consumer's loop when that loop is there, and then
// gets its own loops changed. What only says how loops run comes when all are in their places, but
// for binds, since producers that come under a loop must see whether it is one of threads.
#include "stages/carry_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/promises.h"
#include "stages/auto_unroll.h"
#include "stages/stage_schedule.h"
#include "stages/user_names.h"

namespace tenon::stages {

namespace {

bool IsPragma(const Waiting& step, const char* key) {
  return step.primitive == "pragma" && step.args[0] == AttrValue(std::string(key));
}
bool IsUnrollPragma(const Waiting& step) {
  return IsPragma(step, kAutoUnrollPragma) || IsPragma(step, kUnrollExplicitPragma);
}

bool IsFalse(const AttrValue& value) {
  const auto* flag = std::get_if<bool>(&value);
  const auto* number = std::get_if<int64_t>(&value);
  return (flag && !*flag) || (number && *number == 0);
}

bool IsBind(const Waiting& step) { return step.primitive == "bind"; }
// Threads are bound where the stage is placed, and what is promised of their loops is known then.
bool IsEarly(const Waiting& step) { return IsBind(step) || IsPragma(step, kIndependentAttr); }

/// Places stages, and changes their loops. Every stage in placed has names for all loops that it
/// has, or had, there.
class Placer {
 public:
  explicit Placer(Carried* c) : c_(*c), s_(c->schedule) {}

  Status Run() {
    for (StageId id : c_.s.order) {
      const StageInfo& stage = c_.s[id];
      for (const std::string& tensor : stage.tensors) {
        if (stage.scope) s_.SetScope(tensor, *stage.scope);
      }
      if (stage.attach == Attach::kInline) s_.ComputeInline(stage.block);
    }
    TN_RETURN_IF_ERROR(s_.status());
    for (auto id = c_.s.order.rbegin(); id != c_.s.order.rend(); ++id) {
      const StageInfo& stage = c_.s[*id];
      const bool there = !stage.block.empty() && stage.attach != Attach::kInline;
      if (there && stage.attach != Attach::kReverseAt) TN_RETURN_IF_ERROR(Place(*id));
    }
    for (StageId id : c_.s.order) {
      if (c_.s[id].attach == Attach::kReverseAt) TN_RETURN_IF_ERROR(Place(id));
    }
    for (StageId id : c_.s.order) {
      if (c_.placed.count(id) != 0) TN_RETURN_IF_ERROR(Mark(id, false));
    }
    return s_.status();
  }

 private:
  // The loop that a stage hangs on: where its own has one iteration and is not there, the next one
  // outside; "" where there is none.
  Expected<std::string> LoopToHangOn(const StageInfo& stage) const {
    const StageInfo& at = c_.s[*stage.at_stage];
    auto leaf = std::find(at.leaves.begin(), at.leaves.end(), stage.at_loop);
    if (leaf == at.leaves.end()) {
      return Wrong(
          "compute_at", stage,
          fmt::format("'{}' is no loop of '{}' any more", c_.s[stage.at_loop].name, at.name));
    }
    for (;; --leaf) {
      const std::string& name = c_.names.at(*leaf);
      if (!name.empty()) return name;
      if (leaf == at.leaves.begin()) break;
    }
    const bool hangs = at.attach == Attach::kAt || at.attach == Attach::kReverseAt;
    return hangs ? LoopToHangOn(at) : Expected<std::string>("");
  }

  Expected<std::string> Hang(const StageInfo& stage) {
    const bool reverse = stage.attach == Attach::kReverseAt;
    if (c_.placed.count(*stage.at_stage) == 0) {
      return Wrong(reverse ? "reverse_compute_at" : "compute_at", stage,
                   fmt::format("'{}' is {}, or inline", c_.s[*stage.at_stage].name,
                               reverse ? "placed after it" : "computed earlier"));
    }
    TN_ASSIGN_OR_RETURN(const std::string at, LoopToHangOn(stage));
    const bool is_there = stage.rows && stage.rows == stage.at_stage;
    if (!at.empty() && reverse) s_.ReverseComputeAt(stage.block, at);
    if (!at.empty() && !reverse && !is_there) s_.ComputeAt(stage.block, at);
    if (!at.empty() && stage.rolling) s_.RollingBuffer(stage.block, at);
    TN_RETURN_IF_ERROR(s_.status());
    return at;
  }

  Status Place(StageId id) {
    const StageInfo& stage = c_.s[id];
    std::string at;
    if (stage.at_stage && stage.attach != Attach::kRoot) {
      TN_ASSIGN_OR_RETURN(at, Hang(stage));
    }
    if (stage.rolling && at.empty()) {
      return Wrong("rolling_buffer", stage,
                   "it is not inside a loop of its consumer; compute_at puts it there");
    }
    TN_ASSIGN_OR_RETURN(const LoopNames roots, RootNames(stage, s_, at));
    c_.names.insert(roots.begin(), roots.end());
    c_.placed.insert(id);
    for (const LoopStep& step : stage.steps) ApplyLoopStep(step, &s_, &c_.names);
    TN_RETURN_IF_ERROR(Mark(id, true));
    return s_.status();
  }

  // The marks on loops of a stage that decide where others can be placed, or the others.
  Status Mark(StageId id, bool early) {
    for (const Waiting& step : c_.s.waiting) {
      if (step.phase != Phase::kMark || step.stage != id || IsEarly(step) != early) continue;
      if (IsUnrollPragma(step)) continue;
      if (step.primitive == "unroll" && IsArranged(c_.s, *step.loop)) continue;
      const std::string& loop = c_.names.at(*step.loop);
      std::vector<AttrValue> args = step.args;
      if (IsBind(step)) {
        TN_RETURN_IF_ERROR(CheckExtent(step, loop));
        args.resize(1);
      }
      if (loop.empty()) continue;
      args.insert(args.begin(), loop);
      ApplyByName(&s_, step.primitive == "pragma" ? "annotate" : step.primitive, std::move(args));
    }
    return Ok();
  }

  // An axis of a size of its own takes loops of that size. Sizes that callers give are compared
  // where both are known; "" is a loop of one iteration.
  Status CheckExtent(const Waiting& bind, const std::string& loop) const {
    const auto* axis = std::get_if<std::string>(&bind.args[0]);
    const auto* wanted = std::get_if<std::string>(&bind.args[1]);
    if (!axis || !wanted || wanted->empty()) return Ok();
    Expr own = IndexConst(1);
    PreOrder(s_.func()->body, [&](const NodeRef& n) {
      const auto* f = As<For>(n);
      if (f && !loop.empty() && f->var->name == loop) own = f->extent;
      return !IsA<ExprNode>(n);
    });
    own = Simplify(own);
    const bool known = AsInt(own) || wanted->find_first_not_of("0123456789") == std::string::npos;
    if (!known || ToString(NodeRef(own)) == *wanted) return Ok();
    return MakeError(
        fmt::format("bind of '{}': the axis {} has {} threads, but the loop has {} iterations",
                    c_.s[*bind.loop].name, *axis, *wanted, ToString(NodeRef(own))));
  }

  Carried& c_;
  Schedule& s_;
};

// A loop of one iteration is not there: what is asked of it is of the next one inside.
Status UnrollAsAsked(Carried* c) {
  const std::vector<Waiting>& steps = c->s.waiting;
  for (const Waiting& step : steps) {
    if (!IsPragma(step, kAutoUnrollPragma)) continue;
    const bool left = std::any_of(steps.begin(), steps.end(), [&](const Waiting& other) {
      return other.stage == step.stage && IsPragma(other, kUnrollExplicitPragma) &&
             IsFalse(other.args[1]);
    });
    const std::vector<LoopId>& leaves = c->s[*step.stage].leaves;
    if (left || c->placed.count(*step.stage) == 0) continue;
    std::string loop;
    for (auto leaf = std::find(leaves.begin(), leaves.end(), *step.loop);
         leaf != leaves.end() && loop.empty(); ++leaf) {
      loop = c->names.at(*leaf);
    }
    if (loop.empty()) continue;
    for (const std::string& copy : c->CopiesOf(loop)) {
      AutoUnroll(copy, std::get<int64_t>(step.args[1]), &c->schedule);
    }
  }
  return c->schedule.status();
}

}  // namespace

static Status CarryOutAll(Carried* carried) {
  TN_RETURN_IF_ERROR(Placer(carried).Run());
  TN_RETURN_IF_ERROR(CarryOutLate(carried));
  return UnrollAsAsked(carried);
}

Expected<Schedule> StageSchedule::CarryOut(UsersNames* names) const {
  Carried carried(state_);
  Status status = CarryOutAll(&carried);
  UsersNames own = UsersNamesOf(carried);
  if (!status) return InUsersNames(std::move(status.errors()), own);
  if (names) *names = std::move(own);
  return std::move(carried.schedule);
}

}  // namespace tenon::stages
