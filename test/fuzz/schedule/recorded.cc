#include "fuzz/schedule/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "arith/analyzer.h"
#include "driver/functions.h"
#include "support/atomic_file.h"
#include "support/check.h"

namespace tenon::fuzz {

namespace {

using Json = nlohmann::ordered_json;

// PATH.so, and the kernels' source for reading; "" or why there are none.
std::string BuildLibrary(const std::vector<Unit>& units, const Target& target,
                         const std::string& path) {
  Module all;
  for (const Unit& unit : units) {
    for (const auto& [name, func] : unit.exported.funcs) all.Add(func);
  }
  driver::FunctionOptions options;
  options.target = &target;
  options.hooks.verify = true;
  try {
    auto code = driver::BuildFunctions(all, options);
    if (!code) return ToString(code.errors());
    auto image = driver::MakeOutput(*code, "so");
    if (!image) return ToString(image.errors());
    TN_CHECK(WriteFile(path + ".so", *image), "cannot write {}.so", path);
    TN_CHECK(WriteFile(path + ".cu", code->device.source), "cannot write {}.cu", path);
    return "";
  } catch (const InternalError& error) {
    return error.what();
  }
}

// Bytes, one tensor's behind another's.
class Blob {
 public:
  Json Add(const std::vector<uint8_t>& data) {
    const size_t at = bytes_.size();
    bytes_.append(data.begin(), data.end());
    return {at, data.size()};
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

Json CallOf(const Unit& unit, const Run& run, Blob* blob) {
  Json tensors = Json::array();
  for (size_t i = 0; i < unit.func->buffers.size(); ++i) {
    const Buffer& buffer = unit.func->buffers[i];
    InterpArg given = ToStorage(run.given[i], buffer, run.dims);
    given.bytes.resize(static_cast<size_t>(given.num_elements() * given.dtype.Bytes()), 0xA5);
    const InterpArg want = ToStorage(run.want[i], buffer, run.dims);
    tensors.push_back({{"name", buffer->name},
                       {"dtype", LongName(buffer->dtype)},
                       {"shape", StorageShape(buffer, run.dims)},
                       {"given", blob->Add(given.bytes)},
                       {"want", blob->Add(want.bytes)}});
  }
  return {{"dims", run.dims}, {"tensors", tensors}};
}

}  // namespace

bool CanBeCalled(const Unit& unit, const Target& target) {
  const PrimFunc& func = *unit.func;
  const auto& scalars = unit.lowered.Find(unit.name)->scalars;
  const bool memory =
      std::any_of(scalars.begin(), scalars.end(), [](const Var& v) { return v->dtype.IsHandle(); });
  if (memory && target.device().handles) return false;
  return std::all_of(func.dims.begin(), func.dims.end(), [&](const Var& dim) {
    const auto inputs = static_cast<ptrdiff_t>(func.buffers.size()) - func.num_outputs;
    return std::any_of(func.buffers.begin(), func.buffers.begin() + inputs, [&](const Buffer& b) {
      const std::vector<Expr> extents = StorageExtents(b->shape, b->layout);
      return std::any_of(extents.begin(), extents.end(),
                         [&](const Expr& e) { return e.get() == dim.get(); });
    });
  });
}

std::vector<Found> Record(const std::vector<Unit>& units, const Target& target,
                          const std::string& folder, const std::string& batch) {
  if (units.empty()) return {};
  const std::string path = folder + "/" + batch;
  const std::string wrong = BuildLibrary(units, target, path);
  std::vector<Unit> good;
  std::vector<Found> out;
  for (const Unit& unit : units) {
    const std::string own = wrong.empty() ? "" : BuildLibrary({unit}, target, path);
    if (!own.empty()) out.push_back({unit.seed, "library: " + own});
    if (own.empty()) good.push_back(unit);
  }
  if (!wrong.empty() && out.empty()) out.push_back({units[0].seed, "library of all: " + wrong});
  if (!out.empty()) {
    if (good.size() < units.size())
      for (Found& found : Record(good, target, folder, batch)) out.push_back(std::move(found));
    return out;
  }
  Blob blob;
  Json functions = Json::array();
  for (const Unit& unit : units) {
    Json calls = Json::array();
    for (const Run& run : unit.runs) calls.push_back(CallOf(unit, run, &blob));
    functions.push_back({{"name", unit.name}, {"calls", calls}});
  }
  TN_CHECK(WriteFile(path + ".bin", blob.bytes()), "cannot write {}.bin", path);
  TN_CHECK(WriteFile(path + ".json", Json{{"functions", functions}}.dump()), "no {}.json", path);
  return out;
}

}  // namespace tenon::fuzz
