// A profile changes rates and nothing else: registers, vectors and operations are what the target
// says, whatever a file says of them, for code depends on these. So a profile that says otherwise
// is broken, and one that agrees gives a preset's machine with other numbers.
#include "driver/profile.h"

#include <fmt/format.h>

#include <cmath>

#include "driver/cache.h"
#include "driver/doctor.h"
#include "driver/workbench.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/json.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{1} << 20;

Json TileJson(const TileRate& t) {
  return {{"a", t.a.ToString()},
          {"b", t.b.ToString()},
          {"acc", t.acc.ToString()},
          {"rows", t.rows},
          {"vectors", t.vectors},
          {"level", t.level},
          {"flops_per_second", t.flops_per_second}};
}

Expected<TileRate> ReadTile(const nlohmann::json& j) {
  TileRate t;
  const auto type = [&](const char* name) { return DType::Parse(j.at(name).get<std::string>()); };
  const auto a = type("a"), b = type("b"), acc = type("acc");
  if (!a || !b || !acc) return MakeError("a tile of no type");
  t = {*a,
       *b,
       *acc,
       j.at("rows").get<int64_t>(),
       j.at("vectors").get<int64_t>(),
       j.at("level").get<std::string>(),
       j.at("flops_per_second").get<double>()};
  return t;
}

// What a machine has to be, to be one of the target: `preset` is.
Status CheckSame(const Machine& m, const Machine& preset) {
  const auto same = [](const char* what, int64_t got, int64_t expected) -> Status {
    if (got == expected) return Ok();
    return MakeError(
        fmt::format("{}: expected {}, as the target has, but got {}", what, expected, got));
  };
  TN_RETURN_IF_ERROR(same("registers", m.registers, preset.registers));
  TN_RETURN_IF_ERROR(same("vector_bits", m.vector_bits, preset.vector_bits));
  TN_RETURN_IF_ERROR(same("warp", m.warp, preset.warp));
  TN_RETURN_IF_ERROR(same("number of units", std::ssize(m.units), std::ssize(preset.units)));
  TN_RETURN_IF_ERROR(same("number of memories", std::ssize(m.memory), std::ssize(preset.memory)));
  for (size_t i = 0; i < m.units.size(); ++i) {
    ComputeUnit u = m.units[i];
    u.per_second = preset.units[i].per_second;
    if (!(u == preset.units[i]))
      return MakeError(fmt::format("units[{}] is another operation than the target has", i));
  }
  return Ok();
}

// Prices divide by these.
Status CheckRates(const Machine& m) {
  const auto positive = [](const std::string& what, double value) -> Status {
    if (value > 0 && std::isfinite(value)) return Ok();
    return MakeError(fmt::format("{}: expected a positive number, but got {:g}", what, value));
  };
  TN_RETURN_IF_ERROR(positive("cycles_per_second", m.cycles_per_second));
  TN_RETURN_IF_ERROR(positive("fma_latency_cycles", m.fma_latency_cycles));
  TN_RETURN_IF_ERROR(positive("vector_loads_per_cycle", m.vector_loads_per_cycle));
  TN_RETURN_IF_ERROR(positive("pack_bytes_per_second", m.pack_bytes_per_second));
  for (const double cost : {m.loop_cycles, m.launch_seconds, m.barrier_seconds}) {
    if (!std::isfinite(cost)) return MakeError("a cost is no number");
  }
  for (const ComputeUnit& u : m.units)
    TN_RETURN_IF_ERROR(positive("units' per_second", u.per_second));
  for (const MemoryRate& r : m.memory) {
    TN_RETURN_IF_ERROR(positive(r.name + "'s rate of a worker", r.worker_bytes_per_second));
    if (!(r.machine_bytes_per_second > 0))
      return MakeError(fmt::format("{}'s rate of the machine: expected a positive number", r.name));
    if (r.capacity_bytes <= 0)
      return MakeError(fmt::format("{}'s capacity: expected a positive number", r.name));
  }
  return Ok();
}

Expected<Profile> Read(const nlohmann::json& j) {
  if (!j.is_object() || !j.contains("profile"))
    return MakeError("it is no profile of `tenon doctor`: expected an object with \"profile\"");
  if (j.at("profile") != kVersion)
    return MakeError(fmt::format("its version is {}: expected {}; measure the machine again",
                                 j.at("profile").dump(), kVersion));
  Profile p;
  p.machine = j.at("machine").get<std::string>();
  p.name = j.at("cpu").get<std::string>();
  p.cpus = j.at("cpus").get<int64_t>();
  TN_ASSIGN_OR_RETURN(p.rates, Machine::Parse(j.at("rates").dump()));
  TN_RETURN_IF_ERROR(CheckSame(p.rates, Machine::Of(p.rates.target)));
  TN_RETURN_IF_ERROR(CheckRates(p.rates));
  for (const nlohmann::json& entry : j.at("tiles")) {
    TN_ASSIGN_OR_RETURN(TileRate tile, ReadTile(entry));
    p.tiles.push_back(std::move(tile));
  }
  for (const nlohmann::json& entry : j.at("reads")) {
    p.reads.push_back(
        {entry.at("bytes").get<int64_t>(), entry.at("bytes_per_second").get<double>()});
  }
  p.call_seconds = j.at("call_seconds").get<double>();
  p.fork_join_seconds = j.at("fork_join_seconds").get<double>();
  p.noise = j.at("noise").get<double>();
  return p;
}

Expected<Profile> ReadProfile(const std::string& file) {
  TN_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostBytes));
  return Profile::Parse(text, file);
}

// How many cores a call has is the call's matter, and no part of what is measured.
Expected<Target> WithoutCores(const Target& target) {
  constexpr std::string_view kOption = " -num-cores=";
  std::string text = target.ToString();
  if (const size_t at = text.find(kOption); at != std::string::npos)
    text.erase(at, text.find(' ', at + 1) - at);
  return Target::Parse(text);
}

// This machine's, from the cache or measured now.
Expected<Profile> HostProfile(const CompileOptions& options, const Target& target) {
  TN_ASSIGN_OR_RETURN(const std::string cache, CacheDirectory());
  const std::string key =
      Hasher().Text(MachineKeyOf(target)).Text(target.ToString()).Finish().ToHex();
  const std::string file = fmt::format("{}/profile-{}.json", cache, key);
  if (const Expected<Profile> kept = ReadProfile(file)) return *kept;
  if (options.warn) options.warn("the machine is measured, once for its target: about a minute");
  TN_ASSIGN_OR_RETURN(const Profile profile, MeasureMachine({.target = target}));
  TN_RETURN_IF_ERROR(WriteFile(file, profile.ToString()));
  return profile;
}

}  // namespace

std::string Profile::ToString() const {
  Json j;
  j["profile"] = kVersion;
  j["machine"] = machine;
  j["cpu"] = name;
  j["cpus"] = cpus;
  j["rates"] = Json::parse(rates.ToString());
  j["tiles"] = Json::array();
  for (const TileRate& t : tiles) j["tiles"].push_back(TileJson(t));
  j["reads"] = Json::array();
  for (const ReadRate& r : reads)
    j["reads"].push_back({{"bytes", r.bytes}, {"bytes_per_second", r.bytes_per_second}});
  j["call_seconds"] = call_seconds;
  j["fork_join_seconds"] = fork_join_seconds;
  j["noise"] = noise;
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Expected<Profile> Profile::Parse(std::string_view text, const std::string& file) {
  const auto broken = [&](const std::string& why) {
    return MakeError(fmt::format("the profile '{}' cannot be used: {}", file, why));
  };
  const Expected<nlohmann::json> j = ParseJson(text, file);
  if (!j) return broken(j.errors()[0].message);
  try {
    Expected<Profile> profile = Read(*j);
    if (!profile) return broken(profile.errors()[0].message);
    return profile;
  } catch (const nlohmann::json::exception& e) {  // what is not there, or of another kind
    return broken(e.what());
  }
}

Expected<PlannedFor> MachineFor(const CompileOptions& options, const Target& target) {
  Machine machine = Machine::Of(target);
  if (options.profile.empty()) return PlannedFor{std::move(machine), ""};
  TN_ASSIGN_OR_RETURN(const Target plain, WithoutCores(target));
  const bool here = options.profile == "host";
  TN_ASSIGN_OR_RETURN(const Profile profile,
                      here ? HostProfile(options, plain) : ReadProfile(options.profile));
  if (!(*profile.rates.target == plain))
    return MakeError(fmt::format(
        "the profile '{}' is of the target '{}': expected one of '{}', which is compiled for",
        options.profile, profile.rates.target.FullText(), plain.ToString()));
  if (!here && !options.any_machine && profile.machine != MachineKeyOf(target))
    return MakeError(fmt::format(
        "the profile '{}' is of another machine ({}, {} CPUs): measure this one by `tenon doctor "
        "-o FILE`, or say --any-machine",
        options.profile, profile.name, profile.cpus));
  Machine measured = profile.rates;
  measured.target = machine.target;
  measured.workers = machine.workers;
  return PlannedFor{std::move(measured), profile.Hash()};
}

}  // namespace tenon::driver
