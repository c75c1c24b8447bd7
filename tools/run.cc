// tenon run MODEL_OR_SO
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "artifact_source.h"
#include "compare_tensors.h"
#include "console.h"
#include "device.h"
#include "npy.h"
#include "numbers.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  std::string model;
  CompileArguments how;
  CallArguments call;
  std::vector<std::string> outputs;
  std::string expect;
  Tolerance tolerance;
  int64_t print_top = 0;
};

const Value* Find(const NamedValues& values, const std::string& name) {
  for (const auto& [of, value] : values) {
    if (of == name) return &value;
  }
  return nullptr;
}

// The tensors that they are: NumPy's files hold nothing else. What a model lists as an output twice
// is there once.
Expected<NamedTensors> Tensors(const NamedValues& values) {
  NamedTensors tensors;
  std::set<std::string> seen;
  for (const auto& [name, value] : values) {
    if (!seen.insert(name).second) continue;
    const auto* tensor = std::get_if<Tensor>(&value);
    if (!tensor)
      return MakeError(fmt::format("output '{}' is no tensor; write it to a .json file", name));
    tensors.emplace_back(name, *tensor);
  }
  return tensors;
}

Json AllJson(const NamedValues& values) {
  Json all = Json::object();
  for (const auto& [name, value] : values) all[name] = ToJson(value);
  return all;
}

Status WriteOutputs(const NamedValues& outputs, const std::vector<std::string>& paths) {
  for (const std::string& text : paths) {
    TN_ASSIGN_OR_RETURN(ArrayPath where, ParseArrayPath("-o", text));
    if (where.archive && where.IsJson()) {
      TN_RETURN_IF_ERROR(WriteJson(where.path, AllJson(outputs)));
      continue;
    }
    if (where.archive) {
      TN_ASSIGN_OR_RETURN(const NamedTensors tensors, Tensors(outputs));
      TN_RETURN_IF_ERROR(WriteNpz(where.path, tensors));
      continue;
    }
    const Value* one =
        where.name.empty() && outputs.size() == 1 ? &outputs[0].second : Find(outputs, where.name);
    if (!one) return MakeError(fmt::format("-o '{}': there is no output '{}'", text, where.name));
    if (where.IsJson()) {
      TN_RETURN_IF_ERROR(WriteJson(where.path, ToJson(*one)));
      continue;
    }
    TN_ASSIGN_OR_RETURN(const NamedTensors tensor, Tensors({{where.name, *one}}));
    TN_RETURN_IF_ERROR(WriteNpy(where.path, tensor[0].second));
  }
  return Ok();
}

void PrintTop(const std::string& name, const Tensor& tensor, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(tensor.num_elements()));
  std::iota(order.begin(), order.end(), 0);
  auto shown = order.begin() + std::min<int64_t>(count, tensor.num_elements());
  // Equal ones in the order of their places; a NaN comes last.
  std::partial_sort(order.begin(), shown, order.end(), [&](int64_t a, int64_t b) {
    double x = tensor.At(a), y = tensor.At(b);
    if (x != y && !(x != x && y != y)) return x > y || y != y;
    return a < b;
  });
  Print("{}: the {} largest of {}\n", name, shown - order.begin(), order.size());
  for (auto it = order.begin(); it != shown; ++it) {
    Print("  {:<16} {:.6g}\n", IndexText(*it, tensor.shape()), tensor.At(*it));
  }
}

// The same of results in JSON.
Expected<bool> AreExpectedJson(const NamedValues& outputs, const Arguments& args) {
  TN_ASSIGN_OR_RETURN(const Json expected, ReadJson(args.expect));
  if (!expected.is_object() || expected.empty())
    return MakeError("there is nothing to compare with", {args.expect});
  bool same = true;
  for (const auto& [name, want] : expected.items()) {
    const Value* got = Find(outputs, name);
    if (!got)
      return MakeError(fmt::format("there is no output '{}' to compare with", name), {args.expect});
    const std::string difference = Difference(ToJson(*got), want, args.tolerance);
    if (difference.empty())
      Print("{}: as expected\n", name);
    else
      PrintError("tenon: output '{}': {}\n", name, difference);
    same &= difference.empty();
  }
  return same;
}

// Names the outputs that are not as expected; false where there are any.
Expected<bool> AreExpected(const NamedValues& values, const Arguments& args) {
  if (args.expect.ends_with(".json")) return AreExpectedJson(values, args);
  TN_ASSIGN_OR_RETURN(const NamedTensors outputs, Tensors(values));
  TN_ASSIGN_OR_RETURN(NamedTensors expected, ReadNpz(args.expect));
  if (expected.empty()) return MakeError("there is nothing to compare with", {args.expect});
  bool same = true;
  for (const auto& [name, want] : expected) {
    const Tensor* got = Find(outputs, name);
    if (!got)
      return MakeError(fmt::format("there is no output '{}' to compare with", name), {args.expect});
    std::string difference = Difference(*got, want, args.tolerance);
    if (!difference.empty()) {
      PrintError("tenon: output '{}': {}\n", name, difference);
    } else {
      Print("{}: as expected; the worst difference is {:.3g}\n", name, WorstDifference(*got, want));
    }
    same &= difference.empty();
  }
  return same;
}

Expected<NamedValues> Call(const Program& program, const Arguments& args) {
  const auto& shapes = args.how.options.shapes;
  if (program.HasValues()) {
    TN_ASSIGN_OR_RETURN(const std::vector<Value> inputs, args.call.Values(program, shapes));
    return CallWithValues(program, inputs);
  }
  TN_ASSIGN_OR_RETURN(const tn_dl_device device, DeviceFor(program, args.call.device()));
  TN_ASSIGN_OR_RETURN(NamedTensors inputs, args.call.Inputs(program, shapes));
  TN_ASSIGN_OR_RETURN(inputs, OnDevice(inputs, device));
  TN_ASSIGN_OR_RETURN(NamedTensors outputs, program.Call(inputs));
  // Results without elements are not copied, and nothing else would wait for the kernels: a driver
  // that is still at work when the process ends may take it down.
  if (device.device_type != TN_DL_CPU && tn_stream_wait(device, nullptr) != 0) return ApiError();
  TN_ASSIGN_OR_RETURN(outputs, OnHost(outputs));
  return NamedValues(outputs.begin(), outputs.end());
}

// Of a tensor of numbers its type and shape, of anything else what it is, as far as a line goes.
void PrintValue(const std::string& name, const Value& value) {
  constexpr size_t kMost = 1000;
  const auto* tensor = std::get_if<Tensor>(&value);
  const std::string head =
      tensor ? fmt::format(" {} {}", ToString(tensor->dtype()), ShapeText(tensor->shape())) : "";
  std::string text;
  if (!tensor || IsText(tensor->dtype()))
    text = " " + ToJson(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + " …";
  Print("{}:{}{}\n", name, head, text);
}

Expected<int> RunModel(Arguments& args, const Common& common) {
  for (const std::string& text : args.outputs) {
    TN_ASSIGN_OR_RETURN(const ArrayPath where, ParseArrayPath("-o", text));
    TN_RETURN_IF_ERROR(args.call.CheckNotRead(where.path, args.model));
  }
  TN_RETURN_IF_ERROR(args.call.ReadFiles());
  TN_ASSIGN_OR_RETURN(LoadedModel model,
                      LoadModel(args.model, args.how, args.call, common.verbose));
  TN_ASSIGN_OR_RETURN(const NamedValues outputs, Call(model.program, args));
  TN_RETURN_IF_ERROR(WriteOutputs(outputs, args.outputs));
  for (const auto& [name, value] : outputs) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (args.print_top > 0 && tensor && IsPlainType(tensor->dtype())) {
      PrintTop(name, *tensor, args.print_top);
    } else if (args.outputs.empty() && args.expect.empty()) {
      PrintValue(name, value);
    }
  }
  if (args.expect.empty()) return kDone;
  TN_ASSIGN_OR_RETURN(bool same, AreExpected(outputs, args));
  return same ? kDone : kResultsDiffer;
}

}  // namespace

Run AddRun(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("run", "run a model once");
  verb->footer(
      "Examples:\n"
      "  tenon run model.so -i inputs.npz -o outputs.npz\n"
      "  tenon run model.onnx -i image=cat.npy --print-top 5\n"
      "  tenon run kernel.so --shape A:1024 --fill ones\n"
      "  tenon run model.so -i inputs.npz --expect outputs.npz --rtol 1e-4\n"
      "  tenon run model.onnx --target cuda --fill random --device cuda:1\n"
      "  tenon run pipeline.onnx -i inputs.json -o outputs.json\n"
      "An ONNX file is compiled first, into TENON_CACHE_DIR (default ~/.cache/tenon).");
  verb->add_option("model", args->model, "a compiled library or an ONNX file")->required();
  args->call.AddTo(verb, "none");
  const char* group = "Results";
  verb->add_option(
          "-o,--output", args->outputs,
          "y.npz takes all outputs by name; name=y.npy one; y.json and name=y.json the same "
          "of any values; may be repeated")
      ->group(group)
      ->allow_extra_args(false)
      ->check(ArrayFile("-o"));
  verb->add_option("--print-top", args->print_top, "print the N largest elements of each output")
      ->group(group)
      ->check(AtLeast(0));
  verb->add_option("--expect", args->expect,
                   "compare with ref.npz or ref.json: exit 3 where an output differs")
      ->group(group);
  verb->add_option("--rtol", args->tolerance.relative, "of --expect: relative tolerance")
      ->group(group)
      ->check(AtLeast(0))
      ->capture_default_str();
  verb->add_option("--atol", args->tolerance.absolute, "of --expect: absolute tolerance")
      ->group(group)
      ->check(AtLeast(0))
      ->capture_default_str();
  args->how.AddTo(verb);
  return [args, &common]() -> int {
    if (Status status = args->how.Finish(); !status) return ReportUsage(status.errors(), common);
    Expected<int> status = RunModel(*args, common);
    return status ? *status : Report(status.errors(), common);
  };
}

}  // namespace tenon::tools
