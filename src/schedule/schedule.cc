#include "schedule/schedule.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "schedule/dependence.h"
#include "schedule/run.h"
#include "support/strings.h"

namespace tenon {

using primitive::Body;
using primitive::Names;
using primitive::Place;

// The one door through which all primitives go: from methods and from replayed traces alike.
struct Schedule::Steps {
  // The results, or `count` empty names after a failure (now or earlier).
  static Names Apply(Schedule& s, const char* primitive, primitive::Args args, size_t count);
  static void Fail(Schedule& s, Diagnostics errors) {
    if (s.errors_.empty()) s.errors_ = std::move(errors);
  }
  // What `look` answers about the body; an empty T after a failure.
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
};

namespace {

std::string ShortText(const AttrValue& value) {
  if (const auto* name = std::get_if<std::string>(&value)) return *name;
  if (const auto* names = std::get_if<Names>(&value)) return Join(*names, ", ");
  return ToString(value);
}

// "split(i, [4, -1])"
std::string Heading(const std::string& primitive, const primitive::Args& args) {
  Names parts;
  for (const AttrValue& a : args) parts.push_back(ShortText(a));
  return primitive + "(" + Join(parts, ", ") + ")";
}

// "split(i, [2])" + " of block C: reason" or ": reason". What a parser said of an argument is a
// reason, too; its place is in the argument's text, not in a file.
Diagnostic Headed(const std::string& heading, Diagnostic d) {
  bool ours = d.message.starts_with(':') || d.message.starts_with(" of block ");
  d.message = heading + (ours ? "" : ": ") + d.message;
  d.loc = {};
  return d;
}

}  // namespace

Names Schedule::Steps::Apply(Schedule& s, const char* primitive, primitive::Args args,
                             size_t count) {
  Names failed(count);
  if (!s.ok()) return failed;
  const primitive::PrimitiveRow* row = primitive::FindPrimitive(primitive);
  TN_CHECK(row != nullptr, "{} is not in the table", primitive);
  primitive::State state{&s.module_, s.func()};
  primitive::Result result = row->run(state, args);
  if (result && row->places_blocks) {
    if (auto conflict = primitive::ConflictInConcurrentLoops(Body(state.func))) result = *conflict;
  }
  if (!result) {
    Diagnostics errors = result.errors();
    for (Diagnostic& d : errors) d = Headed(Heading(primitive, args), std::move(d));
    Fail(s, std::move(errors));
    return failed;
  }
  s.module_.Add(state.func);
  s.trace_.steps.push_back({primitive, std::move(args), *result});
  return *result;
}

Schedule::Schedule(Module module, std::string func)
    : module_(std::move(module)), func_(std::move(func)) {
  if (!module_.Find(func_)) {
    Names known;
    for (const auto& [name, f] : module_.funcs) known.push_back(name);
    Steps::Fail(*this, {MakeError("schedule: no function is named " + QuoteJson(func_) +
                                  ", the module has: " + Join(known, ", "))});
  }
}

const Func& Schedule::func() const {
  static const Func kNone;
  auto it = module_.funcs.find(func_);
  return it == module_.funcs.end() ? kNone : it->second;
}

Status Schedule::status() const {
  if (ok()) return Ok();
  return errors_;
}

// ---- Looking ----

namespace {

Names BlockNames(const std::vector<const Place*>& places) {
  Names out;
  for (const Place* p : places) out.push_back(p->block()->name);
  return out;
}

Names LoopNames(const std::vector<const For*>& loops) {
  Names out;
  for (const For* loop : loops) out.push_back(loop->var->name);
  return out;
}

// Blocks other than `self` that write what it reads, or read what it writes.
Names Neighbours(const Body& body, const Place* self, bool producers) {
  const Block& block = *self->block();
  std::vector<Region> regions = producers ? block.reads : block.writes;
  std::vector<const Place*> out;
  for (const Place& p : body.blocks()) {
    if (&p == self || p.inner) continue;
    std::vector<Region> theirs = producers ? p.block()->writes : p.block()->reads;
    bool meet = std::any_of(regions.begin(), regions.end(), [&](const Region& r) {
      return std::any_of(theirs.begin(), theirs.end(),
                         [&](const Region& t) { return t->buffer == r->buffer; });
    });
    if (meet) out.push_back(&p);
  }
  return BlockNames(out);
}

// Loops around the block that its variables of one kind alone run over.
Names LoopsOfOneKind(const Place& place, IterKind kind, IterKind other) {
  Names out;
  for (const For* loop : place.Loops()) {
    bool only = primitive::BindsLoop(*place.block(), kind, loop) &&
                !primitive::BindsLoop(*place.block(), other, loop) &&
                !primitive::BindsLoop(*place.block(), IterKind::kOrdered, loop);
    if (only) out.push_back(loop->var->name);
  }
  return out;
}

}  // namespace

Names Schedule::GetBlocks() const {
  Names out;
  if (!func()) return out;
  Body body(func());
  for (const Place& p : body.blocks()) out.push_back(p.block()->name);
  return out;
}

bool Schedule::HasBlock(const std::string& block) const {
  return func() && Body(func()).FindBlock(block) != nullptr;
}
bool Schedule::HasLoop(const std::string& loop) const {
  return func() && Body(func()).FindLoop(loop) != nullptr;
}

Names Schedule::GetLoops(const std::string& block) {
  return Steps::Look<Names>(*this, "get_loops", block, [&](const Body& body) -> Expected<Names> {
    TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
    return LoopNames(place->Loops());
  });
}

Names Schedule::GetChildBlocks(const std::string& loop) {
  return Steps::Look<Names>(*this, "get_child_blocks", loop,
                            [&](const Body& body) -> Expected<Names> {
                              TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(loop));
                              return BlockNames(body.BlocksUnder(place->stmt.get()));
                            });
}

Names Schedule::GetProducers(const std::string& block) {
  return Steps::Look<Names>(*this, "get_producers", block,
                            [&](const Body& body) -> Expected<Names> {
                              TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
                              return Neighbours(body, place, true);
                            });
}

Names Schedule::GetConsumers(const std::string& block) {
  return Steps::Look<Names>(*this, "get_consumers", block,
                            [&](const Body& body) -> Expected<Names> {
                              TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
                              return Neighbours(body, place, false);
                            });
}

std::string Schedule::GetBlockOf(const std::string& buffer) {
  return Steps::Look<std::string>(*this, "get_block_of", buffer,
                                  [&](const Body& body) -> Expected<std::string> {
                                    TN_ASSIGN_OR_RETURN(Buffer b, body.NeedBuffer(buffer));
                                    std::vector<const Place*> writers = body.Writers(b);
                                    if (writers.empty())
                                      return primitive::Because("no block writes the buffer");
                                    return writers.back()->block()->name;
                                  });
}

int64_t Schedule::GetExtent(const std::string& loop) {
  return Steps::Look<int64_t>(*this, "get_extent", loop,
                              [&](const Body& body) -> Expected<int64_t> {
                                TN_ASSIGN_OR_RETURN(const Place* place, body.NeedLoop(loop));
                                return AsInt(place->loop()->extent).value_or(-1);
                              });
}

Names Schedule::GetSpatialLoops(const std::string& block) {
  return Steps::Look<Names>(*this, "get_spatial_loops", block,
                            [&](const Body& body) -> Expected<Names> {
                              TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
                              return LoopsOfOneKind(*place, IterKind::kSpatial, IterKind::kReduce);
                            });
}

Names Schedule::GetReduceLoops(const std::string& block) {
  return Steps::Look<Names>(*this, "get_reduce_loops", block,
                            [&](const Body& body) -> Expected<Names> {
                              TN_ASSIGN_OR_RETURN(const Place* place, body.NeedBlock(block));
                              return LoopsOfOneKind(*place, IterKind::kReduce, IterKind::kSpatial);
                            });
}

// ---- Primitives ----

Names Schedule::Split(const std::string& loop, std::vector<int64_t> factors) {
  size_t count = factors.size();
  return Steps::Apply(*this, "split", {loop, std::move(factors)}, count);
}
Names Schedule::Partition(const std::string& loop, std::vector<int64_t> points) {
  size_t count = points.size() + 1;
  return Steps::Apply(*this, "partition", {loop, std::move(points)}, count);
}
Names Schedule::PartitionEqual(const std::string& loop, int64_t parts) {
  size_t count = static_cast<size_t>(std::clamp<int64_t>(parts, 0, 4096));
  return Steps::Apply(*this, "partition_equal", {loop, parts}, count);
}
std::string Schedule::Fuse(Names loops) {
  return Steps::Apply(*this, "fuse", {std::move(loops)}, 1)[0];
}
void Schedule::Reorder(Names loops) { Steps::Apply(*this, "reorder", {std::move(loops)}, 0); }
void Schedule::Parallel(const std::string& loop) { Steps::Apply(*this, "parallel", {loop}, 0); }
void Schedule::Vectorize(const std::string& loop) { Steps::Apply(*this, "vectorize", {loop}, 0); }
void Schedule::Unroll(const std::string& loop) { Steps::Apply(*this, "unroll", {loop}, 0); }
void Schedule::Bind(const std::string& loop, const std::string& thread_axis) {
  Steps::Apply(*this, "bind", {loop, thread_axis}, 0);
}
void Schedule::ComputeAt(const std::string& block, const std::string& loop) {
  Steps::Apply(*this, "compute_at", {block, loop}, 0);
}
void Schedule::ReverseComputeAt(const std::string& block, const std::string& loop) {
  Steps::Apply(*this, "reverse_compute_at", {block, loop}, 0);
}
void Schedule::ComputeRoot(const std::string& block) {
  Steps::Apply(*this, "compute_root", {block}, 0);
}
void Schedule::ComputeInline(const std::string& block) {
  Steps::Apply(*this, "compute_inline", {block}, 0);
}
void Schedule::ReverseComputeInline(const std::string& block) {
  Steps::Apply(*this, "reverse_compute_inline", {block}, 0);
}
std::string Schedule::CacheRead(const std::string& block, const std::string& buffer,
                                const std::string& scope) {
  return Steps::Apply(*this, "cache_read", {block, buffer, scope}, 1)[0];
}
std::string Schedule::CacheWrite(const std::string& block, const std::string& buffer,
                                 const std::string& scope) {
  return Steps::Apply(*this, "cache_write", {block, buffer, scope}, 1)[0];
}
void Schedule::SetScope(const std::string& buffer, const std::string& scope) {
  Steps::Apply(*this, "set_scope", {buffer, scope}, 0);
}
std::string Schedule::DecomposeReduction(const std::string& block, const std::string& loop) {
  return Steps::Apply(*this, "decompose_reduction", {block, loop}, 1)[0];
}
std::string Schedule::RFactor(const std::string& loop, int64_t axis) {
  return Steps::Apply(*this, "rfactor", {loop, axis}, 1)[0];
}
void Schedule::TransformLayout(const std::string& buffer, Layout layout) {
  Steps::Apply(*this, "transform_layout", {buffer, primitive::ToArg(layout)}, 0);
}
void Schedule::Specialize(Expr condition) {
  Steps::Apply(*this, "specialize", {primitive::ToArg(condition)}, 0);
}
std::string Schedule::Outline(const std::string& loop_or_block, const std::string& name) {
  return Steps::Apply(*this, "outline", {loop_or_block, name}, 1)[0];
}
void Schedule::Annotate(const std::string& loop_or_block, const std::string& key, AttrValue value) {
  Steps::Apply(*this, "annotate", {loop_or_block, key, std::move(value)}, 0);
}

// ---- Choices and replay ----

int64_t Schedule::Decide(const std::string& name, std::vector<int64_t> domain, int64_t guess) {
  if (!ok()) return guess;
  auto has = [&](int64_t v) { return std::find(domain.begin(), domain.end(), v) != domain.end(); };
  primitive::Args args = {name, domain, guess};
  if (!has(guess)) {
    Steps::Fail(*this, {MakeError(Heading("decide", args) + ": the guess is not in the domain")});
    return guess;
  }
  auto it = choices_.find(name);
  int64_t chosen = it != choices_.end() && has(it->second) ? it->second : guess;
  trace_.steps.push_back({"decide", std::move(args), {std::to_string(chosen)}});
  return chosen;
}

namespace {

std::optional<int64_t> ToInt(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::map<std::string, int64_t> Trace::Decisions() const {
  std::map<std::string, int64_t> out;
  for (const TraceStep& step : steps) {
    if (step.primitive != "decide" || step.args.empty() || step.results.empty()) continue;
    const auto* name = std::get_if<std::string>(&step.args[0]);
    std::optional<int64_t> value = ToInt(step.results[0]);
    if (name != nullptr && value) out[*name] = *value;
  }
  return out;
}

// A decision of a trace is taken as it stands: its step has already been spent in the arguments of
// later ones.
Status Schedule::Replay(const Trace& trace) {
  for (const TraceStep& step : trace.steps) {
    if (!ok()) return status();
    if (step.primitive == "decide") {
      trace_.steps.push_back(step);
      continue;
    }
    if (primitive::FindPrimitive(step.primitive) == nullptr) {
      Diagnostic d = MakeError("replay: no primitive is named " + QuoteJson(step.primitive));
      std::string near = NearestWord(step.primitive, primitive::PrimitiveNames());
      if (!near.empty()) d.notes.push_back("did you mean " + near + "?");
      Steps::Fail(*this, {d});
      break;
    }
    Names got = Steps::Apply(*this, step.primitive.c_str(), step.args, 0);
    if (ok() && got != step.results) {
      Steps::Fail(*this, {MakeError("replay: " + Heading(step.primitive, step.args) + " gave [" +
                                    Join(got, ", ") + "], the trace expects [" +
                                    Join(step.results, ", ") + "]")});
    }
  }
  return status();
}

}  // namespace tenon
