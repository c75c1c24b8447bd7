// The check that iterations of a loop are as independent as its author promised (loop/promises.h).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "interp/memory.h"

namespace tenon::interp {

/// One execution of such a loop: for each byte that was touched, by which iterations.
class Promise {
 public:
  Promise(std::string loop, std::vector<std::string> own) : loop_(loop), own_(own) {}

  void Begin(int64_t iteration) { iteration_ = iteration; }
  /// What an access breaks, or "".
  std::string Note(const Memory& memory, int64_t offset, int64_t bytes, bool write);
  /// The memory is new.
  void Forget(const Memory& memory) { touched_.erase(&memory); }

 private:
  static constexpr int64_t kNobody = -1, kSeveral = -2;
  struct Mark {
    int64_t writer = kNobody, reader = kNobody;
  };

  std::string loop_;
  std::vector<std::string> own_;  // buffers that each iteration has for itself
  int64_t iteration_ = 0;         // counted from 0
  std::unordered_map<const Memory*, std::unordered_map<int64_t, Mark>> touched_;
};

}  // namespace tenon::interp
