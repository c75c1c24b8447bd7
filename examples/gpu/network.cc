// A network between two kernels of one's own on a GPU: a picture comes in, a class for each pixel
// goes out.
//
//   network_gpu --model MODEL.onnx [--height 512] [--width 512] [--target TARGET] [--repeat N]
//
// The model has an input float32[1, 3, height, width] (sizes may be open) and a result of scores,
// float32[1, classes, height, width].
//
// 1. prepare -> network -> label on one stream: bytes become floats in the order that the network
//    wants, and scores become the class with the largest one. Nothing is copied between them, and
//    the host waits once, at the end.
// 2. An ensemble: the network in fp32 and in fp16, on two streams, and a kernel that adds up what
//    they say.
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "measure.h"

namespace te = tenon::te;
using tenon::DataType;
using tenon::Device;
using tenon::Function;
using tenon::Stream;
using tenon::StreamScope;
using tenon::Tensor;

namespace {

constexpr double kMean = 118, kScale = 1.0 / 58;

struct Sizes {
  int64_t height, width, classes = 0;
};

// An element for each thread: the compiler binds what has no schedule.
tenon::Library Simply(const std::vector<te::Tensor>& tensors, const Options& options,
                      const std::string& name) {
  return tenon::Build(tenon::CreateFunc(tensors, name), tenon::Target(options.target));
}

tenon::Library Prepare(const Sizes& s, const Options& options) {
  te::Tensor bytes = te::Placeholder({s.height, s.width, 3}, DataType::kUInt8, "bytes");
  te::Tensor x = te::Compute(
      {1, 3, s.height, s.width},
      [&](te::Var, te::Var c, te::Var i, te::Var j) {
        return (te::Cast(bytes(i, j, c), DataType::kFloat32) - kMean) * kScale;
      },
      "x");
  return Simply({bytes, x}, options, "prepare");
}

// The class with the largest score, of equal ones the first.
tenon::Library Label(const Sizes& s, const Options& options) {
  te::Tensor scores =
      te::Placeholder({1, s.classes, s.height, s.width}, DataType::kFloat32, "scores");
  te::IterVar c = te::ReduceAxis(0, s.classes, "c");
  te::Tensor most = te::Compute(
      {s.height, s.width}, [&](te::Var i, te::Var j) { return te::Max(scores(0, c, i, j), {c}); },
      "most");
  te::IterVar k = te::ReduceAxis(0, s.classes, "k");
  te::Tensor label = te::Compute(
      {s.height, s.width},
      [&](te::Var i, te::Var j) {
        te::Expr here = te::Cast(k, DataType::kInt32);
        te::Expr none = te::ConstantInt(s.classes, DataType::kInt32);
        return te::Min(te::Select(te::Equal(scores(0, k, i, j), most(i, j)), here, none), {k});
      },
      "label");
  return Simply({scores, label}, options, "label");
}

tenon::Library Sum(const Sizes& s, const Options& options) {
  const std::vector<te::Expr> shape = {1, s.classes, s.height, s.width};
  te::Tensor a = te::Placeholder(shape, DataType::kFloat32, "a");
  te::Tensor b = te::Placeholder(shape, DataType::kFloat32, "b");
  te::Tensor both = te::Compute(
      shape,
      [&](te::Var n, te::Var c, te::Var i, te::Var j) { return a(n, c, i, j) + b(n, c, i, j); },
      "both");
  return Simply({a, b, both}, options, "both");
}

// What the model calls its first input.
std::string FirstInput(const std::string& model) {
  const std::string json = tenon::DescribeModel(model), key = "\"name\":\"";
  const size_t begin = json.find(key, json.find("\"inputs\"")) + key.size();
  return json.substr(begin, json.find('"', begin) - begin);
}

// The model as a function for a target; its library is not needed once it is loaded.
Function Network(const std::string& model, const Sizes& s, const std::string& target,
                 const std::string& precision = "fp32") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string file = "network_gpu_" + std::to_string(getpid()) + ".so";
  const std::string path = (folder / file).string();
  tenon::ModelOptions options;
  options.target = tenon::Target(target);
  options.precision = precision;
  options.shapes = {
      {FirstInput(model), {1, 3, static_cast<int>(s.height), static_cast<int>(s.width)}}};
  tenon::CompileModel(model, path, options);
  Function main = tenon::Module::LoadFromFile(path).GetFunction("main");
  std::filesystem::remove(path);
  return main;
}

std::vector<uint8_t> Picture(const Sizes& s) {
  std::vector<uint8_t> bytes(static_cast<size_t>(s.height * s.width * 3));
  uint32_t seed = 1;
  for (uint8_t& b : bytes) b = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

// What the network says on the CPU, and how many classes it has.
std::vector<float> OnCpu(const std::string& model, const std::vector<uint8_t>& picture, Sizes* s) {
  std::vector<float> x(picture.size());
  const auto plane = static_cast<size_t>(s->height * s->width);
  for (size_t p = 0; p < plane; ++p) {
    for (size_t c = 0; c < 3; ++c)
      x[c * plane + p] = static_cast<float>((picture[p * 3 + c] - kMean) * kScale);
  }
  const Tensor scores = Network(model, *s, "llvm")(
      Tensor::Wrap(x.data(), {1, 3, s->height, s->width}, DataType::kFloat32))[0];
  s->classes = scores.shape().at(1);
  return ToHost(scores);
}

// The share of pixels whose class is not (nearly) the one with the largest score.
double Wrong(const std::vector<float>& scores, const Tensor& labels, float tolerance) {
  std::vector<int32_t> got(static_cast<size_t>(labels.num_elements()));
  labels.CopyToBytes(got.data(), labels.bytes());
  const size_t plane = got.size();
  size_t wrong = 0;
  for (size_t p = 0; p < plane; ++p) {
    float most = scores[p];
    for (size_t at = p; at < scores.size(); at += plane) most = std::max(most, scores[at]);
    const float chosen = scores[static_cast<size_t>(got[p]) * plane + p];
    wrong += chosen < most - tolerance * std::max(1.0F, std::abs(most)) ? 1 : 0;
  }
  return static_cast<double>(wrong) / static_cast<double>(plane);
}

Tensor Floats(const std::vector<int64_t>& shape, Device device) {
  return Tensor::Empty(shape, DataType::kFloat32, device);
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = Arguments(argc, argv, {{"height", 512}, {"width", 512}});
  if (options.model.empty()) throw std::invalid_argument("expected --model MODEL.onnx");
  Sizes s{options.sizes.at("height"), options.sizes.at("width")};
  const std::vector<uint8_t> picture = Picture(s);
  const std::vector<float> expected = OnCpu(options.model, picture, &s);
  const Device device = DeviceOf(options);
  const Function exact = Network(options.model, s, options.target);
  const Function half = Network(options.model, s, options.target, "fp16");
  const tenon::Library libraries[] = {Prepare(s, options), Label(s, options), Sum(s, options)};
  if (!device.exists()) {
    std::printf("built for %s; no GPU here to run it on\n", options.target.c_str());
    return 0;
  }
  const Function prepare = libraries[0].GetFunction("prepare"),
                 label = libraries[1].GetFunction("label"), both = libraries[2].GetFunction("both");
  Tensor bytes = Tensor::Empty({s.height, s.width, 3}, DataType::kUInt8, device);
  bytes.CopyFromBytes(picture.data(), bytes.bytes());
  const std::vector<int64_t> scores = {1, s.classes, s.height, s.width};
  Tensor x = Floats({1, 3, s.height, s.width}, device), first = Floats(scores, device),
         second = Floats(scores, device), sum = Floats(scores, device),
         labels = Tensor::Empty({s.height, s.width}, DataType::kInt32, device);

  const auto alone = [&] {
    prepare(bytes, x);
    exact(x, first);
    label(first, labels);
  };
  const double seconds = Seconds(device, options.repeat, alone);
  if (!IsWithin(Wrong(expected, labels, 1e-4F), 0)) return 1;
  std::printf("a picture of %lld x %lld, one stream: %.3f ms\n", static_cast<long long>(s.height),
              static_cast<long long>(s.width), 1e3 * seconds);

  const Stream side(device);
  const auto ensemble = [&] {
    Stream ours(device);
    const StreamScope scope(ours);
    prepare(bytes, x);
    ours.Wait();
    {
      const StreamScope other(side);
      half(x, second);
    }
    exact(x, first);
    side.Wait();
    both(first, second, sum);
    label(sum, labels);
    ours.Wait();
  };
  const double together = Seconds(device, options.repeat, ensemble);
  if (!IsWithin(Wrong(expected, labels, 2e-2F), 0)) return 1;
  std::printf("two networks on two streams, added up: %.3f ms\n", 1e3 * together);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "network_gpu: %s\n", error.what());
  return 1;
}
