#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "artifact/checksum.h"
#include "artifact/library_writer.h"
#include "artifact/link.h"
#include "artifact/temporary_library.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "tenon/tenon.hpp"
#include "testing.h"

namespace tenon::artifact {
namespace {

class LibraryTest : public FolderTest {
 protected:
  // A library whose weight i is (7 i + 3) mod 256 at the ends of the segment, written from both
  // sides.
  std::string MakeLibrary(uint64_t weights_bytes) {
    std::string path = Path("model.so");
    LibraryWriter writer = Take(LibraryWriter::Create(Request(weights_bytes), path));
    uint64_t edge = std::min<uint64_t>(weights_bytes, 5000);
    std::vector<std::byte> head(edge);
    for (uint64_t i = 0; i < edge; ++i) head[i] = Weight(i);
    EXPECT_TRUE(writer.Write(0, head));
    {
      WritableRange tail = Take(writer.Map(weights_bytes - edge, edge));
      for (uint64_t i = 0; i < edge; ++i) tail.bytes()[i] = Weight(weights_bytes - edge + i);
    }
    EXPECT_TRUE(CommitTogether(Take(std::move(writer).Finish())));
    return path;
  }
  static std::byte Weight(uint64_t i) { return static_cast<std::byte>((7 * i + 3) & 0xff); }

  static void ExpectWeights(const std::string& path, uint64_t weights_bytes) {
    Function weight = Module::LoadFromFile(path).GetFunction("weight");
    for (uint64_t i :
         {uint64_t{0}, uint64_t{1}, weights_bytes / 2, weights_bytes - 2, weights_bytes - 1}) {
      if (i >= weights_bytes || (i >= 5000 && i < weights_bytes - 5000)) continue;
      EXPECT_EQ(static_cast<std::byte>(weight(static_cast<int64_t>(i)).AsInt()), Weight(i)) << i;
    }
  }
};

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST_F(LibraryTest, WeightsOfAllSizes) {
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{16}, uint64_t{4095}, uint64_t{4096},
                         uint64_t{4097}, 8 * kMiB - 1, 8 * kMiB, 8 * kMiB + 1, 13 * kMiB + 7}) {
    std::string path = MakeLibrary(bytes);
    ExpectWeights(path, bytes);
    Function main = Module::LoadFromFile(path).GetFunction("main");
    Tensor a = Tensor::Empty({1}, DataType::kFloat32);
    a.data_as<float>()[0] = 1;
    if (bytes < 16) EXPECT_EQ(Tensor(main(a, a)).data_as<float>()[0], 2);
  }
}

TEST_F(LibraryTest, WeightsBeyondFourGigabytesCostNothingToLoad) {
  // Mostly zeros that nobody writes, but the writer reserves their place on the disk; a loader
  // that read or copied them would take seconds and gigabytes of memory.
  uint64_t bytes = 5 * 1024 * kMiB + 123;
  if (const uint64_t free = fs::space(Path("")).available; free < bytes + 256 * kMiB) {
    GTEST_SKIP() << "needs " << bytes << " bytes of disk, " << free << " are free";
  }
  ExpectWeights(MakeLibrary(bytes), bytes);
}

TEST_F(LibraryTest, StripKeepsTheWeights) {
  for (const char* tool : {"strip", "llvm-strip-19"}) {
    if (system((std::string("command -v ") + tool + " > /dev/null 2>&1").c_str()) != 0) continue;
    for (uint64_t bytes : {uint64_t{100}, 9 * kMiB}) {
      std::string path = MakeLibrary(bytes);
      auto before = fs::file_size(path);
      ASSERT_EQ(system((std::string(tool) + " " + path).c_str()), 0);
      EXPECT_LE(fs::file_size(path), before + 2 * kMiB);
      ExpectWeights(path, bytes);
    }
  }
}

TEST_F(LibraryTest, SameRequestSameBytes) {
  EXPECT_EQ(LinkSharedLibrary(Request(1000)).value(), LinkSharedLibrary(Request(1000)).value());
}

TEST_F(LibraryTest, NeedsLibcAloneAndShowsExportsAlone) {
  std::string path = MakeLibrary(100);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  EXPECT_NE(dlsym(handle, "__tvm_ffi_main"), nullptr);
  EXPECT_NE(dlsym(handle, "__tenon_query_v5"), nullptr);
  for (const char* hidden :
       {"tn_core_run_team", "tn_weights_base", "tn_blob_info", "tn_main_instances"}) {
    EXPECT_EQ(dlsym(handle, hidden), nullptr) << hidden;
  }
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)), 0);
  std::vector<uint64_t> needed;
  const char* strings = nullptr;
  uint64_t flags = 0, flags_1 = 0;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED) needed.push_back(entry->d_un.d_val);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader has made it an address
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_FLAGS) flags = entry->d_un.d_val;
    if (entry->d_tag == DT_FLAGS_1) flags_1 = entry->d_un.d_val;
  }
  ASSERT_EQ(needed.size(), 1u);
  EXPECT_STREQ(strings + needed[0], "libc.so.6");
  EXPECT_FALSE(flags_1 & DF_1_NODELETE);
  EXPECT_FALSE(flags & (DF_STATIC_TLS | DF_TEXTREL));
  dlclose(handle);
}

// Headers, tables and code are compared with their checksum before anything of it runs; weights are
// not read for that, and what was stripped has no checksums.
TEST_F(LibraryTest, DamagedCodeIsNotLoaded) {
  constexpr uint64_t kWeights = 10000;
  for (uint64_t weights : {uint64_t{0}, kWeights}) {
    LibraryWriter writer = Take(LibraryWriter::Create(Request(weights), Path("model.so")));
    ASSERT_TRUE(CommitTogether(Take(std::move(writer).Finish())));
    const std::string whole = ReadFile(Path("model.so")).value();
    const size_t end = whole.size() - sizeof(Checksums);
    EXPECT_EQ(end % 8, 0u);
    const auto load = [&](const std::string& content) -> std::string {
      EXPECT_TRUE(WriteFile(Path("model.so"), content));
      tn_module_t* module = nullptr;
      if (tn_module_load(Path("model.so").c_str(), &module) != 0) return tn_last_error(nullptr);
      tn_module_unload(module);
      return "";
    };
    EXPECT_EQ(load(whole), "");
    // In a page that runs or is read; the ELF header itself has errors of its own.
    for (size_t at : {size_t{64}, size_t{0x2345}, end - weights - 9}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 4);
      EXPECT_EQ(load(damaged), "cannot load '" + Path("model.so") + "': the file is damaged") << at;
    }
    if (weights > 0) {
      std::string other = whole;
      other[end - 1] = static_cast<char>(other[end - 1] ^ 4);
      EXPECT_EQ(load(other), "");
    }
    EXPECT_EQ(load(whole.substr(0, end)), "");
    EXPECT_EQ(load(whole + std::string(8, '\0')), "");
  }
}

TEST_F(LibraryTest, ManyLibrariesInOneProcess) {
  // With static thread-local storage the hundredth or so would not load.
  std::vector<Function> teams;
  for (int i = 0; i < 150; ++i) {
    const std::string path = MakeLibrary(static_cast<uint64_t>(i));
    teams.push_back(Module::LoadFromFile(path).GetFunction("team"));
    EXPECT_GE(teams.back()().AsInt(), 1);
  }
}

TEST_F(LibraryTest, MissingSymbolsAreNamed) {
  LinkRequest request = Request();
  request.core = false;
  Expected<std::string> image = LinkSharedLibrary(request);
  ASSERT_FALSE(image);
  std::string text = ToString(image.errors());
  EXPECT_NE(text.find("undefined hidden symbol: tn_core_"), std::string::npos) << text;
  EXPECT_NE(text.find("add.o"), std::string::npos) << text;
  EXPECT_EQ(text.find("/proc/self/fd"), std::string::npos) << text;
}

TEST_F(LibraryTest, UnknownTargets) {
  LinkRequest request = Request();
  request.triple = "vax-dec-ultrix";
  Expected<std::string> image = LinkSharedLibrary(request);
  ASSERT_FALSE(image);
  EXPECT_NE(image.errors()[0].message.find("and for wasm32, not for 'vax-dec-ultrix'"),
            std::string::npos);
}

TEST_F(LibraryTest, NothingIsLeftWithoutCommit) {
  {
    LibraryWriter writer = Take(LibraryWriter::Create(Request(100), Path("model.so")));
    EXPECT_FALSE(fs::exists(Path("model.so")));
    EXPECT_EQ(FilesInFolder(), 1u);
  }
  EXPECT_EQ(FilesInFolder(), 0u);
  ASSERT_TRUE(WriteFile(Path("model.so"), "old"));
  {
    LibraryWriter writer = Take(LibraryWriter::Create(Request(100), Path("model.so")));
  }
  EXPECT_EQ(ReadFile(Path("model.so")).value(), "old");
  MakeLibrary(10);
  EXPECT_EQ(FilesInFolder(), 1u);
  struct stat status;
  ASSERT_EQ(stat(Path("model.so").c_str(), &status), 0);
  EXPECT_TRUE(status.st_mode & S_IXUSR);
}

TEST_F(LibraryTest, UnwrittenWeightsAreZero) {
  LibraryWriter writer = Take(LibraryWriter::Create(Request(10000), Path("model.so")));
  ASSERT_TRUE(CommitTogether(Take(std::move(writer).Finish())));
  Function weight = Module::LoadFromFile(Path("model.so")).GetFunction("weight");
  for (int64_t i : {0, 9999}) EXPECT_EQ(weight(i).AsInt(), 0);
}

TEST_F(LibraryTest, TemporaryLibrary) {
  LinkRequest request = Request();
  for (int round = 0; round < 20; ++round) {
    TemporaryLibrary library =
        Take(LoadTemporaryLibrary(request.objects, request.exports, request.triple));
    auto arena = reinterpret_cast<tn_packed_fn>(library.Find("__tvm_ffi_arena"));
    ASSERT_NE(arena, nullptr);
    EXPECT_EQ(library.Find("tn_core_run_team"), nullptr);
    tn_ffi_any bytes{TN_FFI_INT, 0, {100}}, result{};
    EXPECT_EQ(arena(nullptr, &bytes, 1, &result), 0);
    auto team = reinterpret_cast<tn_packed_fn>(library.Find("__tvm_ffi_team"));
    if (round % 2 == 1) EXPECT_EQ(team(nullptr, nullptr, 0, &result), 0);
    if (round % 2 == 1) EXPECT_GE(result.u.v_int64, 1);
  }
}

TEST_F(LibraryTest, ThreadsLinkAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(LinkSharedLibrary(Request(static_cast<uint64_t>(i))));
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon::artifact
