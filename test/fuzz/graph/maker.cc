#include "fuzz/graph/maker.h"

#include <algorithm>
#include <cmath>

#include "interp/interp.h"

namespace tenon::fuzz {

namespace ot = onnx::test;

namespace {

constexpr int64_t kMostElements = 3000;
constexpr int64_t kSizes[] = {1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 31, 32, 33};
constexpr size_t kMostOutputs = 4;

}  // namespace

std::string BytesOf(Elem elem, const std::vector<double>& values) {
  const std::vector<uint8_t> bytes =
      InterpArg::Tensor(InfoOf(elem).dtype, {static_cast<int64_t>(values.size())}, values).bytes;
  const auto packed = static_cast<size_t>(InfoOf(elem).packed), bits = 8 / packed;
  if (packed == 1) return {bytes.begin(), bytes.end()};
  std::string out((bytes.size() + packed - 1) / packed, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    const unsigned own = bytes[i] & ((1u << bits) - 1);
    out[i / packed] = static_cast<char>(out[i / packed] | (own << (i % packed * bits)));
  }
  return out;
}

double AnyElement(std::mt19937_64& random, const Value& v) {
  const auto part = static_cast<double>(random() >> 11) / static_cast<double>(1ull << 53);
  if (!v.whole) return v.lo + part * (v.hi - v.lo);
  return std::min(v.hi, v.lo + std::floor(part * (v.hi - v.lo + 1)));
}

Size Count(const Dims& dims) {
  Size n = 1;
  for (const Size& d : dims) n = n * d;
  return n;
}
bool AllFixed(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](Size d) { return d.fixed(); });
}
Ints64 Fixed(const Dims& dims) {
  Ints64 out;
  for (const Size& d : dims) out.push_back(d.a);
  return out;
}

std::optional<Dims> Broadcast(const Dims& x, const Dims& y) {
  Dims out(std::max(x.size(), y.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const Size a = i < x.size() ? x[x.size() - 1 - i] : 1;
    const Size b = i < y.size() ? y[y.size() - 1 - i] : 1;
    const auto fit = [](int64_t m, int64_t n) { return m == n || m == 1 || n == 1; };
    if (!fit(a.a, b.a) || !fit(a.b, b.b)) return std::nullopt;
    out[out.size() - 1 - i] = Size::Of([](int64_t m, int64_t n) { return m == 1 ? n : m; }, a, b);
  }
  return out;
}

int64_t Maker::AnySize() {
  if (options_.empty && Chance(10)) return 0;
  return kSizes[Below(std::size(kSizes))];
}

Size Maker::AnyOpenSize() {
  if (!options_.open || Chance(2)) return AnySize();
  return {AnySize(), AnySize()};
}

Dims Maker::AnyDims(size_t min_rank, size_t max_rank, int64_t most) {
  for (int tries = 0;; ++tries) {
    Dims dims(min_rank + Below(max_rank - min_rank + 1));
    for (Size& d : dims) d = tries < 8 ? AnyOpenSize() : Size(Between(1, 3));
    if (Count(dims).most() <= most) return dims;
  }
}

// Equal sizes have one name, or each its own: both are what exporters write.
const std::string& Maker::NameOf(Size size) {
  for (const auto& [name, at] : sizes_) {
    if (at[0] == size.a && at[1] == size.b && !Chance(4)) return name;
  }
  return sizes_.emplace("s" + std::to_string(sizes_.size()), std::array{size.a, size.b})
      .first->first;
}

std::vector<ot::DimText> Maker::Names(const Dims& dims, bool input) {
  std::vector<ot::DimText> out;
  for (const Size& d : dims) {
    if (d.fixed())
      out.emplace_back(d.a);
    else
      out.emplace_back(input ? NameOf(d).c_str() : "");
  }
  return out;
}

void Maker::Know(const Value& v) { known_[v.name] = v; }

Value Maker::Input(Elem elem, const Dims& dims, double lo, double hi, bool whole) {
  Value v{"x" + std::to_string(serial_++), elem, dims, lo, hi, 0, whole};
  if (!whole) v.error = 0;
  frames_[0].model.Input(v.name, Names(dims, true), elem);
  // An input belongs to the outermost graph, whoever asks for it.
  values_.insert(values_.begin(), v);
  for (size_t f = 1; f < frames_.size(); ++f) ++frames_[f].first;
  Know(v);
  return v;
}

Value Maker::Constant(Elem elem, const Ints64& dims, double lo, double hi, bool whole) {
  Value v{NewName(), elem, {dims.begin(), dims.end()}, lo, hi, 0, whole};
  std::vector<double> data(static_cast<size_t>(Count(v.dims).a));
  for (double& x : data) x = AnyElement(random, v);
  frames_.back().model.Init(v.name, elem, dims, BytesOf(elem, data));
  Know(v);
  return v;
}

Value Maker::Data(Elem elem, const Dims& dims, double lo, double hi, bool whole) {
  if (AllFixed(dims) && Chance(2)) return Constant(elem, Fixed(dims), lo, hi, whole);
  return Input(elem, dims, lo, hi, whole);
}

Value Maker::List(const Ints64& values) {
  Value v{NewName(), kI64, {static_cast<int64_t>(values.size())}, -1e9, 1e9};
  frames_.back().model.Init64(v.name, values);
  Know(v);
  return v;
}

Value Maker::Scalar64(int64_t value) {
  Value v{NewName(), kI64, {}, static_cast<double>(value), static_cast<double>(value)};
  frames_.back().model.Init(v.name, kI64, {}, ot::Raw<int64_t>({value}));
  Know(v);
  return v;
}

Value Maker::Number(Elem elem, double value) {
  Value v{NewName(), elem, {}, value, value, 0, value == std::floor(value)};
  frames_.back().model.Init(v.name, elem, {}, BytesOf(elem, {value}));
  Know(v);
  return v;
}

Value Maker::Tensor(Elem elem, const Ints64& dims, const std::vector<double>& values) {
  Value v{NewName(), elem, {dims.begin(), dims.end()}, 0, 0, 0, true};
  for (double x : values) {
    v.lo = std::min(v.lo, x), v.hi = std::max(v.hi, x);
    v.whole = v.whole && x == std::floor(x);
  }
  frames_.back().model.Init(v.name, elem, dims, BytesOf(elem, values));
  Know(v);
  return v;
}

std::string Maker::Floats(const std::vector<float>& values) {
  const std::string name = NewName();
  frames_.back().model.Init(name, kF32, {static_cast<int64_t>(values.size())}, ot::Raw(values));
  return name;
}

bool Maker::Fits(const Value& v, const Need& need) const {
  if (v.rank() < need.min_rank || v.rank() > need.max_rank) return false;
  if (need.exact && (!v.whole || v.error != 0)) return false;
  const Size n = Count(v.dims);
  if (n.most() > need.most || (need.filled && n.least() == 0)) return false;
  return !need.fixed || AllFixed(v.dims);
}

// The value, or it between two numbers of its type.
Value Maker::Clipped(const Value& v, const Need& need) {
  if (v.lo >= need.lo && v.hi <= need.hi) return v;
  if (In(kStored, v.elem)) return Fresh(v.elem, v.dims, need);
  Value out = v;
  // Bool has one range; the narrow integers know Min and Max from version 12 on.
  for (const bool least : {true, false}) {
    const double end = least ? need.lo : need.hi;
    if (least ? out.lo >= end : out.hi <= end) continue;
    const Value limit = Number(v.elem, end);
    Value next = out;
    next.name = NewName();
    (least ? next.lo : next.hi) = end;
    if (next.hi < next.lo) (least ? next.hi : next.lo) = end;
    if (!limit.whole) next.whole = false;
    frames_.back().model.Node(least ? "Max" : "Min", {out.name, limit.name}, {next.name});
    used_.push_back(out.name);
    Know(next);
    out = next;
  }
  return out;
}

Value Maker::Fresh(Elem elem, const Dims& dims, const Need& need) {
  const ElemInfo& info = InfoOf(elem);
  double lo = std::max(info.least, need.lo);
  double hi = std::min(std::min(info.most, std::max(4.0, lo + 3)), need.hi);
  if (lo > hi) lo = hi;
  const bool whole = need.exact || !IsFloat(elem) || !Chance(3) || hi == lo;
  if (whole) lo = std::ceil(lo), hi = std::max(lo, std::floor(hi));
  const bool whole_fits = lo >= need.lo && hi <= need.hi;
  if (!whole_fits) {
    lo = need.lo, hi = need.hi;
    return Data(elem, dims, lo, hi, false);
  }
  return Data(elem, dims, lo, hi, whole);
}

Value Maker::Take(Elem elem, const Need& need) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].elem == elem && Fits(values_[i], need)) fitting.push_back(i);
  }
  if (!fitting.empty() && !Chance(4)) {
    // A late one more likely than an early one.
    const size_t at = std::max(Below(fitting.size()), Below(fitting.size()));
    const Value v = values_[fitting[at]];
    used_.push_back(v.name);
    return Clipped(v, need);
  }
  Dims dims;
  do {
    dims = AnyDims(need.min_rank, need.max_rank, need.most);
    for (Size& d : dims) {
      if (need.filled && d.least() == 0) d = {std::max<int64_t>(d.a, 1), std::max<int64_t>(d.b, 1)};
      if (need.fixed) d = d.a;
    }
  } while (Count(dims).most() > need.most);
  return Fresh(elem, dims, need);
}

Value Maker::Like(Elem elem, const Dims& dims, const Need& need) {
  for (size_t i = values_.size(); i-- > 0;) {
    const Value v = values_[i];
    if (v.elem != elem || v.dims != dims || Chance(3)) continue;
    if (need.exact && (!v.whole || v.error != 0)) continue;
    used_.push_back(v.name);
    return Clipped(v, need);
  }
  return Fresh(elem, dims, need);
}

Value Maker::Against(const Value& x, Elem elem, const Need& need) {
  for (int tries = 0; tries < 3; ++tries) {
    const Value y = values_.empty() ? x : values_[Below(values_.size())];
    const std::optional<Dims> dims = Broadcast(x.dims, y.dims);
    if (y.elem != elem || !dims || Count(*dims).most() > kMostElements) continue;
    if (need.exact && (!y.whole || y.error != 0)) continue;
    used_.push_back(y.name);
    return Clipped(y, need);
  }
  Dims dims(x.dims.begin() + static_cast<long>(Below(x.rank() + 1)), x.dims.end());
  for (Size& d : dims) d = Chance(3) ? Size(1) : d;
  return Fresh(elem, dims, need);
}

bool Maker::AddAll(const std::string& op, const std::vector<std::string>& inputs,
                   std::vector<Value> results, const std::vector<std::string>& attributes,
                   const std::string& domain) {
  std::vector<std::string> names;
  for (Value& v : results) {
    const ElemInfo& info = InfoOf(v.elem);
    if (Count(v.dims).most() > kMostElements || v.rank() > 6) return false;
    // Of a type of few digits a function's result has no better ones.
    const double part = std::max(0.075, 40 * info.unit);
    const double least = std::min(In(kSigned, v.elem) ? -info.most - 1 : -info.most, info.least);
    if (v.lo < least || v.hi > info.most || v.error > part * std::max(1.0, v.bound())) return false;
    // Beyond what is exact, the order of additions counts.
    if (v.bound() > info.exact) v.error = std::max(v.error, info.unit * v.bound() * 4);
    if (v.name.empty()) v.name = NewName();
    names.push_back(v.name);
  }
  PlainAll(op, inputs, names, attributes, domain);
  for (const Value& v : results) {
    values_.push_back(v);
    Know(v);
    if (!inside()) {
      made_.push_back(v.name);
      if (options_.infos)
        frames_[0].model.Field(13,
                               ot::ValueInfo(v.name, ot::TensorType(v.elem, Names(v.dims, false))));
    }
  }
  return true;
}

std::optional<Value> Maker::Add(const std::string& op, const std::vector<std::string>& inputs,
                                Value result, const std::vector<std::string>& attributes,
                                const std::string& domain) {
  result.name = NewName();
  if (!AddAll(op, inputs, {result}, attributes, domain)) return std::nullopt;
  return result;
}

void Maker::PlainAll(const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<std::string>& attributes, const std::string& domain) {
  frames_.back().model.Node(op, inputs, outputs, attributes, domain);
  if (!domain.empty()) domains_.insert(domain);
  for (const std::string& name : inputs) used_.push_back(name);
}

void Maker::Enter() {
  frames_.emplace_back();
  frames_.back().first = values_.size();
}

Value Maker::Formal(Elem elem, const Dims& dims, double lo, double hi, bool whole) {
  Value v{NewName(), elem, dims, lo, hi, 0, whole};
  frames_.back().model.Input(v.name, Names(dims, false), elem);
  values_.push_back(v);
  Know(v);
  return v;
}

std::string Maker::FormalOfType(Elem elem) {
  const std::string name = NewName();
  frames_.back().model.Field(11, ot::ValueInfo(name, ot::TensorType(elem, {}, false)));
  return name;
}

std::string Maker::Leave(const std::string& attribute,
                         const std::vector<std::pair<std::string, Elem>>& outputs) {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  for (const auto& [name, elem] : outputs) frame.model.Output(name, elem);
  values_.resize(frame.first);
  return ot::GraphAttr(attribute, frame.model);
}

Network Maker::Finish(std::map<std::pair<std::string, Elem>, int> counts) {
  Network network;
  ot::Model& model = frames_[0].model;
  model.opset = options_.opset;
  model.ir_version = options_.opset >= 24   ? 13
                     : options_.opset >= 23 ? 11
                     : options_.opset >= 21 ? 10
                                            : 8;
  size_t outputs = 0;
  for (size_t i = made_.size(); i-- > 0 && outputs < kMostOutputs;) {
    const bool used = std::find(used_.begin(), used_.end(), made_[i]) != used_.end();
    if (used && !Chance(6)) continue;
    model.Output(made_[i], known_.at(made_[i]).elem);
    ++outputs;
  }
  for (const std::string& domain : domains_) {
    model.ModelField(8, ot::Message([&](ot::pbf_writer& o) {
                       o.add_string(1, domain);
                       o.add_int64(2, domain == "ai.onnx.ml" ? 5 : 1);
                     }));
  }
  network.model = model.Bytes();
  network.values = std::move(known_);
  network.sizes = std::move(sizes_);
  network.counts = std::move(counts);
  return network;
}

}  // namespace tenon::fuzz
