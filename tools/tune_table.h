// How a tuning session is shown: a table that is drawn anew on a terminal, a line a trial
// elsewhere, or JSON; and the summary in the end.
#pragma once

#include <string>

#include "driver/tune.h"

namespace tenon::tools {

class TuneTable {
 public:
  enum class Form { kLive, kSummary, kJson };
  explicit TuneTable(Form form);

  void Show(const tune::SessionState& state);
  /// Takes the table away, so that something else can be printed.
  void Clear();
  void PrintSummary(const driver::TuneReport& report, const std::string& log);

 private:
  const Form form_;
  const bool terminal_;
  int lines_ = 0;  // of the table on the terminal
};

}  // namespace tenon::tools
