#include "driver/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "artifact/link.h"
#include "artifact/symbols.h"
#include "codegen/codegen.h"
#include "driver/info.h"
#include "target/target.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

using Json = nlohmann::ordered_json;

// What an object of ours says of itself; null of any other file.
Json DescriptionOf(std::string_view image) {
  std::string_view text = artifact::SymbolContents(image, "tn_blob_info");
  const std::string_view size = artifact::SymbolContents(image, "tn_blob_info_size");
  if (text.empty() || size.size() != sizeof(uint64_t)) return nullptr;
  constexpr bool kThrow = false;
  Json j = Json::parse(text, nullptr, kThrow);
  const bool ours = j.is_object() && j.contains("functions") && j["functions"].is_array() &&
                    j.contains("triple") && j["triple"].is_string();
  return ours ? j : Json(nullptr);
}

// Elements of lists that are not there yet are added.
void Merge(const char* key, const Json& from, Json* into) {
  const Json list = from.value(key, Json::array());
  for (const Json& item : list) {
    Json& known = (*into)[key];
    if (std::find(known.begin(), known.end(), item) == known.end()) known.push_back(item);
  }
}

}  // namespace

Expected<std::string> DescribeObjects(const std::vector<std::string_view>& images) {
  Json all = nullptr;
  size_t count = 0;
  for (std::string_view image : images) {
    Json one = DescriptionOf(image);
    if (one.is_null()) continue;
    if (++count == 1) {
      all = std::move(one);
      continue;
    }
    if (one["triple"] != all["triple"]) {
      return MakeError(fmt::format("the objects are for different machines: {} and {}",
                                   all["triple"].dump(), one["triple"].dump()));
    }
    for (const char* key : {"functions", "dims", "features"}) Merge(key, one, &all);
  }
  if (count < 2) return std::string();
  all["name"] = "";
  const std::string triple = all["triple"];
  TN_ASSIGN_OR_RETURN(const Target target, Target::Parse("llvm -mtriple=" + triple));
  codegen::EmitOptions emit;
  emit.blobs = DescriptionBlobs(all.dump(), all["features"]);
  TN_ASSIGN_OR_RETURN(const std::string object, codegen::EmitObject(Module(), target, emit));
  artifact::LinkRequest link;
  link.kind = artifact::OutputKind::kRelocatable;
  link.objects = {{"description.o", object}};
  link.exports = {TN_QUERY_SYMBOL};
  link.triple = triple;
  return artifact::LinkImage(link);
}

}  // namespace tenon::driver
