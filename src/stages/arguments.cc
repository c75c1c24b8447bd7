#include "stages/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/visit.h"
#include "loop/annotations.h"
#include "stages/auto_unroll.h"
#include "support/strings.h"

namespace tenon::stages {

// What passes read off loops, and what carrying out does.
static std::vector<Text> Pragmas() {
  std::vector<Text> keys(std::begin(kAnnotations), std::end(kAnnotations));
  keys.insert(keys.end(), {kAutoUnrollPragma, kUnrollExplicitPragma});
  return keys;
}

static std::optional<int64_t> ParseInt(const Text& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void Arguments::Take(Stage* out) {
  const Text name = TakeText("a stage's name");
  if (!ok()) return;
  const std::optional<StageId> found = c_.s.FindStage(name);
  if (!found) return Fail(fmt::format("the schedule has no stage '{}'", name));
  *out = *found;
  of_ = found;
  if (!first_) first_ = found;
}
void Arguments::Take(Stages* out) {
  for (const Text& name : TakeTexts("names of stages")) {
    const std::optional<StageId> found = c_.s.FindStage(name);
    if (!found) return Fail(fmt::format("the schedule has no stage '{}'", name));
    out->push_back(*found);
  }
}
void Arguments::Take(Loop* out) {
  const Text name = TakeText("a loop's name");
  if (ok()) *out = LoopOf(name);
  loop_ = out->id;
}
void Arguments::Take(Loops* out) {
  for (const Text& name : TakeTexts("names of loops")) {
    out->push_back(LoopOf(name));
    if (!ok()) return;
  }
}
void Arguments::Take(Number* out) {
  out->given = Next();
  if (ok()) out->value = ValueOf(out->given);
}
void Arguments::Take(Numbers* out) {
  out->given = Next();
  if (!ok()) return;
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&out->given)) {
    out->values = *numbers;
  } else if (const auto* texts = std::get_if<std::vector<Text>>(&out->given)) {
    for (const Text& text : *texts) out->values.push_back(ok() ? ValueOf(text) : 0);
  } else {
    Fail("expected a list of numbers");
  }
}
void Arguments::Take(Tensor* out) {
  const Text name = TakeText("a tensor's name");
  if (ok()) *out = TensorOf(name);
}
void Arguments::Take(Tensors* out) {
  for (const Text& name : TakeTexts("names of tensors")) {
    out->push_back(TensorOf(name));
    if (!ok()) return;
  }
}
void Arguments::Take(Axis* out) {
  out->name = TakeText("a thread axis");
  if (!ok() || ThreadAxisOf(out->name)) return;
  Fail(fmt::format("expected a thread axis; see thread_axis, but got '{}'", out->name));
}
void Arguments::Take(PragmaKey* out) {
  out->name = TakeText("a key");
  const std::vector<Text> known = Pragmas();
  if (!ok() || std::find(known.begin(), known.end(), out->name) != known.end()) return;
  Fail(fmt::format("nothing reads the key '{}'; expected {}", out->name, Join(known, ", ")));
}
void Arguments::Take(OptionalText* out) {
  if (next_ < args_.size()) Take(&out->text);
}
void Arguments::Take(Text* out) { *out = TakeText("a text"); }

void Arguments::End() {
  if (ok() && next_ < args_.size()) WrongCount();
}

void Arguments::Fail(const std::string& reason) {
  if (!ok()) return;
  errors_.push_back(of_ ? c_.Wrong(*of_, reason)
                        : MakeError(fmt::format("{}: {}", c_.name, reason)));
}
void Arguments::WrongCount() {
  Fail(fmt::format("got {} arguments, which is not as many as it takes", args_.size()));
}

AttrValue Arguments::Next() {
  if (next_ < args_.size()) return args_[next_++];
  WrongCount();
  return {};
}
Text Arguments::TakeText(const char* what) {
  const AttrValue value = Next();
  if (const auto* text = std::get_if<Text>(&value)) return *text;
  Fail(fmt::format("expected {}", what));
  return "";
}
// An empty list does not say of what; one name stands for a list of it.
std::vector<Text> Arguments::TakeTexts(const char* what) {
  const AttrValue value = Next();
  if (const auto* texts = std::get_if<std::vector<Text>>(&value)) return *texts;
  if (const auto* text = std::get_if<Text>(&value)) return {*text};
  const auto* empty = std::get_if<std::vector<int64_t>>(&value);
  if (!empty || !empty->empty()) Fail(fmt::format("expected {}", what));
  return {};
}

Loop Arguments::LoopOf(const Text& name) {
  const std::vector<LoopId>& leaves = c_.s[*of_].leaves;
  const std::optional<LoopId> loop = c_.s.FindLoop(*of_, name);
  const auto place = loop ? std::find(leaves.begin(), leaves.end(), *loop) : leaves.end();
  if (place != leaves.end()) return {*loop, static_cast<size_t>(place - leaves.begin())};
  Fail(fmt::format("'{}' is no loop of it now; its loops are {}", name, c_.s.Names(leaves)));
  return {};
}

int64_t Arguments::ValueOf(const AttrValue& given) {
  if (const auto* number = std::get_if<int64_t>(&given)) return *number;
  const auto* text = std::get_if<Text>(&given);
  // In a list with choices, numbers are texts too.
  if (const std::optional<int64_t> number = text ? ParseInt(*text) : std::nullopt) return *number;
  const std::map<Text, int64_t> taken = c_.s.base.trace().Decisions();
  const auto choice = text && text->starts_with('$') ? taken.find(text->substr(1)) : taken.end();
  if (choice != taken.end()) return choice->second;
  Fail(fmt::format("expected a number or \"$\" and the name of a choice{}",
                   text ? fmt::format(", but {} is none", QuoteJson(*text)) : ""));
  return 0;
}

Tensor Arguments::TensorOf(const Text& name) {
  if (!HasBuffer(name)) Fail(fmt::format("the schedule has no tensor '{}'", name));
  return {name};
}

bool Arguments::HasBuffer(const Text& name) const {
  const Func& func = c_.s.base.func();
  bool found = std::any_of(func->buffers.begin(), func->buffers.end(),
                           [&](const Buffer& b) { return b->name == name; });
  PreOrder(func->body, [&](const NodeRef& n) {
    const auto* alloc = As<Alloc>(n);
    found |= alloc && alloc->buffer->name == name;
    return !IsA<ExprNode>(n);
  });
  return found;
}

}  // namespace tenon::stages
