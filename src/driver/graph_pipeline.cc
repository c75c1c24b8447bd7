#include "driver/graph_pipeline.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "graph/verify.h"
#include "plan/passes.h"
#include "support/check.h"
#include "support/stop.h"

namespace tenon::driver {

namespace {

struct GraphStep {
  const char* pass;
  int min_opt_level;
  const char* why;
  const char* precision = nullptr;  // the one at which it runs; null: at any
};

constexpr GraphStep kSteps[] = {
    {"dead_code", 0, "exporters leave unused nodes behind"},
    {"sink_constants", 1, "so that weights inside of regions are weights to all that follow"},
    {"common_subexpressions", 1, "so that later passes see every use of a value"},
    {"prove_requirements", 0, "checks are kernels, of which fuse would make others"},
    {"simplify_views", 1, "so that raising looks through fewer of them"},
    {"raise_hard_sigmoid", 1, "on single operators, as all raising; raise_hard_swish looks for it"},
    {"raise_hard_swish", 1, "before fold_into_conv, which may take a factor away from it"},
    {"raise_gelu", 1, "likewise"},
    {"raise_softmax", 1, "raise_attention looks for it"},
    {"raise_layer_norm", 1,
     "before decompose_batch_norm, whose products and sums are not its parameters"},
    {"raise_attention", 1, "before anything gives its matmuls other neighbours"},
    {"vector_products", 1, "what raise_attention has left; simplify_views joins its views"},
    {"tap_sums", 1, "before simplify_views, which finds the turns that meet"},
    {"simplify_views", 1, "raise_attention turns k around"},
    {"merge_products", 1, "on the views that are left; what follows a product is by itself yet"},
    {"integer_products", 1, "before fold_into_conv, which gives weights other factors"},
    {"widen_f16", 1,
     "behind raising, which looks at constants as they are; before weights are made of weights, "
     "which f16 would round once more. `exact` rounds where the model says",
     "fp32"},
    {"decompose_batch_norm", 0, "one form of a product and a sum per channel"},
    {"fold_into_conv", 1, "on logical weights"},
    {"crop_conv", 1, "plans give inputs the borders that pads ask for"},
    {"split_taps", 1, "on what crop_conv left"},
    {"flush_subnormals", 1,
     "weights have their final values; before winograd makes sums of them. `exact` takes them as "
     "they are",
     "fp32"},
    {"flush_subnormals", 1, "likewise", "tf32"},
    {"flush_subnormals", 1, "likewise, of what stays f32", "bf16"},
    {"flush_subnormals", 1, "likewise", "fp16"},
    {"winograd", 2,
     "on what split_taps has left; weights have their final values. Its sums have other products "
     "than the operator's, which `exact` forbids and fewer bits would not bear",
     "fp32"},
    {"winograd_f16", 2, "likewise, in f32: a map is read and stored as narrow_f16 says", "fp16"},
    {"winograd_bf16", 2, "likewise", "bf16"},
    {"whole_channels", 1, "weights have their final values; what has 16 bits has pieces of 8",
     "fp16"},
    {"whole_channels", 1, "likewise", "bf16"},
    {"match_signs", 2, "sums of rows and columns may be there already, from zero points"},
    {"common_subexpressions", 1, "folding made equal transforms of equal weights"},
    {"split_concat", 0, "on what common_subexpressions have left"},
    {"split_products", 2,
     "on weights in their final order; the sums leave out what is below f32's last bits of a "
     "product, which `exact` forbids",
     "fp32"},
    {"fuse", 1, "everything before reasons about single operators"},
    {"narrow_f16", 0, "on groups: what is not stored is not rounded; types decide about plans",
     "fp16"},
    {"narrow_bf16", 0, "likewise", "bf16"},
    {"feed_loops", 1, "on groups, with the types that they have"},
    {"plan_groups", 2, "last: a group is what has an algorithm, and operands to lie as it wants"},
};

bool Runs(const GraphStep& step, const CompileOptions& options) {
  if (step.precision && options.precision != step.precision) return false;
  return options.opt_level >= step.min_opt_level && !options.disabled_passes.count(step.pass);
}

}  // namespace

bool RunsPass(std::string_view pass, const CompileOptions& options) {
  return std::any_of(std::begin(kSteps), std::end(kSteps), [&](const GraphStep& step) {
    return step.pass == pass && Runs(step, options);
  });
}

Expected<graph::Graph> RunGraphPasses(graph::Graph g, const Machine& machine,
                                      const CompileOptions& options, const plan::Prices* prices,
                                      const GraphHooks& hooks) {
  const graph::GraphPassContext context{&machine, prices};
  for (const GraphStep& step : kSteps) {
    if (!Runs(step, options)) continue;
    PollStop();
    const graph::GraphPassInfo* pass = graph::FindAnyGraphPass(step.pass);
    TN_CHECK(pass, "no pass '{}'", step.pass);
    auto start = std::chrono::steady_clock::now();
    graph::Graph after = pass->run(g, context);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (hooks.after_pass) hooks.after_pass(step.pass, g, after, seconds);
    g = std::move(after);
    if (options.verify_each) CheckVerified(graph::Verify(g), step.pass);
  }
  return g;
}

}  // namespace tenon::driver
