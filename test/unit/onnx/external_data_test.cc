// External data: contained in the model's directory, checked, mapped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model_builder.h"

namespace tenon::onnx::test {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::pair<std::string, std::string>>;

class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tenon_external_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "model/sub");
    Write("model/w.bin", std::string(64, '\x01'));
    Write("model/sub/w.bin", std::string(64, '\x02'));
    Write("secret.bin", std::string(64, '\x03'));
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }

  // The error of a model in model/ whose weight of 4 floats has these entries, or "".
  std::string Load(const Entries& entries) {
    Model m;
    m.Input("x", {4})
        .Field(5, External("w", {4}, entries))
        .Node("Add", {"x", "w"}, {"y"})
        .Output("y");
    Write("model/m.onnx", m.Bytes());
    Expected<graph::Graph> g = ImportOnnx((root_ / "model/m.onnx").string());
    if (!g) return g.errors()[0].loc.item + ": " + g.errors()[0].message;
    for (const graph::Value& v : g->values) {
      if (v.IsConstant()) first_byte_ = static_cast<int>(v.payload.bytes()[0]);
    }
    return "";
  }

  fs::path root_;
  int first_byte_ = 0;
};

TEST_F(ExternalDataTest, ReadsWhatIsInside) {
  EXPECT_EQ(Load({{"location", "w.bin"}}), "");
  EXPECT_EQ(first_byte_, 1);
  EXPECT_EQ(Load({{"location", "sub/w.bin"}, {"offset", "48"}, {"length", "16"}}), "");
  EXPECT_EQ(first_byte_, 2);
  EXPECT_EQ(Load({{"location", "./w.bin"}, {"checksum", "x"}}), "");
}

TEST_F(ExternalDataTest, RefusesWhatLeadsOutside) {
  const std::string expected =
      "initializer 'w': expected external data inside the model's directory, but location ";
  EXPECT_EQ(Load({{"location", "../secret.bin"}}), expected + "'../secret.bin' goes up");
  EXPECT_EQ(Load({{"location", "sub/../w.bin"}}), expected + "'sub/../w.bin' goes up");
  EXPECT_EQ(Load({{"location", (root_ / "secret.bin").string()}}),
            expected + "'" + (root_ / "secret.bin").string() + "' is absolute");
  EXPECT_EQ(Load({{"location", "/dev/zero"}}), expected + "'/dev/zero' is absolute");
  EXPECT_EQ(Load({{"location", ""}}), expected + "'' is empty");
  EXPECT_EQ(Load({}), "initializer 'w': external data without a location");
}

TEST_F(ExternalDataTest, RefusesLinksAndSpecialFiles) {
  fs::create_symlink(root_ / "secret.bin", root_ / "model/link.bin");
  fs::create_directory_symlink(root_, root_ / "model/dir");
  fs::create_hard_link(root_ / "secret.bin", root_ / "model/hard.bin");
  ASSERT_EQ(mkfifo((root_ / "model/fifo").c_str(), 0600), 0);
  EXPECT_NE(Load({{"location", "link.bin"}}).find("a link that leads out of the model's folder"),
            std::string::npos)
      << Load({{"location", "link.bin"}});
  EXPECT_NE(Load({{"location", "dir/secret.bin"}}).find("leads out of the model's folder"),
            std::string::npos);
  fs::create_symlink("link.bin", root_ / "model/again.bin");
  EXPECT_NE(Load({{"location", "again.bin"}}).find("leads out of the model's folder"),
            std::string::npos);
  EXPECT_NE(Load({{"location", "hard.bin"}}).find("it has several hard links"), std::string::npos);
  EXPECT_NE(Load({{"location", "fifo"}}).find("it is not a regular file"), std::string::npos);
  EXPECT_NE(Load({{"location", "sub"}}).find("it is not a regular file"), std::string::npos);
  EXPECT_NE(Load({{"location", "missing.bin"}}).find("No such file or directory"),
            std::string::npos);
}

TEST_F(ExternalDataTest, FollowsLinksThatStayInside) {
  fs::create_symlink("../w.bin", root_ / "model/sub/up.bin");
  fs::create_directory_symlink(root_ / "model/sub", root_ / "model/same");
  EXPECT_EQ(Load({{"location", "sub/up.bin"}}), "");
  EXPECT_EQ(first_byte_, 1);
  EXPECT_EQ(Load({{"location", "same/w.bin"}}), "");
  EXPECT_EQ(first_byte_, 2);
  fs::create_symlink("nowhere.bin", root_ / "model/dangling.bin");
  EXPECT_NE(Load({{"location", "dangling.bin"}}).find("No such file"), std::string::npos);
}

// A hub keeps files under the names of their contents, and models are folders of links to them.
TEST_F(ExternalDataTest, FollowsTheLinksOfAHubsCache) {
  EXPECT_EQ(Load({{"location", "w.bin"}}), "");
  fs::create_directories(root_ / "blobs");
  fs::create_directories(root_ / "snapshots/main/onnx");
  fs::rename(root_ / "model/m.onnx", root_ / "blobs/aa");
  fs::rename(root_ / "model/w.bin", root_ / "blobs/bb");
  fs::create_symlink("../../../blobs/aa", root_ / "snapshots/main/onnx/m.onnx");
  fs::create_symlink("../../../blobs/bb", root_ / "snapshots/main/onnx/w.bin");
  const std::string path = (root_ / "snapshots/main/onnx/m.onnx").string();
  EXPECT_TRUE(ImportOnnx(path));
  // Not where the model itself is no link to there, or another directory was given.
  ImportOptions given;
  given.external_data_dir = (root_ / "snapshots/main/onnx").string();
  EXPECT_FALSE(ImportOnnx(path, given));
  fs::remove(path);
  fs::copy(root_ / "blobs/aa", path);
  EXPECT_FALSE(ImportOnnx(path));
}

TEST_F(ExternalDataTest, ChecksNumbers) {
  EXPECT_EQ(Load({{"location", "w.bin"}, {"offset", "-1"}}),
            "initializer 'w': expected a number as external data offset, but got '-1'");
  EXPECT_EQ(Load({{"location", "w.bin"}, {"offset", "1e3"}}),
            "initializer 'w': expected a number as external data offset, but got '1e3'");
  EXPECT_EQ(Load({{"location", "w.bin"}, {"length", "99999999999999999999999"}}),
            "initializer 'w': expected a number as external data length, but got "
            "'99999999999999999999999'");
  EXPECT_EQ(Load({{"location", "w.bin"}, {"length", "17"}}),
            "initializer 'w': expected 16 bytes of external data for the tensor's type, but length "
            "is 17");
  EXPECT_EQ(
      Load({{"location", "w.bin"}, {"offset", "49"}}),
      "initializer 'w': external data of 16 bytes at 49 lies beyond the end of 'w.bin' (64 bytes)");
  EXPECT_EQ(Load({{"location", "w.bin"}, {"offset", "18446744073709551615"}}),
            "initializer 'w': external data of 16 bytes at 18446744073709551615 lies beyond the "
            "end of 'w.bin' (64 bytes)");
  EXPECT_EQ(Load({{"location", "w.bin"}, {"basepath", "/"}}),
            "initializer 'w': unknown external data key 'basepath'; expected location, offset, "
            "length or checksum");
}

TEST_F(ExternalDataTest, AnotherDirectoryMayBeGiven) {
  Model m;
  m.Input("x", {4})
      .Field(5, External("w", {4}, {{"location", "w.bin"}}))
      .Node("Add", {"x", "w"}, {"y"})
      .Output("y");
  Write("m.onnx", m.Bytes());
  ImportOptions options;
  options.external_data_dir = (root_ / "model").string();
  EXPECT_TRUE(ImportOnnx((root_ / "m.onnx").string(), options));
  EXPECT_FALSE(ImportOnnx((root_ / "m.onnx").string()));
}

}  // namespace
}  // namespace tenon::onnx::test
