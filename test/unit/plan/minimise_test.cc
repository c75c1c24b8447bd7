// Minimise against trying every assignment, over random costs of the shapes that networks have.
#include "plan/minimise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace tenon::plan {
namespace {

double Cost(const std::vector<Factor>& factors, const std::vector<uint8_t>& values) {
  double cost = 0;
  for (const Factor& f : factors) {
    size_t bits = 0;
    for (size_t i = 0; i < f.vars.size(); ++i)
      bits |= static_cast<size_t>(values[static_cast<size_t>(f.vars[i])]) << i;
    cost += f.table[bits];
  }
  return cost;
}

double Least(int n, const std::vector<Factor>& factors) {
  double least = 0;
  for (size_t bits = 0; bits < size_t{1} << n; ++bits) {
    std::vector<uint8_t> values;
    for (int v = 0; v < n; ++v) values.push_back((bits >> v) & 1);
    const double cost = Cost(factors, values);
    least = bits == 0 ? cost : std::min(least, cost);
  }
  return least;
}

// Whole numbers, so that sums are exact in any order.
Factor Random(std::vector<int> vars, std::mt19937* random) {
  Factor f{std::move(vars), {}};
  for (size_t i = 0; i < size_t{1} << f.vars.size(); ++i)
    f.table.push_back(static_cast<double>((*random)() % 100));
  return f;
}

struct Case {
  int variables = 0;
  std::vector<Factor> factors;
};

Case Chain(int n, std::mt19937* random) {
  Case c{n, {}};
  for (int v = 0; v + 1 < n; ++v) c.factors.push_back(Random({v, v + 1}, random));
  for (int v = 0; v < n; v += 3) c.factors.push_back(Random({v}, random));
  return c;
}

Case Tree(int n, std::mt19937* random) {
  Case c{n, {}};
  for (int v = 1; v < n; ++v) {
    const int parent = static_cast<int>((*random)() % static_cast<unsigned>(v));
    c.factors.push_back(Random({v, parent}, random));
  }
  return c;
}

// Each group reads two neighbours and gives a third: squares of rows × columns variables.
Case Grid(int rows, int columns, std::mt19937* random) {
  Case c{rows * columns, {}};
  for (int i = 0; i + 1 < rows; ++i) {
    for (int k = 0; k + 1 < columns; ++k) {
      const int v = i * columns + k;
      c.factors.push_back(Random({v, v + 1, v + columns}, random));
    }
  }
  return c;
}

// A residual network: blocks of `length` values whose ends meet in a sum.
Case Residual(int blocks, int length, std::mt19937* random) {
  Case c{blocks * length + 1, {}};
  for (int b = 0; b < blocks; ++b) {
    const int first = b * length, last = first + length;
    for (int v = first; v + 1 < last; ++v) c.factors.push_back(Random({v + 1, v}, random));
    c.factors.push_back(Random({last, last - 1, first}, random));
  }
  return c;
}

void CheckExact(const Case& c, const std::string& what) {
  SCOPED_TRACE(what);
  const std::vector<uint8_t> guess(static_cast<size_t>(c.variables), 1);
  const std::vector<uint8_t> values = Minimise(c.variables, c.factors, guess);
  ASSERT_EQ(values.size(), guess.size());
  EXPECT_EQ(Cost(c.factors, values), Least(c.variables, c.factors));
  EXPECT_EQ(Minimise(c.variables, c.factors, guess), values);
}

TEST(Minimise, FindsTheLeastOfEveryThinShape) {
  std::mt19937 random(7);
  for (int n = 1; n <= 14; ++n) {
    for (int round = 0; round < 5; ++round) {
      CheckExact(Chain(n, &random), fmt::format("chain of {}, {}", n, round));
      CheckExact(Tree(n, &random), fmt::format("tree of {}, {}", n, round));
    }
  }
  for (int rows : {2, 3, 4}) CheckExact(Grid(rows, 4, &random), fmt::format("grid {} x 4", rows));
  for (int length : {1, 2, 3}) {
    CheckExact(Residual(4, length, &random), fmt::format("residual blocks of {}", length));
  }
}

TEST(Minimise, OfEqualCostsTakesZero) {
  const std::vector<uint8_t> zero(3, 0);
  EXPECT_EQ(Minimise(3, {}, {1, 1, 1}), zero);
  EXPECT_EQ(Minimise(3, {{{0, 1}, {5, 5, 5, 5}}, {{2}, {1, 1}}}, {1, 1, 1}), zero);
}

// What is wider than it may be keeps the guess for some variables, and is the least for the rest.
TEST(Minimise, WideShapesAreNoWorseThanTheGuess) {
  std::mt19937 random(11);
  for (int width = 1; width <= 3; ++width) {
    for (int round = 0; round < 20; ++round) {
      const Case c = Grid(3, 4, &random);
      std::vector<uint8_t> guess;
      for (int v = 0; v < c.variables; ++v) guess.push_back(random() % 2);
      const std::vector<uint8_t> values = Minimise(c.variables, c.factors, guess, width);
      EXPECT_LE(Cost(c.factors, values), Cost(c.factors, guess)) << width << " " << round;
      EXPECT_GE(Cost(c.factors, values), Least(c.variables, c.factors));
    }
  }
}

}  // namespace
}  // namespace tenon::plan
