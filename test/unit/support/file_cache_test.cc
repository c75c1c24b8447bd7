#include "support/file_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "support/atomic_file.h"
#include "support/file.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

class FileCacheTest : public testing::Test {
 protected:
  FileCacheTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~FileCacheTest() override { fs::remove_all(folder_); }

  std::string PathOf(const std::string& key) const {
    const std::string hex = Key(key).ToHex();
    return folder_ + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
  }
  static Hash128 Key(const std::string& text) { return HashText(text); }
  // Used so many seconds before now.
  void MakeOld(const std::string& key, int64_t seconds) const {
    fs::last_write_time(PathOf(key),
                        fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }

  std::string folder_ = fs::temp_directory_path() / "tenon-file-cache-XXXXXX";
};

using Values = std::vector<std::string>;

TEST_F(FileCacheTest, FindsWhatWasKept) {
  const FileCache cache(folder_ + "/new/folder", 0);
  EXPECT_FALSE(cache.Find(Key("a")));
  const Values values = {"one", "", std::string("\0\n", 2), std::string(100'000, 'x')};
  cache.Keep(Key("a"), values);
  cache.Keep(Key("none"), {});
  EXPECT_EQ(cache.Find(Key("a")), values);
  EXPECT_EQ(cache.Find(Key("none")), Values());
  EXPECT_FALSE(cache.Find(Key("b")));
  cache.Keep(Key("a"), {{"two"}});
  EXPECT_EQ(FileCache(folder_ + "/new/folder", 0).Find(Key("a")), Values{"two"});
  EXPECT_EQ(cache.TakeSize().entries, 2);
  cache.Clear();
  EXPECT_EQ(cache.TakeSize().entries, 0);
}

// Cut off at every length, and with every byte another one.
TEST_F(FileCacheTest, ADamagedEntryIsNotThere) {
  const FileCache cache(folder_, 0);
  cache.Keep(Key("a"), {{"some", "words"}});
  const std::string whole = ReadFile(PathOf("a")).value();
  for (size_t i = 0; i < whole.size(); ++i) {
    ASSERT_TRUE(WriteFile(PathOf("a"), whole.substr(0, i)));
    EXPECT_FALSE(cache.Find(Key("a"))) << i;
    EXPECT_FALSE(fs::exists(PathOf("a")));
    std::string other = whole;
    other[i] = static_cast<char>(other[i] ^ 1);
    ASSERT_TRUE(WriteFile(PathOf("a"), other));
    EXPECT_FALSE(cache.Find(Key("a"))) << i;
  }
  ASSERT_TRUE(WriteFile(PathOf("a"), whole));
  EXPECT_TRUE(cache.Find(Key("a")));
}

TEST_F(FileCacheTest, WhatWasUsedLongestAgoGoes) {
  const std::string value(1000, 'x');
  const FileCache cache(folder_, 3500);
  int64_t age = 100;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    cache.Keep(Key(key), {{value}});
    MakeOld(key, age -= 10);
  }
  ASSERT_TRUE(cache.Find(Key("a")));
  cache.Trim();
  EXPECT_TRUE(cache.Find(Key("a")));
  EXPECT_FALSE(cache.Find(Key("b")));
  EXPECT_FALSE(cache.Find(Key("c")));
  EXPECT_TRUE(cache.Find(Key("e")));
}

TEST_F(FileCacheTest, WhatKilledWritersLeftGoes) {
  const FileCache cache(folder_, 0);
  cache.Keep(Key("a"), {{"word"}});
  for (const char* name : {"/.old", "/.new"}) {
    ASSERT_TRUE(WriteFile(fs::path(PathOf("a")).parent_path().string() + name, "half"));
  }
  fs::last_write_time(fs::path(PathOf("a")).parent_path() / ".old",
                      fs::file_time_type::clock::now() - std::chrono::hours(30));
  cache.Trim();
  EXPECT_FALSE(fs::exists(fs::path(PathOf("a")).parent_path() / ".old"));
  EXPECT_TRUE(fs::exists(fs::path(PathOf("a")).parent_path() / ".new"));
  EXPECT_TRUE(cache.Find(Key("a")));
}

TEST_F(FileCacheTest, IsTrimmedOnceAnHour) {
  const FileCache cache(folder_, 1);
  cache.Keep(Key("a"), {{"word"}});
  cache.TrimNowAndThen();
  EXPECT_FALSE(cache.Find(Key("a")));
  cache.Keep(Key("a"), {{"word"}});
  cache.TrimNowAndThen();
  EXPECT_TRUE(cache.Find(Key("a")));
  fs::last_write_time(folder_ + "/trimmed",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.TrimNowAndThen();
  EXPECT_FALSE(cache.Find(Key("a")));
}

TEST_F(FileCacheTest, WhereNothingCanBeWrittenNothingIsKept) {
  const FileCache cache("/proc/nowhere", 10);
  cache.Keep(Key("a"), {{"word"}});
  EXPECT_FALSE(cache.Find(Key("a")));
  cache.TrimNowAndThen();
  cache.Clear();
  EXPECT_EQ(cache.TakeSize().entries, 0);
}

TEST_F(FileCacheTest, ThreadsShareAFolder) {
  const FileCache cache(folder_, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const std::string key = std::to_string(i % 10);
        if (const auto found = cache.Find(Key(key))) EXPECT_EQ(*found, Values{key});
        cache.Keep(Key(key), {{key}});
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cache.TakeSize().entries, 10);
}

}  // namespace
}  // namespace tenon
