#include "fuzz/graph/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "device.h"
#include "driver/compile.h"
#include "frontend/onnx/proto.h"
#include "graph/lower/lower.h"
#include "interp/interp.h"
#include "loop/arguments.h"
#include "loop/edit.h"
#include "loop/pass/blocks/empty_reductions.h"
#include "loop/pass/pass.h"
#include "program.h"
#include "support/atomic_file.h"

namespace tenon::fuzz {

namespace {

// Elements as doubles: integers of networks stay below 2^53.
struct Array {
  std::vector<int64_t> dims;
  std::vector<double> data;
};
using Arrays = std::map<std::string, Array>;

constexpr double kSlack = 4;  // of errors, which add up in unlucky ways
constexpr int64_t kMostSteps = 60'000'000;
constexpr uint64_t kPrime = 0x100000001b3;

using Shapes = std::map<std::string, std::vector<onnx::DimSpec>>;

// Shapes of a model's inputs: `named` says what an open size is.
template <class F>
Expected<Shapes> ShapesOf(const Network& network, F named) {
  TN_ASSIGN_OR_RETURN(const onnx::ModelProto model, onnx::ReadModel(network.model, "model"));
  Shapes shapes;
  for (const onnx::ValueInfoProto& input : model.graph.inputs) {
    std::vector<onnx::DimSpec>& spec = shapes[std::string(input.name)];
    for (const onnx::DimProto& d : input.shape) {
      const bool open = d.kind == onnx::DimProto::Kind::kParam;
      spec.push_back(open ? named(std::string(d.param)) : onnx::DimSpec{d.value, {}});
    }
  }
  return shapes;
}

// At one of the two calls.
Expected<Shapes> ShapesAt(const Network& network, size_t call) {
  return ShapesOf(network, [&](const std::string& name) {
    return onnx::DimSpec{network.sizes.at(name)[call], {}};
  });
}

// Each open size ranges over no more than what it is at the calls: rows may be one block of a tile,
// or fewer.
Expected<Shapes> NarrowShapes(const Network& network) {
  return ShapesOf(network, [&](const std::string& name) {
    const auto [least, most] = std::minmax(network.sizes.at(name)[0], network.sizes.at(name)[1]);
    return onnx::DimSpec{-1, name, least, most, 1};
  });
}

Arrays InputsAt(const Shapes& shapes, const Network& network, uint64_t seed, size_t call) {
  Arrays inputs;
  for (const auto& [name, spec] : shapes) {
    Array a;
    int64_t count = 1;
    for (const onnx::DimSpec& d : spec) a.dims.push_back(d.value), count *= d.value;
    uint64_t hash = seed * 2 + call;
    for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * kPrime;
    std::mt19937_64 random(hash);
    const Value& v = network.values.at(name);
    for (int64_t i = 0; i < count; ++i) a.data.push_back(AnyElement(random, v));
    // As the type has it.
    const InterpArg rounded = InterpArg::Tensor(InfoOf(v.elem).dtype, a.dims, a.data);
    for (int64_t i = 0; i < count; ++i) a.data[static_cast<size_t>(i)] = rounded.Get(i);
    inputs[name] = std::move(a);
  }
  return inputs;
}

// ---- the oracle

InterpArg ArgOf(DType dtype, const std::vector<int64_t>& dims, const Array* values) {
  return values ? InterpArg::Tensor(dtype, dims, values->data) : InterpArg::Output(dtype, dims);
}

// What weights_base points to: copies, and what prepare functions compute.
Expected<std::vector<uint8_t>> Weights(const graph::LoweredNetwork& network) {
  std::vector<uint8_t> segment(network.weights_bytes + 64);
  for (const graph::Weight& w : network.weights) {
    std::vector<InterpArg> args;
    if (w.prepare.empty()) {
      std::memcpy(segment.data() + w.offset, w.source.bytes().data(), w.source.bytes().size());
      continue;
    }
    const Func f = network.prepare.Find(w.prepare);
    for (const Buffer& b : f->buffers) {
      std::vector<int64_t> shape;
      for (const Expr& e : b->shape) shape.push_back(*AsInt(e));
      if (args.size() < w.sources.size()) {
        const auto source = w.sources[args.size()].bytes();
        const auto* first = reinterpret_cast<const uint8_t*>(source.data());
        args.push_back(
            InterpArg::Tensor(b->dtype, shape, std::vector<uint8_t>(first, first + source.size())));
      } else {
        args.push_back(InterpArg::Output(b->dtype, shape));
      }
    }
    InterpOptions options;
    options.max_steps = kMostSteps;
    TN_RETURN_IF_ERROR(Interpret(network.prepare, w.prepare, args, options));
    const std::vector<uint8_t>& result = args.back().bytes;
    std::memcpy(segment.data() + w.offset, result.data(), std::min<size_t>(result.size(), w.bytes));
  }
  return segment;
}

// With the loops of the plainest schedule in place of definitions.
Expected<Module> Scheduled(const graph::LoweredNetwork& network, Module module,
                           const Machine& machine) {
  for (const auto& [name, func] : Module(module).funcs) {
    if (func->func_kind != FuncKind::kKernel) continue;
    TN_ASSIGN_OR_RETURN(const Schedule schedule,
                        ops::ScheduleKernel(network.scheduled.at(name), machine));
    for (const auto& [part, scheduled] : schedule.module().funcs) module.Add(scheduled);
  }
  return module;
}

// Nothing where the interpreter has no way to run it: sizes that elements decide, or too long.
Expected<std::optional<Arrays>> Interpreted(const std::string& path, const Shapes& shapes,
                                            const Arrays& inputs, bool scheduled) {
  onnx::ImportOptions import;
  import.shapes = shapes;
  TN_ASSIGN_OR_RETURN(const graph::Program program, onnx::ImportNetwork(path, import));
  if (!program.IsPlain()) return std::optional<Arrays>();
  const graph::Graph& g = program.parts[0];
  static const Target kTarget = Target::Parse("llvm -mcpu=core-avx2").value();
  static const Machine kMachine = Machine::Of(kTarget);
  TN_ASSIGN_OR_RETURN(graph::LoweredNetwork network,
                      graph::Lower(g, {&kMachine, &kMachine, "main", false}));
  if (scheduled) {
    TN_ASSIGN_OR_RETURN(network.module, Scheduled(network, network.module, kMachine));
    TN_ASSIGN_OR_RETURN(network.prepare, Scheduled(network, network.prepare, kMachine));
  }
  // Blocks say nothing of reductions of nothing.
  network.prepare = MapFuncs(network.prepare, InitializeEmptyReductions);
  Module module = MapFuncs(network.module, InitializeEmptyReductions);
  const Func main = module.Find("main");
  if (main->attrs.Has(kResultShapesAttr) || main->attrs.Has(kFindersAttr))
    return std::optional<Arrays>();
  PassContext context;
  context.target = &kTarget;
  for (const char* pass : {"plan_storage", "lower_team"})
    module = FindLoopPass(pass)->run(module, context);
  std::vector<InterpArg> args;
  for (graph::ValueId v : g.inputs) {
    const graph::TensorType& type = g.type(v);
    args.push_back(ArgOf(type.dtype, *type.StaticDims(), &inputs.at(g.value(v).name)));
  }
  for (graph::ValueId v : g.outputs) {
    if (!g.type(v).StaticDims()) return std::optional<Arrays>();
    args.push_back(ArgOf(g.type(v).dtype, *g.type(v).StaticDims(), nullptr));
  }
  const Func planned = module.Find("main");
  if (!planned->scalars.empty())
    args.push_back(InterpArg::Memory(planned->attrs.GetInt("arena_bytes")));
  InterpOptions options;
  options.max_steps = kMostSteps;
  TN_ASSIGN_OR_RETURN(const std::vector<uint8_t> weights, Weights(network));
  options.weights = weights;
  const Status ran = Interpret(module, "main", args, options);
  if (!ran && ran.errors()[0].kind == ErrorKind::kLimit) return std::optional<Arrays>();
  TN_RETURN_IF_ERROR(ran);
  Arrays outputs;
  for (size_t k = 0; k < g.outputs.size(); ++k) {
    const InterpArg& arg = args[g.inputs.size() + k];
    Array& out = outputs[g.output_names[k]];
    out.dims = arg.shape;
    for (int64_t i = 0; i < arg.num_elements(); ++i) out.data.push_back(arg.Get(i));
  }
  return std::optional<Arrays>(std::move(outputs));
}

// ---- the library

Expected<Arrays> Called(const tools::Program& program, const Arrays& inputs) {
  TN_ASSIGN_OR_RETURN(const tn_dl_device device, tools::DeviceFor(program, ""));
  tools::NamedTensors tensors;
  for (const tools::Parameter& p : program.inputs()) {
    const Array& a = inputs.at(p.name);
    TN_ASSIGN_OR_RETURN(tools::Tensor t, tools::Tensor::Make(p.dtype, a.dims));
    for (size_t i = 0; i < a.data.size(); ++i) t.Set(static_cast<int64_t>(i), a.data[i]);
    tensors.emplace_back(p.name, std::move(t));
  }
  TN_ASSIGN_OR_RETURN(tensors, tools::OnDevice(tensors, device));
  TN_ASSIGN_OR_RETURN(tools::NamedTensors results, program.Call(tensors));
  TN_ASSIGN_OR_RETURN(results, tools::OnHost(results));
  Arrays outputs;
  for (const auto& [name, t] : results) {
    Array& out = outputs[name];
    out.dims.assign(t.shape().begin(), t.shape().end());
    for (int64_t i = 0; i < t.num_elements(); ++i) out.data.push_back(t.At(i));
  }
  return outputs;
}

bool Same(double a, double b, double allowed) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= allowed;
}

// What is different, or "".
std::string Difference(const Arrays& want, const Arrays& got, const Network& network) {
  if (want.size() != got.size())
    return fmt::format("{} outputs instead of {}", got.size(), want.size());
  for (const auto& [name, a] : want) {
    const auto it = got.find(name);
    if (it == got.end()) return fmt::format("no output '{}'", name);
    const Array& b = it->second;
    if (a.dims != b.dims)
      return fmt::format("'{}' is [{}] instead of [{}]", name, fmt::join(b.dims, ", "),
                         fmt::join(a.dims, ", "));
    const auto known = network.values.find(name);
    const double allowed = known == network.values.end() ? 0 : kSlack * known->second.error;
    for (size_t i = 0; i < a.data.size(); ++i) {
      if (Same(a.data[i], b.data[i], allowed)) continue;
      return fmt::format("'{}'[{}] of [{}] is {} instead of {} (within {})", name, i,
                         fmt::join(a.dims, ", "), b.data[i], a.data[i], allowed);
    }
  }
  return "";
}

nlohmann::json JsonOf(const Arrays& arrays, const Network& network) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, a] : arrays) {
    nlohmann::json texts = nlohmann::json::array();
    for (double x : a.data) {
      if (std::isfinite(x))
        texts.push_back(x);
      else
        texts.push_back(fmt::format("{}", x));
    }
    const auto known = network.values.find(name);
    if (known == network.values.end()) continue;
    out[name] = {{"type", InfoOf(known->second.elem).name},
                 {"dims", a.dims},
                 {"data", texts},
                 {"within", kSlack * known->second.error}};
  }
  return out;
}

class Checker {
 public:
  Checker(const Network& network, uint64_t seed, const CheckOptions& options)
      : network_(network), seed_(seed), options_(options), path_(options.folder + "/m.onnx") {}

  Checked Run() {
    try {
      Status status = Try();
      if (!status && result_.finding.kind.empty())
        result_.finding = {"refusal", ToString(status.errors())};
    } catch (const std::exception& e) {
      result_.finding = {"internal", e.what()};
    }
    return result_;
  }

 private:
  Status Try() {
    TN_RETURN_IF_ERROR(WriteFile(path_, network_.model));
    const size_t calls = network_.open() ? 2 : 1;
    std::vector<Arrays> inputs, want;
    for (size_t call = 0; call < calls; ++call) {
      TN_ASSIGN_OR_RETURN(const Shapes shapes, ShapesAt(network_, call));
      inputs.push_back(InputsAt(shapes, network_, seed_, call));
      TN_ASSIGN_OR_RETURN(std::optional<Arrays> told, Told(shapes, inputs.back()));
      if (told) want.push_back(std::move(*told));
    }
    result_.interpreted = want.size() == calls;
    std::vector<int> levels = options_.levels;
    if (!result_.interpreted) {
      want.clear();
      levels.insert(levels.begin(), 0);
    }
    for (int level : levels) {
      TN_ASSIGN_OR_RETURN(const tools::Program compiled, Compiled(level));
      for (size_t call = 0; call < calls; ++call) {
        TN_ASSIGN_OR_RETURN(Arrays got, Called(compiled, inputs[call]));
        ++result_.calls;
        if (want.size() == call) want.push_back(got);
        if (options_.spoil) Spoil(&got);
        const std::string different = Difference(want[call], got, network_);
        if (different.empty()) continue;
        result_.finding = {"difference", fmt::format("-O{} call {}: {}", level, call, different)};
        return Ok();
      }
    }
    if (!options_.keep.empty()) TN_RETURN_IF_ERROR(Keep(inputs, want));
    return Ok();
  }

  // A definition's loops begin a sum with its first term: of none there is no result before the
  // beginning is a loop of its own.
  Expected<std::optional<Arrays>> Told(const Shapes& shapes, const Arrays& inputs) const {
    Expected<std::optional<Arrays>> told = Interpreted(path_, shapes, inputs, false);
    const bool empty =
        !told && ToString(told.errors()).find("read before it is written") != std::string::npos;
    return empty ? Interpreted(path_, shapes, inputs, true) : told;
  }

  // The last element of the last result that has one.
  static void Spoil(Arrays* results) {
    for (auto it = results->rbegin(); it != results->rend(); ++it) {
      if (it->second.data.empty()) continue;
      it->second.data.back() = 3 * it->second.data.back() + 1e6;
      return;
    }
  }

  // What slices leave may be nothing where no size is.
  bool Empty() const {
    const auto is_empty = [](const Size& d) { return d.least() == 0; };
    return std::any_of(network_.values.begin(), network_.values.end(), [&](const auto& v) {
      return std::any_of(v.second.dims.begin(), v.second.dims.end(), is_empty);
    });
  }

  Expected<tools::Program> Compiled(int level) {
    driver::CompileOptions o;
    o.model = path_;
    o.output = options_.folder + fmt::format("/m{}.so", level);
    o.opt_level = level;
    o.target = options_.target;
    o.empty_sizes = Empty();
    if (options_.narrow) {
      TN_ASSIGN_OR_RETURN(o.shapes, NarrowShapes(network_));
    }
    o.verify_each = true;
    o.jobs = 1;
    o.warn = [&](const std::string& warning) {
      if (result_.finding.kind.empty()) result_.finding = {"warning", warning};
    };
    TN_RETURN_IF_ERROR(driver::Compile(o));
    return tools::Program::Load(o.output);
  }

  Status Keep(const std::vector<Arrays>& inputs, const std::vector<Arrays>& want) const {
    nlohmann::json calls = nlohmann::json::array();
    for (size_t call = 0; call < inputs.size(); ++call)
      calls.push_back(
          {{"inputs", JsonOf(inputs[call], network_)}, {"outputs", JsonOf(want[call], network_)}});
    const std::string name = fmt::format("{}/{}", options_.keep, seed_);
    TN_RETURN_IF_ERROR(WriteFile(name + ".onnx", network_.model));
    return WriteFile(name + ".json", calls.dump());
  }

  const Network& network_;
  uint64_t seed_;
  const CheckOptions& options_;
  const std::string path_;
  Checked result_;
};

}  // namespace

Checked Check(const Network& network, uint64_t seed, const CheckOptions& options) {
  return Checker(network, seed, options).Run();
}

}  // namespace tenon::fuzz
