// How a tuning session is shown: a table that is drawn anew on a terminal, a line a trial
// elsewhere, or JSON; and the summary in the end.
#pragma once

#include <string>

#include "driver/tune.h"

namespace tenon::tools {

class TuneTable {
 public:
  enum class Form { kLive, kSummary, kJson };
  /// The limits of the session, for when it will end; 0: none.
  TuneTable(Form form, int64_t trials, double seconds);

  void Show(const tune::SessionState& state);
  /// Takes the table away, so that something else can be printed.
  void Clear();
  void PrintSummary(const driver::TuneReport& report, const std::string& log);

 private:
  std::string Ending(const tune::SessionState& state) const;

  const Form form_;
  const int64_t trials_;
  const double seconds_;
  const bool terminal_;
  int lines_ = 0;  // of the table on the terminal
};

}  // namespace tenon::tools
