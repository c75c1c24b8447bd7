// A log of tuning in a file: an SQLite database, each record a transaction, so that whoever is
// killed at any moment loses nothing that was said to be written, and several processes can write
// into one log. Where the file system carries it, records go to a journal beside the file first
// (WAL); closing puts them into the file, which then is whole and can be sent to somebody.
//
// A file from elsewhere is read without trust: it must be a log by its mark and version, its tables
// must be ours and nothing else, and each row must make sense; rows that do not are passed over.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/expected.h"
#include "tune/record.h"

struct sqlite3;

namespace tenon::tune {

/// For writing. One thread at a time; any number of processes. Errors name the file, and say what
/// the database says: it is locked, the disk is full, it is no log.
class Log {
 public:
  /// Makes the file where it is not there.
  static Expected<Log> Open(const std::string& path);
  Log(Log&&) noexcept;
  Log& operator=(Log&&) = delete;
  ~Log();

  /// The text of a kernel that records are about.
  Status AddKernel(const std::string& hash, const std::string& text);
  /// An attempt begins: the record, outcome "started", in this process's name. Fills in its id.
  Status Begin(Record* record);
  /// And ends: replaces the record of that id.
  Status Finish(Record record);
  /// It was none: its record goes.
  Status Drop(const std::string& id);
  /// Copies what is not there yet; how many records that were.
  Expected<int64_t> Merge(const LogContents& contents);
  /// Removes all records but these; how many. `keep` holds ids.
  Expected<int64_t> KeepOnly(const std::set<std::string>& keep);
  Expected<LogContents> Read();
  const std::string& path() const { return path_; }

 private:
  Log(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  Status MakeTables();
  Status Run(const char* sql);
  Diagnostic Fault(const char* what) const;

  std::string path_;
  sqlite3* database_;
};

/// Errors that ended a session, which say what of it the log has kept.
Diagnostics WithKept(Diagnostics errors, const std::string& path);

/// The contents of a log, a database or the lines of its text form.
Expected<LogContents> ReadLog(const std::string& path);
/// Whether a file is one, by its first bytes.
bool IsLog(const std::string& path);

/// Of a record: unlike any other.
std::string NewId();

/// Whether the process that a started record names still runs here.
bool IsAlive(const std::string& owner);

}  // namespace tenon::tune
