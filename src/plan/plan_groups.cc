// Two questions, one after the other. First: which feature maps lie in channel blocks? Each of them
// is a variable (0: row-major, 1: blocked), each group a table of its least cost for every layout
// of the values at its border, where a value that an algorithm wants otherwise costs a relayout.
// The assignment with the least sum is found by eliminating variables. Second: given that, which
// algorithm and which point does each group take? Its cheapest. For a small network on a machine
// with vectors of eight:
//
//   %1 = conv(%0 image, %w) ; %2 = relu(%1) ; %3 = conv(%2, %v) ; return %3
//
// becomes
//
//   %4 "image.arranged" … with a border = reshape(%0)
//   %5 "w.arranged" layout (…, d1, …, d0 % 16 …) = reshape(%w)
//   %2 layout (d0, d1 / 8, d2 + 1, d3 + 1, d1 % 8) = fused(%4, %5) plan "direct_conv" {nv: 2, …}
//   %3 layout (d0, d1 / 8, d2, d3, d1 % 8) = conv(%2, …) plan "direct_conv" …
//   %6 "out.arranged" = reshape(%3)
#include "plan/plan_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "cost/estimate.h"
#include "graph/dims.h"
#include "graph/edit.h"
#include "graph/storage_desc.h"
#include "graph/stored_view.h"
#include "ops/algorithm.h"
#include "ops/conv_geometry.h"
#include "ops/fusing.h"
#include "ops/kernel.h"
#include "plan/minimise.h"
#include "plan/prices.h"
#include "plan/region.h"
#include "plan/relayout.h"
#include "plan/sizes.h"
#include "support/check.h"
#include "support/stop.h"

namespace tenon::graph {

namespace {

using ops::Algorithm;
using ops::Point;
using ops::Site;
using ops::Want;

// One way to compute a group: an algorithm with given choices of layout, at the cheapest choices of
// schedule.
struct Option {
  const Algorithm* algorithm;
  Point point;
  double seconds = 0;
  std::vector<Want> wants;             // values of the region
  std::vector<Variant> variants = {};  // for parts of the range of open sizes
};

// Plans one graph. Invariants: values_ that can be blocked have a variable; `blocked_` says what
// was chosen for them; desc_ is the storage of every outer value once halos are known.
class Planner {
 public:
  Planner(const Graph& g, const GraphPassContext& context)
      : g_(g),
        machine_(*context.machine),
        team_(TeamOf(machine_)),
        prices_(context.prices),
        lanes_(machine_.Lanes(DType::Float(32))),
        relayouts_(&g_, machine_, context.prices) {}

  Graph Run() {
    CollectGroups();
    CollectVariables();
    ChooseBlocked();
    std::vector<Option> chosen;
    std::map<std::string, plan::Schedules> known;
    for (const Group& group : groups_) {
      chosen.push_back(Cheapest(group));
      AddVariants(group, &known, &chosen.back());
    }
    PlaceValues(chosen);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!IsStoredView(g_, g_.node(groups_[i].node))) Apply(groups_[i], chosen[i]);
    }
    PassInPlain();
    GiveOutPlain();
    TopologicalSort(g_);
    Compact(g_);
    return std::move(g_);
  }

 private:
  bool IsConstant(ValueId v) const { return relayouts_.IsConstant(v); }
  // Calls may have several workers where the target does not say how many: what is not worth
  // sharing out at some sizes shows only so.
  static Machine TeamOf(Machine machine) {
    if (machine.target->cores() == 0) machine.workers = std::max<int64_t>(machine.workers, 2);
    return machine;
  }
  // Control flow and functions of users know no layouts.
  static bool IsPlain(const Node& n) { return IsControl(n.op) || CallsFunction(n); }
  // Nothing planned here stores it: an input, a constant, a result of such a node.
  bool IsEnd(ValueId v) const {
    const NodeId producer = g_.value(v).producer;
    return producer == kNoNode || IsPlain(g_.node(producer));
  }
  bool IsGraphOutput(ValueId v) const {
    return std::find(g_.outputs.begin(), g_.outputs.end(), v) != g_.outputs.end();
  }

  void CollectGroups() {
    for (NodeId n : KernelNodes(g_)) {
      if (!g_.node(n).plan) groups_.push_back(GroupOf(g_, n));
    }
  }

  // At typical sizes.
  int64_t BytesOf(const TensorType& type) const {
    int64_t bytes = type.dtype.Bytes();
    for (const Expr& d : type.dims) bytes *= TypicalSize(g_, d);
    return bytes;
  }

  // ---- Which values are in channel blocks ----

  // Feature maps: four axes, or three of a convolution's result; numbers of 32 bits at most,
  // several channels, computed here.
  void CollectVariables() {
    variable_.assign(g_.values.size(), -1);
    for (const Group& group : groups_) {
      const bool is_conv = group.anchor != graph::kNoNode &&
                           group.region.node(group.anchor).op == graph::OpKind::kConv;
      for (ValueId v : g_.node(group.node).outputs) {
        const TensorType& type = g_.type(v);
        const bool numbers = type.dtype.IsFloat() || type.dtype.IsInt();
        const bool is_map = type.rank() == 4 || (is_conv && type.rank() == 3);
        if (type.layout || !is_map || !numbers || type.dtype.bits > 32) continue;
        if (AsInt(type.dims[1]).value_or(0) > 1 && lanes_ > 1) {
          variable_[static_cast<size_t>(v)] = num_variables_++;
        }
      }
    }
    blocked_.assign(static_cast<size_t>(num_variables_), 0);
  }

  // Of laying out a value anew, borders aside.
  double RelayoutSeconds(ValueId v, bool from_blocks) const {
    const auto [known, fresh] = relayout_seconds_.emplace(std::pair(v, from_blocks), 0.0);
    if (!fresh) return known->second;
    const TensorType& type = g_.type(v);
    Layout blocks;
    if (VariableOf(v) >= 0) {
      blocks = MakeLayout(ops::FeatureOrder(machine_, type.rank(), BlockOf(v)), type.dims);
    } else if (type.rank() == 4) {
      blocks = MakeLayout(ops::FeatureOrder(machine_, type.rank(), lanes_), type.dims);
    }
    return known->second = from_blocks ? relayouts_.Seconds(v, blocks, nullptr)
                                       : relayouts_.Seconds(v, nullptr, blocks);
  }
  int VariableOf(ValueId v) const { return v == kNoValue ? -1 : variable_[static_cast<size_t>(v)]; }
  bool IsBlocked(ValueId v) const {
    const int var = VariableOf(v);
    return var >= 0 && blocked_[static_cast<size_t>(var)] != 0;
  }
  // Weights that are wanted in blocks say nothing of feature maps.
  bool IsFeatureOrder(const Group& group, const Want& w) const {
    const ValueId outer = group.OuterOf(g_, w.value);
    return IsBlockedDesc(w.desc) && (outer == kNoValue || !IsConstant(outer));
  }
  static bool IsBlockedDesc(const StorageDesc& d) { return !d.blocks.empty() || !d.order.empty(); }

  double Price(const Graph& region, NodeId anchor, const Algorithm& algorithm, const Point& point,
               const Machine& machine) const {
    return plan::PriceOf(prices_, algorithm, {region, anchor, machine}, point);
  }

  plan::Price PriceOn(const Machine& machine, const Group& group, const Algorithm& a) const {
    return [&](const plan::SizedRegion& at, const Point& point) {
      return Price(at.region, group.anchor, a, point, machine);
    };
  }

  // Where measurements are asked, the sizes at which there are some.
  std::optional<std::vector<plan::SizedRegion>> KnownSizes(const Group& group) const {
    if (!prices_) return std::nullopt;
    return plan::AtWeightedSizes(group.region, prices_->Shapes());
  }

  // Of values that lie in a way which somebody gave them, nothing can be wanted.
  static bool HasLayouts(const Graph& region) {
    return std::any_of(region.values.begin(), region.values.end(),
                       [](const Value& v) { return v.type.tensor().layout != nullptr; });
  }

  // For every algorithm that applies, and every way it can lie in memory, the cheapest point.
  std::vector<Option> OptionsOf(const Group& group) const {
    std::vector<const Algorithm*> algorithms;
    const Site site{group.region, group.anchor, machine_};
    for (const Algorithm* a : ops::Algorithms()) {
      if (!ops::Applies(*a, site)) continue;
      if (HasLayouts(group.region) && a != ops::Algorithms().back()) continue;
      algorithms.push_back(a);
    }
    if (const auto sizes = KnownSizes(group)) return MeasuredOptions(group, algorithms, *sizes);
    std::vector<Option> options;
    for (const Algorithm* a : algorithms) {
      PollStop();
      // By what lies how, weights aside.
      std::map<std::string, std::pair<size_t, plan::Rank>> seen;
      for (const plan::RankedPoint& p :
           plan::RankPoints(*a, site, PriceOn(machine_, group, *a), PriceOn(team_, group, *a))) {
        auto wants = ops::WantsOf(*a, site, p.point);
        if (!wants) continue;
        Option option{a, p.point, p.seconds, std::move(*wants)};
        auto [it, is_new] =
            seen.emplace(DataLayout(group, option), std::pair(options.size(), p.rank));
        if (is_new) {
          options.push_back(std::move(option));
        } else if (p.rank.IsBetterThan(it->second.second)) {
          options[it->second.first] = std::move(option);
          it->second.second = p.rank;
        }
      }
    }
    return options;
  }

  // The same by measurements. Algorithms are held against the best of all of them at each size, and
  // an option's seconds are those of the heaviest size as far as it is slower than that at all.
  std::vector<Option> MeasuredOptions(const Group& group,
                                      const std::vector<const Algorithm*>& algorithms,
                                      const std::vector<plan::SizedRegion>& sizes) const {
    const Site site{group.region, group.anchor, machine_};
    // Prices of open sizes are those of a team (AddVariants).
    const Machine& machine = plan::OpenDims(group.region).empty() ? machine_ : team_;
    std::vector<double> least(sizes.size(), std::numeric_limits<double>::infinity());
    double heaviest = least.back();
    std::vector<std::vector<plan::TimedPoint>> points;
    for (const Algorithm* a : algorithms) {
      PollStop();
      points.push_back(plan::PointsAt(*a, site, PriceOn(machine, group, *a), sizes));
      for (const plan::TimedPoint& p : points.back()) {
        for (size_t i = 0; i < sizes.size(); ++i) least[i] = std::min(least[i], p.seconds[i]);
        heaviest = std::min(heaviest,
                            machine.workers == machine_.workers
                                ? p.seconds.back()
                                : Price(sizes.back().region, group.anchor, *a, p.point, machine_));
      }
    }
    std::vector<Option> options;
    for (size_t k = 0; k < algorithms.size(); ++k) {
      const Algorithm* a = algorithms[k];
      PollStop();
      std::map<std::string, size_t> seen;
      for (plan::SizedPlan& p : plan::PlansAt(*a, site, points[k], sizes, least)) {
        auto wants = ops::WantsOf(*a, site, p.point);
        if (!wants) continue;
        Option option{a, p.point, p.cost * heaviest, std::move(*wants), std::move(p.variants)};
        const auto [it, is_new] = seen.emplace(DataLayout(group, option), options.size());
        if (is_new) {
          options.push_back(std::move(option));
        } else if (option.seconds < options[it->second].seconds * (1 - 1e-9)) {
          options[it->second] = std::move(option);
        }
      }
    }
    return options;
  }

  // Everything that options depend on, and the values that they name.
  std::string KeyOf(const Group& group) const {
    const Graph& r = group.region;
    std::string key = RegionKey(r) + (HasLayouts(r) ? "laid out" : "");
    for (ValueId v : group.operands) key += IsConstant(v) ? " const" : " value";
    return key + fmt::format(" {} {}", fmt::join(r.inputs, ","), fmt::join(r.outputs, ","));
  }

  std::string DataLayout(const Group& group, const Option& option) const {
    std::string key;
    for (const Want& w : option.wants) {
      const ValueId outer = group.OuterOf(g_, w.value);
      if (outer != kNoValue && !IsConstant(outer)) key += IsBlockedDesc(w.desc) ? 'b' : 'p';
    }
    return key;
  }

  // What an option costs beyond its own time where the values at the border lie so.
  double BorderSeconds(const Group& group, const Option& option,
                       const std::function<bool(ValueId)>& blocked) const {
    constexpr double kNever = 1e30;
    const std::vector<ValueId>& results = g_.node(group.node).outputs;
    double seconds = 0;
    for (const Want& w : option.wants) {
      const ValueId outer = group.OuterOf(g_, w.value);
      if (outer == kNoValue || IsConstant(outer)) continue;
      if (std::find(results.begin(), results.end(), outer) != results.end()) {
        if (IsBlockedDesc(w.desc) != blocked(outer)) return kNever;
        continue;
      }
      const bool border = !w.desc.size.empty() && IsEnd(outer);
      if (IsBlockedDesc(w.desc) != blocked(outer)) {
        seconds += RelayoutSeconds(outer, blocked(outer));
      } else if (border) {
        seconds += relayouts_.Seconds(outer, nullptr, nullptr);
      }
    }
    if (option.wants.empty()) seconds += Gathers(group, blocked);
    return seconds;
  }

  // An operand of a group that turns what is row-major into what has its channels last: as it lies,
  // it lies like a result that does.
  bool IsTurned(ValueId v, ValueId result) const {
    const std::vector<int> order =
        ops::FeatureOrder(machine_, g_.type(result).rank(), lanes_).order;
    const std::vector<Expr>&from = g_.type(v).dims, &to = g_.type(result).dims;
    if (order.empty() || from.size() != order.size() || to.size() != order.size()) return false;
    if (std::equal(from.begin(), from.end(), to.begin(), ProveEqual)) return false;
    for (size_t i = 0; i < order.size(); ++i) {
      if (!ProveEqual(from[i], to[static_cast<size_t>(order[i])])) return false;
    }
    return true;
  }

  // The definition reads along its result's lanes: operands that lie otherwise come element by
  // element.
  double Gathers(const Group& group, const std::function<bool(ValueId)>& blocked) const {
    const std::vector<ValueId>& outputs = g_.node(group.node).outputs;
    const bool out = !outputs.empty() && blocked(outputs[0]);
    WorkDescription work;
    for (ValueId v : group.operands) {
      if (IsConstant(v) || VariableOf(v) < 0) continue;
      if ((blocked(v) != IsTurned(v, outputs[0])) == out) continue;
      const int64_t elements = BytesOf(g_.type(v)) / g_.type(v).dtype.Bytes();
      work.scalar_ops += static_cast<double>(elements);
    }
    return work.scalar_ops > 0 ? EstimateSeconds(work, machine_) : 0;
  }

  // Whether the result of a node is its operand's memory, where these are in blocks or not.
  bool IsView(const Node& node, bool from, bool to) const {
    if (!from && !to) return IsStoredView(g_, node);
    if (node.op != OpKind::kTranspose || from == to) return false;
    const StorageDesc order = ops::FeatureOrder(machine_, g_.type(node.inputs[0]).rank(), lanes_);
    return order.blocks.empty() &&
           (from ? OrderFor(node) == order : IsTransposeTo(node, order.order));
  }

  // A view between row-major values is their memory and no kernel.
  double Seconds(const Group& group, const Option& option,
                 const std::function<bool(ValueId)>& blocked) const {
    const Node& node = g_.node(group.node);
    const bool is_view = !node.inputs.empty() && !node.outputs.empty() &&
                         IsView(node, blocked(node.inputs[0]), blocked(node.outputs[0]));
    return is_view ? 0 : option.seconds + BorderSeconds(group, option, blocked);
  }

  void ChooseBlocked() {
    // Networks repeat themselves: equal groups have equal options.
    std::map<std::string, size_t> known;
    for (const Group& group : groups_) {
      auto [it, is_new] = known.emplace(KeyOf(group), options_.size());
      options_.push_back(is_new ? OptionsOf(group) : options_[it->second]);
    }
    if (num_variables_ == 0) return;
    const std::vector<uint8_t> guess = GuessBlocked();
    std::vector<plan::Factor> factors;
    for (size_t i = 0; i < groups_.size(); ++i) factors.push_back(FactorOf(i, guess));
    for (size_t v = 0; v < variable_.size(); ++v) {
      if (variable_[v] < 0 || !IsReadPlain(static_cast<ValueId>(v))) continue;
      factors.push_back({{variable_[v]}, {0, RelayoutSeconds(static_cast<ValueId>(v), true)}});
    }
    blocked_ = plan::Minimise(num_variables_, std::move(factors), guess);
  }

  // Given out, or read by control flow.
  bool IsReadPlain(ValueId v) const {
    return IsGraphOutput(v) || std::any_of(g_.nodes.begin(), g_.nodes.end(), [&](const Node& n) {
             return IsControl(n.op) &&
                    std::find(n.inputs.begin(), n.inputs.end(), v) != n.inputs.end();
           });
  }

  // Blocks wherever an algorithm wants its results so, and where an operand is blocked.
  std::vector<uint8_t> GuessBlocked() const {
    std::vector<uint8_t> guess(static_cast<size_t>(num_variables_), 0);
    for (size_t i = 0; i < groups_.size(); ++i) {
      const Group& group = groups_[i];
      const Option& best =
          *std::min_element(options_[i].begin(), options_[i].end(),
                            [](const Option& a, const Option& b) { return a.seconds < b.seconds; });
      bool blocked = std::any_of(best.wants.begin(), best.wants.end(),
                                 [&](const Want& w) { return IsFeatureOrder(group, w); });
      if (best.wants.empty()) {
        blocked = std::any_of(group.operands.begin(), group.operands.end(), [&](ValueId v) {
          return VariableOf(v) >= 0 && guess[static_cast<size_t>(VariableOf(v))];
        });
      }
      for (ValueId v : g_.node(group.node).outputs) {
        if (VariableOf(v) >= 0) guess[static_cast<size_t>(VariableOf(v))] = blocked;
      }
    }
    return guess;
  }

  // A group's least cost by the layouts at its border. Of a group with very many of them the later
  // ones keep the guess.
  plan::Factor FactorOf(size_t i, const std::vector<uint8_t>& guess) const {
    constexpr size_t kMostVariables = 8;
    const Group& group = groups_[i];
    plan::Factor factor;
    auto add = [&](ValueId v) {
      const int var = VariableOf(v);
      if (var < 0 || factor.vars.size() == kMostVariables) return;
      if (std::find(factor.vars.begin(), factor.vars.end(), var) == factor.vars.end())
        factor.vars.push_back(var);
    };
    for (ValueId v : g_.node(group.node).outputs) add(v);
    for (ValueId v : group.operands) add(v);
    for (size_t bits = 0; bits < size_t{1} << factor.vars.size(); ++bits) {
      auto blocked = [&](ValueId v) {
        const int var = VariableOf(v);
        if (var < 0) return false;
        const auto at = std::find(factor.vars.begin(), factor.vars.end(), var);
        if (at == factor.vars.end()) return guess[static_cast<size_t>(var)] != 0;
        return ((bits >> (at - factor.vars.begin())) & 1) != 0;
      };
      double least = -1;
      for (const Option& o : options_[i]) {
        const double seconds = Seconds(group, o, blocked);
        if (least < 0 || seconds < least) least = seconds;
      }
      factor.table.push_back(least);
    }
    return factor;
  }

  // The cheapest option with the layouts that were chosen.
  Option Cheapest(const Group& group) const {
    const size_t i = static_cast<size_t>(&group - groups_.data());
    const Option* best = nullptr;
    double least = 0;
    for (const Option& o : options_[i]) {
      const double seconds = Seconds(group, o, [&](ValueId v) { return IsBlocked(v); });
      if (best && seconds >= least * (1 - 1e-9)) continue;
      best = &o;
      least = seconds;
    }
    TN_CHECK(best, "the definition always applies");
    return *best;
  }

  // `known`: those of equal groups that came before.
  void AddVariants(const Group& group, std::map<std::string, plan::Schedules>* known,
                   Option* option) const {
    if (prices_) return;  // they came with it
    const Algorithm& a = *option->algorithm;
    auto [it, is_new] =
        known->emplace(KeyOf(group) + DataLayout(group, *option) + a.name, plan::Schedules());
    if (is_new)
      it->second = SchedulesFor(a, {group.region, group.anchor, machine_}, option->point,
                                PriceOn(team_, group, a));
    option->point = it->second.point;
    option->variants = it->second.variants;
  }

  // ---- Where everything lies ----

  StorageDesc Chosen(ValueId v) const {
    return IsBlocked(v) ? ops::FeatureOrder(machine_, g_.type(v).rank(), BlockOf(v))
                        : StorageDesc();
  }
  // What has an anchor is stored in whole vectors.
  int64_t BlockOf(ValueId v) const {
    const Node& made = g_.node(g_.value(v).producer);
    const bool by_elements = made.op == OpKind::kFused ? !HasAnchor(*made.regions[0])
                                                       : ops::HasElementDefinition(made.op);
    return by_elements ? ops::ChannelBlock(g_.type(v), machine_) : lanes_;
  }
  static bool HasAnchor(const Graph& region) { return ops::AnchorOf(region) != kNoNode; }

  // Borders: the largest that any reader wants of a value which lies as it wants otherwise. A
  // border holds what the first of them wants; others that want something else in theirs get a
  // copy.
  void PlaceValues(const std::vector<Option>& chosen) {
    desc_.resize(g_.values.size());
    for (size_t v = 0; v < desc_.size(); ++v) desc_[v] = Chosen(static_cast<ValueId>(v));
    for (size_t i = 0; i < groups_.size(); ++i) {
      for (const Want& w : chosen[i].wants) {
        const ValueId outer = groups_[i].OuterOf(g_, w.value);
        if (outer == kNoValue || IsConstant(outer) || w.desc.size.empty()) continue;
        auto [it, is_new] = borders_.emplace(outer, StorageDesc());
        if (is_new) it->second.padding = w.desc.padding;
        if (it->second.padding == w.desc.padding)
          AddBorder(w.desc, g_.type(outer).dims, &it->second);
      }
    }
    for (auto& [v, border] : borders_) {
      StorageDesc& d = desc_[static_cast<size_t>(v)];
      // What callers see has none, nor what control flow gives.
      if (IsEnd(v) || IsGraphOutput(v)) continue;
      d.begin = border.begin;
      d.size = border.size;
      d.padding = border.padding;
    }
    StoreAsTransposed(chosen);
    for (size_t v = 0; v < desc_.size(); ++v) {
      if (!g_.values[v].type.IsTensor()) continue;
      TensorType& type = g_.values[v].type.tensor();
      if (type.layout || IsEnd(static_cast<ValueId>(v))) continue;
      if (!IsConstant(static_cast<ValueId>(v))) type.layout = MakeLayout(desc_[v], type.dims);
    }
  }

  // What is computed here by rows, and read by one transpose of rows alone, is stored in the order
  // that this makes row-major.
  void StoreAsTransposed(const std::vector<Option>& chosen) {
    const std::vector<int32_t> uses = UseCounts(g_);
    std::map<ValueId, const Node*> transpose_of;
    for (const Group& group : groups_) {
      const Node& node = g_.node(group.node);
      if (node.op == OpKind::kTranspose) transpose_of[node.inputs[0]] = &node;
    }
    for (size_t i = 0; i < groups_.size(); ++i) {
      for (ValueId from : g_.node(groups_[i].node).outputs) {
        auto it = transpose_of.find(from);
        if (it == transpose_of.end() || uses[static_cast<size_t>(from)] != 1) continue;
        const ValueId to = it->second->outputs[0];
        StorageDesc& desc = desc_[static_cast<size_t>(from)];
        const bool plain = !g_.type(from).layout && !g_.type(to).layout && desc.IsPlain() &&
                           desc_[static_cast<size_t>(to)].IsPlain();
        const StorageDesc order = OrderFor(*it->second);
        // Where nothing is wanted, elements are stored one by one.
        Want want{from, {}, true};
        for (const Want& w : chosen[i].wants) {
          if (groups_[i].OuterOf(g_, w.value) == from) want = w;
        }
        if (plain && want.IsMetBy(order, g_.type(from).dims)) desc = order;
      }
    }
  }

  static void AddBorder(const StorageDesc& want, const std::vector<Expr>& dims, StorageDesc* d) {
    if (d->size.empty()) {
      d->begin.assign(dims.size(), 0);
      d->size = dims;
    }
    for (size_t a = 0; a < dims.size(); ++a) {
      auto behind = [&](const StorageDesc& s) { return DimSub(s.size[a], IndexConst(s.begin[a])); };
      const Expr after = DimMax(behind(*d), behind(want));
      d->begin[a] = std::max(d->begin[a], want.begin[a]);
      d->size[a] = DimAdd(IndexConst(d->begin[a]), after);
    }
  }

  // Gives the node its plan, and operands that lie as it wants.
  void Apply(const Group& group, const Option& option) {
    std::vector<ValueId> operands = group.operands;
    for (const Want& w : option.wants) {
      for (size_t i = 0; i < operands.size(); ++i) {
        if (group.region.inputs[i] != w.value) continue;
        // Several that want borders share one copy.
        auto it = borders_.find(operands[i]);
        operands[i] =
            relayouts_.Meeting(operands[i], w, it == borders_.end() ? nullptr : &it->second);
      }
    }
    const Site site{group.region, group.anchor, machine_};
    const Space space = option.algorithm->space(site);
    Plan plan = ops::MakePlan(*option.algorithm, space, option.point, option.seconds);
    plan.variants.insert(plan.variants.begin(), option.variants.begin(), option.variants.end());
    ApplyPlan(&g_, group, operands, std::move(plan));
  }

  // What such nodes read is row-major, and has no border.
  void PassInPlain() {
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      if (!IsPlain(g_.nodes[n])) continue;
      for (size_t i = 0; i < g_.nodes[n].inputs.size(); ++i) {
        const ValueId v = g_.nodes[n].inputs[i];
        if (!g_.IsTensor(v) || !g_.type(v).layout) continue;
        const ValueId plain = relayouts_.Of(v, nullptr);
        g_.nodes[n].inputs[i] = plain;
      }
    }
  }

  // Graph outputs are row-major, or lie as somebody said; the rest of the network reads the value
  // itself.
  void GiveOutPlain() {
    for (size_t k = 0; k < g_.outputs.size(); ++k) {
      const ValueId v = g_.outputs[k];
      if (!g_.IsTensor(v)) continue;
      if (IsBlocked(v)) g_.outputs[k] = relayouts_.Of(v, nullptr);
    }
  }

  using Space = ops::Space;

  Graph g_;
  const Machine& machine_;
  const Machine team_;
  const plan::Prices* prices_;
  const int64_t lanes_;
  Relayouts relayouts_;
  std::vector<Group> groups_;
  std::vector<std::vector<Option>> options_;  // by group
  std::vector<int> variable_;                 // by value; -1: row-major
  int num_variables_ = 0;
  // By value, and whether it lies in channel blocks.
  mutable std::map<std::pair<ValueId, bool>, double> relayout_seconds_;
  std::vector<uint8_t> blocked_;  // by variable
  std::vector<StorageDesc> desc_;
  std::map<ValueId, StorageDesc> borders_;  // begin, size and padding alone
};

}  // namespace

Graph PlanGroups(const Graph& g, const GraphPassContext& context) {
  return Planner(g, context).Run();
}

}  // namespace tenon::graph
