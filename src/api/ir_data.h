// What modules of loop IR, traces, schedules of them and users' intrinsics hold.
#pragma once

#include <map>
#include <string>

#include "api/bridge.h"

namespace tenon::inline v0 {

struct TraceData {
  inner::Trace trace;
};

struct IrScheduleData {
  explicit IrScheduleData(inner::Schedule s) : schedule(std::move(s)) {}
  inner::Schedule schedule;
  std::string func;
  std::map<std::string, int64_t> wanted;  // decisions that were given
};

/// Throws where one of these choices was made before, and otherwise.
void RequireNotMade(const std::map<std::string, int64_t>& choices, const inner::Trace& trace);
/// Throws where one of these decisions is for this choice, but no value of its domain.
void RequireInDomain(const std::string& choice, const std::vector<int64_t>& domain,
                     const std::map<std::string, int64_t>& wanted);
/// Throws where one of these decisions is of no choice that was made.
void RequireMade(const inner::Schedule& schedule, const std::map<std::string, int64_t>& wanted);
/// Numbers alone are a list of numbers; with a choice or a name among them, of texts.
AttrValue ListOf(const Values& values);
IrModule WrapModule(inner::Module module);
/// Of a schedule, whose function had its requirements before it was scheduled.
IrModule WrapScheduled(inner::Module module, stages::UsersNames names = {});
/// The module, its kernels with their requirements of sizes; throws where none would do.
inner::Module WithRequirements(const IrData& data);
Trace WrapTrace(inner::Trace trace);

/// What `tenon compile` would be told.
driver::CompileOptions CompileOptionsOf(const std::string& model, const ModelOptions& options);

/// What users registered under this name: the intrinsic, and the one for parts of its reduction.
stages::Intrinsics Registered(const std::string& intrinsic);
/// Makes the registered intrinsics that a trace calls known to the schedule.
void AddIntrinsicsOf(const inner::Trace& trace, inner::Schedule* schedule);
/// The module with descriptions of registered intrinsics replaced by their implementations.
inner::Module WithImplementations(const inner::Module& module);

}  // namespace tenon::inline v0
