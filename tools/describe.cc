#include "describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "artifact/checksum.h"
#include "artifact/symbols.h"
#include "support/file.h"
#include "support/json.h"
#include "support/strings.h"
#include "target/target.h"

namespace tenon::tools {

// The same reasons as those of the loader, which is not asked.
static void CheckRunsHere(const Json& library, const std::string& path, Diagnostics* problems) {
  const Target host = Target::Host();
  auto arch = [](const std::string& triple) { return triple.substr(0, triple.find('-')); };
  const std::string triple = library["triple"].get<std::string>();
  if (arch(triple) != arch(host.triple())) {
    problems->push_back(
        MakeError(fmt::format("it is for {}, which this machine is not", arch(triple)), {path}));
    return;
  }
  const auto needed = library["features"].get<std::vector<std::string>>();
  const std::vector<std::string> present = host.FeatureList();
  std::vector<std::string> lacking;
  for (const std::string& feature : needed) {
    if (std::find(present.begin(), present.end(), feature) == present.end())
      lacking.push_back(feature);
  }
  if (lacking.empty()) return;
  problems->push_back(MakeError(
      fmt::format("this library was compiled for another CPU: it lacks {}\n  the code needs: {}\n  "
                  "this CPU has: {}",
                  Join(lacking, " "), Join(needed, " "), Join(present, " ")),
      {path}));
}

Expected<Json> DescribeArtifact(const std::string& path, Diagnostics* problems) {
  TN_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  if (const std::string fault = artifact::LibraryFault(file.text()); !fault.empty())
    return MakeError("cannot load it: " + fault, {path});
  const std::string text(artifact::SectionContents(file.text(), artifact::kInfoSection));
  if (text.empty()) return MakeError("it is not a library that Tenon compiled", {path});
  TN_RETURN_IF_ERROR(artifact::CheckFile(path, artifact::Checked::kCode));
  TN_RETURN_IF_ERROR(ParseJson(text, path));  // well-formed, and not too deep
  Json json{{"kind", "artifact"}, {"file_bytes", file.size()}};
  json.update(Json::parse(text));
  CheckRunsHere(json, path, problems);
  return json;
}

Status VerifyArtifact(const std::string& path, const Json& description) {
  TN_RETURN_IF_ERROR(artifact::CheckFile(path, artifact::Checked::kAll));
  const std::string params = description.value("params", "");
  if (params.empty()) return Ok();
  // The name comes from the library: a part of a path, and no way out of its folder.
  const std::filesystem::path beside = std::filesystem::path(path).parent_path();
  return artifact::CheckFile(beside / std::filesystem::path(params).filename(),
                             artifact::Checked::kAll);
}

}  // namespace tenon::tools
