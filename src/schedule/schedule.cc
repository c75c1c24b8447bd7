#include "schedule/schedule.h"

#include <algorithm>

#include "schedule/analysis/conflicts.h"
#include "schedule/steps.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon {

namespace {

std::string ShortText(const AttrValue& value) {
  if (const auto* name = std::get_if<std::string>(&value)) return *name;
  if (const auto* names = std::get_if<Names>(&value)) return Join(*names, ", ");
  return ToString(value);
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

std::string Schedule::Steps::Heading(const std::string& primitive, const primitive::Args& args) {
  Names parts;
  for (const AttrValue& a : args) parts.push_back(ShortText(a));
  return primitive + "(" + Join(parts, ", ") + ")";
}

Names Schedule::Steps::Apply(Schedule& s, const char* primitive, primitive::Args args, size_t count,
                             Renames* renamed) {
  Names failed(count);
  if (!s.ok()) return failed;
  const primitive::PrimitiveRow* row = primitive::FindPrimitive(primitive);
  TN_CHECK(row != nullptr, "{} is not in the table", primitive);
  Module module = s.module_;  // what a refused primitive added to it goes with it
  primitive::State state{&module, s.func(), &s.decided_, {}, &s.judged_};
  primitive::Result result = row->run(state, args);
  if (result && row->places_blocks) {
    if (auto conflict = primitive::JudgeConcurrentLoops(&state)) {
      primitive::State before{&module, s.func(), &s.decided_};
      if (primitive::JudgeConcurrentLoops(&before)) {
        conflict->notes.push_back(
            "earlier steps made it so, when they changed the loops of these blocks");
      }
      result = *conflict;
    }
  }
  if (result) {
    if (auto conflict = primitive::JudgeThreadReductions(state.func)) result = *conflict;
  }
  if (!result) {
    Diagnostics errors = result.errors();
    for (Diagnostic& d : errors) d = Headed(Heading(primitive, args), std::move(d));
    Fail(s, std::move(errors));
    return failed;
  }
  module.Add(state.func);
  s.module_ = std::move(module);
  s.trace_.steps.push_back({primitive, std::move(args), *result});
  if (renamed) *renamed = std::move(state.renamed);
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

// ---- Primitives ----

Names Schedule::Split(const std::string& loop, std::vector<int64_t> factors) {
  size_t count = factors.size();
  return Steps::Apply(*this, "split", {loop, std::move(factors)}, count);
}
Names Schedule::SplitBy(const std::string& loop, Names factors) {
  size_t count = factors.size();
  return Steps::Apply(*this, "split", {loop, std::move(factors)}, count);
}
Names Schedule::TileLoops(Names loops, std::vector<int64_t> factors) {
  size_t count = 2 * loops.size();
  return Steps::Apply(*this, "tile", {std::move(loops), std::move(factors)}, count);
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
void Schedule::Bind(const std::string& loop, ThreadAxis thread_axis) {
  Steps::Apply(*this, "bind", {loop, Name(thread_axis)}, 0);
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
std::string Schedule::CacheRead(const std::string& block, const std::string& buffer, Scope scope) {
  return Steps::Apply(*this, "cache_read", {block, buffer, Name(scope)}, 1)[0];
}
std::string Schedule::CacheWrite(const std::string& block, const std::string& buffer, Scope scope) {
  return Steps::Apply(*this, "cache_write", {block, buffer, Name(scope)}, 1)[0];
}
void Schedule::SetScope(const std::string& buffer, Scope scope) {
  Steps::Apply(*this, "set_scope", {buffer, Name(scope)}, 0);
}
std::string Schedule::DecomposeReduction(const std::string& block, const std::string& loop) {
  return Steps::Apply(*this, "decompose_reduction", {block, loop}, 1)[0];
}
void Schedule::SetStorePredicate(const std::string& block, const std::string& condition) {
  Steps::Apply(*this, "set_store_predicate", {block, condition}, 0);
}
std::string Schedule::RFactor(const std::string& loop, int64_t axis) {
  return Steps::Apply(*this, "rfactor", {loop, axis}, 1)[0];
}
void Schedule::TransformLayout(const std::string& buffer, Layout layout) {
  Steps::Apply(*this, "transform_layout", {buffer, primitive::ToArg(layout)}, 0);
}
void Schedule::StorageAlign(const std::string& buffer, int64_t axis, int64_t factor,
                            int64_t offset) {
  Steps::Apply(*this, "storage_align", {buffer, axis, factor, offset}, 0);
}
void Schedule::TransformBlockLayout(const std::string& block, Layout map) {
  Steps::Apply(*this, "transform_block_layout", {block, primitive::ToArg(map)}, 0);
}
Names Schedule::PadEinsum(const std::string& block, std::vector<int64_t> padding) {
  return Steps::Apply(*this, "pad_einsum", {block, std::move(padding)}, 0);
}
std::string Schedule::Prefetch(const std::string& block, const std::string& buffer,
                               const std::string& loop, int64_t distance) {
  return Steps::Apply(*this, "prefetch", {block, buffer, loop, distance}, 1)[0];
}
std::string Schedule::SpreadPrefetch(const std::string& block, const std::string& buffer,
                                     const std::string& loop, int64_t distance,
                                     const std::string& over) {
  return Steps::Apply(*this, "spread_prefetch", {block, buffer, loop, distance, over}, 1)[0];
}
std::string Schedule::SoftwarePipeline(const std::string& loop, std::vector<int64_t> stages,
                                       std::vector<int64_t> order) {
  return Steps::Apply(*this, "software_pipeline", {loop, std::move(stages), std::move(order)},
                      1)[0];
}
std::string Schedule::DoubleBuffer(const std::string& block) {
  return Steps::Apply(*this, "double_buffer", {block}, 1)[0];
}
void Schedule::RollingBuffer(const std::string& block, const std::string& loop) {
  Steps::Apply(*this, "rolling_buffer", {block, loop}, 0);
}
std::string Schedule::Blockize(const std::string& loop) {
  return Steps::Apply(*this, "blockize", {loop}, 1)[0];
}
std::string Schedule::Tensorize(const std::string& loop, const std::string& intrinsic) {
  return Steps::Apply(*this, "tensorize", {loop, intrinsic}, 1)[0];
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

}  // namespace tenon
