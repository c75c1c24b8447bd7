#include "tune/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "measure/protocol.h"
#include "support/hash.h"
#include "support/json.h"
#include "support/strings.h"

namespace tenon::tune {

namespace {

using Json = nlohmann::ordered_json;

bool IsHex(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Json RecordJson(const Record& r) {
  return {{"id", r.id},
          {"kernel", r.kernel},
          {"machine", r.machine},
          {"target", r.target},
          {"team", r.team},
          {"cache", r.cache},
          {"algorithm", r.algorithm},
          {"epoch", r.epoch},
          {"point", r.point},
          {"outcome", r.outcome},
          {"leader", r.leader},
          {"seconds", r.seconds},
          {"noise", r.noise},
          {"predicted", r.predicted},
          {"pairs", r.pairs},
          {"message", r.message},
          {"owner", r.owner}};
}

Record RecordOf(const Json& j) {
  Record r;
  r.id = j.at("id");
  r.kernel = j.at("kernel");
  r.machine = j.at("machine");
  r.target = j.at("target");
  r.team = j.at("team");
  r.cache = j.at("cache");
  r.algorithm = j.at("algorithm");
  r.epoch = j.at("epoch");
  r.point = j.at("point");
  r.outcome = j.at("outcome");
  r.leader = j.at("leader");
  r.seconds = j.at("seconds");
  r.noise = j.at("noise");
  r.predicted = j.at("predicted");
  r.pairs = j.at("pairs");
  r.message = j.at("message");
  r.owner = j.at("owner");
  return r;
}

std::string Line(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status ReadLine(std::string_view line, LogContents* out) {
  try {
    const Json j = Json::parse(line);
    if (j.is_object() && j.contains("i") && j.contains("r")) {
      return MakeError(
          "it is a record of Ansor's, whose hash keys cannot be recreated: tune again");
    }
    if (j.is_object() && j.contains("input") && j.contains("config"))
      return MakeError("it is a record of AutoTVM, which `tenon tune --hints` takes");
    if (!j.is_object() || !j.contains("tenon_log")) return MakeError("it is no line of a log");
    if (j.at("tenon_log") != kLogVersion) {
      return MakeError(
          fmt::format("it is of version {} instead of {}", j.at("tenon_log").dump(), kLogVersion));
    }
    if (j.contains("text")) {
      const std::string hash = j.at("kernel");
      if (!IsHex(hash)) return MakeError("the kernel's hash is none");
      out->kernels.emplace(hash, j.at("text").get<std::string>());
      return Ok();
    }
    Record record = RecordOf(j.at("record"));
    TN_RETURN_IF_ERROR(CheckRecord(record));
    out->records.push_back(std::move(record));
    return Ok();
  } catch (const Json::exception&) {
    return MakeError("it is broken");
  }
}

}  // namespace

bool operator<(const Record& a, const Record& b) {
  auto key = [](const Record& r) {
    return std::tie(r.kernel, r.target, r.machine, r.team, r.cache, r.algorithm, r.point, r.epoch,
                    r.outcome, r.seconds, r.id);
  };
  return key(a) < key(b);
}

Status CheckRecord(const Record& r) {
  if (!IsHex(r.id) || !IsHex(r.kernel) || !IsHex(r.machine))
    return MakeError("an identifier is no hash");
  if (r.outcome != kStarted && !measure::ParseOutcome(r.outcome))
    return MakeError(fmt::format("there is no outcome '{}'", r.outcome));
  for (const double x : {r.seconds, r.noise, r.predicted}) {
    if (!std::isfinite(x) || x < 0) return MakeError("a time is no time");
  }
  if (r.outcome == kOk && r.seconds <= 0) return MakeError("a time is no time");
  if (r.team < 1 || r.pairs < 0) return MakeError("a count is none");
  return Ok();
}

std::string ToLine(const Record& record) {
  return Line({{"tenon_log", kLogVersion}, {"record", RecordJson(record)}});
}

std::string KernelLine(const std::string& hash, const std::string& text) {
  return Line({{"tenon_log", kLogVersion}, {"kernel", hash}, {"text", text}});
}

std::string ToLines(const LogContents& contents) {
  std::string out;
  for (const auto& [hash, text] : contents.kernels) out += KernelLine(hash, text);
  for (const Record& r : contents.records) out += ToLine(r);
  return out;
}

LogContents ParseLines(std::string_view text, const std::string& file) {
  LogContents out;
  int32_t number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    if (Trim(line).empty()) continue;
    const size_t before = out.records.size();
    Status read = ReadLine(line, &out);
    if (read && out.records.size() > before) out.places[out.records.back().id] = number;
    if (read) continue;
    out.skipped.push_back(MakeError("passed over: " + read.errors()[0].message,
                                    SourceLoc{.file = file, .line = number}));
  }
  std::sort(out.records.begin(), out.records.end());
  return out;
}

}  // namespace tenon::tune
