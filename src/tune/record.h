// What a log of tuning consists of: attempts to run a kernel at a point of its space, with what
// came of them. A record says by itself which kernel, machine and circumstances it is about, so
// records can be copied from log to log, and used by whoever finds that they are about the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/expected.h"

namespace tenon::tune {

/// Of the file and of each line of its text form; records of another one are passed over.
inline constexpr int64_t kLogVersion = 1;

/// Outcomes besides those of measure::Outcome.
inline constexpr const char* kStarted = "started";  // an attempt that is under way, or was when its
                                                    // process died
inline constexpr const char* kOk = "ok";

/// Of kernels of users, what Record::algorithm begins with: a sketch's derivation, or a template's
/// name, comes after it.
// Of records about whole networks: the kernel is the hash of the planned graphs, `predicted` what
// the network takes that was planned without records.
inline constexpr const char* kNetwork = "network";
// About a group of nodes in parts: the kernel is the group's key (plan/fuse.h), the point "{nodes:
// 2}" those that stay together, the times those of a network with the parts and with the whole.
inline constexpr const char* kFusion = "fusion";
inline constexpr const char* kSketchPrefix = "sketch ";
inline constexpr const char* kTemplatePrefix = "template ";

// What the message of a record begins with whose point is the same kernel as another one, which
// alone was tried; that one's trace comes after it.
inline constexpr std::string_view kCopyOf = "the same kernel as ";

struct Record {
  std::string id;       // of the attempt: 32 hexadecimal digits, unlike any other
  std::string kernel;   // the hash of what it computes (Task::kernel)
  std::string machine;  // the key of the machine that it ran on (machine_key.h)
  std::string target;   // Target::ToString()
  int64_t team = 1;     // threads of a call
  std::string cache;    // where operands were: "warm", or "far weights"
  std::string algorithm;
  int64_t epoch = 1;  // of the algorithm (ops::EpochOf)
  std::string point;  // "{nv: 4, tile_rows: 6}"
  std::string outcome = kStarted;
  bool leader = false;   // it was faster than all before it, beyond twice their noise
  double seconds = 0;    // of one launch; of outcome "ok" alone
  double noise = 0;      // of the kernel against itself, as a part of its time
  double predicted = 0;  // seconds, by the model of costs
  int64_t pairs = 0;     // that were compared
  std::string message;   // of other outcomes, and of copies
  std::string owner;     // the process that runs it, while it does

  /// "packed_matmul {nv: 4, tile_rows: 6}": the choice that it is about.
  std::string Trace() const { return algorithm + " " + point; }
  /// Whether it is no attempt, but says what came of another point that is the same kernel.
  bool IsCopy() const { return message.starts_with(kCopyOf); }
  friend bool operator==(const Record&, const Record&) = default;
};

/// The order in which records are looked at, whenever and wherever they were made.
bool operator<(const Record& a, const Record& b);

struct LogContents {
  std::vector<Record> records;                 // in their order
  std::map<std::string, std::string> kernels;  // text (graph/text.h) by hash
  std::map<std::string, int64_t> places;       // of records by id: what was written after what
  Diagnostics skipped;                         // what could not be read, each with file and line
};

/// A line of JSON each, with its end: {"tenon_log": 1, "record": {…}}, {"tenon_log": 1, "kernel":
/// hash, "text": …}.
std::string ToLine(const Record& record);
std::string KernelLine(const std::string& hash, const std::string& text);
std::string ToLines(const LogContents& contents);
/// Lines that are not of this form are passed over, and named in `skipped`.
LogContents ParseLines(std::string_view text, const std::string& file);

/// Whether a record makes sense: known outcome, finite times, hashes that are some.
Status CheckRecord(const Record& record);

}  // namespace tenon::tune
