// What the tests of schedules share: functions from text, and "means the same" by running both.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "schedule/schedule.h"
#include "support/schedule_functions.h"

namespace tenon::test {

/// `text` with every $NAME replaced by its value.
std::string Fill(std::string text, const std::map<std::string, int64_t>& values);
/// A module of one function.
Module Parse(const std::string& text);

/// Values of dims that no argument's shape tells, and of those that do (shapes may name them).
using Dims = std::map<std::string, int64_t>;
/// The outputs of `func`, one after the other, for inputs of small random integers.
std::vector<double> RunFunc(const Module& module, const std::string& func, const Dims& dims,
                            uint64_t seed, int team_size, std::string* error);

/// The schedule has no error; what it made verifies, prints, parses back, has the meaning of
/// `before` (in several orders of parallel iterations), and its trace prints, parses and replays to
/// the same.
void ExpectSame(const Module& before, const Schedule& after, const Dims& dims = {});
/// The schedule failed with a message that holds `part`.
void ExpectError(const Schedule& s, const std::string& part);

}  // namespace tenon::test
