// Logs: what is written comes back, from the database and from its text; what is broken, foreign or
// of another version is passed over or refused by name; several writers share one file; what a log
// says does not depend on the order in which it came.
#include "tune/log.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "ops/algorithm.h"
#include "support/atomic_file.h"
#include "tune/history.h"

namespace tenon::tune {
namespace {

namespace fs = std::filesystem;

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::temp_directory_path() / (std::string("tune_log_test.") + std::to_string(getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ / name; }

  fs::path folder_;
};

Record SomeRecord(const std::string& point, double seconds, bool leader = false) {
  Record r;
  r.kernel = std::string(32, 'a');
  r.machine = std::string(32, 'b');
  r.target = "llvm";
  r.cache = "warm";
  r.algorithm = "packed_matmul";
  r.epoch = ops::FindAlgorithm(r.algorithm)->epoch;
  r.point = point;
  r.outcome = kOk;
  r.seconds = seconds;
  r.leader = leader;
  r.predicted = 1e-6;
  r.pairs = 100;
  return r;
}

void Add(Log* log, Record r) {
  const Record wanted = r;
  ASSERT_TRUE(log->Begin(&r));
  Record done = wanted;
  done.id = r.id;
  ASSERT_TRUE(log->Finish(done));
}

Log OpenLog(const std::string& path) { return std::move(Log::Open(path).value()); }

const Circumstances kHere{std::string(32, 'b'), "llvm", 1};

TEST_F(LogTest, RecordsComeBack) {
  {
    Log log = OpenLog(Path("log"));
    ASSERT_TRUE(log.AddKernel(std::string(32, 'a'), "graph @kernel"));
    Add(&log, SomeRecord("{nv: 2}", 2e-6));
    Add(&log, SomeRecord("{nv: 4}", 1.5e-6, true));
  }
  const LogContents contents = ReadLog(Path("log")).value();
  EXPECT_TRUE(contents.skipped.empty());
  ASSERT_EQ(contents.records.size(), 2U);
  EXPECT_EQ(contents.records[0].point, "{nv: 2}");
  EXPECT_EQ(contents.records[1].seconds, 1.5e-6);
  EXPECT_TRUE(contents.records[1].leader);
  EXPECT_EQ(contents.kernels.at(std::string(32, 'a')), "graph @kernel");
  // Closed, it is one file.
  EXPECT_FALSE(fs::exists(Path("log-wal")));
  EXPECT_TRUE(IsLog(Path("log")));
  // Its text says the same.
  const std::string lines = ToLines(contents);
  ASSERT_TRUE(WriteFile(Path("lines"), lines));
  EXPECT_TRUE(IsLog(Path("lines")));
  const LogContents again = ReadLog(Path("lines")).value();
  EXPECT_EQ(again.records, contents.records);
  EXPECT_EQ(again.kernels, contents.kernels);
  EXPECT_EQ(ToLines(again), lines);
}

TEST_F(LogTest, BrokenLinesAreNamedAndTheRestIsUsed) {
  LogContents contents;
  Record r = SomeRecord("{nv: 2}", 2e-6);
  r.id = std::string(32, 'c');
  std::string text = ToLine(r);
  text += "no JSON\n";
  text += "{\"tenon_log\": 2, \"record\": {}}\n";
  Record bad = r;
  bad.seconds = -1;
  text += ToLine(bad);
  bad = r;
  bad.outcome = "fine";
  text += ToLine(bad);
  text += "[]\n\n{\"tenon_log\": 1, \"record\": {\"id\": 5}}\n";
  const LogContents read = ParseLines(text, "the.log");
  EXPECT_EQ(read.records.size(), 1U);
  ASSERT_EQ(read.skipped.size(), 6U);
  EXPECT_EQ(read.skipped[0].loc.file, "the.log");
  EXPECT_EQ(read.skipped[0].loc.line, 2);
  EXPECT_NE(read.skipped[1].message.find("version 2"), std::string::npos);
  EXPECT_EQ(read.skipped[5].loc.line, 8);
}

TEST_F(LogTest, RowsThatMakeNoSenseArePassedOver) {
  {
    Log log = OpenLog(Path("log"));
    Add(&log, SomeRecord("{nv: 2}", 2e-6));
    Add(&log, SomeRecord("{nv: 4}", 2e-6));
  }
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(Path("log").c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "UPDATE records SET seconds = -3 WHERE point = '{nv: 2}'", nullptr,
               nullptr, nullptr);
  sqlite3_close(database);
  const LogContents contents = ReadLog(Path("log")).value();
  EXPECT_EQ(contents.records.size(), 1U);
  ASSERT_EQ(contents.skipped.size(), 1U);
  EXPECT_EQ(contents.skipped[0].loc.file, Path("log"));
  EXPECT_GT(contents.skipped[0].loc.line, 0);
}

TEST_F(LogTest, ForeignFilesAreRefused) {
  auto execute = [&](const std::string& name, const char* sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(Path(name).c_str(), &database), SQLITE_OK);
    sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
    sqlite3_close(database);
  };
  execute("other", "CREATE TABLE t(x)");
  EXPECT_FALSE(ReadLog(Path("other")));
  EXPECT_FALSE(Log::Open(Path("other")));
  {
    Log log = OpenLog(Path("newer"));
  }
  execute("newer", "PRAGMA user_version = 9");
  const auto newer = ReadLog(Path("newer"));
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.errors()[0].message.find("version 9"), std::string::npos);
  {
    Log log = OpenLog(Path("trigger"));
  }
  execute("trigger", "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END");
  EXPECT_FALSE(ReadLog(Path("trigger")));
  EXPECT_FALSE(Log::Open(Path("trigger")));
  EXPECT_FALSE(ReadLog(Path("missing")));
  EXPECT_FALSE(Log::Open(Path("no/such/folder/log")));
}

TEST_F(LogTest, DamagedDatabasesNeverCrash) {
  {
    Log log = OpenLog(Path("log"));
    for (int i = 0; i < 50; ++i) Add(&log, SomeRecord("{nv: " + std::to_string(i) + "}", 1e-6));
  }
  std::ifstream in(Path("log"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (size_t at = 0; at < whole.size(); at += 97) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x5A);
    ASSERT_TRUE(WriteFile(Path("damaged"), damaged));
    const auto contents = ReadLog(Path("damaged"));  // errors and passed-over rows are fine
    if (contents) EXPECT_LE(contents->records.size(), 50U);
  }
  ASSERT_TRUE(WriteFile(Path("cut"), whole.substr(0, whole.size() / 2)));
  (void)ReadLog(Path("cut"));
}

TEST_F(LogTest, SeveralProcessesWriteIntoOne) {
  constexpr int kProcesses = 4, kRecords = 25;
  {
    Log log = OpenLog(Path("log"));
  }
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      Expected<Log> log = Log::Open(Path("log"));
      if (!log) _exit(1);
      for (int i = 0; i < kRecords; ++i) {
        Record r = SomeRecord("{p: " + std::to_string(p) + ", i: " + std::to_string(i) + "}", 1e-6);
        if (!log->Begin(&r)) _exit(1);
        r.outcome = kOk;
        if (!log->Finish(r)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(ReadLog(Path("log")).value().records.size(), size_t{kProcesses * kRecords});
}

TEST_F(LogTest, MergeAddsWhatIsNew) {
  Log a = OpenLog(Path("a"));
  Add(&a, SomeRecord("{nv: 2}", 2e-6));
  Log b = OpenLog(Path("b"));
  Add(&b, SomeRecord("{nv: 4}", 1e-6));
  const LogContents other = b.Read().value();
  EXPECT_EQ(a.Merge(other).value(), 1);
  EXPECT_EQ(a.Merge(other).value(), 0);
  EXPECT_EQ(a.Read().value().records.size(), 2U);
  EXPECT_EQ(a.KeepOnly({other.records[0].id}).value(), 1);
  EXPECT_EQ(a.Read().value().records, other.records);
}

TEST(History, LeadersLeadAndNothingElseIsFaster) {
  LogContents contents;
  contents.records = {SomeRecord("{nv: 1}", 3e-6, true), SomeRecord("{nv: 2}", 2e-6, true),
                      SomeRecord("{nv: 4}", 1.99e-6)};  // within the noise of the leader
  const History history = History::Of(contents, kHere);
  const KernelHistory* known = history.Find(std::string(32, 'a'));
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->best, "packed_matmul {nv: 2}");
  EXPECT_EQ(known->seconds.at("packed_matmul {nv: 2}"), 2e-6);
  EXPECT_GT(known->seconds.at("packed_matmul {nv: 4}"), 2e-6);
}

TEST(History, DoesNotDependOnTheOrderOfRecords) {
  LogContents contents;
  for (int i = 0; i < 6; ++i) {
    Record r = SomeRecord("{nv: " + std::to_string(i % 3) + "}", 1e-6 * (1 + i), i % 2 == 0);
    r.id = std::string(31, 'd') + static_cast<char>('0' + i);
    contents.records.push_back(r);
  }
  std::sort(contents.records.begin(), contents.records.end());
  const History first = History::Of(contents, kHere);
  LogContents turned = contents;
  std::reverse(turned.records.begin(), turned.records.end());
  const std::string text = ToLines(turned);
  const History second = History::Of(ParseLines(text, ""), kHere);
  const std::string kernel(32, 'a');
  EXPECT_EQ(first.Find(kernel)->best, second.Find(kernel)->best);
  EXPECT_EQ(first.Find(kernel)->seconds, second.Find(kernel)->seconds);
  EXPECT_EQ(first.Find(kernel)->ids, second.Find(kernel)->ids);
}

TEST(History, BansWhatWasUnderWayAtTwoDeaths) {
  LogContents contents;
  Record r = SomeRecord("{nv: 2}", 0);
  r.outcome = kStarted;
  r.owner = "";  // of a process that is gone
  contents.records = {r};
  const std::string kernel(32, 'a'), trace = "packed_matmul {nv: 2}";
  EXPECT_FALSE(History::Of(contents, kHere).Find(kernel)->IsBanned(trace));
  r.outcome = "crash";
  contents.records.push_back(r);
  EXPECT_TRUE(History::Of(contents, kHere).Find(kernel)->IsBanned(trace));
  Record wrong = SomeRecord("{nv: 4}", 0);
  wrong.outcome = "wrong";
  contents.records = {wrong};
  EXPECT_TRUE(History::Of(contents, kHere).Find(kernel)->IsBanned("packed_matmul {nv: 4}"));
}

TEST(History, PassesOverOtherMachinesTargetsTeamsAndEpochs) {
  LogContents contents;
  Record r = SomeRecord("{nv: 2}", 1e-6);
  contents.records.push_back(r);
  r.machine = std::string(32, 'e');
  contents.records.push_back(r);
  r = SomeRecord("{nv: 2}", 1e-6);
  r.target = "llvm -mcpu=other";
  contents.records.push_back(r);
  r = SomeRecord("{nv: 2}", 1e-6);
  r.team = 2;
  contents.records.push_back(r);
  r = SomeRecord("{nv: 2}", 1e-6);
  r.epoch = 1000;
  contents.records.push_back(r);
  r = SomeRecord("{nv: 2}", 1e-6);
  r.algorithm = "no_such_algorithm";
  contents.records.push_back(r);
  EXPECT_EQ(History::Of(contents, kHere).others(), 5);
  EXPECT_EQ(History::Of(contents, {"", "llvm", 1}).others(), 4);
}

TEST(Lines, OfOthersAreNamed) {
  const LogContents contents = ParseLines(
      "{\"i\": [], \"r\": [], \"v\": \"v0.6\"}\n{\"input\": [], \"config\": {}, \"version\": "
      "0.2}\n[]\n",
      "f");
  ASSERT_EQ(contents.skipped.size(), 3U);
  EXPECT_EQ(contents.skipped[0].message,
            "passed over: it is a record of Ansor's, whose hash keys cannot be recreated: tune "
            "again");
  EXPECT_EQ(contents.skipped[1].message,
            "passed over: it is a record of AutoTVM, which `tenon tune --hints` takes");
  EXPECT_EQ(contents.skipped[2].message, "passed over: it is no line of a log");
}

}  // namespace
}  // namespace tenon::tune
