// Calls inside of somebody else's capture.
#include <thread>

#include "networks.h"

namespace tenon::device::test {
namespace {

constexpr int kGlobal = 0, kThread = 1;

/// A graph that a test captures, as PyTorch does it.
class Capture {
 public:
  Capture(const Stream& stream, int mode) : stream_(stream.handle()) {
    Push();
    EXPECT_EQ(Fake<int(void*, int)>("cuStreamBeginCapture_v2")(stream_, mode), 0);
    Pop();
  }
  /// What the driver says at its end.
  int End() {
    Push();
    const int code = Fake<int(void*, void**)>("cuStreamEndCapture")(stream_, &graph_);
    Pop();
    return code;
  }
  /// What is in the graph, once, on a stream.
  void Replay(const Stream& stream) {
    Push();
    void* exec = nullptr;
    using Make = int(void**, void*, unsigned long long);
    EXPECT_EQ(Fake<Make>("cuGraphInstantiateWithFlags")(&exec, graph_, 0), 0);
    EXPECT_EQ(Fake<int(void*, void*)>("cuGraphLaunch")(exec, stream.handle()), 0);
    Fake<int(void*)>("cuGraphExecDestroy")(exec);
    Pop();
  }

 private:
  static void Push() {
    Fake<int(void*)>("cuCtxPushCurrent_v2")(reinterpret_cast<void*>(uintptr_t{0x1000}));
  }
  static void Pop() {
    void* ignored = nullptr;
    Fake<int(void**)>("cuCtxPopCurrent_v2")(&ignored);
  }

  void* stream_;
  void* graph_ = nullptr;
};

std::string ErrorOf(const Network& net, const Tensor& x, const Tensor& y) {
  try {
    net.Into(x, y);
  } catch (const Error& error) {
    return error.kind() + ": " + error.what();
  }
  return "";
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DeviceCaptures, HoldACallAndItsMemory) {
  Network net("captured");
  Stream stream(Device::Cuda(0)), other(Device::Cuda(0));
  const Values a = Inputs(1, 1), b = Inputs(1, 2), c = Inputs(1, 3);
  Tensor x = OnDevice(a), y = OnDevice(a);
  {
    const StreamScope scope(stream);
    net.Into(x, y);
  }
  TakeLog();
  Capture capture(stream, kGlobal);
  {
    const StreamScope scope(stream);
    net.Into(x, y);
  }
  ASSERT_EQ(capture.End(), 0);
  const std::string log = TakeLog();
  for (const char* none : {"cuMemAlloc", "cuMemFree", "cuModule", "cuStreamSync", "cuEvent"})
    EXPECT_EQ(CountOf(log, none), 0) << log;
  // Calls go on elsewhere while the graph is replayed with what is in x by then.
  x.CopyFromBytes(b.data(), x.bytes());
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) {
    capture.Replay(stream);
    const StreamScope scope(other);
    results.push_back(net(OnDevice(c)));
  }
  stream.Wait();
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(b)));
  other.Wait();
  for (const Tensor& r : results) EXPECT_TRUE(AreClose(Read(r), net.OnCpu(c)));
}

TEST(DeviceCaptures, WantACallBefore) {
  Network net("early");
  Stream stream(Device::Cuda(0));
  const Values a = Inputs(1, 4);
  Tensor x = OnDevice(a), y = OnDevice(a);
  Capture capture(stream, kGlobal);
  std::string error;
  {
    const StreamScope scope(stream);
    error = ErrorOf(net, x, y);
  }
  EXPECT_TRUE(Has(error, "has not run on its device yet; call it once before")) << error;
  EXPECT_EQ(capture.End(), 0);  // and is whole
  net.Into(x, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
}

// Each capture takes an arena; two calls in one capture share one.
TEST(DeviceCaptures, TakeTheirArenaForGood) {
  Network net("forgood");
  Stream first(Device::Cuda(0)), second(Device::Cuda(0));
  const Values a = Inputs(1, 5);
  Tensor x = OnDevice(a), y = OnDevice(a), z = OnDevice(a);
  net.Into(x, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
  Capture one(first, kThread);
  {
    const StreamScope scope(first);
    net.Into(x, y);
    net.Into(y, z);
  }
  EXPECT_EQ(one.End(), 0);
  Capture two(second, kThread);
  std::string error;
  {
    const StreamScope scope(second);
    error = ErrorOf(net, x, y);
  }
  EXPECT_TRUE(Has(error, "call the function once with these sizes before each capture")) << error;
  EXPECT_EQ(two.End(), 0);
  one.Replay(first);
  first.Wait();
  EXPECT_TRUE(AreClose(Read(z), net.OnCpu(net.OnCpu(a))));
}

// Another thread may load, allocate and call while a capture is under way, in global mode too.
TEST(DeviceCaptures, DoNotKeepOthersFromCalling) {
  Network net("meanwhile", "n");
  Stream stream(Device::Cuda(0)), other(Device::Cuda(0));
  const Values a = Inputs(1, 6), b = Inputs(9, 7);
  Tensor x = OnDevice(a), y = OnDevice(a), p = OnDevice(b, 9), q = OnDevice(b, 9);
  net.Into(x, y);
  Capture capture(stream, kGlobal);
  std::string error = "none";
  std::thread([&] {
    const StreamScope scope(other);
    error = ErrorOf(net, p, q);  // a larger arena, another graph
  }).join();
  EXPECT_EQ(error, "");
  EXPECT_EQ(capture.End(), 0);
  other.Wait();
  EXPECT_TRUE(AreClose(Read(q), net.OnCpu(b, 9)));
}

}  // namespace
}  // namespace tenon::device::test
