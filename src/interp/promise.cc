#include "interp/promise.h"

#include <algorithm>

namespace tenon::interp {

std::string Promise::Note(const Memory& memory, int64_t offset, int64_t bytes, bool write) {
  if (std::find(own_.begin(), own_.end(), memory.name()) != own_.end()) return "";
  auto& marks = touched_[&memory];
  for (int64_t at = offset; at < offset + bytes; ++at) {
    Mark& mark = marks[at];
    auto other = [&](int64_t who) { return who != kNobody && who != iteration_; };
    if (other(mark.writer) || (write && other(mark.reader))) {
      const int64_t who = other(mark.writer) ? mark.writer : mark.reader;
      return std::string(write ? "is written" : "is read") + " by iteration " +
             std::to_string(iteration_) + " of loop " + loop_ + " and was " +
             (other(mark.writer) ? "written" : "read") + " by " +
             (who == kSeveral ? "others" : "iteration " + std::to_string(who)) +
             ", though they are assumed to be independent";
    }
    if (write) {
      mark.writer = iteration_;
    } else {
      mark.reader = mark.reader == kNobody || mark.reader == iteration_ ? iteration_ : kSeveral;
    }
  }
  return "";
}

}  // namespace tenon::interp
