// Rows of a log are the fields of Record, in the order of kFields, which all statements are made
// from: a record is bound to one statement and read from another by the same list.
#include "tune/log.h"

#include <fmt/format.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <utility>

#include "support/file.h"
#include "support/hash.h"
#include "support/strings.h"

namespace tenon::tune {

namespace {

constexpr int kApplication = 0x544E4C47;  // "TNLG"
constexpr int kBusyMilliseconds = 20'000;
constexpr const char* kTables =
    "CREATE TABLE IF NOT EXISTS kernels(hash TEXT PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS records(id TEXT PRIMARY KEY, kernel TEXT NOT NULL,"
    " machine TEXT NOT NULL, target TEXT NOT NULL, team INTEGER NOT NULL, cache TEXT NOT NULL,"
    " algorithm TEXT NOT NULL, epoch INTEGER NOT NULL, point TEXT NOT NULL, outcome TEXT NOT NULL,"
    " leader INTEGER NOT NULL, seconds REAL NOT NULL, noise REAL NOT NULL,"
    " predicted REAL NOT NULL, pairs INTEGER NOT NULL, message TEXT NOT NULL,"
    " owner TEXT NOT NULL);";
constexpr const char* kFields =
    "id, kernel, machine, target, team, cache, algorithm, epoch, point, outcome, leader, seconds, "
    "noise, predicted, pairs, message, owner";
constexpr int kFieldCount = 17;

// A statement, which is finished with on destruction.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql) {
    sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  explicit operator bool() const { return statement_ != nullptr; }
  sqlite3_stmt* get() const { return statement_; }
  void Bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void Bind(int64_t number) { sqlite3_bind_int64(statement_, ++bound_, number); }
  void Bind(double number) { sqlite3_bind_double(statement_, ++bound_, number); }
  int Step() { return sqlite3_step(statement_); }
  void Reset() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

void BindRecord(Statement* s, const Record& r) {
  for (const std::string* text : {&r.id, &r.kernel, &r.machine, &r.target}) s->Bind(*text);
  s->Bind(r.team);
  for (const std::string* text : {&r.cache, &r.algorithm}) s->Bind(*text);
  s->Bind(r.epoch);
  for (const std::string* text : {&r.point, &r.outcome}) s->Bind(*text);
  s->Bind(static_cast<int64_t>(r.leader));
  for (const double number : {r.seconds, r.noise, r.predicted}) s->Bind(number);
  s->Bind(r.pairs);
  for (const std::string* text : {&r.message, &r.owner}) s->Bind(*text);
}

Record RecordAt(sqlite3_stmt* s) {
  int column = 0;
  auto text = [&] {
    const int at = column++;
    const unsigned char* bytes = sqlite3_column_text(s, at);
    const int length = sqlite3_column_bytes(s, at);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length))
                 : std::string();
  };
  auto integer = [&] { return sqlite3_column_int64(s, column++); };
  auto real = [&] { return sqlite3_column_double(s, column++); };
  Record r;
  r.id = text();
  r.kernel = text();
  r.machine = text();
  r.target = text();
  r.team = integer();
  r.cache = text();
  r.algorithm = text();
  r.epoch = integer();
  r.point = text();
  r.outcome = text();
  r.leader = integer() != 0;
  r.seconds = real();
  r.noise = real();
  r.predicted = real();
  r.pairs = integer();
  r.message = text();
  r.owner = text();
  return r;
}

std::string InsertSql(const char* verb) {
  std::string marks = "?";
  for (int i = 1; i < kFieldCount; ++i) marks += ", ?";
  return fmt::format("{} INTO records({}) VALUES({})", verb, kFields, marks);
}

int64_t Pragma(sqlite3* database, const char* name) {
  Statement s(database, fmt::format("PRAGMA {}", name));
  return s && s.Step() == SQLITE_ROW ? sqlite3_column_int64(s.get(), 0) : 0;
}

// Nothing in a file from elsewhere may run or grow: no triggers, no views, no functions.
void Distrust(sqlite3* database) {
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(database, SQLITE_LIMIT_VDBE_OP, 25'000);
  sqlite3_busy_timeout(database, kBusyMilliseconds);
}

Diagnostic FaultOf(sqlite3* database, const std::string& path, const char* what) {
  return MakeError(fmt::format("{}: {}", what, sqlite3_errmsg(database)), SourceLoc{.file = path});
}

Status CheckIsLog(sqlite3* database, const std::string& path) {
  const int64_t application = Pragma(database, "application_id");
  if (application != kApplication)
    return MakeError("it is a database, but no log of tuning", SourceLoc{.file = path});
  if (const int64_t version = Pragma(database, "user_version"); version != kLogVersion) {
    return MakeError(
        fmt::format("the log is of version {}; this tenon reads version {}", version, kLogVersion),
        SourceLoc{.file = path});
  }
  Statement s(database, "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')");
  if (!s || s.Step() != SQLITE_ROW) return FaultOf(database, path, "cannot read the log");
  if (sqlite3_column_int64(s.get(), 0) != 0)
    return MakeError("the log holds more than tables", SourceLoc{.file = path});
  return Ok();
}

Expected<LogContents> ReadDatabase(sqlite3* database, const std::string& path) {
  LogContents out;
  Statement kernels(database, "SELECT hash, text FROM kernels");
  if (!kernels) return FaultOf(database, path, "cannot read the log");
  int status = SQLITE_ROW;
  while ((status = kernels.Step()) == SQLITE_ROW) {
    auto column = [&](int i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(kernels.get(), i));
      return std::string(text ? text : "");
    };
    out.kernels.emplace(column(0), column(1));
  }
  Statement rows(database, fmt::format("SELECT {}, rowid FROM records", kFields));
  if (!rows || status != SQLITE_DONE) return FaultOf(database, path, "cannot read the log");
  while ((status = rows.Step()) == SQLITE_ROW) {
    Record record = RecordAt(rows.get());
    const Status good = CheckRecord(record);
    if (good) {
      out.places[record.id] = sqlite3_column_int64(rows.get(), kFieldCount);
      out.records.push_back(std::move(record));
      continue;
    }
    const auto row = static_cast<int32_t>(sqlite3_column_int64(rows.get(), kFieldCount));
    out.skipped.push_back(MakeError("passed over: " + good.errors()[0].message,
                                    SourceLoc{.file = path, .line = row}));
  }
  // What was read before a damaged page is used.
  if (status != SQLITE_DONE) out.skipped.push_back(FaultOf(database, path, "the log is damaged"));
  std::sort(out.records.begin(), out.records.end());
  return out;
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// When a process began, in the kernel's ticks; "" where there is none. Numbers of processes come
// again.
std::string BeginOf(int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return "";
  const std::vector<std::string> words = Split(std::string_view(text).substr(end + 1), ' ');
  constexpr size_t kStartTime = 20;  // words from the one behind the name on
  return words.size() > kStartTime ? words[kStartTime] : "";
}

std::string ThisProcess() {
  return fmt::format("{} {} {}", HostName(), getpid(), BeginOf(getpid()));
}

constexpr std::string_view kMagic("SQLite format 3\0", 16);

}  // namespace

std::string NewId() {
  std::random_device random;
  Hasher hasher;
  for (int i = 0; i < 4; ++i) hasher.Int((uint64_t{random()} << 32) | random());
  return hasher.Int(static_cast<uint64_t>(getpid())).Finish().ToHex();
}

Diagnostics WithKept(Diagnostics errors, const std::string& path) {
  const Expected<LogContents> contents = ReadLog(path);
  if (!contents || errors.empty()) return errors;
  const auto kept = std::count_if(contents->records.begin(), contents->records.end(),
                                  [](const Record& r) { return r.outcome != kStarted; });
  errors.back().notes.push_back(fmt::format("'{}' has kept what was measured before: {} record{}",
                                            path, kept, kept == 1 ? "" : "s"));
  return errors;
}

bool IsAlive(const std::string& owner) {
  const std::vector<std::string> words = Split(owner, ' ');
  if (words.size() != 3) return false;
  if (words[0] != HostName()) return true;  // nobody can tell
  const int64_t process = std::strtoll(words[1].c_str(), nullptr, 10);
  return process > 0 && !words[2].empty() && BeginOf(process) == words[2];
}

Diagnostic Log::Fault(const char* what) const { return FaultOf(database_, path_, what); }

Status Log::Run(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return Fault("cannot write the log");
  return Ok();
}

// Two sessions may make one file at the same time: whether it is new is asked under its lock. A
// write is what proves that a journal beside the file works here: file systems over networks have
// no shared memory, and say so only then.
Status Log::MakeTables() {
  TN_RETURN_IF_ERROR(Run("PRAGMA synchronous = FULL; BEGIN IMMEDIATE"));
  Statement tables(database_, "SELECT count(*) FROM sqlite_master");
  const bool fresh = tables && tables.Step() == SQLITE_ROW &&
                     sqlite3_column_int64(tables.get(), 0) == 0 &&
                     Pragma(database_, "application_id") == 0;
  tables.Reset();
  Status ready = fresh ? Run(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; {}",
                                         kApplication, kLogVersion, kTables)
                                 .c_str())
                       : CheckIsLog(database_, path_);
  if (ready) ready = Run("COMMIT");
  if (!ready) {
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    return ready;
  }
  const std::string proof = fmt::format("PRAGMA user_version = {}", kLogVersion);
  sqlite3_exec(database_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
  if (Run(proof.c_str())) return Ok();
  sqlite3_exec(database_, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
  return Run(proof.c_str());
}

Expected<Log> Log::Open(const std::string& path) {
  sqlite3* database = nullptr;
  const int opened =
      sqlite3_open_v2(path.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW, nullptr);
  Log log(path, database);
  if (opened != SQLITE_OK) return log.Fault("cannot open the log");
  Distrust(database);
  TN_RETURN_IF_ERROR(log.MakeTables());
  return log;
}

Log::Log(Log&& other) noexcept
    : path_(std::move(other.path_)), database_(std::exchange(other.database_, nullptr)) {}

Log::~Log() {
  if (!database_) return;
  // Whoever else has it open keeps the journal, and closes later.
  sqlite3_busy_timeout(database_, 0);
  sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_exec(database_, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
  sqlite3_close(database_);
}

Status Log::AddKernel(const std::string& hash, const std::string& text) {
  Statement s(database_, "INSERT OR IGNORE INTO kernels(hash, text) VALUES(?, ?)");
  if (!s) return Fault("cannot write the log");
  s.Bind(hash);
  s.Bind(text);
  return s.Step() == SQLITE_DONE ? Ok() : Status(Fault("cannot write the log"));
}

Status Log::Begin(Record* record) {
  record->id = NewId();
  record->outcome = kStarted;
  record->owner = ThisProcess();
  Statement s(database_, InsertSql("INSERT"));
  if (!s) return Fault("cannot write the log");
  BindRecord(&s, *record);
  return s.Step() == SQLITE_DONE ? Ok() : Status(Fault("cannot write the log"));
}

Status Log::Finish(Record record) {
  record.owner.clear();
  Statement s(database_, InsertSql("REPLACE"));
  if (!s) return Fault("cannot write the log");
  BindRecord(&s, record);
  return s.Step() == SQLITE_DONE ? Ok() : Status(Fault("cannot write the log"));
}

Status Log::Drop(const std::string& id) {
  Statement s(database_, "DELETE FROM records WHERE id = ?");
  if (!s) return Fault("cannot write the log");
  s.Bind(id);
  return s.Step() == SQLITE_DONE ? Ok() : Status(Fault("cannot write the log"));
}

Expected<int64_t> Log::Merge(const LogContents& contents) {
  TN_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE"));
  int64_t added = 0;
  for (const auto& [hash, text] : contents.kernels) {
    Status kernel = AddKernel(hash, text);
    if (!kernel) {
      sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
      return kernel.errors();
    }
  }
  Statement s(database_, InsertSql("INSERT OR IGNORE"));
  for (const Record& record : contents.records) {
    s.Reset();
    BindRecord(&s, record);
    if (s.Step() != SQLITE_DONE) {
      Diagnostic fault = Fault("cannot write the log");
      sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
      return fault;
    }
    added += sqlite3_changes(database_);
  }
  s.Reset();
  TN_RETURN_IF_ERROR(Run("COMMIT"));
  return added;
}

Expected<int64_t> Log::KeepOnly(const std::set<std::string>& keep) {
  TN_ASSIGN_OR_RETURN(const LogContents contents, Read());
  TN_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE"));
  int64_t removed = 0;
  {
    Statement s(database_, "DELETE FROM records WHERE id = ?");
    for (const Record& record : contents.records) {
      if (keep.contains(record.id)) continue;
      s.Reset();
      s.Bind(record.id);
      if (s.Step() == SQLITE_DONE) removed += sqlite3_changes(database_);
    }
  }
  TN_RETURN_IF_ERROR(
      Run("DELETE FROM kernels WHERE hash NOT IN (SELECT kernel FROM records); COMMIT; VACUUM"));
  return removed;
}

Expected<LogContents> Log::Read() { return ReadDatabase(database_, path_); }

bool IsLog(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // reading a pipe would wait
  std::ifstream file(path, std::ios::binary);
  char head[16] = {};
  file.read(head, sizeof head);
  const std::string_view text(head, static_cast<size_t>(file.gcount()));
  return text == kMagic || text.starts_with("{\"tenon_log\":");
}

Expected<LogContents> ReadLog(const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  {
    std::ifstream file(path, std::ios::binary);
    char head[16] = {};
    file.read(head, sizeof head);
    if (std::string_view(head, static_cast<size_t>(file.gcount())) != kMagic) {
      TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostBytes));
      if (!Trim(text).empty() && text.find("\"tenon_log\"") == std::string::npos)
        return MakeError(fmt::format("'{}' is no log of tuning", path));
      return ParseLines(text, path);
    }
  }
  sqlite3* database = nullptr;
  const int opened = sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close)> closed(database, sqlite3_close);
  if (opened != SQLITE_OK) return FaultOf(database, path, "cannot open the log");
  Distrust(database);
  TN_RETURN_IF_ERROR(CheckIsLog(database, path));
  return ReadDatabase(database, path);
}

}  // namespace tenon::tune
