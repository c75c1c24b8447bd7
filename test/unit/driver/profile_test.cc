#include "driver/profile.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "support/atomic_file.h"
#include "tune/machine_key.h"
#include "unit/driver/folder.h"

namespace tenon::driver {
namespace {

using Json = nlohmann::ordered_json;

// This machine, said to be twice as fast as its preset.
Profile Fast(const std::string& target = "llvm") {
  Profile p;
  p.machine = tune::MachineKey();
  p.name = "a machine";
  p.cpus = 2;
  p.rates = Machine::Of(Target::Parse(target).value());
  p.rates.cycles_per_second *= 2;
  p.rates.memory[2].capacity_bytes = 1 << 24;
  const DType f32 = DType::Float(32);
  p.tiles = {{f32, f32, f32, 6, 4, "L1", 1e11}};
  p.reads = {{1 << 14, 1e11}};
  p.noise = 0.01;
  return p;
}

std::string Changed(const std::function<void(Json&)>& change) {
  Json j = Json::parse(Fast().ToString());
  change(j);
  return j.dump();
}

TEST(Profile, TextIsReadBack) {
  const Profile p = Fast();
  const Expected<Profile> again = Profile::Parse(p.ToString(), "p.json");
  ASSERT_TRUE(again) << again.errors()[0].message;
  EXPECT_EQ(again->ToString(), p.ToString());
  EXPECT_EQ(again->rates, p.rates);
  EXPECT_EQ(again->Hash(), p.Hash());
}

TEST(Profile, HashIsOfRatesAlone) {
  Profile p = Fast();
  p.noise = 0.5;
  p.machine = "another";
  EXPECT_EQ(p.Hash(), Fast().Hash());
  p.rates.barrier_seconds *= 2;
  EXPECT_NE(p.Hash(), Fast().Hash());
}

TEST(Profile, WhatIsBrokenIsSaid) {
  const auto error = [](const std::string& text) {
    const Expected<Profile> p = Profile::Parse(text, "p.json");
    return p ? std::string() : p.errors()[0].message;
  };
  const auto expect = [&](const std::string& text, const char* part) {
    EXPECT_NE(error(text).find(part), std::string::npos) << error(text) << "\nexpected " << part;
    EXPECT_NE(error(text).find("'p.json'"), std::string::npos) << error(text);
  };
  expect("", "cannot be used");
  expect("{", "cannot be used");
  expect("[]", "no profile of `tenon doctor`");
  expect("{\"machine\": 1}", "no profile of `tenon doctor`");
  expect(Changed([](Json& j) { j["profile"] = 9; }), "its version is 9: expected 1");
  expect(Changed([](Json& j) { j.erase("cpu"); }), "'cpu'");
  expect(Changed([](Json& j) { j["cpus"] = "two"; }), "number");
  expect(Changed([](Json& j) { j["rates"].erase("memory"); }), "'memory'");
  expect(Changed([](Json& j) { j["rates"]["registers"] = 1000; }), "registers: expected ");
  expect(Changed([](Json& j) { j["rates"]["units"].erase(0); }), "number of units");
  expect(Changed([](Json& j) { j["rates"]["units"][0]["n"] = 3; }), "units[0]");
  expect(Changed([](Json& j) { j["rates"]["cycles_per_second"] = 0; }), "cycles_per_second");
  expect(Changed([](Json& j) { j["rates"]["memory"][1]["worker_bytes_per_second"] = nullptr; }),
         "L2's rate of a worker");
  expect(Changed([](Json& j) { j["tiles"][0]["a"] = "f31"; }), "tile");
}

TEST(Profile, ServesItsTargetAndMachine) {
  const test::Folder folder;
  const auto write = [&](const Profile& p) {
    const std::string file = folder / "p.json";
    EXPECT_TRUE(WriteFile(file, p.ToString()));
    return file;
  };
  const auto machine_for = [&](const Profile& p, const std::string& target, bool any) {
    CompileOptions options;
    options.profile = write(p);
    options.any_machine = any;
    return MachineFor(options, Target::Parse(target).value());
  };
  const Profile mine = Fast();
  const Expected<PlannedFor> two = machine_for(mine, "llvm -num-cores=2", false);
  ASSERT_TRUE(two) << two.errors()[0].message;
  EXPECT_EQ(two->machine.workers, 2);
  EXPECT_EQ(two->machine.cycles_per_second, mine.rates.cycles_per_second);
  EXPECT_EQ(two->machine.target->cores(), 2);
  EXPECT_EQ(two->profile, mine.Hash());

  Profile other = mine;
  other.machine = "another";
  const Expected<PlannedFor> refused = machine_for(other, "llvm", false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.errors()[0].message.find("another machine (a machine, 2 CPUs)"),
            std::string::npos);
  EXPECT_TRUE(machine_for(other, "llvm", true));

  const Profile arm = Fast("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72");
  const Expected<PlannedFor> wrong = machine_for(arm, "llvm", true);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.errors()[0].message.find("is of the target"), std::string::npos);
  EXPECT_TRUE(machine_for(arm, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", true));

  const Expected<PlannedFor> preset = MachineFor({}, Target::Host());
  ASSERT_TRUE(preset);
  EXPECT_EQ(preset->profile, "");
  EXPECT_EQ(preset->machine, Machine::Of(Target::Host()));
}

}  // namespace
}  // namespace tenon::driver
