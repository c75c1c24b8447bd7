#include "call_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>

#include "npy.h"
#include "support/strings.h"

namespace tenon::tools {

namespace {

// Standard normal numbers, the same on every machine (std::normal_distribution is not).
class Normal {
 public:
  explicit Normal(uint64_t seed) : bits_(seed) {}
  double Next() {
    constexpr double kTau = 6.283185307179586;
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(kTau * Uniform());
  }

 private:
  double Uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  std::mt19937_64 bits_;
};

std::vector<std::string> Names(const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const Parameter& p : parameters) names.push_back(p.name);
  return names;
}

std::vector<std::string> Texts(const std::vector<int64_t>& numbers) {
  std::vector<std::string> out;
  for (int64_t n : numbers) out.push_back(std::to_string(n));
  return out;
}

// ", n = 4"; sizes that have no name are left out.
std::string SizesText(const std::map<std::string, int64_t>& sizes) {
  std::string out;
  for (const auto& [name, size] : sizes) {
    if (!name.empty()) out += fmt::format(", {} = {}", name, size);
  }
  return out;
}

}  // namespace

Expected<ArrayPath> ParseArrayPath(const std::string& option, const std::string& text) {
  if (text.ends_with(".npz")) return ArrayPath{"", text, true};
  size_t equals = text.find('=');
  if (text.ends_with(".json") && equals == std::string::npos) return ArrayPath{"", text, true};
  ArrayPath result{text.substr(0, equals == std::string::npos ? 0 : equals),
                   text.substr(equals == std::string::npos ? 0 : equals + 1), false};
  if (result.path.ends_with(".npy") || result.IsJson()) return result;
  return MakeError(fmt::format("{} '{}': expected x.npz, name=x.npy, x.npy, x.json or name=x.json",
                               option, text));
}

CLI::Validator ArrayFile(const std::string& option) {
  return {[option](const std::string& text) {
            Expected<ArrayPath> path = ParseArrayPath(option, text);
            return path ? std::string() : path.errors()[0].message;
          },
          "FILE"};
}

void CallArguments::AddTo(CLI::App* verb, const std::string& fill) {
  const char* group = "Inputs";
  fill_ = fill;
  verb->add_option(
          "-i,--input", files_,
          "x.npz holds inputs by name; name=x.npy is one input; x.npy that of a model with "
          "one input; x.json and name=x.json the same of any values; may be repeated")
      ->group(group)
      ->allow_extra_args(false)
      ->check(ArrayFile("-i"));
  verb->add_option("--fill", fill_,
                   "what inputs that are not given hold; random: normal floats, zeros and ones as "
                   "integers; none: they must be given")
      ->group(group)
      ->check(CLI::IsMember({"random", "zeros", "ones", "none"}))
      ->capture_default_str();
  verb->add_option("--seed", seed_, "of --fill random")->group(group)->capture_default_str();
  verb->add_option("--device", device_,
                   "where to run: NAME or NAME:INDEX, as opencl:1; default: the first device that "
                   "the model is compiled for. Inputs are moved there, results back")
      ->group(group);
}

Status CallArguments::ReadFiles() {
  for (const std::string& text : files_) {
    TN_ASSIGN_OR_RETURN(ArrayPath where, ParseArrayPath("-i", text));
    if (where.IsJson()) {
      TN_RETURN_IF_ERROR(ReadJsonInputs(where));
      continue;
    }
    NamedTensors arrays;
    if (where.archive) {
      TN_ASSIGN_OR_RETURN(arrays, ReadNpz(where.path));
    } else {
      TN_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(where.path));
      arrays.emplace_back(where.name, std::move(tensor));
    }
    for (auto& [name, tensor] : arrays) {
      if (IsGiven(name)) return MakeError(fmt::format("input '{}' is given twice", name));
      given_.emplace_back(name, std::move(tensor));
    }
  }
  return Ok();
}

bool CallArguments::IsGiven(const std::string& name) const {
  return Find(given_, name) || json_.contains(name);
}

Status CallArguments::ReadJsonInputs(const ArrayPath& where) {
  TN_ASSIGN_OR_RETURN(Json json, ReadJson(where.path));
  if (!where.archive) json = Json{{where.name, std::move(json)}};
  if (!json.is_object()) return MakeError("expected an object of inputs by name", {where.path});
  for (auto& [name, value] : json.items()) {
    if (IsGiven(name)) return MakeError(fmt::format("input '{}' is given twice", name));
    json_[name] = std::move(value);
  }
  return Ok();
}

Status CallArguments::CheckNotRead(const std::string& output, const std::string& model) const {
  std::vector<std::string> inputs = {model};
  for (const std::string& text : files_) {
    TN_ASSIGN_OR_RETURN(const ArrayPath where, ParseArrayPath("-i", text));
    inputs.push_back(where.path);
  }
  for (const std::string& input : inputs) {
    std::error_code none;
    if (!std::filesystem::equivalent(output, input, none)) continue;
    return MakeError(fmt::format("the output would replace '{}', a file that is read", output));
  }
  return Ok();
}

const Tensor* CallArguments::GivenFor(const Parameter& parameter, const Program& program) const {
  const Tensor* given = Find(given_, parameter.name);
  return given || program.inputs().size() != 1 ? given : Find(given_, "");
}

Expected<CallArguments::Sizes> CallArguments::SizesOf(const Program& program,
                                                      const Shapes& shapes) const {
  Sizes sizes;
  std::vector<std::string> names = Names(program.inputs());
  for (const auto& [name, shape] : shapes) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return MakeError(
        fmt::format("--shape: there is no input '{}'; there are {}", name, Join(names, ", ")));
  }
  for (const Parameter& p : program.inputs()) {
    if (!p.has_rank) continue;
    std::vector<int64_t> extents;
    const auto shape = shapes.find(p.name);
    if (shape != shapes.end()) {
      for (const onnx::DimSpec& d : shape->second) extents.push_back(d.value);
    } else if (const Tensor* given = GivenFor(p, program)) {
      extents.assign(given->shape().begin(), given->shape().end());
    } else {
      continue;
    }
    bool fits = extents.size() == p.shape.size();
    for (size_t d = 0; fits && d < extents.size(); ++d) {
      const bool is_open = p.shape[d] < 0;
      if (is_open && extents[d] < 0) continue;  // a name: compiled for, and given elsewhere
      fits = is_open ? sizes.emplace(p.dims[d], extents[d]).first->second == extents[d]
                     : p.shape[d] == extents[d];
    }
    if (!fits && shape != shapes.end()) {
      return MakeError(fmt::format("--shape {}:{}: the input is {}{}", p.name,
                                   Join(Texts(extents), "x"), p.ToString(), SizesText(sizes)));
    }
  }
  return sizes;
}

Expected<std::vector<Value>> CallArguments::Values(const Program& program,
                                                   const Shapes& shapes) const {
  const std::vector<Parameter>& parameters = program.inputs();
  Diagnostics errors;
  std::set<std::string> known;
  for (const Parameter& p : parameters) known.insert(p.name);
  std::vector<std::string> given;
  for (const auto& [name, tensor] : given_) given.push_back(name);
  for (const auto& [name, json] : json_.items()) given.push_back(name);
  for (const std::string& name : given) {
    if (known.count(name) || (name.empty() && parameters.size() == 1)) continue;
    if (name.empty()) {
      errors.push_back(
          MakeError(fmt::format("an array is given without a name, and there are {} inputs; say "
                                "which it is: {}=x.npy (there are {})",
                                parameters.size(), parameters.empty() ? "" : parameters[0].name,
                                Join(Names(parameters), ", "))));
      continue;
    }
    errors.push_back(MakeError(
        fmt::format("there is no input '{}'; there are {}", name, Join(Names(parameters), ", "))));
  }
  TN_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(program, shapes));
  std::vector<Value> inputs;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (const Tensor* given = GivenFor(p, program)) {
      TN_ASSIGN_OR_RETURN(Tensor typed, given->AsFloat8(p.dtype));
      inputs.emplace_back(std::move(typed));
      continue;
    }
    if (json_.contains(p.name)) {
      inputs.emplace_back(json_[p.name]);
      continue;
    }
    Parameter shaped = p;
    if (const auto shape = shapes.find(p.name); !p.has_rank && shape != shapes.end()) {
      shaped.has_rank = true;
      for (const onnx::DimSpec& d : shape->second) {
        shaped.shape.push_back(d.value);
        shaped.dims.push_back(d.symbol);
      }
    }
    Expected<Tensor> filled = Fill(std::move(shaped), sizes, i);
    if (filled) {
      inputs.emplace_back(std::move(*filled));
    } else {
      errors.insert(errors.end(), filled.errors().begin(), filled.errors().end());
    }
  }
  if (!errors.empty()) return errors;
  return inputs;
}

Expected<NamedTensors> CallArguments::Inputs(const Program& program, const Shapes& shapes) const {
  if (program.HasValues())
    return MakeError(
        "strings, sequences, optional values and maps are no tensors that could be passed");
  TN_ASSIGN_OR_RETURN(std::vector<Value> values, Values(program, shapes));
  NamedTensors inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& p = program.inputs()[i];
    if (const auto* json = std::get_if<Json>(&values[i])) {
      Expected<Tensor> tensor = TensorFromJson(*json, p.type);
      if (!tensor)
        return MakeError(
            fmt::format("input '{}' ({}): {}", p.name, p.ToString(), tensor.errors()[0].message));
      inputs.emplace_back(p.name, std::move(*tensor));
    } else {
      inputs.emplace_back(p.name, std::move(std::get<Tensor>(values[i])));
    }
  }
  return inputs;
}

Expected<Tensor> CallArguments::Fill(Parameter p, const Sizes& sizes, size_t index) const {
  if (fill_ == "none") {
    return MakeError(fmt::format("input '{}' ({}) is not given; give it with -i or choose a --fill",
                                 p.name, p.ToString()));
  }
  if (p.IsValue() || !IsPlainType(p.dtype)) {
    return MakeError(fmt::format("input '{}' of type {} cannot be filled", p.name, p.type));
  }
  if (!p.has_rank) {
    return MakeError(fmt::format(
        "input '{}' cannot be filled: nothing says its shape; give it with --shape {}:SIZES, or "
        "the input with -i",
        p.name, p.name));
  }
  for (size_t d = 0; d < p.shape.size(); ++d) {
    if (p.shape[d] >= 0) continue;
    if (const auto size = sizes.find(p.dims[d]); size != sizes.end()) {
      p.shape[d] = size->second;
      continue;
    }
    return MakeError(
        fmt::format("input '{}' ({}) cannot be filled: the size of '{}' is open; give it with "
                    "--shape {}:SIZES, or the input with -i",
                    p.name, p.ToString(), p.dims[d], p.name));
  }
  TN_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(p.dtype, p.shape));
  Normal normal(seed_ + 1000003 * index);
  const bool is_float =
      p.dtype.code == TN_DL_FLOAT || p.dtype.code == TN_DL_BFLOAT || IsFloat8(p.dtype);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    double drawn = fill_ == "random" ? normal.Next() : fill_ == "ones" ? 1 : 0;
    // Integers are mostly indices: 0 and 1 are valid in almost every table.
    tensor.Set(i, is_float ? drawn : drawn > 0 ? 1 : 0);
  }
  return tensor;
}

}  // namespace tenon::tools
