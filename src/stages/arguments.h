// The arguments of a step: from plain values to what the kinds of parameters ask for.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "stages/primitives.h"

namespace tenon::stages {

/// Takes the arguments of one step, one after the other. The first that is wrong is the error, and
/// the rest are not looked at.
class Arguments {
 public:
  Arguments(const Call& call, const std::vector<AttrValue>& args) : c_(call), args_(args) {}

  bool ok() const { return errors_.empty(); }
  const Diagnostics& errors() const { return errors_; }
  /// The stage that the step is of, and the loop that was taken last.
  const std::optional<StageId>& stage() const { return first_; }
  const std::optional<LoopId>& loop() const { return loop_; }

  void Take(Stage* out);
  void Take(Stages* out);
  void Take(Loop* out);
  void Take(Loops* out);
  void Take(Number* out);
  void Take(Numbers* out);
  void Take(Tensor* out);
  void Take(Tensors* out);
  void Take(Axis* out);
  void Take(PragmaKey* out);
  void Take(OptionalText* out);
  void Take(Text* out);
  void Take(AttrValue* out) { *out = Next(); }
  /// There are no more.
  void End();

 private:
  void Fail(const std::string& reason);
  void WrongCount();
  AttrValue Next();
  Text TakeText(const char* what);
  std::vector<Text> TakeTexts(const char* what);
  Loop LoopOf(const Text& name);
  int64_t ValueOf(const AttrValue& given);
  Tensor TensorOf(const Text& name);
  bool HasBuffer(const Text& name) const;

  const Call& c_;
  const std::vector<AttrValue>& args_;
  size_t next_ = 0;
  std::optional<StageId> first_, of_;  // the first stage, and the last
  std::optional<LoopId> loop_;
  Diagnostics errors_;
};

/// All of a step's arguments, of these kinds.
template <class... A>
Expected<std::tuple<A...>> TakeAll(Arguments* arguments) {
  std::tuple<A...> typed;
  std::apply([&](auto&... out) { ((arguments->ok() ? arguments->Take(&out) : void()), ...); },
             typed);
  arguments->End();
  if (!arguments->ok()) return arguments->errors();
  return typed;
}

}  // namespace tenon::stages
