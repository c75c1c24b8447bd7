#include <nlohmann/json.hpp>

#include "console.h"
#include "verbs.h"

namespace tenon::tools {

int Report(const Diagnostics& diagnostics, const Common& common) {
  int status = kInputAtFault;
  for (const Diagnostic& d : diagnostics) {
    if (common.error_format == "json") {
      WriteError(d.ToJson() + "\n");
    } else {
      PrintError("tenon: {}\n", d.ToString());
    }
    if (d.kind == ErrorKind::kLimit) status = kLimitHit;
  }
  return status;
}

int ReportUsage(const Diagnostics& diagnostics, const Common& common) {
  for (const Diagnostic& d : diagnostics) {
    if (common.error_format != "json") {
      PrintError("tenon: {}\n", d.ToString());
      continue;
    }
    auto json = nlohmann::ordered_json::parse(d.ToJson());
    json["kind"] = "usage";
    WriteError(json.dump() + "\n");
  }
  return kWrongUsage;
}

Diagnostics InFile(Diagnostics errors, const std::string& file) {
  const std::string name = "'" + file + "'";
  for (Diagnostic& d : errors) {
    const size_t at = d.message.find(name);
    if (!d.loc.file.empty() || at == std::string::npos) continue;
    d.loc.file = file;
    d.message.replace(at, name.size(), "it");
  }
  return errors;
}

}  // namespace tenon::tools
