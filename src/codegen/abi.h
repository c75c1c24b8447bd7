// What every back end must agree on about functions: who takes the team, who is seen outside.
#pragma once

#include <string>
#include <unordered_map>

#include "loop/func.h"

namespace tenon::codegen {

/// Answers, for the functions of one module, whether the machine signature ends in (rank,
/// team_size, team): see codegen.h. The module must outlive it.
class TeamUse {
 public:
  explicit TeamUse(const Module& module) : module_(module) {}
  bool Takes(const PrimFunc& func);

 private:
  const Module& module_;
  std::unordered_map<std::string, bool> known_;
};

/// Visible outside the library.
bool IsExported(const PrimFunc& func);
/// Returns an i32 status rather than nothing.
bool ReturnsStatus(const PrimFunc& func);

}  // namespace tenon::codegen
