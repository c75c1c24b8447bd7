#include "measure/protocol.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tenon::measure {

namespace {

using Json = nlohmann::json;

constexpr std::pair<Outcome, const char*> kOutcomes[] = {
    {Outcome::kOk, "ok"},       {Outcome::kWrong, "wrong"},     {Outcome::kOutside, "outside"},
    {Outcome::kCrash, "crash"}, {Outcome::kTimeout, "timeout"}, {Outcome::kError, "error"},
};

Json ToJson(const Parameter& p) {
  Json terms = Json::array();
  for (const StorageTerm& t : p.terms) terms.push_back({t.axis, t.divisor, t.modulus, t.stride});
  return {{"dtype", p.dtype},   {"dims", p.dims},   {"shape", p.shape},
          {"terms", terms},     {"begin", p.begin}, {"padding", p.padding},
          {"output", p.output}, {"limit", p.limit}, {"copies", p.copies}};
}

Parameter ParameterOf(const Json& j) {
  Parameter p;
  p.dtype = j.at("dtype");
  p.dims = j.at("dims").get<std::vector<int64_t>>();
  p.shape = j.at("shape").get<std::vector<int64_t>>();
  for (const Json& t : j.at("terms")) p.terms.push_back({t.at(0), t.at(1), t.at(2), t.at(3)});
  p.begin = j.at("begin").get<std::vector<int64_t>>();
  // JSON has no infinity; null stands for that of a maximum's border.
  p.padding = j.at("padding").is_null() ? -std::numeric_limits<double>::infinity()
                                        : j.at("padding").get<double>();
  p.output = j.at("output");
  p.limit = j.at("limit");
  p.copies = j.at("copies");
  return p;
}

Json ToJson(const Program& program) {
  Json parameters = Json::array();
  for (const Parameter& p : program.parameters) parameters.push_back(ToJson(p));
  return {{"path", program.path}, {"function", program.function}, {"parameters", parameters}};
}

Program ProgramOf(const Json& j) {
  Program program{j.at("path"), j.at("function"), {}};
  for (const Json& p : j.at("parameters")) program.parameters.push_back(ParameterOf(p));
  return program;
}

std::string Line(const Json& j) {
  return j.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

template <class T, class F>
Expected<T> Read(std::string_view line, const char* what, const F& read) {
  try {
    return read(Json::parse(line));
  } catch (const Json::exception& e) {
    return MakeError(fmt::format("{} cannot be read: {}", what, e.what()));
  }
}

}  // namespace

const char* ToString(Outcome outcome) {
  for (const auto& [value, text] : kOutcomes) {
    if (value == outcome) return text;
  }
  return "error";
}

Expected<Outcome> ParseOutcome(std::string_view text) {
  for (const auto& [value, name] : kOutcomes) {
    if (name == text) return value;
  }
  return MakeError(fmt::format("there is no outcome '{}'", text));
}

std::string ToLine(const RaceRequest& r) {
  return Line({{"kernel", r.kernel},
               {"reference", ToJson(r.reference)},
               {"results", r.results},
               {"incumbent", ToJson(r.incumbent)},
               {"candidate", ToJson(r.candidate)},
               {"device", r.device},
               {"team", r.team},
               {"noise", r.noise},
               {"most_pairs", r.most_pairs},
               {"seconds", r.seconds}});
}

std::string ToLine(const RaceAnswer& a) {
  return Line({{"outcome", ToString(a.outcome)},
               {"message", a.message},
               {"machine", a.machine},
               {"faster", a.faster},
               {"incumbent_seconds", a.incumbent_seconds},
               {"log_ratio", a.log_ratio},
               {"noise", a.noise},
               {"pairs", a.pairs},
               {"dropped", a.dropped},
               {"timing_seconds", a.timing_seconds}});
}

Expected<RaceRequest> ParseRequest(std::string_view line) {
  return Read<RaceRequest>(line, "the request", [](const Json& j) {
    RaceRequest r;
    r.kernel = j.at("kernel");
    r.reference = ProgramOf(j.at("reference"));
    r.results = j.at("results");
    r.incumbent = ProgramOf(j.at("incumbent"));
    r.candidate = ProgramOf(j.at("candidate"));
    r.device = j.at("device");
    r.team = j.at("team");
    r.noise = j.at("noise");
    r.most_pairs = j.at("most_pairs");
    r.seconds = j.at("seconds");
    return r;
  });
}

Expected<RaceAnswer> ParseAnswer(std::string_view line) {
  return Read<RaceAnswer>(line, "the worker's answer", [](const Json& j) {
    RaceAnswer a;
    a.outcome = ParseOutcome(j.at("outcome").get<std::string>()).value();
    a.message = j.at("message");
    a.machine = j.at("machine");
    a.faster = j.at("faster");
    a.incumbent_seconds = j.at("incumbent_seconds");
    a.log_ratio = j.at("log_ratio");
    a.noise = j.at("noise");
    a.pairs = j.at("pairs");
    a.dropped = j.at("dropped");
    a.timing_seconds = j.at("timing_seconds");
    return a;
  });
}

}  // namespace tenon::measure
