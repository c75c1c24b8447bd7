#include "fuzz/schedule/subject.h"

#include "loop/parse.h"
#include "support/check.h"
#include "support/schedule_functions.h"

namespace tenon::fuzz {

namespace {

struct Kind {
  const char* name;
  const char* text;
  std::vector<std::string> sizes;
};

const std::vector<Kind> kKinds = {
    {"matmul", test::kMatmul, {"M", "N", "K"}},
    {"matmul_relu", test::kMatmulRelu, {"M", "N", "K"}},
    {"batch_matmul", test::kBatchMatmul, {"B", "M", "N", "K"}},
    {"tile_matmul", test::kTileMatmul, {"M", "N", "K"}},
    {"tile_chain", test::kTileChain, {"M", "N"}},
    {"convolution", test::kConv, {"C", "H", "W", "O"}},
    {"depthwise", test::kDepthwise, {"C", "M"}},
    {"pool", test::kPool, {"M", "N"}},
    {"softmax", test::kSoftmax, {"M", "N"}},
    {"row_sum", test::kRowSum, {"M", "N"}},
    {"int_sum", test::kIntSum, {"M", "N"}},
    {"argmax", test::kArgMax, {"M", "N"}},
    {"tuple", test::kTuple, {"M", "N"}},
    {"product", test::kProduct, {"M", "N"}},
    {"triangle", test::kTriangle, {"M"}},
    {"scan", test::kScan, {"M", "N"}},
    {"scan_and_use", test::kScanAndUse, {"M", "N"}},
    {"stencil", test::kStencil, {"M", "N"}},
    {"blur", test::kBlur, {"M"}},
    {"dilated", test::kDilated, {"M"}},
    {"transpose", test::kTranspose, {"M", "N"}},
    {"chain", test::kChain, {"M", "N"}},
    {"two_consumers", test::kTwoConsumers, {"M", "N"}},
    {"two_writers", test::kTwoWriters, {"M", "N"}},
    {"gather", test::kGather, {"M", "N"}},
    {"guarded", test::kGuarded, {"M"}},
    {"pipe", test::kPipe, {"M"}},
};

void ReplaceAll(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

}  // namespace

Subject RandomSubject(Random& random) {
  // Around the tiles of 2 to 4, and primes.
  const std::vector<int64_t> few = {1, 2, 3, 4, 5}, many = {1, 2, 3, 4, 5, 7, 8, 9, 11, 13};
  const Kind& kind = Pick(kKinds, random);
  const std::vector<int64_t>& domain = kind.sizes.size() > 2 ? few : many;
  const bool symbolic = Chance(random, 3);
  std::string text = kind.text, dims;
  Subject out{kind.name, {}, {{}}};
  if (symbolic) out.sizes.resize(3);
  for (const std::string& size : kind.sizes) {
    if (!symbolic || Chance(random, 2)) {
      ReplaceAll(&text, "$" + size, std::to_string(Pick(domain, random)));
      continue;
    }
    const std::string name = "d" + size;
    const int64_t step = Chance(random, 4) ? 4 : 1, most = 4 * step * 4;
    dims += (dims.empty() ? "" : ", ") + name + ": " + std::to_string(step) +
            "..=" + std::to_string(most) + (step > 1 ? " step 4" : "");
    ReplaceAll(&text, "$" + size, name);
    for (DimValues& values : out.sizes) {
      values[name] = step * Pick(domain, random);
      if (step > 1) values[name] = Between(random, 1, 3) * step;
    }
  }
  if (!dims.empty()) ReplaceAll(&text, "func @f(", "func @f<" + dims + ">(");
  if (dims.empty()) out.sizes.resize(1);
  Expected<Module> module = ParseModule(text, kind.name);
  TN_CHECK(module, "{}\n{}", ToString(module.errors()), text);
  out.module = *module;
  return out;
}

}  // namespace tenon::fuzz
