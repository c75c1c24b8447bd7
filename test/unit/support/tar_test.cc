#include "support/tar.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

// The layout is POSIX's; that tar programs read it is tested from Python, where a library is loaded
// from such a file.
TEST(Tar, FilesLieInBlocksWithHeaders) {
  TarWriter tar;
  tar.Add("a.txt", "hello");
  tar.Add("empty", "");
  std::string bytes = tar.Finish();
  ASSERT_EQ(bytes.size(), 512U * 5);
  EXPECT_EQ(bytes.substr(0, 6), std::string("a.txt\0", 6));
  EXPECT_EQ(bytes.substr(124, 12), std::string("00000000005\0", 12));
  EXPECT_EQ(bytes.substr(257, 6), std::string("ustar\0", 6));
  EXPECT_EQ(bytes.substr(512, 5), "hello");
  EXPECT_EQ(bytes.substr(1024, 5), "empty");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(bytes[i]);
  }
  EXPECT_EQ(std::stoul(bytes.substr(148, 6), nullptr, 8), sum);
}

}  // namespace
}  // namespace tenon
