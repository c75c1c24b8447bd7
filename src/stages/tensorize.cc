#include "stages/tensorize.h"

#include "schedule/apply.h"

namespace tenon::stages {

namespace {

struct Tried {
  Schedule schedule;
  std::string block;
};

Tried Try(const std::string& loop, const std::string& intrinsic, const Intrinsics& intrinsics,
          Schedule schedule) {
  const auto own = intrinsics.find(intrinsic);
  if (own != intrinsics.end()) AddFunction(&schedule, own->second);
  std::string block = schedule.Tensorize(loop, intrinsic);
  return {std::move(schedule), std::move(block)};
}

}  // namespace

std::string UpdateName(const std::string& name) { return name + ".update"; }

std::string Tensorize(const std::string& loop, const std::string& intrinsic,
                      const Intrinsics& intrinsics, Schedule* schedule) {
  Tried whole = Try(loop, intrinsic, intrinsics, *schedule);
  const std::string update = UpdateName(intrinsic);
  if (!whole.schedule.ok() && (intrinsics.count(update) != 0 || schedule->module().Find(update))) {
    Tried part = Try(loop, update, intrinsics, *schedule);
    if (part.schedule.ok()) whole = std::move(part);
  }
  *schedule = std::move(whole.schedule);
  return whole.block;
}

}  // namespace tenon::stages
