// Branches and loops: bodies are made by the other rules' means, and use values from outside.
#include "fuzz/graph/rules.h"

namespace tenon::fuzz {

namespace {

// What bodies keep their values within.
double Least(Elem t) {
  return In(kStored, t)                   ? std::min(InfoOf(t).least, -InfoOf(t).most)
         : In(kUnsigned | Only(kBool), t) ? 0
                                          : -9;
}
double Most(Elem t) { return In(kStored, t) ? InfoOf(t).most : 9; }

// A few steps on a value of type t that leave its dims, from values inside or outside; its result
// is within -9 … 9 (0 … 9).
std::optional<Value> Body(Maker& m, const Value& from, Elem t) {
  Value x = from;
  for (size_t n = 1 + m.Below(2); n > 0; --n) {
    if (In(kStored, t)) return m.Add("Identity", {x.name}, x);
    if (t == kBool) {
      const Value y = m.Like(t, x.dims);
      Value z = x;
      if (auto made = m.Add(m.Of<std::string>({"And", "Or", "Xor"}), {x.name, y.name}, z))
        x = *made;
      continue;
    }
    const Value y = m.Like(t, x.dims, {.lo = In(kUnsigned, t) ? 0.0 : -4.0, .hi = 4});
    Value z = x;
    z.lo = std::min({x.lo, y.lo, 0.0}) + std::min(y.lo, 0.0), z.hi = x.hi + y.hi;
    z.error = x.error + y.error, z.whole = x.whole && y.whole;
    if (IsFloat(t) && !z.whole) z.error += InfoOf(t).unit * std::max(1.0, z.bound()) * 2;
    if (auto made = m.Add("Add", {x.name, y.name}, z)) x = *made;
  }
  if (t == kBool) return x;
  Value z = x;
  z.lo = Least(t), z.hi = 9;
  const Value low = m.Number(t, z.lo), high = m.Number(t, 9);
  const std::optional<Value> up = m.Add("Max", {x.name, low.name}, z);
  if (!up) return std::nullopt;
  return m.Add("Min", {up->name, high.name}, z);
}

std::vector<std::pair<std::string, Elem>> Outputs(const std::optional<Value>& v, Elem t) {
  std::vector<std::pair<std::string, Elem>> outputs;
  if (v) outputs.emplace_back(v->name, t);
  return outputs;
}

Value Joined(const Value& x, const Value& y) {
  Value z = x;
  z.lo = std::min(x.lo, y.lo), z.hi = std::max(x.hi, y.hi);
  z.error = std::max(x.error, y.error), z.whole = x.whole && y.whole;
  return z;
}

bool Branch(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.lo = Least(t), .hi = Most(t)});
  const Value c = m.Chance(2) ? m.Data(kBool, {}, 0, 1) : m.Take(kBool, {.max_rank = 0});
  m.Enter();
  const std::optional<Value> a = Body(m, x, t);
  std::string then = m.Leave("then_branch", Outputs(a, t));
  m.Enter();
  const std::optional<Value> b = Body(m, x, t);
  std::string otherwise = m.Leave("else_branch", Outputs(b, t));
  if (!a || !b) return false;
  return m.Add(rule.op, {c.name}, Joined(*a, *b), {std::move(then), std::move(otherwise)})
      .has_value();
}

// A number of times, which the call may tell; collects what it carries.
bool Repeat(Maker& m, const Rule& rule, Elem t) {
  const Value x = m.Take(t, {.max_rank = 2, .lo = Least(t), .hi = Most(t), .most = 100});
  if (IsFloat(t) && (!x.whole || x.error != 0)) return false;  // what is carried adds up its error
  const int64_t times = m.Between(0, 4);
  m.Enter();
  m.Formal(kI64, {}, 0, 4, true);
  const Value go = m.Formal(kBool, {}, 0, 1, true);
  const Value carried = m.Formal(t, x.dims, Least(t), t == kBool ? 1 : Most(t), true);
  const std::optional<Value> made = Body(m, carried, t);
  if (!made || !made->whole || made->error != 0) {
    m.Leave("body", {});
    return false;
  }
  const Value next = *made;
  const std::string same = m.NewName(), seen = m.NewName();
  m.Plain("Identity", {go.name}, same);
  m.Plain("Identity", {next.name}, seen);
  std::string body = m.Leave("body", {{same, kBool}, {next.name, t}, {seen, t}});
  Value last = Joined(x, next), all = next;
  last.name = all.name = "";
  all.dims.insert(all.dims.begin(), times);
  return m.AddAll(rule.op, {m.Scalar64(times).name, m.Number(kBool, 1).name, x.name}, {last, all},
                  {std::move(body)});
}

// A running value over the first axis.
bool Scan(Maker& m, const Rule& rule, Elem t) {
  const Value xs = m.Take(
      t,
      {.min_rank = 1, .max_rank = 3, .lo = Least(t), .hi = Most(t), .exact = true, .filled = true});
  const Dims row(xs.dims.begin() + 1, xs.dims.end());
  const Value start = m.Like(t, row, {.lo = Least(t), .hi = Most(t), .exact = true});
  m.Enter();
  const double least = Least(t), most = t == kBool ? 1 : Most(t);
  const Value state = m.Formal(t, row, least, most, true), x = m.Formal(t, row, least, most, true);
  const std::string sum = m.NewName();
  if (In(kStored, t))
    m.Plain("Identity", {x.name}, sum);
  else
    m.Plain(t == kBool ? "Xor" : "Max", {state.name, x.name}, sum);
  const std::string seen = m.NewName();
  m.Plain("Identity", {sum}, seen);
  std::string body = m.Leave("body", {{sum, t}, {seen, t}});
  Value last{"", t, row, least, most}, all{"", t, xs.dims, least, most};
  return m.AddAll(rule.op, {start.name, xs.name}, {last, all},
                  {std::move(body), Int("num_scan_inputs", 1)});
}

constexpr Rule kRules[] = {
    {"If", 21, kAny, Branch},
    {"Loop", 21, kAny, Repeat},
    {"Scan", 21, kAny, Scan},
};

}  // namespace

std::span<const Rule> ControlRules() { return kRules; }

}  // namespace tenon::fuzz
