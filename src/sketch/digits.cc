#include "sketch/digits.h"

namespace tenon::sketch {

using Op = Quantities::Op;

void Digits::AddCopy(const std::string& name, const CountedLoop& of,
                     std::map<size_t, size_t>* copies) {
  CountedLoop copy{{}, of.extent};
  for (const size_t digit : of.digits) {
    copy.digits.push_back(New(digits_[digit]));
    (*copies)[digit] = copy.digits.back();
  }
  loops_[name] = std::move(copy);
}

const CountedLoop* Digits::Find(const std::string& loop) const {
  const auto at = loops_.find(loop);
  return at == loops_.end() ? nullptr : &at->second;
}

bool Digits::Split(const std::string& name, const std::vector<size_t>& extents,
                   const std::vector<std::string>& names) {
  const auto at = loops_.find(name);
  if (at == loops_.end() || at->second.IsPart()) return false;
  const CountedLoop loop = at->second;
  loops_.erase(at);
  if (loop.digits.size() == 1) {
    SplitDigit(loop.digits[0], extents, names);
  } else {
    SplitRow(loop.digits, extents, names);
  }
  return true;
}

void Digits::SplitDigit(size_t digit, const std::vector<size_t>& extents,
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
      for (const auto& [part, times] : counted) AddTo(&form, part, q_.Product(multiple, times));
    }
  }
}

void Digits::SplitRow(const std::vector<size_t>& digits, const std::vector<size_t>& extents,
                      const std::vector<std::string>& names) {
  size_t inner = q_.Constant(1);
  for (size_t i = extents.size(); i-- > 0;) {
    loops_[names[i]] = {digits, extents[i], inner};
    inner = q_.Product(inner, extents[i]);
  }
}

bool Digits::Fuse(const std::vector<std::string>& loops, const std::string& name) {
  CountedLoop fused{{}, q_.Constant(1)};
  for (const std::string& each : loops) {
    const auto loop = loops_.find(each);
    if (loop == loops_.end() || loop->second.IsPart()) return false;
    const std::vector<size_t>& digits = loop->second.digits;
    fused.digits.insert(fused.digits.end(), digits.begin(), digits.end());
    fused.extent = q_.Product(fused.extent, loop->second.extent);
    loops_.erase(loop);
  }
  loops_[name] = std::move(fused);
  return true;
}

Form Digits::Counted(const std::vector<size_t>& digits) {
  Form out;
  size_t inner = q_.Constant(1);
  for (size_t i = digits.size(); i-- > 0;) {
    AddTo(&out, digits[i], inner);
    inner = q_.Product(inner, digits_[digits[i]]);
  }
  return out;
}

void Digits::AddTo(Form* form, size_t digit, size_t multiple) {
  const auto [at, fresh] = form->emplace(digit, multiple);
  if (!fresh) at->second = q_.Of(Op::kAdd, at->second, multiple);
}

size_t Digits::Reach(const Form& form, const std::set<size_t>& outside) {
  size_t sum = q_.Constant(0);
  for (const auto& [digit, multiple] : form) {
    if (outside.contains(digit)) continue;
    const size_t turns = q_.Of(Op::kSub, digits_[digit], q_.Constant(1));
    const size_t size = q_[multiple] < 0 ? q_.Of(Op::kSub, q_.Constant(0), multiple) : multiple;
    sum = q_.Of(Op::kAdd, sum, q_.Product(turns, size));
  }
  return sum;
}

}  // namespace tenon::sketch
