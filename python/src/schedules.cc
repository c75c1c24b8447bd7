// schedule.hpp.
#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.h"
#include "tenon/schedule.hpp"

namespace tenon::python {

namespace {

using te::IterVar;
using Number = std::optional<int64_t>;

// Textbooks give loops one by one, or as a list.
std::vector<IterVar> LoopsOf(const nb::args& args) {
  if (args.size() == 1 && !nb::isinstance<IterVar>(args[0])) {
    return nb::cast<std::vector<IterVar>>(args[0]);
  }
  std::vector<IterVar> loops;
  for (nb::handle h : args) loops.push_back(nb::cast<IterVar>(h));
  return loops;
}

template <class List>
nb::tuple TupleOf(const List& loops) {
  nb::list items;
  for (const IterVar& v : loops) items.append(v);
  return nb::tuple(items);
}

nb::tuple Split(Stage& s, const IterVar& parent, Number factor, Number nparts,
                const std::optional<std::vector<Number>>& factors) {
  if (factor.has_value() + nparts.has_value() + factors.has_value() != 1) {
    throw Error("ValueError", "split: expected one of factor, nparts and factors");
  }
  std::vector<int64_t> numbers;
  if (factors) {
    for (Number f : *factors) numbers.push_back(f.value_or(-1));
    return TupleOf(s.SplitFactors(parent, numbers));
  }
  auto [outer, inner] = factor ? s.Split(parent, *factor) : s.SplitParts(parent, *nparts);
  return nb::make_tuple(outer, inner);
}

// What has a name, or is one.
std::string NameOf(const nb::object& intrin) {
  const nb::object name = nb::hasattr(intrin, "name") ? nb::object(intrin.attr("name")) : intrin;
  if (nb::isinstance<nb::str>(name)) return nb::cast<std::string>(name);
  throw nb::type_error("tensorize takes what tir.TensorIntrin.register returned, or its name");
}

// A text, or a function of loop variables.
std::string MapText(const nb::object& map) {
  return nb::cast<std::string>(nb::module_::import_("tenon.tir").attr("_map_text")(map));
}

std::vector<te::Operation> ReadersOf(const nb::object& readers) {
  auto op = [](nb::handle h) {
    return nb::isinstance<te::Tensor>(h) ? nb::cast<te::Tensor>(h).op()
                                         : nb::cast<te::Operation>(h);
  };
  if (nb::isinstance<te::Tensor>(readers) || nb::isinstance<te::Operation>(readers)) {
    return {op(readers)};
  }
  std::vector<te::Operation> ops;
  for (nb::handle h : nb::cast<nb::sequence>(readers)) ops.push_back(op(h));
  return ops;
}

}  // namespace

void BindSchedules(nb::module_& m) {
  nb::class_<Stage>(m, "Stage")
      .def_prop_ro("op", &Stage::op)
      .def_prop_ro("leaf_iter_vars", &Stage::leaf_iter_vars)
      .def("split", Split, nb::arg("parent"), nb::arg("factor") = nb::none(),
           nb::arg("nparts") = nb::none(), nb::arg("factors") = nb::none(),
           nb::sig("def split(self, parent: IterVar, factor: int | None = None, "
                   "nparts: int | None = None, factors: collections.abc.Sequence[int | None] | "
                   "None = None) -> "
                   "tuple[IterVar, ...]"),
           "Outer and inner: inner of `factor` iterations, or outer of `nparts`; or as many loops "
           "as there are `factors`, outermost first, of which one may be None.")
      .def(
          "tile",
          [](Stage& s, const IterVar& x, const IterVar& y, int64_t x_factor, int64_t y_factor) {
            return TupleOf(s.Tile(x, y, x_factor, y_factor));
          },
          nb::arg("x_parent"), nb::arg("y_parent"), nb::arg("x_factor"), nb::arg("y_factor"),
          nb::sig("def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: int, "
                  "y_factor: int) -> tuple[IterVar, IterVar, IterVar, IterVar]"),
          "x outer, y outer, x inner, y inner.")
      .def(
          "fuse", [](Stage& s, const nb::args& loops) { return s.Fuse(LoopsOf(loops)); },
          "Neighbouring loops, outermost first, become one.")
      .def(
          "reorder", [](Stage& s, const nb::args& order) { s.Reorder(LoopsOf(order)); },
          "Puts these loops into this order at the places that they occupy.")
      .def("vectorize", &Stage::Vectorize, nb::arg("var"))
      .def("parallel", &Stage::Parallel, nb::arg("var"))
      .def("unroll", &Stage::Unroll, nb::arg("var"))
      .def("bind", &Stage::Bind, nb::arg("ivar"), nb::arg("thread_ivar"))
      .def(
          "pragma",
          [](Stage& s, const IterVar& var, const std::string& type, const nb::object& value) {
            s.Pragma(var, type, value.is_none() ? "" : nb::cast<std::string>(nb::str(value)));
          },
          nb::arg("var"), nb::arg("pragma_type"), nb::arg("pragma_value") = nb::none(),
          "An attribute of the loop, for passes and back ends.")
      .def("compute_at", &Stage::ComputeAt, nb::arg("parent"), nb::arg("scope"))
      .def("compute_inline", &Stage::ComputeInline)
      .def("compute_root", &Stage::ComputeRoot)
      .def("reverse_compute_at", &Stage::ReverseComputeAt, nb::arg("parent"), nb::arg("scope"))
      .def("reverse_compute_inline", &Stage::ReverseComputeInline)
      .def("set_scope", &Stage::SetScope, nb::arg("scope"))
      .def("storage_align", &Stage::StorageAlign, nb::arg("axis"), nb::arg("factor"),
           nb::arg("offset") = 0)
      .def(
          "transform_layout",
          [](Stage& s, const nb::object& layout) { s.TransformLayout(MapText(layout)); },
          nb::arg("layout"),
          nb::sig("def transform_layout(self, layout: str | collections.abc.Callable) -> None"),
          "How the tensor is stored: a text or a function such as lambda i, j: (i // 4, j, i % 4).")
      .def(
          "transform_block_layout",
          [](Stage& s, const nb::object& map) { return s.TransformBlockLayout(MapText(map)); },
          nb::arg("index_map"),
          nb::sig("def transform_block_layout(self, index_map: str | collections.abc.Callable) -> "
                  "list[IterVar]"),
          "Runs over other coordinates; the new loops.")
      .def("decompose_reduction", &Stage::DecomposeReduction, nb::arg("var"))
      .def(
          "tensorize",
          [](Stage& s, const IterVar& var, const nb::object& intrin) {
            s.Tensorize(var, NameOf(intrin));
          },
          nb::arg("var"), nb::arg("tensor_intrin"),
          "This loop and those inside become a call: of what tir.TensorIntrin.register gave, or by "
          "name.")
      .def("blockize", &Stage::Blockize, nb::arg("var"))
      .def("rolling_buffer", &Stage::RollingBuffer)
      .def("double_buffer", &Stage::DoubleBuffer)
      .def("software_pipeline", &Stage::SoftwarePipeline, nb::arg("var"), nb::arg("stages"),
           nb::arg("order"))
      .def("prefetch", &Stage::Prefetch, nb::arg("tensor"), nb::arg("var"), nb::arg("offset") = 1)
      .def("partition", &Stage::Partition, nb::arg("var"), nb::arg("points"))
      .def("outline", &Stage::Outline, nb::arg("var"), nb::arg("name"));
  nb::class_<Schedule>(m, "Schedule")
      .def(
          "__getitem__", [](const Schedule& s, const te::Tensor& t) { return s[t]; },
          nb::keep_alive<0, 1>())
      .def(
          "__getitem__", [](const Schedule& s, const te::Operation& op) { return s[op]; },
          nb::keep_alive<0, 1>())
      .def_prop_ro("outputs", &Schedule::outputs)
      .def_prop_ro(
          "stages",
          [](nb::handle self) {
            nb::list out;
            for (const Stage& stage : nb::cast<const Schedule&>(self).stages()) {
              out.append(self[nb::cast(stage.op())]);  // which keeps the schedule
            }
            return out;
          },
          nb::sig("def stages(self) -> list[Stage]"))
      .def_prop_ro("trace", &Schedule::trace)
      .def("pad_einsum", &Schedule::PadEinsum, nb::arg("tensor"), nb::arg("padding"))
      .def("specialize", &Schedule::Specialize, nb::arg("condition"))
      .def("decide", &Schedule::Decide, nb::arg("name"), nb::arg("domain"), nb::arg("guess"))
      .def("sample_categorical", &Schedule::SampleCategorical, nb::arg("name"),
           nb::arg("candidates"), nb::arg("probabilities"))
      .def("sample_perfect_tile", &Schedule::SamplePerfectTile, nb::arg("name"), nb::arg("loop"),
           nb::arg("parts"), nb::arg("max_innermost") = 16)
      .def("use_decisions", &Schedule::UseDecisions, nb::arg("decisions"))
      .def(
          "cache_read",
          [](Schedule& s, const te::Tensor& tensor, const std::string& scope,
             const nb::object& readers) { return s.CacheRead(tensor, scope, ReadersOf(readers)); },
          nb::arg("tensor"), nb::arg("scope"), nb::arg("readers"),
          nb::sig("def cache_read(self, tensor: Tensor, scope: str, readers: Tensor | Operation | "
                  "collections.abc.Sequence[Tensor | Operation]) -> Tensor"),
          "A copy of the tensor that the readers read instead.")
      .def("cache_write", &Schedule::CacheWrite, nb::arg("tensor"), nb::arg("scope"),
           "The tensor is computed into the result, from which its own stage copies.")
      .def("rfactor", &Schedule::RFactor, nb::arg("tensor"), nb::arg("axis"),
           nb::arg("factor_axis") = 0,
           "Partial results along a reduce loop; the tensor's stage reduces them.");
  m.def("create_schedule", CreateSchedule);
}

}  // namespace tenon::python
