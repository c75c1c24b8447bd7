#include "driver/write_wasm.h"

#include <fmt/format.h>

#include "artifact/weight_sink.h"
#include "support/file.h"

namespace tenon::driver {

namespace {

// Addresses have 32 bits, and the linker holds everything a few times.
constexpr uint64_t kMostWeights = uint64_t{1} << 30;

// An object that holds the weights.
Expected<std::string> WeightObject(const SourceRequest& r) {
  const uint64_t bytes = r.network.weights_bytes;
  TN_ASSIGN_OR_RETURN(auto file,
                      artifact::WeightFile::Create(r.output.path + ".weights", "", bytes));
  TN_RETURN_IF_ERROR(WriteWeights(r.network, r.build_host, r.prepare, &file, r.progress));
  TN_ASSIGN_OR_RETURN(MappedFile content, file.Read());
  std::string size(8, '\0');
  for (size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(bytes >> (8 * i));
  std::string weights(reinterpret_cast<const char*>(content.bytes().data()), bytes);
  codegen::EmitOptions emit;
  emit.blobs.push_back({"tn_weights_base", std::move(weights), 64, false, false});
  emit.blobs.push_back({"tn_weights_size", size, 8, false, false});
  return codegen::EmitObject({}, r.target, emit);
}

}  // namespace

Status WriteWasm(const SourceRequest& r) {
  if (r.network.weights_bytes > kMostWeights) {
    return MakeError(
        fmt::format("a module of WebAssembly can hold {} bytes of weights but the model has {}",
                    kMostWeights, r.network.weights_bytes));
  }
  artifact::LinkRequest link = RequestLink(r.code, r.target, r.options);
  std::string weights;
  if (r.network.weights_bytes > 0) {
    TN_ASSIGN_OR_RETURN(weights, WeightObject(r));
    link.objects.push_back({"weights.o", weights});
  }
  TN_ASSIGN_OR_RETURN(std::string image, artifact::LinkImage(link));
  return WriteFile(r.output.path, image);
}

}  // namespace tenon::driver
