#include "networks.h"

#include <dlfcn.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "kernels.h"

namespace tenon::device::test {

void* FakeSymbol(const char* name) {
  static void* const library = dlopen(FAKE_CUDA, RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return dlsym(library, name);
}

std::string TakeLog() { return Fake<const char*()>("FakeTakeLog")(); }

int CountOf(const std::string& log, const std::string& call) {
  int count = 0;
  for (size_t at = 0; (at = log.find(call, at)) != std::string::npos; ++at)
    count += at == 0 || log[at - 1] == '\n' ? 1 : 0;
  return count;
}

int CallsOf(const std::string& call) { return CountOf(TakeLog(), call); }

Counts Count() {
  Counts out{};
  Fake<void(Counts*)>("FakeCount")(&out);
  return out;
}

Network::Network(const std::string& name, const std::string& batch, const std::string& target,
                 int layers, Kind kind) {
  folder_ = std::filesystem::temp_directory_path() / "tenon-device-XXXXXX";
  EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  EXPECT_EQ(CompileLayers(name, batch, target, folder_ + "/device.so", layers, kind), "");
  EXPECT_EQ(CompileLayers(name, batch, "llvm", folder_ + "/cpu.so", layers, kind), "");
  module_ = Module::LoadFromFile(folder_ + "/device.so");
  cpu_module_ = Module::LoadFromFile(folder_ + "/cpu.so");
  run_ = module_.GetFunction(name);
  cpu_ = cpu_module_.GetFunction(name);
}

Network::~Network() { std::filesystem::remove_all(folder_); }

void Network::Unload() {
  run_ = Function();
  module_ = Module();
}

Values Network::OnCpu(const Values& x, int64_t batch) const {
  Tensor in = Tensor::Empty({batch, 8}, DataType::kFloat32);
  in.CopyFromBytes(x.data(), in.bytes());
  return Read(Tensor(cpu_(in)));
}

Values Inputs(int64_t batch, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values out(static_cast<size_t>(batch * 8));
  for (float& v : out) v = normal(random);
  return out;
}

Tensor OnDevice(const Values& values, int64_t batch, Device device) {
  Tensor out = Tensor::Empty({batch, 8}, DataType::kFloat32, device);
  out.CopyFromBytes(values.data(), out.bytes());
  return out;
}

Values Read(const Tensor& tensor) {
  Values out(static_cast<size_t>(tensor.num_elements()));
  tensor.CopyToBytes(out.data(), tensor.bytes());
  return out;
}

testing::AssertionResult AreClose(const Values& a, const Values& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 1e-5F))
      return testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace tenon::device::test
