// time_launches: the launches of a host function are counted, and the time that they take.
//
// Needs: host functions that are to be timed have the attribute `timed`: the name of the function
// that tells. Ensures: each launch in them has the attribute `time_row`, its row of the library's
// table of times (tenon/kernel_abi.h, tn_core_launch_took), and the passes that lower launches put
// Timed around it: it begins when all before it is done, and is over when all that it does is.
// There is a new exported host function of that name, (out times: i64[n, 2]): of each row how often
// it was launched since the library was loaded, and the nanoseconds that this took; its attributes
// `launch_kernels` and `launch_nodes` say what the rows are. Why here: before lower_team, for which
// a launch is a call like others.
#pragma once

#include "loop/pass/pass.h"
#include "loop/stmt.h"

namespace tenon {

/// Of host functions; its value names the function that tells the times.
inline constexpr const char* kTimedAttr = "timed";
/// Of that function.
inline constexpr const char* kLaunchKernelsAttr = "launch_kernels";
inline constexpr const char* kLaunchNodesAttr = "launch_nodes";

/// The library's data for the table.
inline constexpr const char* kLaunchTimes = "tn_blob_launch_times";
/// Of a row, in bytes: two i64.
inline constexpr int64_t kLaunchTimesRow = 16;

Module TimeLaunches(const Module& module, const PassContext& context);

/// Whether the launch has a row.
bool IsTimed(const Launch& launch);

/// `work` is what the launch has become, which waits until it is done; `clock` is a name for when
/// it began. `counts`: whether this worker counts the launch; null: there is only one.
Stmt Timed(const Launch& launch, const std::string& clock, Stmt work, const Expr& counts);

}  // namespace tenon
