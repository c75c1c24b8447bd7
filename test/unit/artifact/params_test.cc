#include "artifact/params.h"

#include <unistd.h>

#include "artifact/checksum.h"
#include "artifact/library_writer.h"
#include "tenon/tenon.hpp"
#include "testing.h"

namespace tenon::artifact {
namespace {

class ParamsTest : public FolderTest {
 protected:
  // A library of 9 MiB of weights in a file of their own: two entries, of ones and of twos.
  void MakeLibrary() {
    LinkRequest request = Request(kBytes);
    request.params_name = "model.params";
    table_ = {{"conv1.weight", {TN_DL_FLOAT, 32, 1}, {64, 3, 7, 7}, "NCHW16c", {1, 2}, 0, 1000},
              {"fc", {TN_DL_INT, 8, 1}, {}, "", {3, 4}, 4096, kBytes - 4096}};
    LibraryWriter writer = Take(LibraryWriter::Create(request, Path("model.so"), table_));
    ASSERT_TRUE(writer.Write(0, std::vector<std::byte>(1000, std::byte{1})));
    ASSERT_TRUE(writer.Write(4096, std::vector<std::byte>(kBytes - 4096, std::byte{2})));
    ASSERT_TRUE(CommitTogether(Take(std::move(writer).Finish())));
  }
  std::string Load() {
    tn_module_t* module = nullptr;
    if (tn_module_load(Path("model.so").c_str(), &module) != 0) return tn_last_error(nullptr);
    tn_module_free(module);
    return "loaded";
  }
  // The file's contents after a change, written to another file (those of a mapped one must stay).
  void Rewrite(const std::string& contents) {
    ASSERT_TRUE(WriteFile(Path("model.params"), contents));
  }
  std::string Fault(const std::string& fault) {
    return "cannot load the weights '" + Path("model.params") + "': " + fault;
  }

  static constexpr uint64_t kBytes = uint64_t{9} << 20;
  std::vector<ParamEntry> table_;
};

TEST_F(ParamsTest, TheLibraryFindsItsWeights) {
  MakeLibrary();
  EXPECT_LT(fs::file_size(Path("model.so")), uint64_t{100000});
  EXPECT_EQ(FilesInFolder(), 2u);
  Function weight = Module::LoadFromFile(Path("model.so")).GetFunction("weight");
  EXPECT_EQ(weight(0).AsInt(), 1);
  EXPECT_EQ(weight(999).AsInt(), 1);
  EXPECT_EQ(weight(1000).AsInt(), 0);
  EXPECT_EQ(weight(static_cast<int64_t>(kBytes - 1)).AsInt(), 2);
}

TEST_F(ParamsTest, TheTableReadsBack) {
  MakeLibrary();
  ParamsFile file = Take(ParamsFile::Open(Path("model.params")));
  ASSERT_EQ(file.entries().size(), table_.size());
  for (size_t i = 0; i < table_.size(); ++i) {
    const ParamEntry &got = file.entries()[i], &put = table_[i];
    EXPECT_EQ(got.name, put.name);
    EXPECT_EQ(got.dims, put.dims);
    EXPECT_EQ(got.layout, put.layout);
    EXPECT_EQ(got.hash, put.hash);
    EXPECT_EQ(got.dtype.bits, put.dtype.bits);
    ASSERT_EQ(file.Bytes(got).size(), put.bytes);
    EXPECT_EQ(file.Bytes(got).back(), static_cast<std::byte>(i + 1));
  }
}

TEST_F(ParamsTest, FilesThatDoNotBelong) {
  MakeLibrary();
  std::string whole = ReadFile(Path("model.params")).value();
  unlink(Path("model.params").c_str());
  EXPECT_EQ(Load(), Fault("there is no such file"));
  Rewrite("short");
  EXPECT_EQ(Load(), Fault("the file is truncated"));
  Rewrite(std::string(200, 'x'));
  EXPECT_EQ(Load(), Fault("it is not a file of weights"));
  std::string changed = whole;
  changed[17]++;
  Rewrite(changed);
  EXPECT_EQ(Load(), Fault("it belongs to another library"));
  Rewrite(whole.substr(0, whole.size() - sizeof(Checksums) - 1));
  EXPECT_EQ(Load(), Fault("the file is truncated"));
  Rewrite(whole);
  EXPECT_EQ(Load(), "loaded");
}

TEST_F(ParamsTest, NoTableIsReadOutsideTheFile) {
  std::vector<ParamEntry> table = {{"a", {TN_DL_FLOAT, 32, 1}, {2, 3}, "x", {1, 2}, 0, 24}};
  std::string head = EncodeParamsHead(table, {5, 6}, 24);
  std::string whole = head + std::string(24, 'w');
  for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 97) {
    Rewrite(whole.substr(0, size));
    EXPECT_FALSE(ParamsFile::Open(Path("model.params"))) << size;
  }
  // Every byte of the header and table, set to extremes: an error or a table within the file.
  for (size_t at = 0; at < 200; ++at) {
    for (char value : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = value;
      Rewrite(changed);
      Expected<ParamsFile> file = ParamsFile::Open(Path("model.params"));
      if (!file) continue;
      for (const ParamEntry& entry : file->entries()) {
        std::string copy(reinterpret_cast<const char*>(file->Bytes(entry).data()), entry.bytes);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::artifact
