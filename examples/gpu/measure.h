// What the GPU examples have in common: options, the device, times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tenon/compiler.hpp"

struct Options {
  std::string target = "cuda -arch=sm_90", save, model;
  bool show = false;
  int64_t repeat = 20;
  std::map<std::string, int64_t> sizes;
};

// --target TARGET --save FILE --model FILE --repeat N --show, and --NAME N for each size.
inline Options Arguments(int argc, char** argv, std::map<std::string, int64_t> sizes) {
  Options out;
  out.sizes = std::move(sizes);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--show") {
      out.show = true;
      continue;
    }
    const auto size = out.sizes.find(word.substr(std::min<size_t>(2, word.size())));
    const bool known = word == "--target" || word == "--save" || word == "--model" ||
                       word == "--repeat" || size != out.sizes.end();
    if (!known || ++i == argc) throw std::invalid_argument("unknown or without a value: " + word);
    if (word == "--target") {
      out.target = argv[i];
    } else if (word == "--save") {
      out.save = argv[i];
    } else if (word == "--model") {
      out.model = argv[i];
    } else {
      (word == "--repeat" ? out.repeat : size->second) = std::stoll(argv[i]);
    }
  }
  return out;
}

inline tenon::Device DeviceOf(const Options& options) {
  return options.target.rfind("opencl", 0) == 0 ? tenon::Device::OpenCl(0) : tenon::Device::Cuda(0);
}

inline tenon::Library Built(const tenon::Schedule& s, const std::vector<tenon::te::Tensor>& tensors,
                            const Options& options, const std::string& name) {
  tenon::Library library = tenon::Build(s, tensors, tenon::Target(options.target), name);
  if (options.show) std::printf("%s\n", library.GetSource().c_str());
  if (!options.save.empty()) library.Save(options.save);
  if (!DeviceOf(options).exists()) {
    std::printf("%s: built for %s; no GPU here to run it on\n", name.c_str(),
                options.target.c_str());
  }
  return library;
}

// Numbers in [-0.5, 0.5) that are the same in each run.
inline std::vector<float> Numbers(int64_t count, uint32_t seed) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) {
    seed = seed * 1664525 + 1013904223;
    x = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return out;
}

inline tenon::Tensor On(tenon::Device device, const std::vector<int64_t>& shape,
                        const std::vector<float>& values) {
  tenon::Tensor t = tenon::Tensor::Empty(shape, tenon::DataType::kFloat32, device);
  t.CopyFromBytes(values.data(), t.bytes());
  return t;
}

inline std::vector<float> ToHost(const tenon::Tensor& t) {
  std::vector<float> out(static_cast<size_t>(t.num_elements()));
  t.CopyToBytes(out.data(), t.bytes());
  return out;
}

// Of a call, once those before it are done.
inline double Seconds(tenon::Device device, int64_t repeat, const std::function<void()>& call) {
  tenon::Stream stream(device);
  tenon::StreamScope scope(stream);
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    call();
    stream.Wait();
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repeat; ++i) call();
    stream.Wait();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(repeat));
  }
  return best;
}

// Bytes read and written a second by a plain copy on the device.
inline double CopyBandwidth(tenon::Device device, int64_t repeat) {
  // An OpenCL device is often a CPU.
  const int64_t count = int64_t{1} << (device.device_type == TN_DL_OPENCL ? 24 : 28);
  tenon::Tensor from = tenon::Tensor::Empty({count}, tenon::DataType::kFloat32, device);
  tenon::Tensor to = tenon::Tensor::Empty({count}, tenon::DataType::kFloat32, device);
  return 2.0 * 4 * static_cast<double>(count) / Seconds(device, repeat, [&] { to.CopyFrom(from); });
}

// What main returns: whether the largest error is within the tolerance.
inline bool IsWithin(double error, double tolerance) {
  if (error <= tolerance) return true;
  std::printf("off by %g\n", error);
  return false;
}
