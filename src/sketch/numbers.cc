// A loop is a row of digits, outermost first: one where it is as it was made, several where loops
// were fused. Splitting replaces a digit by others; whatever was counted by it is counted by them,
// each as often as those inside of it have iterations. Every iteration variable of a block is a sum
// of multiples of digits, a Form, and both extents and multiples are quantities: operations on
// choices that are computed in order.
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
#include <tuple>

#include "dependence/body.h"
#include "ir/visit.h"

namespace tenon::sketch {

namespace {

using Form = std::map<size_t, size_t>;  // digit → its multiple, a quantity
constexpr size_t kNone = SIZE_MAX;

/// What a loop's iterations count: its digits, outermost first. Of a loop over several digits that
/// was split again the parts have the same digits, and count them `weight` at a time.
struct CountedLoop {
  std::vector<size_t> digits;
  size_t extent = kNone, weight = kNone;  // weight: of parts alone
  bool IsPart() const { return weight != kNone; }
};

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
  Follower(const Schedule& plain, const ops::Space& space, const Machine& machine)
      : schedule_(plain), space_(space), machine_(machine) {}

  std::optional<Numbers> Run(const Trace& trace) {
    point_ = PointOf(trace);
    if (point_.size() != space_.knobs().size()) return std::nullopt;
    if (!Begin()) return std::nullopt;
    for (const TraceStep& step : trace.steps) {
      const Schedule before = schedule_;
      schedule_.UseDecisions(trace.Decisions());
      if (!schedule_.Replay({{step}}) || !Follow(step, before)) return std::nullopt;
    }
    return Finish();
  }

 private:
  using Op = Numbers::Op;

  // ---- Quantities ----

  size_t Make(Op op, int64_t a, int64_t b) {
    if (op != Op::kConstant && op != Op::kKnob) {
      const auto x = static_cast<size_t>(a), y = static_cast<size_t>(b);
      const bool known = IsConstant(x) && IsConstant(y);
      if (op == Op::kMul && IsConstant(x) && out_.values_[x] == 1) return y;
      if ((op == Op::kMul || op == Op::kCeilDiv) && IsConstant(y) && out_.values_[y] == 1) return x;
      if (known) return Constant(Numbers::Value({op, a, b}, out_.values_, point_));
    }
    const auto [at, fresh] = places_.emplace(std::tuple(op, a, b), out_.quantities_.size());
    if (fresh) {
      out_.quantities_.push_back({op, a, b});
      out_.values_.push_back(Numbers::Value(out_.quantities_.back(), out_.values_, point_));
    }
    return at->second;
  }
  bool IsConstant(size_t q) const { return out_.quantities_[q].op == Op::kConstant; }
  size_t Constant(int64_t value) { return Make(Op::kConstant, value, 0); }
  size_t Of(Op op, size_t a, size_t b) {
    return Make(op, static_cast<int64_t>(a), static_cast<int64_t>(b));
  }
  size_t Product(size_t a, size_t b) { return Of(Op::kMul, a, b); }
  int64_t ValueOf(size_t q) const { return out_.values_[q]; }

  // A factor of a split as its step has it: a number, "$choice", or a product of these.
  std::optional<size_t> Factor(const std::string& text) {
    if (const size_t star = text.rfind('*'); star != std::string::npos) {
      const auto others = Factor(text.substr(0, star)), last = Factor(text.substr(star + 1));
      return others && last ? std::optional(Product(*others, *last)) : std::nullopt;
    }
    if (!text.starts_with('$')) {
      const std::optional<int64_t> n = NumberOf(text);
      return n ? std::optional(Constant(*n)) : std::nullopt;
    }
    for (size_t k = 0; k < space_.knobs().size(); ++k)
      if (space_.knobs()[k].name == text.substr(1))
        return Make(Op::kKnob, static_cast<int64_t>(k), 0);
    return std::nullopt;
  }

  // ---- Digits and forms ----

  size_t NewDigit(size_t extent) {
    digits_.push_back(extent);
    return digits_.size() - 1;
  }
  void AddTo(Form* form, size_t digit, size_t multiple) {
    const auto [at, fresh] = form->emplace(digit, multiple);
    if (!fresh) at->second = Of(Op::kAdd, at->second, multiple);
  }
  // What the digits count together.
  Form Counted(const std::vector<size_t>& digits) {
    Form out;
    size_t inner = Constant(1);
    for (size_t i = digits.size(); i-- > 0;) {
      AddTo(&out, digits[i], inner);
      inner = Product(inner, digits_[digits[i]]);
    }
    return out;
  }
  // Of a binding that is one loop, or a constant.
  std::optional<Form> FormOf(const Expr& binding) {
    if (AsInt(binding)) return Form{};
    const auto* var = As<VarNode>(binding);
    const auto loop = var ? loops_.find(var->name) : loops_.end();
    if (loop == loops_.end() || loop->second.IsPart()) return std::nullopt;
    return Counted(loop->second.digits);
  }
  size_t Reach(const Form& form, const std::set<size_t>& outside) {
    size_t sum = Constant(0);
    for (const auto& [digit, multiple] : form) {
      if (outside.contains(digit)) continue;
      const size_t turns = Of(Op::kSub, digits_[digit], Constant(1));
      const size_t size = ValueOf(multiple) < 0 ? Of(Op::kSub, Constant(0), multiple) : multiple;
      sum = Of(Op::kAdd, sum, Product(turns, size));
    }
    return sum;
  }

  // ---- Following ----

  ops::Point PointOf(const Trace& trace) const {
    const std::map<std::string, int64_t> decided = trace.Decisions();
    ops::Point out;
    for (const ops::Knob& k : space_.knobs()) {
      const auto at = decided.find(k.name);
      if (at != decided.end()) out.push_back({k.name, at->second});
    }
    return out;
  }

  bool Begin() {
    const Body body(schedule_.func());
    for (const Body::Place& place : body.blocks()) {
      if (place.inner) continue;
      if (!AddLoops(place) || !AddBlock(*place.block(), nullptr)) return false;
    }
    return true;
  }
  void AddLoop(const std::string& name, size_t extent) {
    loops_[name] = {{NewDigit(extent)}, extent};
  }
  // Loops that are not known yet count for themselves.
  bool AddLoops(const Body::Place& place) {
    for (const For* loop : place.Loops()) {
      const auto extent = AsInt(loop->extent);
      if (!extent) return false;
      if (!loops_.contains(loop->var->name)) AddLoop(loop->var->name, Constant(*extent));
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
    blocks_[block.name] = std::move(forms);
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
    if (step.primitive == "compute_inline") return blocks_.erase(Text(step, 0)) == 1;
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
    const auto at = loops_.find(Text(step, 0));
    if (at == loops_.end() || at->second.IsPart() || factors.size() != step.results.size())
      return false;
    const CountedLoop loop = at->second;
    size_t known = Constant(1), derived = kNone;
    std::vector<size_t> extents(factors.size());
    for (size_t i = 0; i < factors.size(); ++i) {
      const std::optional<size_t> factor = Factor(factors[i]);
      if (!factor) return false;
      if (factors[i] == "-1") {
        derived = i;
      } else {
        extents[i] = *factor;
        known = Product(known, *factor);
      }
    }
    if (derived != kNone) extents[derived] = Of(Op::kCeilDiv, loop.extent, known);
    loops_.erase(at);
    if (loop.digits.size() == 1) {
      SplitDigit(loop.digits[0], extents, step.results);
    } else {
      SplitRow(loop.digits, extents, step.results);
    }
    return true;
  }

  void SplitDigit(size_t digit, const std::vector<size_t>& extents,
                  const std::vector<std::string>& names) {
    std::vector<size_t> parts;
    for (size_t i = 0; i < extents.size(); ++i) {
      AddLoop(names[i], extents[i]);
      parts.push_back(loops_[names[i]].digits[0]);
    }
    const Form counted = Counted(parts);
    for (auto& [name, forms] : blocks_) {
      for (auto& [var, form] : forms) {
        const auto at = form.find(digit);
        if (at == form.end()) continue;
        const size_t multiple = at->second;
        form.erase(at);
        for (const auto& [part, times] : counted) AddTo(&form, part, Product(multiple, times));
      }
    }
  }
  void SplitRow(const std::vector<size_t>& digits, const std::vector<size_t>& extents,
                const std::vector<std::string>& names) {
    size_t inner = Constant(1);
    for (size_t i = extents.size(); i-- > 0;) {
      loops_[names[i]] = {digits, extents[i], inner};
      inner = Product(inner, extents[i]);
    }
  }

  bool Fuse(const TraceStep& step) {
    const auto* names = std::get_if<std::vector<std::string>>(&step.args[0]);
    if (!names || step.results.empty()) return false;
    CountedLoop fused{{}, Constant(1)};
    for (const std::string& name : *names) {
      const auto loop = loops_.find(name);
      if (loop == loops_.end() || loop->second.IsPart()) return false;
      const std::vector<size_t>& digits = loop->second.digits;
      fused.digits.insert(fused.digits.end(), digits.begin(), digits.end());
      fused.extent = Product(fused.extent, loop->second.extent);
      loops_.erase(loop);
    }
    loops_[step.results[0]] = std::move(fused);
    return true;
  }

  // ---- Blocks that move ----

  // What its consumers inside of the loop need of one dim of a buffer: how far it reaches within
  // an iteration, and what it begins with.
  struct Need {
    size_t extent = kNone;
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
        const auto digits = loops_.find(l->var->name);
        if (digits == loops_.end()) return false;
        // What is shared among threads is for all of them.
        const bool shares = old->block()->writes[0]->buffer->scope == Scope::kShared &&
                            l->for_kind == ForKind::kThread &&
                            (IsThreadAxis(l->thread) || l->thread == ThreadAxis::kVThread);
        const std::vector<size_t>& row = digits->second.digits;
        if (!shares) outside.insert(row.begin(), row.end());
      }
      inside = inside || l->var->name == loop;
    }
    const Region& made = old->block()->writes[0];
    std::map<std::string, Form> forms;
    for (const IterVar& v : place->block()->iters) {
      Need need{.extent = Constant(AsInt(v->extent).value_or(1)), .begin = {}};
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
        const bool fits = zero && one && *one - *zero == 1 && !loops_.contains(l) &&
                          AsInt(own->extent) == ValueOf(need.extent);
        if (!fits) return false;
        AddLoop(l, need.extent);
        AddTo(&need.begin, loops_[l].digits[0], Constant(1));
      }
      forms[v->var->name] = std::move(need.begin);
    }
    const bool all = std::all_of(fresh.begin(), fresh.end(),
                                 [&](const std::string& l) { return loops_.contains(l); });
    blocks_[name] = std::move(forms);
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
        reaches.emplace_back(*begin, Of(Op::kAdd, Reach(*form, outside), Constant(*box)));
      }
    }
    for (const auto& [begin, extent] : reaches) {
      const size_t end = Of(Op::kAdd, extent, Constant(begin - least));
      need.extent = need.extent == kNone ? end : Of(Op::kMax, need.extent, end);
    }
    if (need.extent == kNone) return std::nullopt;
    const int64_t whole = AsInt(made->buffer->shape[dim]).value_or(0);
    // Registers are a number of them, however short a dim is.
    if (whole > 0 && made->buffer->scope != Scope::kRegister)
      need.extent = Of(Op::kMin, need.extent, Constant(whole));
    return need;
  }

  // An index over a block's variables; nullopt: it is no sum of multiples of them.
  std::optional<Form> IndexForm(const Block& block, const Expr& clamped) {
    const Expr& index = Unclamped(clamped);
    const auto known = blocks_.find(block.name);
    const auto base = ValueAt(index, {});
    if (known == blocks_.end() || !base) return std::nullopt;
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
      const size_t times = Constant(*one - *base);
      const auto form = known->second.find(var->name);
      if (form == known->second.end()) return std::nullopt;
      for (const auto& [digit, multiple] : form->second)
        AddTo(&out, digit, Product(times, multiple));
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
      if (loops_.contains(name)) continue;
      const auto source = loops_.find(name.substr(0, name.rfind(".init")));
      if (source == loops_.end() || source->second.IsPart()) return false;
      CountedLoop copy{{}, source->second.extent};
      for (const size_t digit : source->second.digits) {
        copy.digits.push_back(NewDigit(digits_[digit]));
        copies[digit] = copy.digits.back();
      }
      loops_[name] = std::move(copy);
    }
    // Its variables are the block's spatial ones, in their order.
    std::map<std::string, Form> forms;
    size_t next = 0;
    const auto& variables = init->block()->iters;
    for (const IterVar& v : main->block()->iters) {
      if (v->iter_kind != IterKind::kSpatial) continue;
      const auto of = blocks_[block].find(v->var->name);
      if (next == variables.size() || of == blocks_[block].end()) return false;
      Form& form = forms[variables[next++]->var->name];
      for (const auto& [digit, multiple] : of->second)
        form[copies.contains(digit) ? copies[digit] : digit] = multiple;
    }
    if (next != variables.size()) return false;
    blocks_[step.results[0]] = std::move(forms);
    return true;
  }

  bool RFactor(const TraceStep& step) {
    const Body body(schedule_.func());
    const Body::Place* partial = body.FindBlock(step.results[0]);
    if (!partial) return false;
    // Both blocks were one.
    const std::string whole =
        step.results[0].substr(0, step.results[0].size() - std::string_view(".rf").size());
    const std::map<std::string, Form> before = blocks_[whole];
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
    out_.nest_ = *nest;
    const Body body(schedule_.func());
    size_t b = 0;
    for (const Body::Place& place : body.blocks()) {
      if (place.inner) continue;
      if (!FinishBlock(place, b++)) return std::nullopt;
    }
    if (out_.At(point_) != *nest) return std::nullopt;
    return std::move(out_);
  }

  bool FinishBlock(const Body::Place& place, size_t b) {
    const Block& block = *place.block();
    std::vector<CountedLoop> loops;
    for (const For* loop : place.Loops()) {
      const auto counted = loops_.find(loop->var->name);
      if (counted == loops_.end()) return false;
      out_.extents_.push_back({b, loops.size(), counted->second.extent});
      loops.push_back(counted->second);
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
    const std::vector<int64_t>& shape = out_.nest_.blocks[b].touches[t].shape;
    for (size_t after = d + 1; after < shape.size(); ++after) stride *= shape[after];
    for (size_t l = 0; l < loops.size(); ++l) {
      Numbers::Move move{b, t, l, d, stride, loops[l].extent, loops[l].weight, {}};
      size_t inner = Constant(1);
      for (size_t i = loops[l].digits.size(); i-- > 0;) {
        const size_t digit = loops[l].digits[i];
        const auto multiple = form->find(digit);
        if (multiple != form->end())
          move.digits.push_back({digits_[digit], inner, multiple->second});
        inner = Product(inner, digits_[digit]);
      }
      if (!move.digits.empty()) out_.moves_.push_back(std::move(move));
    }
    return true;
  }

  Schedule schedule_;
  const ops::Space& space_;
  const Machine& machine_;
  ops::Point point_;
  Numbers out_;
  std::map<std::tuple<Op, int64_t, int64_t>, size_t> places_;
  std::vector<size_t> digits_;  // extents
  std::map<std::string, CountedLoop> loops_;
  std::map<std::string, Stmt> tiles_;                          // what blocks of intrinsics were
  std::map<std::string, std::map<std::string, Form>> blocks_;  // of variables
};

int64_t Numbers::Value(const Quantity& q, const std::vector<int64_t>& values,
                       const ops::Point& point) {
  if (q.op == Op::kConstant) return q.a;
  if (q.op == Op::kKnob) return point[static_cast<size_t>(q.a)].value;
  const int64_t a = values[static_cast<size_t>(q.a)], b = values[static_cast<size_t>(q.b)];
  switch (q.op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kCeilDiv: return (a + b - 1) / std::max<int64_t>(b, 1);
    case Op::kMin: return std::min(a, b);
    case Op::kMax: return std::max(a, b);
    case Op::kConstant:
    case Op::kKnob: break;
  }
  return 0;
}

// The index after so many iterations, from 0.
int64_t Numbers::IndexAt(const Move& move, int64_t iteration) const {
  const int64_t count = move.weight == kNoWeight ? iteration : iteration * values_[move.weight];
  int64_t index = 0;
  for (const Digit& digit : move.digits)
    index += values_[digit.multiple] * (count / values_[digit.inner] % values_[digit.extent]);
  return index;
}

void Numbers::Apply(const Move& move) {
  Touch& t = nest_.blocks[move.block].touches[move.touch];
  const int64_t last = values_[move.extent] - 1;
  int64_t& span = t.spans[move.loop * t.shape.size() + move.dim];
  int64_t low = 0, high = 0, first = 0;
  if (move.digits.size() == 1 && move.weight == kNoWeight && values_[move.digits[0].inner] == 1 &&
      values_[move.digits[0].extent] > last) {
    first = values_[move.digits[0].multiple];
    (first < 0 ? low : high) = first * last;
  } else {
    first = IndexAt(move, 1);
    for (const int64_t at : {std::min<int64_t>(1, last), last / 2, last}) {
      const int64_t index = IndexAt(move, at);
      low = std::min(low, index);
      high = std::max(high, index);
    }
  }
  span = std::min(high - low, t.shape[move.dim] - 1);
  if (last > 0) t.steps[move.loop] += first * move.stride;
}

const Nest& Numbers::At(const ops::Point& point) {
  for (size_t i = 0; i < quantities_.size(); ++i)
    values_[i] = Value(quantities_[i], values_, point);
  for (const Extent& e : extents_) nest_.blocks[e.block].loops[e.loop].extent = values_[e.quantity];
  for (const Move& m : moves_) nest_.blocks[m.block].touches[m.touch].steps[m.loop] = 0;
  for (const Move& m : moves_) Apply(m);
  return nest_;
}

std::optional<Numbers> Numbers::Of(const Schedule& plain, const Trace& trace,
                                   const ops::Space& space, const Machine& machine) {
  return Follower(plain, space, machine).Run(trace);
}

}  // namespace tenon::sketch
