// A trace is followed step by step, and the loops and forms of blocks (digits.h) with it.
//
// The only step with more to it is compute_at: the block's new loops run over what its consumers
// need in one iteration of the loop that it goes into, which is how far their indices reach over
// the digits inside of that loop.
//
// The real schedule is made beside, step by step: it knows names, regions and orders, and each
// extent is compared with its own. In the end all numbers of the nest are, and where one differs
// there are no Numbers.
#include "sketch/numbers.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "dependence/body.h"
#include "ir/visit.h"
#include "sketch/digits.h"

namespace tenon::sketch {

namespace {

ops::Point PointOf(const Trace& trace, const ops::Space& space) {
  const std::map<std::string, int64_t> decided = trace.Decisions();
  ops::Point out;
  for (const ops::Knob& k : space.knobs()) {
    const auto at = decided.find(k.name);
    if (at != decided.end()) out.push_back({k.name, at->second});
  }
  return out;
}

std::optional<int64_t> NumberOf(const std::string& text) {
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// An index without its clamp: what lies beyond the buffer is not counted anyhow.
const Expr& Unclamped(const Expr& index) {
  const auto* b = As<Binary>(index);
  const bool clamps = b && (b->op == BinaryOp::kMin || b->op == BinaryOp::kMax);
  return clamps && AsInt(b->rhs) ? b->lhs : index;
}

}  // namespace

/// Follows a trace.
class Follower {
 public:
  /// `point`: the trace's.
  Follower(const Schedule& plain, const ops::Space& space, const Machine& machine,
           const ops::Point& point)
      : schedule_(plain), space_(space), machine_(machine), point_(point) {}

  std::optional<Numbers> Run(const Trace& trace) {
    if (!Begin()) return std::nullopt;
    for (const TraceStep& step : trace.steps) {
      const Schedule before = schedule_;
      schedule_.UseDecisions(trace.Decisions());
      if (!schedule_.Replay({{step}}) || !Follow(step, before)) return std::nullopt;
    }
    return Finish();
  }

 private:
  using Op = Quantities::Op;

  // A factor of a split as its step has it: a number, "$choice", or a product of these.
  std::optional<size_t> Factor(const std::string& text) {
    if (const size_t star = text.rfind('*'); star != std::string::npos) {
      const auto others = Factor(text.substr(0, star)), last = Factor(text.substr(star + 1));
      return others && last ? std::optional(q_.Product(*others, *last)) : std::nullopt;
    }
    if (!text.starts_with('$')) {
      const std::optional<int64_t> n = NumberOf(text);
      return n ? std::optional(q_.Constant(*n)) : std::nullopt;
    }
    for (size_t k = 0; k < space_.knobs().size(); ++k)
      if (space_.knobs()[k].name == text.substr(1)) return q_.Knob(k);
    return std::nullopt;
  }

  // Of a binding that is one loop, or a constant.
  std::optional<Form> FormOf(const Expr& binding) {
    if (AsInt(binding)) return Form{};
    const auto* var = As<VarNode>(binding);
    const CountedLoop* loop = var ? digits_.Find(var->name) : nullptr;
    if (!loop || loop->IsPart()) return std::nullopt;
    return digits_.Counted(loop->digits);
  }

  // ---- Following ----

  bool Begin() {
    const Body body(schedule_.func());
    for (const Body::Place& place : body.blocks()) {
      if (place.inner) continue;
      if (!AddLoops(place) || !AddBlock(*place.block(), nullptr)) return false;
    }
    return true;
  }
  // Loops that are not known yet count for themselves.
  bool AddLoops(const Body::Place& place) {
    for (const For* loop : place.Loops()) {
      const auto extent = AsInt(loop->extent);
      if (!extent) return false;
      if (!digits_.Has(loop->var->name)) digits_.AddLoop(loop->var->name, q_.Constant(*extent));
    }
    return true;
  }
  // Its variables are bound to loops, or to what those of that name were in `before`.
  bool AddBlock(const Block& block, const std::map<std::string, Form>* before) {
    std::map<std::string, Form> forms;
    for (const IterVar& v : block.iters) {
      std::optional<Form> form = FormOf(v->binding);
      if (!form && before && before->contains(v->var->name)) form = before->at(v->var->name);
      if (!form) return false;
      forms[v->var->name] = *std::move(form);
    }
    digits_.blocks()[block.name] = std::move(forms);
    return true;
  }

  bool Follow(const TraceStep& step, const Schedule& before) {
    constexpr std::string_view kSameNumbers[] = {
        "decide",          "reorder",   "parallel",
        "unroll",          "vectorize", "bind",
        "set_scope",       "annotate",  "set_store_predicate",
        "transform_layout"};
    if (std::find(std::begin(kSameNumbers), std::end(kSameNumbers), step.primitive) !=
        std::end(kSameNumbers))
      return true;
    if (step.primitive == "split") return Split(step);
    if (step.primitive == "fuse") return Fuse(step);
    if (step.primitive == "compute_inline") return digits_.blocks().erase(Text(step, 0)) == 1;
    if (step.primitive == "compute_at") return ComputeAt(step, before);
    if (step.primitive == "cache_read" || step.primitive == "cache_write")
      return AddNew(step.results[0], nullptr);
    if (step.primitive == "decompose_reduction") return Decompose(step);
    if (step.primitive == "rfactor") return RFactor(step);
    if (step.primitive == "tensorize") return Tensorize(step, before);
    return false;
  }

  static std::string Text(const TraceStep& step, size_t arg) {
    const auto* text = std::get_if<std::string>(&step.args[arg]);
    return text ? *text : "";
  }
  bool AddNew(const std::string& block, const std::map<std::string, Form>* before) {
    const Body body(schedule_.func());
    const Body::Place* place = body.FindBlock(block);
    return place && AddLoops(*place) && AddBlock(*place->block(), before);
  }

  bool Split(const TraceStep& step) {
    std::vector<std::string> factors;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&step.args[1])) factors = *texts;
    if (const auto* numbers = std::get_if<std::vector<int64_t>>(&step.args[1]))
      for (const int64_t n : *numbers) factors.push_back(std::to_string(n));
    const CountedLoop* loop = digits_.Find(Text(step, 0));
    if (!loop || factors.size() != step.results.size()) return false;
    size_t known = q_.Constant(1), derived = CountedLoop::kNone;
    std::vector<size_t> extents(factors.size());
    for (size_t i = 0; i < factors.size(); ++i) {
      const std::optional<size_t> factor = Factor(factors[i]);
      if (!factor) return false;
      if (factors[i] == "-1") {
        derived = i;
      } else {
        extents[i] = *factor;
        known = q_.Product(known, *factor);
      }
    }
    if (derived != CountedLoop::kNone) extents[derived] = q_.Of(Op::kCeilDiv, loop->extent, known);
    return digits_.Split(Text(step, 0), extents, step.results);
  }

  bool Fuse(const TraceStep& step) {
    const auto* names = std::get_if<std::vector<std::string>>(&step.args[0]);
    return names && !step.results.empty() && digits_.Fuse(*names, step.results[0]);
  }

  // ---- Blocks that move ----

  // What its consumers inside of the loop need of one dim of a buffer: how far it reaches within
  // an iteration, and what it begins with.
  struct Need {
    size_t extent = CountedLoop::kNone;
    Form begin;
  };

  bool ComputeAt(const TraceStep& step, const Schedule& before) {
    const std::string name = Text(step, 0), loop = Text(step, 1);
    const Body was(before.func()), is(schedule_.func());
    const Body::Place *old = was.FindBlock(name), *place = is.FindBlock(name);
    const Body::Place* target = was.FindLoop(loop);
    if (!old || !place || !target || old->block()->writes.size() != 1) return false;
    std::set<size_t> outside;
    bool inside = false;
    std::vector<std::string> fresh;
    for (const For* l : place->Loops()) {
      if (inside) fresh.push_back(l->var->name);
      if (!inside) {
        const CountedLoop* counted = digits_.Find(l->var->name);
        if (!counted) return false;
        // What is shared among threads is for all of them.
        const bool shares = old->block()->writes[0]->buffer->scope == Scope::kShared &&
                            l->for_kind == ForKind::kThread &&
                            (IsThreadAxis(l->thread) || l->thread == ThreadAxis::kVThread);
        if (!shares) outside.insert(counted->digits.begin(), counted->digits.end());
      }
      inside = inside || l->var->name == loop;
    }
    const Region& made = old->block()->writes[0];
    std::map<std::string, Form> forms;
    for (const IterVar& v : place->block()->iters) {
      Need need{.extent = q_.Constant(AsInt(v->extent).value_or(1)), .begin = {}};
      if (v->iter_kind == IterKind::kSpatial) {
        const std::optional<size_t> dim = DimOf(made, v->var->name);
        const std::optional<Need> found =
            dim ? NeedOf(was, *target, made, *dim, outside) : std::nullopt;
        if (!found) return false;
        need = *found;
      }
      for (const std::string& l : fresh) {
        const For* own = is.FindLoop(l)->loop();
        if (!UsesVar(v->binding, own->var.get())) continue;
        const auto zero = ValueAt(v->binding, {}), one = ValueAt(v->binding, {{own->var.get(), 1}});
        const bool fits = zero && one && *one - *zero == 1 && !digits_.Has(l) &&
                          AsInt(own->extent) == q_[need.extent];
        if (!fits) return false;
        digits_.AddLoop(l, need.extent);
        digits_.AddTo(&need.begin, digits_.Find(l)->digits[0], q_.Constant(1));
      }
      forms[v->var->name] = std::move(need.begin);
    }
    const bool all = std::all_of(fresh.begin(), fresh.end(),
                                 [&](const std::string& l) { return digits_.Has(l); });
    digits_.blocks()[name] = std::move(forms);
    return all;
  }

  static std::optional<size_t> DimOf(const Region& region, const std::string& var) {
    for (size_t d = 0; d < region->ranges.size(); ++d) {
      const auto* v = As<VarNode>(region->ranges[d]->min);
      if (v && v->name == var && AsInt(region->ranges[d]->extent) == 1) return d;
    }
    return std::nullopt;
  }

  std::optional<Need> NeedOf(const Body& body, const Body::Place& target, const Region& made,
                             size_t dim, const std::set<size_t>& outside) {
    Need need;
    int64_t least = 0;
    std::vector<std::pair<int64_t, size_t>> reaches;  // beginning, extent
    for (const Body::Place* reader : body.Readers(made->buffer)) {
      if (!reader->IsUnder(target.stmt.get())) continue;
      for (const Region& r : ReadsOf(*reader->block())) {
        if (r->buffer != made->buffer) continue;
        const auto box = AsInt(r->ranges[dim]->extent), begin = ValueAt(r->ranges[dim]->min, {});
        const std::optional<Form> form = IndexForm(*reader->block(), r->ranges[dim]->min);
        if (!box || !begin || !form) return std::nullopt;
        if (reaches.empty()) {
          for (const auto& [digit, multiple] : *form)
            if (outside.contains(digit)) need.begin[digit] = multiple;
        }
        least = reaches.empty() ? *begin : std::min(least, *begin);
        reaches.emplace_back(*begin,
                             q_.Of(Op::kAdd, digits_.Reach(*form, outside), q_.Constant(*box)));
      }
    }
    for (const auto& [begin, extent] : reaches) {
      const size_t end = q_.Of(Op::kAdd, extent, q_.Constant(begin - least));
      need.extent = need.extent == CountedLoop::kNone ? end : q_.Of(Op::kMax, need.extent, end);
    }
    if (need.extent == CountedLoop::kNone) return std::nullopt;
    const int64_t whole = AsInt(made->buffer->shape[dim]).value_or(0);
    // Registers are a number of them, however short a dim is.
    if (whole > 0 && made->buffer->scope != Scope::kRegister)
      need.extent = q_.Of(Op::kMin, need.extent, q_.Constant(whole));
    return need;
  }

  // An index over a block's variables; nullopt: it is no sum of multiples of them.
  std::optional<Form> IndexForm(const Block& block, const Expr& clamped) {
    const Expr& index = Unclamped(clamped);
    const auto known = digits_.blocks().find(block.name);
    const auto base = ValueAt(index, {});
    if (known == digits_.blocks().end() || !base) return std::nullopt;
    Form out;
    Values ones;
    int64_t sum = *base;
    for (const IterVar& v : block.iters) {
      if (!UsesVar(index, v->var.get())) continue;
      const VarNode* var = v->var.get();
      const auto one = ValueAt(index, {{var, 1}}), seven = ValueAt(index, {{var, 7}});
      if (!one || !seven || *seven - *base != 7 * (*one - *base)) return std::nullopt;
      ones.emplace_back(var, 1);
      sum += *one - *base;
      const size_t times = q_.Constant(*one - *base);
      const auto form = known->second.find(var->name);
      if (form == known->second.end()) return std::nullopt;
      for (const auto& [digit, multiple] : form->second)
        digits_.AddTo(&out, digit, q_.Product(times, multiple));
    }
    if (ValueAt(index, ones) != sum) return std::nullopt;
    return out;
  }

  // ---- Reductions ----

  bool Decompose(const TraceStep& step) {
    const std::string block = Text(step, 0);
    const Body body(schedule_.func());
    const Body::Place *init = body.FindBlock(step.results[0]), *main = body.FindBlock(block);
    if (!init || !main) return false;
    std::map<size_t, size_t> copies;  // of digits
    for (const For* loop : init->Loops()) {
      const std::string& name = loop->var->name;
      if (digits_.Has(name)) continue;
      const CountedLoop* source = digits_.Find(name.substr(0, name.rfind(".init")));
      if (!source || source->IsPart()) return false;
      digits_.AddCopy(name, CountedLoop(*source), &copies);
    }
    // Its variables are the block's spatial ones, in their order.
    std::map<std::string, Form> forms;
    size_t next = 0;
    const auto& variables = init->block()->iters;
    for (const IterVar& v : main->block()->iters) {
      if (v->iter_kind != IterKind::kSpatial) continue;
      const auto of = digits_.blocks()[block].find(v->var->name);
      if (next == variables.size() || of == digits_.blocks()[block].end()) return false;
      Form& form = forms[variables[next++]->var->name];
      for (const auto& [digit, multiple] : of->second)
        form[copies.contains(digit) ? copies[digit] : digit] = multiple;
    }
    if (next != variables.size()) return false;
    digits_.blocks()[step.results[0]] = std::move(forms);
    return true;
  }

  bool RFactor(const TraceStep& step) {
    const Body body(schedule_.func());
    const Body::Place* partial = body.FindBlock(step.results[0]);
    if (!partial) return false;
    // Both blocks were one.
    const std::string whole =
        step.results[0].substr(0, step.results[0].size() - std::string_view(".rf").size());
    const std::map<std::string, Form> before = digits_.blocks()[whole];
    return AddNew(step.results[0], &before) && AddNew(whole, &before);
  }

  // The tile's block touches what the one that was there does, over the loops that are left.
  bool Tensorize(const TraceStep& step, const Schedule& before) {
    const Body body(before.func());
    const Body::Place* loop = body.FindLoop(Text(step, 0));
    if (!loop || step.results.empty()) return false;
    const std::vector<const Body::Place*> blocks = body.BlocksUnder(loop->stmt.get());
    if (blocks.size() != 1) return false;
    tiles_[step.results[0]] = blocks[0]->stmt;
    return true;
  }

  // ---- The nest ----

  std::optional<Numbers> Finish() {
    const std::optional<Nest> nest = NestOf(*schedule_.func(), machine_);
    if (!nest) return std::nullopt;
    numbers_.nest_ = *nest;
    const Body body(schedule_.func());
    size_t b = 0;
    for (const Body::Place& place : body.blocks()) {
      if (place.inner) continue;
      if (!FinishBlock(place, b++)) return std::nullopt;
    }
    if (numbers_.At(point_) != *nest) return std::nullopt;
    return std::move(numbers_);
  }

  bool FinishBlock(const Body::Place& place, size_t b) {
    const Block& block = *place.block();
    std::vector<CountedLoop> loops;
    for (const For* loop : place.Loops()) {
      const CountedLoop* counted = digits_.Find(loop->var->name);
      if (!counted) return false;
      numbers_.extents_.push_back({b, loops.size(), counted->extent});
      loops.push_back(*counted);
    }
    const auto tile = tiles_.find(block.name);
    const Block& source = tile == tiles_.end() ? block : *As<Block>(tile->second);
    size_t t = 0;
    for (const bool write : {false, true}) {
      const std::vector<Region> all = RegionsOf(source, write);
      for (const Region& own : RegionsOf(block, write)) {
        const auto r = std::find_if(all.begin(), all.end(), [&](const Region& other) {
          return &source == &block ? other == own : other->buffer == own->buffer;
        });
        if (r == all.end() || (*r)->ranges.size() != own->ranges.size()) return false;
        for (size_t d = 0; d < own->ranges.size(); ++d)
          if (!FinishIndex(source, (*r)->ranges[d]->min, loops, b, t, d)) return false;
        ++t;
      }
    }
    return true;
  }
  static std::vector<Region> RegionsOf(const Block& block, bool write) {
    return write ? block.writes : ReadsOf(block);
  }

  bool FinishIndex(const Block& block, const Expr& index, const std::vector<CountedLoop>& loops,
                   size_t b, size_t t, size_t d) {
    // What depends on data may lead anywhere, whatever the choices are: the nest has that already.
    if (!ValueAt(index, {})) return true;
    const std::optional<Form> form = IndexForm(block, index);
    if (!form) return false;
    int64_t stride = 1;
    const std::vector<int64_t>& shape = numbers_.nest_.blocks[b].touches[t].shape;
    for (size_t after = d + 1; after < shape.size(); ++after) stride *= shape[after];
    for (size_t l = 0; l < loops.size(); ++l) {
      Numbers::Move move{b, t, l, d, stride, loops[l].extent, loops[l].weight, {}};
      size_t inner = q_.Constant(1);
      for (size_t i = loops[l].digits.size(); i-- > 0;) {
        const size_t digit = loops[l].digits[i];
        const auto multiple = form->find(digit);
        if (multiple != form->end())
          move.digits.push_back({digits_.ExtentOf(digit), inner, multiple->second});
        inner = q_.Product(inner, digits_.ExtentOf(digit));
      }
      if (!move.digits.empty()) numbers_.moves_.push_back(std::move(move));
    }
    return true;
  }

  Schedule schedule_;
  const ops::Space& space_;
  const Machine& machine_;
  const ops::Point& point_;
  Numbers numbers_{Quantities(point_)};
  Quantities& q_ = numbers_.quantities_;
  Digits digits_{&q_};
  std::map<std::string, Stmt> tiles_;  // what blocks of intrinsics were
};

std::optional<Numbers> Numbers::Of(const Schedule& plain, const Trace& trace,
                                   const ops::Space& space, const Machine& machine) {
  const ops::Point point = PointOf(trace, space);
  if (point.size() != space.knobs().size()) return std::nullopt;
  return Follower(plain, space, machine, point).Run(trace);
}

}  // namespace tenon::sketch
