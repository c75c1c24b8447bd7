#include "driver/file_facts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "folder.h"

namespace tenon::driver {
namespace {

class Facts : public ::testing::Test {
 protected:
  void Write(const std::string& text) {
    std::ofstream file(file_);
    file << text;
  }
  // Until what was written is no longer new.
  static void Settle() { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }
  std::string Length(const FileFacts& facts, const std::string& kind = "length") {
    const Expected<std::string> fact = facts.Of(file_, kind, [&]() -> Expected<std::string> {
      ++found_;
      struct stat s = {};
      if (stat(file_.c_str(), &s) != 0) return MakeError("there is no file");
      return std::to_string(s.st_size);
    });
    return fact ? *fact : fact.errors()[0].message;
  }

  test::Folder folder_;
  const std::string file_ = folder_ / "file";
  int found_ = 0;
};

TEST_F(Facts, AreKeptWhileAFileIsTheSame) {
  const FileFacts facts(folder_ / "facts");
  EXPECT_EQ(Length(facts), "there is no file");
  Write("four");
  EXPECT_EQ(Length(facts), "4");
  EXPECT_EQ(Length(facts), "4");
  EXPECT_EQ(found_, 3) << "a file that was written just now may change again";
  Settle();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Length(facts), "4");
  EXPECT_EQ(found_, 4);
  EXPECT_EQ(Length(facts, "other"), "4");
  EXPECT_EQ(found_, 5) << "kinds are apart";
  EXPECT_EQ(Length(FileFacts(folder_ / "facts")), "4");
  EXPECT_EQ(found_, 5) << "other processes know it, too";
  Write("fives");
  EXPECT_EQ(Length(facts), "5");
  // Of the same size, and as old as before: the time of the change itself tells.
  Settle();
  EXPECT_EQ(Length(facts), "5");
  EXPECT_EQ(Length(facts), "5");
  EXPECT_EQ(found_, 7);
  struct stat before = {};
  stat(file_.c_str(), &before);
  Write("sixes");
  const timespec times[] = {before.st_atim, before.st_mtim};
  utimensat(AT_FDCWD, file_.c_str(), times, 0);
  EXPECT_EQ(Length(facts), "5");
  EXPECT_EQ(found_, 8);
}

TEST_F(Facts, NeedNoFolder) {
  Write("four");
  Settle();
  for (const char* folder : {"", "/proc/facts", "/dev/null/facts"}) {
    const FileFacts facts(folder);
    EXPECT_EQ(Length(facts), "4");
    EXPECT_EQ(Length(facts), "4");
  }
  EXPECT_EQ(found_, 6);
}

}  // namespace
}  // namespace tenon::driver
