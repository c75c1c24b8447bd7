#include "driver/info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "artifact/symbols.h"
#include "codegen/cuda/nvrtc.h"
#include "cost/estimate.h"
#include "driver/build.h"
#include "driver/dims_json.h"
#include "graph/program_waits.h"
#include "ir/print.h"
#include "loop/arguments.h"
#include "loop/pass/host/time_launches.h"
#include "loop/pass/packed_abi.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

using Json = nlohmann::ordered_json;

Json TensorJson(const std::string& name, DType dtype, const std::vector<Expr>& dims) {
  Json shape = Json::array();
  for (const Expr& d : dims) {
    if (auto n = AsInt(d)) {
      shape.push_back(*n);
    } else {
      shape.push_back(ToString(d));
    }
  }
  return {{"name", name}, {"dtype", LongName(dtype)}, {"shape", shape}};
}

Json DimsJson(const graph::Graph& g) {
  Json dims = Json::array();
  for (const graph::Dim& d : g.dims) {
    const int64_t max = d.max == graph::Dim::kNoMax ? -1 : d.max;
    dims.push_back({{"name", d.var->name}, {"min", d.min}, {"max", max}, {"step", d.step}});
  }
  return dims;
}

static Json TensorJson(const std::string& name, const graph::TensorType& type) {
  return TensorJson(name, type.dtype, type.dims);
}

std::vector<codegen::DataBlob> DescriptionBlobs(const std::string& info,
                                                const std::vector<std::string>& features) {
  std::string size(8, '\0'), cpu;
  for (size_t i = 0; i < 8; ++i) size[i] = static_cast<char>(info.size() >> (8 * i));
  for (const std::string& feature : features) cpu += feature + '\0';
  cpu += '\0';
  return {{"tn_blob_info", info, 1, false, false, artifact::kInfoSection},
          {"tn_blob_info_size", size, 8, false, false},
          {"tn_cpu_required", cpu, 1, false, false},
          {"tn_main_instances", std::string(TN_INSTANCES_BYTES, '\0'), 64, false, true}};
}

void AddInstances(const Module& host, std::vector<codegen::DataBlob>* blobs) {
  for (const auto& [name, f] : host.funcs) {
    const std::string symbol = f->attrs.GetString("instances");
    bool there = symbol.empty();
    for (const codegen::DataBlob& b : *blobs) there |= b.symbol == symbol;
    if (!there) blobs->push_back({symbol, std::string(TN_INSTANCES_BYTES, '\0'), 64, false, true});
  }
}

int64_t ArenaBytes(const PrimFunc& host) {
  return host.attrs.GetInt("arena_bytes", host.attrs.GetInt("most_arena_bytes"));
}

double EstimateMicroseconds(const graph::KernelInfo& kernel, const Machine& machine) {
  if (kernel.seconds > 0) return kernel.seconds * 1e6;
  WorkDescription work;
  work.vector_ops = static_cast<double>(kernel.flops);
  work.bytes[machine.LevelFor(kernel.bytes)] = static_cast<double>(kernel.bytes);
  work.tiles = work.team = machine.workers;
  return EstimateSeconds(work, machine) * 1e6;
}

static Json ValueJson(const graph::ProgramValue& value) {
  Json j{{"name", value.name}, {"dtype", value.text}};
  if (!value.is_tensor) return j;
  j["shape"] = Json::array();
  for (const std::string& d : value.dims) {
    const bool number = d.find_first_not_of("0123456789") == std::string::npos;
    if (number)
      j["shape"].push_back(std::stoll(d));
    else
      j["shape"].push_back(d);
  }
  return j;
}

static graph::Waits WaitsOf(const Func& f) {
  if (!f) return {};
  return {f->attrs.GetInt(packed::kWaitsAttr), f->attrs.GetInt(packed::kWaitsInLoopsAttr)};
}

// In how many places a call waits for the device, to see what it has computed.
static void AddWaits(const graph::Program& program, const Module& host, const std::string& name,
                     Json* main) {
  graph::Waits waits = WaitsOf(host.Find(name));
  if (!program.IsPlain()) {
    std::vector<graph::Waits> of_parts;
    for (size_t i = 0; i < program.parts.size(); ++i)
      of_parts.push_back(WaitsOf(host.Find(PartName(name, i))));
    waits = graph::DeviceWaits(program, of_parts);
  }
  if (waits.places > 0) (*main)[packed::kWaitsAttr] = waits.places;
  if (waits.in_loops > 0) (*main)[packed::kWaitsInLoopsAttr] = waits.in_loops;
}

// What the rows of NAME_launch_times are.
static void AddLaunches(const Func& times, Json* info) {
  if (!times) return;
  Json launches = Json::array();
  const std::vector<std::string> nodes =
      times->attrs.Get<std::vector<std::string>>(kLaunchNodesAttr, {});
  for (const std::string& kernel :
       times->attrs.Get<std::vector<std::string>>(kLaunchKernelsAttr, {}))
    launches.push_back({{"kernel", kernel}, {"node", nodes[launches.size()]}});
  (*info)["launches"] = std::move(launches);
}

// Inputs, outputs and dims.
static void AddInterface(const graph::Program& program, Json* main, Json* dims) {
  if (!program.IsPlain()) {
    for (const graph::ProgramValue& v : program.inputs) (*main)["inputs"].push_back(ValueJson(v));
    for (const graph::ProgramValue& v : program.outputs) (*main)["outputs"].push_back(ValueJson(v));
    (*main)["makes_outputs"] = true;
    return;
  }
  const graph::Graph& g = program.parts[0];
  for (graph::ValueId v : g.inputs)
    (*main)["inputs"].push_back(TensorJson(g.value(v).name, g.type(v)));
  for (size_t k = 0; k < g.outputs.size(); ++k) {
    (*main)["outputs"].push_back(TensorJson(g.output_names[k], g.type(g.outputs[k])));
  }
  *dims = DimsJson(g);
}

// What NVRTC makes runs on the drivers of its version of CUDA and later ones.
static std::string OldestDriver(const Target& target) {
  if (!target.IsDevice() || target.kind().code_generator != "cuda") return "";
  const auto nvrtc = codegen::FindNvrtc();
  if (!nvrtc) return "";
  return fmt::format("CUDA {}.0, NVIDIA {} or newer", nvrtc->major, nvrtc->major >= 13 ? 580 : 525);
}

std::string InfoJson(const graph::Program& program, const graph::LoweredNetwork& network,
                     const Module& host, const Machine& machine, const CompileOptions& options,
                     const SourceHashes& hashes, const std::string& params, const Json& records) {
  const Target& target = *machine.target;
  Json j;
  j["abi"] = TN_ABI_VERSION;
  j["name"] = options.name;
  j["target"] = target.ToString();
  j["triple"] = target.Cpu().triple();
  j["precision"] = options.precision;
  j["features"] = target.Cpu().FeatureList();
  if (const std::string driver = OldestDriver(target); !driver.empty()) j["driver"] = driver;
  Json main{{"name", options.name}, {"inputs", Json::array()}, {"outputs", Json::array()}};
  Json dims = Json::array();
  AddInterface(program, &main, &dims);
  Func f = host.Find(options.name);
  if (f && f->attrs.Has(kResultShapesAttr)) main["makes_outputs"] = true;
  if (target.IsDevice()) AddWaits(program, host, options.name, &main);
  j["functions"] = Json::array({main});
  j["dims"] = dims;
  j["arena_bytes"] = f ? ArenaBytes(*f) : 0;
  j["weights_bytes"] = network.weights_bytes;
  if (!params.empty() && network.weights_bytes > 0) j["params"] = params;
  j["kernels"] = Json::array();
  for (const graph::KernelInfo& k : network.kernels) {
    j["kernels"].push_back(
        {{"name", k.name},
         {"kind", k.kind},
         {"launches", k.launches},
         {"flops", k.flops},
         {"bytes", k.bytes},
         {"estimated_us", std::round(EstimateMicroseconds(k, machine) * 1e3) / 1e3}});
  }
  AddLaunches(host.Find(options.name + kTimesSuffix), &j);
  if (!records.is_null()) j["tuning"] = records;
  if (f) j["plan"] = f->attrs.GetString("plan");
  if (program.IsPlain() && !program.parts[0].metadata.empty())
    j["metadata"] = program.parts[0].metadata;
  j["hashes"] = {{"source", hashes.source.ToHex()}};
  if (!hashes.profile.empty()) j["hashes"]["profile"] = hashes.profile;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tenon::driver
