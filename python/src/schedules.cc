// schedule.hpp.
#include "bindings.h"
#include "tenon/schedule.hpp"

namespace tenon::python {

void BindSchedules(nb::module_& m) {
  using te::IterVar;
  nb::class_<Stage>(m, "Stage")
      .def_prop_ro("op", &Stage::op)
      .def_prop_ro("leaf_iter_vars", &Stage::leaf_iter_vars)
      .def("_split", &Stage::Split)
      .def("_split_parts", &Stage::SplitParts)
      .def("_split_factors", &Stage::SplitFactors)
      .def("_tile", &Stage::Tile)
      .def("_fuse", &Stage::Fuse)
      .def("_reorder", &Stage::Reorder)
      .def("vectorize", &Stage::Vectorize, nb::arg("var"))
      .def("parallel", &Stage::Parallel, nb::arg("var"))
      .def("unroll", &Stage::Unroll, nb::arg("var"))
      .def("bind", &Stage::Bind, nb::arg("ivar"), nb::arg("thread_ivar"))
      .def("_pragma", &Stage::Pragma)
      .def("compute_at", &Stage::ComputeAt, nb::arg("parent"), nb::arg("scope"))
      .def("compute_inline", &Stage::ComputeInline)
      .def("compute_root", &Stage::ComputeRoot)
      .def("reverse_compute_at", &Stage::ReverseComputeAt, nb::arg("parent"), nb::arg("scope"))
      .def("reverse_compute_inline", &Stage::ReverseComputeInline)
      .def("set_scope", &Stage::SetScope, nb::arg("scope"))
      .def("storage_align", &Stage::StorageAlign, nb::arg("axis"), nb::arg("factor"),
           nb::arg("offset") = 0)
      .def("_transform_layout", &Stage::TransformLayout)
      .def("_transform_block_layout", &Stage::TransformBlockLayout)
      .def("decompose_reduction", &Stage::DecomposeReduction, nb::arg("var"))
      .def("_tensorize", &Stage::Tensorize)
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
      .def_prop_ro("stages", &Schedule::stages, nb::keep_alive<0, 1>())
      .def_prop_ro("trace", &Schedule::trace)
      .def("pad_einsum", &Schedule::PadEinsum, nb::arg("tensor"), nb::arg("padding"))
      .def("specialize", &Schedule::Specialize, nb::arg("condition"))
      .def("decide", &Schedule::Decide, nb::arg("name"), nb::arg("domain"), nb::arg("guess"))
      .def("sample_categorical", &Schedule::SampleCategorical, nb::arg("name"),
           nb::arg("candidates"), nb::arg("probabilities"))
      .def("sample_perfect_tile", &Schedule::SamplePerfectTile, nb::arg("name"), nb::arg("loop"),
           nb::arg("parts"), nb::arg("max_innermost") = 16)
      .def("use_decisions", &Schedule::UseDecisions, nb::arg("decisions"))
      .def("_cache_read", &Schedule::CacheRead)
      .def("_cache_write", &Schedule::CacheWrite)
      .def("_rfactor", &Schedule::RFactor);
  m.def("create_schedule", CreateSchedule);
}

}  // namespace tenon::python
