#include "plan/minimise.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "support/check.h"

namespace tenon::plan {

namespace {

// Keeps the factors that are left, and how each eliminated variable follows from those that were
// left when it was. Invariant: no factor has a variable that is eliminated or fixed.
class Eliminator {
 public:
  Eliminator(int n, std::vector<Factor> factors, const std::vector<uint8_t>& guess, int max_width)
      : factors_(std::move(factors)),
        guess_(guess),
        max_width_(static_cast<size_t>(max_width)),
        values_(static_cast<size_t>(n)) {
    for (int v = 0; v < n; ++v) left_.insert(v);
  }

  std::vector<uint8_t> Run() {
    FixWideFactors();
    while (!left_.empty()) {
      auto [v, width] = Thinnest();
      if (width > max_width_) {
        Fix(MostShared());
      } else {
        Eliminate(v);
      }
    }
    for (auto it = steps_.rbegin(); it != steps_.rend(); ++it) {
      values_[static_cast<size_t>(it->variable)] = it->best[Bits(it->vars)];
    }
    return values_;
  }

 private:
  struct Step {
    int variable;
    std::vector<int> vars;
    std::vector<uint8_t> best;  // by the bits of vars
  };

  size_t Bits(const std::vector<int>& vars) const {
    size_t bits = 0;
    for (size_t i = 0; i < vars.size(); ++i) {
      bits |= static_cast<size_t>(values_[static_cast<size_t>(vars[i])]) << i;
    }
    return bits;
  }

  static bool Has(const Factor& f, int v) {
    return std::find(f.vars.begin(), f.vars.end(), v) != f.vars.end();
  }

  void FixWideFactors() {
    for (size_t i = 0; i < factors_.size(); ++i) {
      while (factors_[i].vars.size() > max_width_) Fix(factors_[i].vars.back());
    }
  }

  // The variable whose elimination makes the smallest table, and how many variables that has.
  std::pair<int, size_t> Thinnest() const {
    std::map<int, std::set<int>> neighbours;
    for (int v : left_) neighbours[v];
    for (const Factor& f : factors_) {
      for (int v : f.vars) neighbours[v].insert(f.vars.begin(), f.vars.end());
    }
    std::pair<int, size_t> best{-1, std::numeric_limits<size_t>::max()};
    for (const auto& [v, near] : neighbours) {
      const size_t width = near.empty() ? 0 : near.size() - 1;
      if (width < best.second) best = {v, width};
    }
    return best;
  }

  int MostShared() const {
    std::map<int, int> count;
    for (const Factor& f : factors_) {
      for (int v : f.vars) ++count[v];
    }
    std::pair<int, int> best{-1, -1};
    for (const auto& [v, n] : count) {
      if (n > best.second) best = {v, n};
    }
    return best.first;
  }

  void Fix(int v) {
    const uint8_t value = guess_[static_cast<size_t>(v)];
    values_[static_cast<size_t>(v)] = value;
    left_.erase(v);
    for (Factor& f : factors_) {
      if (Has(f, v)) f = Restricted(f, v, value);
    }
  }

  static Factor Restricted(const Factor& f, int v, uint8_t value) {
    const size_t at =
        static_cast<size_t>(std::find(f.vars.begin(), f.vars.end(), v) - f.vars.begin());
    Factor out;
    for (int x : f.vars) {
      if (x != v) out.vars.push_back(x);
    }
    for (size_t bits = 0; bits < f.table.size(); ++bits) {
      if (((bits >> at) & 1) == value) out.table.push_back(f.table[bits]);
    }
    return out;
  }

  // Sums the factors that have v, keeps the better of its two values for each value of the others.
  void Eliminate(int v) {
    std::vector<Factor> with, without;
    for (Factor& f : factors_) (Has(f, v) ? with : without).push_back(std::move(f));
    std::set<int> others;
    for (const Factor& f : with) others.insert(f.vars.begin(), f.vars.end());
    others.erase(v);
    Step step{v, {others.begin(), others.end()}, {}};
    Factor made{step.vars, {}};
    left_.erase(v);
    for (size_t bits = 0; bits < size_t{1} << step.vars.size(); ++bits) {
      for (size_t i = 0; i < step.vars.size(); ++i) {
        values_[static_cast<size_t>(step.vars[i])] = static_cast<uint8_t>((bits >> i) & 1);
      }
      double cost[2] = {0, 0};
      for (uint8_t value : {uint8_t{0}, uint8_t{1}}) {
        values_[static_cast<size_t>(v)] = value;
        for (const Factor& f : with) cost[value] += f.table[Bits(f.vars)];
      }
      const bool one = cost[1] < cost[0];
      step.best.push_back(one);
      made.table.push_back(cost[one]);
    }
    factors_ = std::move(without);
    if (!made.vars.empty()) factors_.push_back(std::move(made));
    steps_.push_back(std::move(step));
  }

  std::vector<Factor> factors_;
  const std::vector<uint8_t>& guess_;
  size_t max_width_;
  std::vector<uint8_t> values_;
  std::set<int> left_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<uint8_t> Minimise(int num_variables, std::vector<Factor> factors,
                              const std::vector<uint8_t>& guess, int max_width) {
  TN_CHECK(guess.size() == static_cast<size_t>(num_variables));
  for (const Factor& f : factors) TN_CHECK(f.table.size() == size_t{1} << f.vars.size());
  return Eliminator(num_variables, std::move(factors), guess, max_width).Run();
}

}  // namespace tenon::plan
