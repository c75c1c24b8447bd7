#include "npy.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "support/file.h"

namespace tenon::tools {
namespace {

constexpr tn_dl_data_type kFloat32{TN_DL_FLOAT, 32, 1};
constexpr tn_dl_data_type kInt64{TN_DL_INT, 64, 1};

Tensor Counting(tn_dl_data_type type, const std::vector<int64_t>& shape) {
  Tensor t = *Tensor::Make(type, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.Set(i, static_cast<double>(i % 2));
  return t;
}

class NpyTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-npy-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::string directory_;
};

TEST_F(NpyTest, EveryTypeAndShapeReadsBack) {
  const std::vector<std::vector<int64_t>> shapes = {{},     {0},       {1},         {7},
                                                    {2, 3}, {3, 0, 5}, {2, 1, 5, 3}};
  for (uint8_t code : {TN_DL_FLOAT, TN_DL_INT, TN_DL_UINT, TN_DL_BOOL}) {
    for (uint8_t bits : {8, 16, 32, 64}) {
      tn_dl_data_type type{code, bits, 1};
      if (!IsPlainType(type)) continue;
      for (const auto& shape : shapes) {
        Tensor t = Counting(type, shape);
        ASSERT_TRUE(WriteNpy(Path("a.npy"), t));
        ASSERT_TRUE(WriteNpz(Path("a.npz"), {{"x/y", t}, {"z", t}}));
        Tensor back = *ReadNpy(Path("a.npy"));
        NamedTensors archive = *ReadNpz(Path("a.npz"));
        ASSERT_EQ(archive.size(), 2u);
        EXPECT_EQ(archive[0].first, "x/y");
        for (const Tensor& b : {back, archive[1].second}) {
          EXPECT_EQ(ToString(b.dtype()), ToString(type));
          EXPECT_EQ(ShapeText(b.shape()), ShapeText(t.shape()));
          EXPECT_TRUE(std::ranges::equal(b.bytes(), t.bytes()));
        }
      }
    }
  }
}

TEST_F(NpyTest, SameArraysGiveTheSameArchive) {
  Tensor t = Counting(kFloat32, {5});
  ASSERT_TRUE(WriteNpz(Path("a.npz"), {{"x", t}}));
  ASSERT_TRUE(WriteNpz(Path("b.npz"), {{"x", t}}));
  EXPECT_EQ(*ReadFile(Path("a.npz")), *ReadFile(Path("b.npz")));
}

TEST_F(NpyTest, HeadsAreAligned) {
  for (int64_t rank = 0; rank < 20; ++rank) {
    std::vector<int64_t> shape(static_cast<size_t>(rank), 12345);
    EXPECT_EQ(FormatNpyHeader(kFloat32, shape).size() % 64, 0u);
  }
}

TEST_F(NpyTest, FortranOrderBecomesRows) {
  std::string head = FormatNpyHeader(kInt64, std::vector<int64_t>{2, 3});
  head.replace(head.find("False"), 5, "True ");
  Tensor columns = *Tensor::Make(kInt64, {6});
  for (int64_t i = 0; i < 6; ++i) columns.Set(i, static_cast<double>(i));
  std::ofstream(Path("f.npy"), std::ios::binary)
      << head << std::string(reinterpret_cast<const char*>(columns.bytes().data()), 48);
  Tensor rows = *ReadNpy(Path("f.npy"));
  const double expected[] = {0, 2, 4, 1, 3, 5};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(rows.At(i), expected[i]);
}

TEST_F(NpyTest, AnyCutOrChangedHeadIsAnErrorOrAnArray) {
  const std::string head = FormatNpyHeader(kFloat32, std::vector<int64_t>{2, 3});
  for (size_t size = 0; size < head.size(); ++size)
    EXPECT_FALSE(ParseNpyHeader(head.substr(0, size), "f"));
  for (size_t at = 0; at < head.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = head;
      changed[at] = static_cast<char>(value);
      auto parsed = ParseNpyHeader(changed, "f");
      if (parsed) EXPECT_LE(parsed->header_bytes, changed.size());
    }
  }
}

TEST_F(NpyTest, SizesThatOverflowAreALimit) {
  const std::string head = FormatNpyHeader(kFloat32, std::vector<int64_t>{1LL << 40, 1LL << 40});
  auto parsed = ParseNpyHeader(head, "f");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.errors()[0].kind, ErrorKind::kLimit);
  EXPECT_EQ(
      ParseNpyHeader(FormatNpyHeader(kFloat32, std::vector<int64_t>{1LL << 62, 0, 1LL << 62}), "f")
          ->data_bytes,
      0u);
}

}  // namespace
}  // namespace tenon::tools
