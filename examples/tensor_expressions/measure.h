// What the measuring examples share: time, and what the cores could do at most.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "tenon/compiler.hpp"

inline double SecondsOf(const std::function<void()>& call) {
  auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The cores that a call uses.
inline int Cores() {
  const char* threads = std::getenv("TENON_NUM_THREADS");
  return threads ? std::atoi(threads) : static_cast<int>(std::thread::hardware_concurrency());
}

// What these cores do at most, in GFLOP/s: multiply-adds on eight vectors in registers each.
class Probe {
 public:
  explicit Probe(int cores) : cores_(cores), library_(Make(cores)) {
    std::fill_n(x_.data_as<float>(), kSteps, 1.0f);
    std::fill_n(y_.data_as<float>(), kVectors * kLanes, 1.0f);
  }
  double operator()() const {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) best = std::min(best, SecondsOf([&] { run_(x_, y_, z_); }));
    return 2.0 * kSteps * cores_ * kVectors * kLanes / best / 1e9;
  }

 private:
  static constexpr int64_t kLanes = 16, kVectors = 8, kSteps = 400000;
  static tenon::Library Make(int cores) {
    tenon::te::Tensor x = tenon::te::Placeholder({kSteps}, tenon::DataType::kFloat32, "X");
    tenon::te::Tensor y =
        tenon::te::Placeholder({kVectors * kLanes}, tenon::DataType::kFloat32, "Y");
    tenon::te::IterVar k = tenon::te::ReduceAxis(0, kSteps);
    tenon::te::Tensor z = tenon::te::Compute(
        {cores, kVectors * kLanes},
        [&](tenon::te::Var core, tenon::te::Var i) { return tenon::te::Sum(x(k) * y(i), {k}); },
        "Z");
    tenon::Schedule s = tenon::CreateSchedule({z});
    tenon::Stage sums = s[s.CacheWrite(z, "register")];
    sums.ComputeAt(s[z], z.op().axis()[0]);
    s[z].Parallel(z.op().axis()[0]);
    auto [vectors, lane] = sums.Split(sums.op().axis()[1], kLanes);
    sums.Reorder({sums.op().reduce_axis()[0], vectors, lane});
    sums.Unroll(vectors);
    sums.Vectorize(lane);
    return tenon::Build(s, {x, y, z});
  }
  int cores_;
  tenon::Library library_;
  tenon::Function run_ = library_.GetFunction("main");
  tenon::Tensor x_ = tenon::Tensor::Empty({kSteps}, tenon::DataType::kFloat32);
  tenon::Tensor y_ = tenon::Tensor::Empty({kVectors * kLanes}, tenon::DataType::kFloat32);
  tenon::Tensor z_ = tenon::Tensor::Empty({cores_, kVectors* kLanes}, tenon::DataType::kFloat32);
};
