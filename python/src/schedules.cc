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
      .def("set_scope", &Stage::SetScope, nb::arg("scope"));
  nb::class_<Schedule>(m, "Schedule")
      .def(
          "__getitem__", [](const Schedule& s, const te::Tensor& t) { return s[t]; },
          nb::keep_alive<0, 1>())
      .def(
          "__getitem__", [](const Schedule& s, const te::Operation& op) { return s[op]; },
          nb::keep_alive<0, 1>())
      .def_prop_ro("outputs", &Schedule::outputs)
      .def("_cache_read", &Schedule::CacheRead)
      .def("_cache_write", &Schedule::CacheWrite)
      .def("_rfactor", &Schedule::RFactor);
  m.def("create_schedule", CreateSchedule);
}

}  // namespace tenon::python
