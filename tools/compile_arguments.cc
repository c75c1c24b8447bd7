#include "compile_arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "driver/check_options.h"
#include "driver/custom_operators.h"
#include "frontend/onnx/shape_text.h"

namespace tenon::tools {

namespace {

constexpr const char* kGroup = "How to compile";

// "name:1x3x224x224", "name:batch[1..16]x128"; names of inputs may hold colons, sizes do not.
Status ReadShape(const std::string& text, driver::CompileOptions* options) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    return MakeError(fmt::format("--shape '{}': expected name:1x3x224x224", text));
  }
  Expected<std::vector<onnx::DimSpec>> dims = onnx::ParseShape(text.substr(colon + 1));
  if (!dims) {
    return MakeError(fmt::format("--shape '{}': {}", text, dims.errors()[0].message));
  }
  if (!options->shapes.emplace(text.substr(0, colon), std::move(*dims)).second) {
    return MakeError(fmt::format("--shape is given twice for '{}'", text.substr(0, colon)));
  }
  return Ok();
}

// "my.domain::Op=op.tir".
Status ReadOperator(const std::string& text, driver::CompileOptions* options) {
  const size_t equal = text.find('='), colons = text.find("::");
  const size_t begin = colons < equal ? colons + 2 : 0;
  if (equal == std::string::npos || begin >= equal || equal + 1 == text.size())
    return MakeError(fmt::format("--custom-op '{}': expected domain::Operator=file.tir", text));
  std::string domain = begin == 0 ? "" : text.substr(0, colons);
  if (domain == "ai.onnx") domain = "";
  TN_ASSIGN_OR_RETURN(onnx::CustomOperator op, driver::ReadOperator(text.substr(equal + 1)));
  const std::string name = text.substr(begin, equal - begin);
  if (!options->operators.emplace(std::pair(domain, name), std::move(op)).second)
    return MakeError(fmt::format("--custom-op is given twice for '{}'", text.substr(0, equal)));
  return Ok();
}

}  // namespace

void CompileArguments::AddTo(CLI::App* verb) {
  const char* group = kGroup;
  verb_ = verb;
  verb->add_option("--target", options.target, "what to compile for; llvm is this machine")
      ->group(group)
      ->capture_default_str();
  verb->add_option(
          "--shape", shapes_,
          "the sizes of an input, as name:1x3x224x224; one that stays open has a name, "
          "as in name:batch[1..16]xseq[32..512 step 32]; or with commas, [1,3,224,224]; of "
          "an input that --fill fills, those that the library leaves open; may be "
          "repeated")
      ->group(group)
      ->allow_extra_args(false);
  verb->add_option(
          "--shape-weights", weights_,
          "sizes of open dims at which kernels are tuned and, with --log, plans chosen, and how "
          "often calls have them, as batch=4,seq=128:3; default: the ends of each range, a middle "
          "and a prime; may be repeated")
      ->group(group)
      ->allow_extra_args(false);
  verb->add_flag("--empty-sizes", options.empty_sizes,
                 "sizes that the model leaves open may be 0, and not only 1 and more")
      ->group(group);
  verb->add_option("-O", options.opt_level,
                   "0: no fusion, plain schedules; 1: fusion; 2: everything; 3: a wider choice")
      ->group(group)
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  verb->add_option("--precision", options.precision,
                   "exact: fp32 arithmetic only; fp32: as good as that, by whatever is fastest; "
                   "tf32: products may round their factors to 10 bits of mantissa; bf16, fp16: "
                   "factors of products, and what kernels hand to each other, in 16 bits")
      ->group(group)
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(driver::kPrecisions), std::end(driver::kPrecisions))))
      ->capture_default_str();
  verb->add_option("--prices", options.prices,
                   "a file of measured kernels, which count before predicted times where plans are "
                   "chosen; a line for each point")
      ->group(group);
  verb->add_option("--log", options.log,
                   "a log of `tenon tune`: what it measured counts before predicted times where "
                   "plans are chosen")
      ->group(group);
  verb->add_option("--profile", options.profile,
                   "rates of the machine to plan by: a file of `tenon doctor`, or host, which "
                   "measures this one once; default: what the target's preset says")
      ->group(group);
  verb->add_flag("--any-machine", options.any_machine,
                 "records of the log, and the profile, count on whatever machine they were made")
      ->group(group);
  verb->add_flag("--time-kernels", options.time_kernels,
                 "count the launches of kernels and what they take, each alone; `tenon bench` "
                 "prints that, and the function NAME_launch_times tells it")
      ->group(group);
  verb->add_option("--custom-op", operators_,
                   "an operator of your own, as domain::Operator=file.tir: functions of loop IR, "
                   "whose parameters are a node's inputs and then its results; may be repeated")
      ->group(group)
      ->allow_extra_args(false);
  verb->add_option("--link", options.link,
                   "an object file with C functions that operators of your own call; may be "
                   "repeated")
      ->group(group)
      ->allow_extra_args(false);
  verb->add_option("--external-data-dir", options.external_data_dir,
                   "where the files of external weights lie; default: beside the model")
      ->group(group);
  verb->add_option("--jobs", options.jobs, "threads to compile with; 0: as many as there are CPUs")
      ->group(group)
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

Status CompileArguments::Finish() {
  for (const std::string& text : shapes_) TN_RETURN_IF_ERROR(ReadShape(text, &options));
  for (const std::string& text : weights_) {
    Expected<plan::ShapeWeight> parsed = plan::ShapeWeight::Parse(text);
    if (!parsed) return MakeError("--shape-weights " + parsed.errors()[0].message);
    options.shape_weights.push_back(*std::move(parsed));
  }
  for (const std::string& text : operators_) TN_RETURN_IF_ERROR(ReadOperator(text, &options));
  TN_RETURN_IF_ERROR(driver::CheckOptions(options));
  return Ok();
}

std::string CompileArguments::Given() const {
  for (const CLI::Option* option : verb_->get_options()) {
    const std::string name = option->get_name();
    if (option->get_group() == kGroup && option->count() > 0 && name != "--shape") return name;
  }
  return "";
}

}  // namespace tenon::tools
