#include <cstdio>
#include <nlohmann/json.hpp>

#include "verbs.h"

namespace tenon::tools {

int Report(const Diagnostics& diagnostics, const Common& common) {
  int status = kInputAtFault;
  for (const Diagnostic& d : diagnostics) {
    std::string text = common.error_format == "json" ? d.ToJson() : "tenon: " + d.ToString();
    std::fprintf(stderr, "%s\n", text.c_str());
    if (d.kind == ErrorKind::kLimit) status = kLimitHit;
  }
  return status;
}

int ReportUsage(const Diagnostics& diagnostics, const Common& common) {
  for (const Diagnostic& d : diagnostics) {
    if (common.error_format != "json") {
      std::fprintf(stderr, "tenon: %s\n", d.ToString().c_str());
      continue;
    }
    auto json = nlohmann::ordered_json::parse(d.ToJson());
    json["kind"] = "usage";
    std::fprintf(stderr, "%s\n", json.dump().c_str());
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
