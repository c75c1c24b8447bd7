// The one door through which all primitives go: from methods and from replayed traces alike.
#pragma once

#include <functional>
#include <utility>

#include "schedule/apply.h"
#include "schedule/run.h"
#include "schedule/schedule.h"

namespace tenon {

struct Schedule::Steps {
  /// The results, or `count` empty names after a failure (now or earlier).
  static Names Apply(Schedule& s, const char* primitive, primitive::Args args, size_t count,
                     Renames* renamed = nullptr);
  /// A primitive as a step of a trace has it.
  static Names ApplyByName(Schedule& s, const std::string& primitive, primitive::Args args,
                           Renames* renamed = nullptr);
  /// What went wrong; the schedule, which a failed primitive left as it was, goes on from there.
  static Diagnostics TakeErrors(Schedule& s) { return std::exchange(s.errors_, {}); }
  /// Puts a function into the module, for Tensorize to call. No primitive: no trace has it.
  static void AddFunction(Schedule& s, Func f) { s.module_.Add(std::move(f)); }
  /// The first failure stays.
  static void Fail(Schedule& s, Diagnostics errors) {
    if (s.errors_.empty()) s.errors_ = std::move(errors);
  }
  /// What `look` answers about the body; an empty T after a failure.
  template <class T>
  static T Look(Schedule& s, const char* question, const std::string& name,
                const std::function<Expected<T>(const Body&)>& look) {
    if (!s.ok()) return T{};
    Expected<T> answer = look(Body(s.func()));
    if (answer) return *answer;
    for (Diagnostic& d : answer.errors()) {
      d.message = std::string(question) + "(" + name + ")" + d.message;
    }
    Fail(s, std::move(answer.errors()));
    return T{};
  }
  /// "split(i, [4, -1])"
  static std::string Heading(const std::string& primitive, const primitive::Args& args);
  /// A step that chooses, as it stands in a trace: with the choices in force, else as it chose
  /// before where that is possible still, else by its guess.
  static void ReplayChoice(Schedule& s, const TraceStep& step);
  static bool IsChoice(const std::string& primitive);
  /// Takes a choice of a list, and writes it down.
  static int64_t Choose(Schedule& s, const std::string& name, const std::vector<int64_t>& domain,
                        int64_t guess);
  static std::vector<int64_t> ChooseTile(Schedule& s, primitive::Args args,
                                         const std::vector<int64_t>& before);
};

}  // namespace tenon
