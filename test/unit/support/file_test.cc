#include "support/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/atomic_file.h"
#include "support/leftovers.h"
#include "support/thread_pool.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// A directory that goes with the test.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tenon-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  size_t Entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

TEST_F(FileTest, WritesAndReadsBack) {
  for (size_t size : {0, 1, 4095, 4096, 4097, 100003}) {
    const std::string content(size, 'x');
    ASSERT_TRUE(WriteFile(Path("a"), content));
    EXPECT_EQ(*ReadFile(Path("a")), content);
    auto mapped = MappedFile::Open(Path("a"));
    ASSERT_TRUE(mapped);
    EXPECT_EQ(mapped->size(), size);
    EXPECT_EQ(mapped->text(), content);
  }
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(FileTest, ReleasedPagesReadAgain) {
  std::string content;
  for (int i = 0; i < 5000; ++i) content += std::to_string(i);
  ASSERT_TRUE(WriteFile(Path("a"), content));
  auto mapped = MappedFile::Open(Path("a"));
  ASSERT_TRUE(mapped);
  mapped->ReleasePages(1, content.size() - 1);
  mapped->ReleasePages(0, 0);
  mapped->ReleasePages(0, content.size());
  EXPECT_EQ(mapped->text(), content);
}

TEST_F(FileTest, MappingMoves) {
  ASSERT_TRUE(WriteFile(Path("a"), "hello"));
  auto mapped = MappedFile::Open(Path("a"));
  ASSERT_TRUE(mapped);
  const std::byte* data = mapped->data();
  MappedFile moved = std::move(*mapped);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.text(), "hello");
}

TEST_F(FileTest, RefusesWhatIsNotAFile) {
  auto missing = ReadFile(Path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.errors()[0].message.find("No such file"), std::string::npos);
  auto directory = MappedFile::Open(directory_.string());
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.errors()[0].message.find("is a directory"), std::string::npos);
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(MappedFile::Open(Path("pipe")));
  EXPECT_FALSE(AtomicFile::Create(Path("pipe")));
  EXPECT_FALSE(AtomicFile::Create(Path("no/such/directory")));
}

TEST_F(FileTest, ReadHonoursItsLimit) {
  ASSERT_TRUE(WriteFile(Path("a"), "12345"));
  EXPECT_TRUE(ReadFile(Path("a"), 5));
  auto result = ReadFile(Path("a"), 4);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.errors()[0].kind, ErrorKind::kLimit);
}

TEST_F(FileTest, NothingIsLeftWithoutCommit) {
  ASSERT_TRUE(WriteFile(Path("a"), "old"));
  {
    auto file = AtomicFile::Create(Path("a"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Append("new"));
    EXPECT_EQ(*ReadFile(Path("a")), "old");
    EXPECT_EQ(*ReadFile(file->temporary_path()), "new");
  }
  EXPECT_EQ(*ReadFile(Path("a")), "old");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(FileTest, WritesAtOffsetsFromSeveralThreads) {
  auto file = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Resize(26 * 1000));
  ParallelFor(26, 4, [&](int64_t i) {
    const std::string piece(1000, static_cast<char>('a' + i));
    EXPECT_TRUE(file->WriteAt(static_cast<uint64_t>(i) * 1000, std::as_bytes(std::span(piece))));
  });
  ASSERT_TRUE(file->Append("end"));
  ASSERT_TRUE(file->Commit());
  const std::string content = *ReadFile(Path("a"));
  EXPECT_EQ(content.size(), 26003u);
  EXPECT_EQ(content[999], 'a');
  EXPECT_EQ(content[25000], 'z');
  EXPECT_EQ(content.substr(26000), "end");
}

TEST_F(FileTest, ReplacesThroughASymbolicLink) {
  ASSERT_TRUE(WriteFile(Path("real"), "old"));
  fs::create_symlink(Path("real"), Path("link"));
  ASSERT_TRUE(WriteFile(Path("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(*ReadFile(Path("real")), "new");
}

TEST_F(FileTest, RemovesTheTemporaryFilesOfAll) {
  auto finished = AtomicFile::Create(Path("a"));
  ASSERT_TRUE(finished && finished->Append("a") && finished->Commit());
  auto open = AtomicFile::Create(Path("b"));
  ASSERT_TRUE(open && open->Append("b"));
  AtomicFile moved = std::move(*open);
  EXPECT_EQ(Entries(), 2u);
  RemoveTemporaryFiles();
  EXPECT_EQ(Entries(), 1u);
  EXPECT_FALSE(moved.Commit());  // there is nothing left to rename
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(FileTest, MoreTemporaryFilesThanAreRemembered) {
  std::vector<AtomicFile> files;
  for (int i = 0; i < 100; ++i) {
    auto file = AtomicFile::Create(Path(std::to_string(i)));
    ASSERT_TRUE(file);
    files.push_back(std::move(*file));
  }
  files.clear();
  EXPECT_EQ(Entries(), 0u);
}

// Two files of an output, of which each is replaced, up to some point, by a process that dies
// there.
class Killed : public FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    ASSERT_TRUE(WriteFile(Path("a"), "old") && WriteFile(Path("b"), "old"));
  }
  template <class F>
  void Until(F&& died) {
    const pid_t child = fork();
    if (child == 0) {
      auto a = AtomicFile::Create(Path("a")), b = AtomicFile::Create(Path("b"));
      const bool good = a && b && a->Append("new") && b->Append("new");
      if (good) died(&*a, &*b);
      _exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  std::vector<Rename> Both(const AtomicFile& a, const AtomicFile& b) const {
    return {{a.temporary_path(), Path("a")}, {b.temporary_path(), Path("b")}};
  }
  // What they hold once somebody has written another file into the folder.
  std::string Contents() {
    EXPECT_TRUE(WriteFile(Path("other"), ""));
    return *ReadFile(Path("a")) + " " + *ReadFile(Path("b"));
  }
};

TEST_F(Killed, FilesAreReplacedTogether) {
  auto a = AtomicFile::Create(Path("a")), b = AtomicFile::Create(Path("b"));
  ASSERT_TRUE(a && b && a->Append("new") && b->Append("new"));
  std::vector<AtomicFile> files;
  files.push_back(std::move(*a));
  files.push_back(std::move(*b));
  ASSERT_TRUE(CommitTogether(std::move(files)));
  EXPECT_EQ(Entries(), 2u);
  EXPECT_EQ(Contents(), "new new");
}

TEST_F(Killed, BeforeTheRecord) {
  Until([](AtomicFile*, AtomicFile*) {});
  EXPECT_EQ(Entries(), 4u);
  EXPECT_EQ(Contents(), "old old");
  EXPECT_TRUE(WriteFile(Path("a"), "") && WriteFile(Path("b"), ""));
  EXPECT_EQ(Entries(), 3u);
}

TEST_F(Killed, BetweenTwoRenames) {
  for (int renamed : {0, 1, 2}) {
    Until([&](AtomicFile* a, AtomicFile* b) {
      auto record = RenameRecord::Create(directory_, Both(*a, *b));
      if (!record || (renamed > 0 && !a->Commit()) || (renamed > 1 && !b->Commit())) _exit(2);
      _exit(0);
    });
    EXPECT_EQ(Contents(), "new new");
    EXPECT_EQ(Entries(), 3u);
    ASSERT_TRUE(WriteFile(Path("a"), "old") && WriteFile(Path("b"), "old"));
  }
}

TEST_F(Killed, RecordsOfTheLivingAreTheirs) {
  auto a = AtomicFile::Create(Path("a")), b = AtomicFile::Create(Path("b"));
  ASSERT_TRUE(a && b);
  auto record = RenameRecord::Create(directory_, Both(*a, *b));
  ASSERT_TRUE(record);
  EXPECT_EQ(Contents(), "old old");
}

TEST_F(Killed, RecordsThatAreNone) {
  const auto record = [&](std::string text) {
    std::replace(text.begin(), text.end(), ' ', '\0');
    std::ofstream(Path(".tenon-commit-1-0")) << text;
    EXPECT_EQ(Contents(), "old old") << text;
    EXPECT_FALSE(fs::exists(Path(".tenon-commit-1-0"))) << text;
  };
  std::ofstream(Path("a.tmp-1-0")) << "new";
  std::ofstream(Path("secret")) << "new";
  const std::string head = "tenon-commit-1 ";
  record("");
  record(" end ");
  record(head);
  record(head + "a.tmp-1-0 a ");
  record(head + "a.tmp-1-0 a en");
  record(head + "secret a end ");
  record(head + "a.tmp-1-0 b end ");
  record(head + "./a.tmp-1-0 a end ");
  record(head + "a.tmp-1-0 ./a end ");
  record(head + "a.tmp-1-0 end ");
  record(head + "b.tmp-1-0 b end ");  // which is not there
}

}  // namespace
}  // namespace tenon
