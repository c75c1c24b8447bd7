#include "support/hash.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Hash, MatchesPublishedValues) {
  EXPECT_EQ(HashText("").ToHex(), "00000000000000000000000000000000");
  EXPECT_EQ(HashText("The quick brown fox jumps over the lazy dog").ToHex(),
            "e34bbc7bbc071b6c7a433ca9c49a9347");
  EXPECT_EQ(HashText("hello").ToHex(), "cbd8a7b341bd9b025b1e906a48ae1d19");
}

TEST(Hash, CutsDoNotMatter) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 7);
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t size : {0, 1, 8, 15, 16, 17, 31, 32, 100}) {
    const Hash128 whole = HashBytes(bytes.first(size));
    for (size_t cut = 0; cut <= size; ++cut) {
      Hasher hasher;
      hasher.Add(bytes.first(cut)).Add(bytes.subspan(cut, size - cut));
      EXPECT_EQ(hasher.Finish(), whole) << size << " cut at " << cut;
    }
  }
}

TEST(Hash, TextsAreFramed) {
  EXPECT_NE(Hasher().Text("ab").Text("c").Finish(), Hasher().Text("a").Text("bc").Finish());
  EXPECT_NE(Hasher().Text("").Finish(), Hasher().Finish());
  EXPECT_NE(Hasher(1).Int(5).Finish(), Hasher(2).Int(5).Finish());
}

}  // namespace
}  // namespace tenon
