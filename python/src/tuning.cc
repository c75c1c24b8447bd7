// tuning.hpp. The names that people know are made of these in Python (tenon/autotvm,
// tenon/auto_scheduler).
#include "tenon/tuning.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/trampoline.h>

#include "bindings.h"

namespace tenon::python {

namespace {

using tuning::Pick;
using tuning::Point;
using tuning::Trial;

/// A policy that is a class in Python.
struct PythonPolicy : tuning::Policy {
  NB_TRAMPOLINE(tuning::Policy, 2);
  std::vector<Pick> Next(int count) override { NB_OVERRIDE_PURE_NAME("next", Next, count); }
  void Observe(const Pick& pick, std::optional<double> seconds) override {
    NB_OVERRIDE_NAME("observe", Observe, pick, seconds);
  }
};

void BindTrials(nb::module_& m) {
  nb::class_<Pick>(m, "Pick")
      .def(
          "__init__",
          [](Pick* pick, int space, const Point& point) { new (pick) Pick{space, point}; },
          nb::arg("space"), nb::arg("point"))
      .def_ro("space", &Pick::space)
      .def_ro("point", &Pick::point);
  nb::class_<Trial>(m, "Trial")
      .def_ro("pick", &Trial::pick)
      .def_ro("algorithm", &Trial::algorithm)
      .def_ro("outcome", &Trial::outcome)
      .def_ro("message", &Trial::message)
      .def_ro("seconds", &Trial::seconds)
      .def_ro("predicted", &Trial::predicted)
      .def_ro("noise", &Trial::noise)
      .def_ro("leader", &Trial::leader)
      .def_ro("line", &Trial::line);
  nb::class_<tuning::Policy, PythonPolicy>(m, "Policy")
      .def(nb::init<>())
      .def("next", &tuning::Policy::Next, nb::arg("count"))
      .def("observe", &tuning::Policy::Observe, nb::arg("pick"), nb::arg("seconds") = nb::none());
}

void BindOptions(nb::module_& m) {
  using tuning::Options;
  nb::class_<Options>(m, "TuneOptions")
      .def(nb::init<>())
      .def_rw("trials", &Options::trials)
      .def_rw("seconds", &Options::seconds)
      .def_rw("early_stopping", &Options::early_stopping)
      .def_rw("batch", &Options::batch)
      .def_rw("searcher", &Options::searcher)
      .def_rw("seed", &Options::seed)
      .def_rw("population", &Options::population)
      .def_rw("rounds", &Options::rounds)
      .def_rw("mutation", &Options::mutation)
      .def_rw("random_part", &Options::random_part)
      .def_rw("log", &Options::log)
      .def_rw("hints", &Options::hints)
      .def_rw("before", &Options::before)
      .def_rw("teachers", &Options::teachers)
      .def_rw("candidate_seconds", &Options::candidate_seconds)
      .def_rw("worker_seconds", &Options::worker_seconds)
      .def_rw("worker_bytes", &Options::worker_bytes)
      .def_rw("done", &Options::done)
      .def_rw("stop", &Options::stop);
  nb::class_<tuning::Result>(m, "TuneResult")
      .def_ro("best", &tuning::Result::best)
      .def_ro("best_seconds", &tuning::Result::best_seconds)
      .def_ro("trials", &tuning::Result::trials)
      .def_ro("failures", &tuning::Result::failures)
      .def_ro("seconds", &tuning::Result::seconds)
      .def_ro("stopped", &tuning::Result::stopped);
}

std::vector<tuning::Knob> KnobsOf(
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& given) {
  std::vector<tuning::Knob> out;
  for (const auto& [name, domain] : given) out.push_back({name, domain});
  return out;
}

// A text instead of a module says why there is none at this point.
std::function<IrModule(const Point&)> MakeOf(const nb::callable& make) {
  return [make](const Point& point) {
    const nb::object made = make(point);
    if (nb::isinstance<nb::str>(made)) throw Error("ValueError", nb::cast<std::string>(made));
    return nb::cast<IrModule>(made);
  };
}

// Rules are tuples of a name, whether others are skipped, and two functions.
tuning::SketchOptions SketchOptionsOf(int most, const nb::list& rules) {
  tuning::SketchOptions options{.most = most};
  for (nb::handle item : rules) {
    const auto rule = nb::cast<nb::tuple>(item);
    const nb::object ways = rule[2], apply = rule[3];
    options.rules.push_back({nb::cast<std::string>(rule[0]), nb::cast<bool>(rule[1]),
                             [ways](const IrSchedule& s, const std::string& block) {
                               return nb::cast<int>(ways(nb::cast(s), block));
                             },
                             [apply](IrSchedule& s, const std::string& block, int way) {
                               const nb::object made = apply(nb::cast(s), block, way);
                               if (nb::isinstance<IrSchedule>(made)) s = nb::cast<IrSchedule>(made);
                             }});
  }
  return options;
}

void BindNetworks(nb::module_& m) {
  nb::class_<tuning::ModelKernel>(m, "ModelKernel")
      .def_ro("name", &tuning::ModelKernel::name)
      .def_ro("kind", &tuning::ModelKernel::kind)
      .def_ro("kernel", &tuning::ModelKernel::kernel)
      .def_ro("launches", &tuning::ModelKernel::launches)
      .def_ro("points", &tuning::ModelKernel::points);
  m.def("model_kernels", &tuning::ModelKernels, nb::call_guard<nb::gil_scoped_release>());
  m.def("tune_model",
        [](const std::string& model, const ModelOptions& options, const tuning::Options& how,
           const std::vector<std::string>& only, const std::vector<std::string>& begin) {
          for (const std::string& log : begin) tuning::MergeLog(how.log, log);
          tuning::Options interruptible = how;
          interruptible.stop = [] { return PyErr_CheckSignals() != 0; };
          const tuning::Result result = tuning::TuneModel(model, options, interruptible, only);
          if (PyErr_Occurred()) throw nb::python_error();
          return result;
        });
  m.def("append_log", &tuning::AppendLines, nb::arg("lines"), nb::arg("source"));
}

}  // namespace

void BindTuning(nb::module_& m) {
  BindTrials(m);
  BindOptions(m);
  using tuning::Task;
  nb::class_<Task>(m, "TuneTask")
      .def_static("from_space",
                  [](const std::string& name, const IrModule& definition,
                     const std::vector<std::pair<std::string, std::vector<int64_t>>>& space,
                     const nb::callable& make, const Target& target) {
                    return Task::FromSpace(name, definition, KnobsOf(space), MakeOf(make), target);
                  })
      .def_static(
          "from_sketches",
          [](const IrModule& definition, const Target& target, int most, const nb::list& rules) {
            return Task::FromSketches(definition, target, SketchOptionsOf(most, rules));
          })
      .def_prop_ro("name", &Task::name)
      .def_prop_ro("text", &Task::text)
      .def_prop_ro("kernel", &Task::kernel)
      .def_prop_ro("target", &Task::target)
      .def_prop_ro("algorithms", &Task::algorithms)
      .def(
          "space",
          [](const Task& task, int index) {
            std::vector<std::pair<std::string, std::vector<int64_t>>> out;
            for (const tuning::Knob& k : task.space(index)) out.emplace_back(k.name, k.domain);
            return out;
          },
          nb::arg("index") = 0)
      .def("size", &Task::size, nb::arg("index") = 0, nb::arg("most") = 1 << 20)
      .def("price", &Task::Price)
      .def("guess", &Task::Guess, nb::arg("space"))
      .def("leaders", &Task::Leaders, nb::arg("seed"), nb::arg("count"))
      .def("predicted", &Task::Predicted, nb::arg("seed") = 0, nb::arg("tried") = 256)
      .def("at", &Task::At)
      .def("schedule_at", &Task::ScheduleAt)
      .def(
          "tune",
          [](const Task& task, tuning::Options options, tuning::Policy* policy) {
            options.policy = policy;
            return task.Tune(options);
          },
          nb::arg("options"), nb::arg("policy") = nb::none())
      .def("read_trials",
           [](const Task& task, const std::string& log) {
             std::vector<std::string> skipped;
             std::vector<Trial> trials = task.ReadTrials(log, &skipped);
             return std::make_pair(std::move(trials), std::move(skipped));
           })
      .def("kernel_line", &Task::KernelLine);
  m.def("split_candidates", [](const std::string& name, int64_t extent, int64_t parts,
                               const std::string& policy, int64_t max_factor, bool no_tail) {
    return tuning::SplitCandidates(name, extent, parts, {policy, max_factor, no_tail});
  });
  m.def("searchers", &tuning::Searchers);
  BindNetworks(m);
}

}  // namespace tenon::python
