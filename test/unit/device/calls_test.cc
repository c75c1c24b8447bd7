// What a call of a network does on a device: once, and from then on.
#include <algorithm>
#include <thread>

#include "kernels.h"
#include "networks.h"

namespace tenon::device::test {
namespace {

TEST(DeviceCalls, AreRight) {
  Network net("right");
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Values x = Inputs(1, seed);
    EXPECT_TRUE(AreClose(Read(net(OnDevice(x))), net.OnCpu(x))) << seed;
  }
}

// The first call loads, copies the weights in one piece, makes an arena and a graph.
TEST(DeviceCalls, AfterTheFirstAreOneLaunchEach) {
  Network net("once");
  const Values a = Inputs(1, 1), b = Inputs(1, 2);
  Tensor x = OnDevice(a), y = OnDevice(b);
  TakeLog();
  net.Into(x, y);
  const std::string first = TakeLog();
  EXPECT_EQ(CountOf(first, "cuModuleLoadDataEx"), 1) << first;
  EXPECT_EQ(CountOf(first, "cuMemAlloc_v2"), 1) << first;    // weights
  EXPECT_EQ(CountOf(first, "cuMemAllocAsync"), 1) << first;  // the arena
  EXPECT_EQ(CountOf(first, "cuGraphInstantiateWithFlags"), 1) << first;
  EXPECT_EQ(CountOf(first, "cuLaunchKernel"), 0) << first;
  EXPECT_EQ(CountOf(first, "cuGraphLaunch"), 1) << first;
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
  TakeLog();
  const Counts before = Count();
  net.Into(x, y);
  std::string log = TakeLog();
  for (const char* none : {"cuMem", "cuStreamSynchronize", "cuEventSynchronize", "cuModule",
                           "cuGraphExec", "cuGraphAdd", "cuLaunch"}) {
    EXPECT_EQ(CountOf(log, none), 0) << log;
  }
  EXPECT_EQ(CountOf(log, "cuGraphLaunch"), 1) << log;
  EXPECT_EQ(Count(), before);
  // Tensors elsewhere: the nodes that have them, and no others.
  Tensor other = OnDevice(b), out = OnDevice(a);
  TakeLog();
  net.Into(other, out);
  log = TakeLog();
  EXPECT_EQ(CountOf(log, "cuGraphExecKernelNodeSetParams_v2"), 2) << log;
  EXPECT_EQ(CountOf(log, "cuGraphLaunch"), 1) << log;
  EXPECT_TRUE(AreClose(Read(out), net.OnCpu(b)));
}

/// A network most of whose nodes have the caller's tensors, and several sets of these.
class InTurn {
 public:
  InTurn(const std::string& name, uint32_t sets)
      : net_(name, "1", "cuda -arch=sm_90", 9, Kind::kResidual) {
    for (uint32_t seed = 0; seed < sets; ++seed) {
      const Values in = Inputs(1, seed);
      sets_.push_back({OnDevice(in), OnDevice(in), net_.OnCpu(in)});
    }
  }

  /// A call with each set; what the driver was asked for.
  std::string Round() {
    TakeLog();
    for (const Set& s : sets_) {
      net_.Into(s.x, s.y);
      EXPECT_TRUE(AreClose(Read(s.y), s.expected));
    }
    return TakeLog();
  }

 private:
  struct Set {
    Tensor x, y;
    Values expected;
  };
  Network net_;
  std::vector<Set> sets_;
};

// Where many nodes have the tensors, and these are in the same places in turn, there is a graph for
// each of the places.
TEST(DeviceCalls, TakeTensorsInTurn) {
  InTurn calls("turns", 3);
  const uint64_t graphs = Count().graphs;
  for (int round = 0; round < 4; ++round) {
    const std::string log = calls.Round();
    // At first arguments change: x of nine layers, and y. From the third round on nothing does.
    if (round == 0) EXPECT_EQ(CountOf(log, "cuGraphExecKernelNodeSetParams_v2"), 2 * 10) << log;
    if (round < 2) continue;
    EXPECT_EQ(CountOf(log, "cuGraphExec"), 0) << log;
    EXPECT_EQ(CountOf(log, "cuGraphInstantiate"), 0) << log;
  }
  EXPECT_EQ(Count().graphs - graphs, 3u);
}

// More places than a module has room for: nodes are set as before.
TEST(DeviceCalls, TakeTensorsInMoreTurnsThanThereAreGraphs) {
  InTurn calls("manyturns", 18);
  const uint64_t graphs = Count().graphs;
  for (int round = 0; round < 4; ++round) calls.Round();
  EXPECT_EQ(Count().graphs - graphs, 16u);
}

// Kernels that move vectors have another form for addresses that are multiples of those; a graph's
// nodes change theirs with the tensors.
TEST(DeviceCalls, TakeTensorsThatBeginAnywhere) {
  constexpr int64_t kRows = 2048;
  TakeLog();
  Network net("anywhere", std::to_string(kRows), "cuda -arch=sm_90", 1);
  const Values in = Inputs(kRows, 3);
  const Values want = net.OnCpu(in, kRows);
  const Tensor whole = OnDevice(Inputs(kRows + 1, 4), kRows + 1);
  const Tensor x = OnDevice(in, kRows), aligned = OnDevice(in, kRows);
  auto* const second = static_cast<float*>(whole.data()) + 1;
  Tensor shifted = Tensor::Wrap(second, {kRows, 8}, DataType::kFloat32, Device::Cuda(0));
  for (const Tensor& y : {aligned, shifted, aligned, shifted}) {
    net.Into(x, y);
    EXPECT_TRUE(AreClose(Read(y), want));
  }
  const std::string log = TakeLog();
  // The first call builds the graph; then y goes there and back.
  const std::string set = "cuGraphExecKernelNodeSetParams_v2@0";
  EXPECT_EQ(CountOf(log, set), 3) << log;
  EXPECT_EQ(CountOf(log, set + "(1, anywhere_k1)"), 2) << log;
  EXPECT_EQ(CountOf(log, set + "(1, anywhere_k1_aligned)"), 1) << log;
}

// What it launches before it waits is a graph, and what follows one for each branch.
TEST(DeviceCalls, ThatWaitAreAGraphForEachPiece) {
  Network net("waits", "1", "cuda -arch=sm_90", 2, Kind::kWaits);
  Values above = Inputs(1, 1), below = Inputs(1, 2);
  above[3] = 2;
  for (float& v : below) v = std::min(v, 0.5F);
  const Tensor x = OnDevice(above), z = OnDevice(below), y = OnDevice(above);
  TakeLog();
  net.Into(x, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(above)));
  EXPECT_EQ(CallsOf("cuGraphInstantiateWithFlags"), 2);
  net.Into(z, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(below)));
  EXPECT_EQ(CallsOf("cuGraphInstantiateWithFlags"), 1);
  const Counts before = Count();
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& in : {x, z}) {
      TakeLog();
      net.Into(in, y);
      const std::string log = TakeLog();
      EXPECT_EQ(CountOf(log, "cuGraphLaunch"), 2) << log;
      EXPECT_EQ(CountOf(log, "cuLaunch"), 0) << log;
      EXPECT_EQ(CountOf(log, "cuGraphInstantiate"), 0) << log;
      EXPECT_TRUE(AreClose(Read(y), net.OnCpu(in.data() == x.data() ? above : below)));
    }
  }
  EXPECT_EQ(Count(), before);
}

// What was queued before with other tensors is done with those.
TEST(DeviceCalls, KeepTheirArgumentsWhileTheyAreQueued) {
  Network net("queued");
  std::vector<Values> in;
  std::vector<Tensor> x, y;
  for (uint32_t i = 0; i < 20; ++i) {
    in.push_back(Inputs(1, i));
    x.push_back(OnDevice(in.back()));
    y.push_back(OnDevice(in.back()));
  }
  for (size_t i = 0; i < x.size(); ++i) net.Into(x[i], y[i]);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(AreClose(Read(y[i]), net.OnCpu(in[i]))) << i;
}

TEST(DeviceCalls, OneTensorCanBeTwoArguments) {
  Network net("inplace");
  const Values a = Inputs(1, 3);
  Tensor x = OnDevice(a), y = OnDevice(a);
  net.Into(x, y);
  net.Into(x, y);
  EXPECT_TRUE(AreClose(Read(y), net.OnCpu(a)));
}

TEST(DeviceCalls, HaveAGraphForEachSize) {
  Network net("sizes", "n");
  for (int round = 0; round < 2; ++round) {
    for (int64_t n : {1, 7, 2, 13}) {
      const Values x = Inputs(n, static_cast<uint32_t>(n));
      EXPECT_TRUE(AreClose(Read(net(OnDevice(x, n))), net.OnCpu(x, n))) << n;
    }
  }
}

// Sizes that come once do not cost a graph each, and those that come back get theirs.
TEST(DeviceCalls, KeepSixteenGraphs) {
  Network net("many", "n");
  const uint64_t graphs = Count().graphs;
  for (int64_t n = 40; n > 0; --n) net(OnDevice(Inputs(n, 1), n));
  EXPECT_EQ(Count().graphs - graphs, 16u);
  Tensor x = OnDevice(Inputs(1, 1), 1), y = OnDevice(Inputs(1, 1), 1);
  TakeLog();
  net.Into(x, y);
  EXPECT_EQ(CallsOf("cuGraphInstantiateWithFlags"), 1);
  net.Into(x, y);
  const std::string log = TakeLog();
  EXPECT_EQ(CountOf(log, "cuGraphLaunch"), 1) << log;
  EXPECT_EQ(CountOf(log, "cuLaunchKernel"), 0) << log;
  EXPECT_EQ(Count().graphs - graphs, 16u);
}

TEST(DeviceCalls, OnTwoDevices) {
  Network net("twodevices");
  const Values a = Inputs(1, 4);
  for (int round = 0; round < 2; ++round) {
    for (int32_t id : {0, 1})
      EXPECT_TRUE(AreClose(Read(net(OnDevice(a, 1, Device::Cuda(id)))), net.OnCpu(a))) << id;
  }
}

TEST(DeviceCalls, OfTwoNetworksAtOnce) {
  Network first("first"), second("second", "3");
  const Values a = Inputs(1, 5), b = Inputs(3, 6);
  Tensor x = OnDevice(a), y = OnDevice(b, 3);
  Tensor p = first(x), q = second(y), r = first(x);
  EXPECT_TRUE(AreClose(Read(p), first.OnCpu(a)));
  EXPECT_TRUE(AreClose(Read(q), second.OnCpu(b, 3)));
  EXPECT_TRUE(AreClose(Read(r), first.OnCpu(a)));
}

// Streams that are busy have arenas of their own; one that is idle serves whoever comes.
TEST(DeviceCalls, OnManyStreamsEqual) {
  Network net("streams", "1", "cuda -arch=sm_90", 1);
  Fake<void(int)>("FakeLog")(0);
  constexpr int kThreads = 4, kFirst = 50, kCalls = 2450;  // 10,000 in all
  const Values a = Inputs(1, 7);
  const Values expected = Read(net(OnDevice(a)));
  std::vector<Stream> streams;
  std::vector<Tensor> x, y;
  for (int i = 0; i < kThreads; ++i) {
    streams.emplace_back(Device::Cuda(0));
    x.push_back(OnDevice(a));
    y.push_back(OnDevice(a));
  }
  Counts before{};
  for (const int calls : {kFirst, kCalls}) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const StreamScope scope(streams[i]);
        for (int k = 0; k < calls; ++k) {
          net.Into(x[i], y[i]);
          if (k % 10 == 9) wrong[i] += Read(y[i]) != expected ? 1 : 0;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, std::vector<int>(kThreads));
    if (calls == kCalls) {
      EXPECT_LE(Count().bytes, before.bytes + 4 * 4096);
      EXPECT_LE(Count().graphs, before.graphs + 4);
    }
    before = Count();
  }
  EXPECT_LE(before.graphs, 64u);
  Fake<void(int)>("FakeLog")(1);
}

TEST(DeviceCalls, UnloadingGivesEverythingBack) {
  const Counts before = Count();
  {
    Network net("unloaded");
    const Values a = Inputs(1, 8);
    EXPECT_TRUE(AreClose(Read(net(OnDevice(a))), net.OnCpu(a)));
    net.Unload();
  }
  EXPECT_EQ(Count().allocations, before.allocations);
  EXPECT_EQ(Count().graphs, before.graphs);
  EXPECT_EQ(Count().events, before.events);
}

}  // namespace
}  // namespace tenon::device::test
