// compiler.hpp.
#include "tenon/compiler.hpp"

#include "bindings.h"

namespace tenon::python {

namespace {

// Tensors, those with strides of their own in a pair with these, and variables that are passed by
// value.
te::Arguments ArgumentsFrom(const nb::list& items) {
  te::Arguments out;
  for (nb::handle item : items) {
    if (nb::isinstance<te::Tensor>(item)) {
      out.emplace_back(nb::cast<te::Tensor>(item));
    } else if (nb::isinstance<nb::tuple>(item)) {
      const auto pair = nb::borrow<nb::tuple>(item);
      out.emplace_back(nb::cast<te::Tensor>(pair[0]), nb::cast<std::vector<te::Expr>>(pair[1]));
    } else if (nb::isinstance<te::Var>(item)) {
      out.emplace_back(nb::cast<te::Var>(item));
    } else {
      throw Error("TypeError", std::string("arguments are tensors and variables, not ") +
                                   nb::type_name(item.type()).c_str());
    }
  }
  return out;
}

// Ctrl-C, and what other signals of the program's raise, end the work.
template <class Work>
void Interruptible(const ModelOptions& options, const Work& work) {
  ModelOptions own = options;
  bool raised = false;
  own.stop = [&raised] {
    const nb::gil_scoped_acquire lock;
    return raised = PyErr_CheckSignals() != 0;
  };
  try {
    work(own);
  } catch (...) {
    if (!raised) throw;
  }
  if (!raised) return;
  const nb::gil_scoped_acquire lock;
  nb::raise_python_error();
}

void BindModels(nb::module_& m) {
  using Shapes = std::map<std::string, std::vector<std::string>>;
  nb::class_<ModelOptions>(m, "ModelOptions")
      .def(nb::init<>())
      .def_rw("target", &ModelOptions::target)
      .def_prop_rw(
          "shapes",
          [](const ModelOptions& options) {
            Shapes shapes;
            for (const auto& [input, sizes] : options.shapes) {
              for (const Size& size : sizes) shapes[input].push_back(size.text);
            }
            return shapes;
          },
          [](ModelOptions& options, const Shapes& shapes) {
            options.shapes.clear();
            for (const auto& [input, sizes] : shapes)
              options.shapes[input].assign(sizes.begin(), sizes.end());
          })
      .def_rw("empty_sizes", &ModelOptions::empty_sizes)
      .def_rw("name", &ModelOptions::name)
      .def_rw("precision", &ModelOptions::precision)
      .def_rw("opt_level", &ModelOptions::opt_level)
      .def_rw("jobs", &ModelOptions::jobs)
      .def_rw("time_kernels", &ModelOptions::time_kernels)
      .def_rw("log", &ModelOptions::log)
      .def_rw("external_data_dir", &ModelOptions::external_data_dir)
      .def_rw("dims", &ModelOptions::dims)
      .def_rw("denoted_dims", &ModelOptions::denoted_dims)
      .def_rw("independent_dims", &ModelOptions::independent_dims)
      .def_rw("inputs", &ModelOptions::inputs)
      .def_rw("initializers", &ModelOptions::initializers)
      .def_rw("spare_initializers", &ModelOptions::spare_initializers)
      .def_rw("progress", &ModelOptions::progress);
  const nb::call_guard<nb::gil_scoped_release> others_run;
  m.def(
      "compile_model",
      [](const std::string& model, const std::string& output, const ModelOptions& options) {
        Interruptible(options, [&](const ModelOptions& own) { CompileModel(model, output, own); });
      },
      others_run);
  m.def(
      "compile_cached",
      [](const std::string& model, const std::string& directory, const ModelOptions& options) {
        std::string path;
        Interruptible(
            options, [&](const ModelOptions& own) { path = CompileCached(model, directory, own); });
        return path;
      },
      others_run);
  m.def("cache_directory", &CacheDirectory);
  m.def(
      "describe_model", [](const std::string& model) { return DescribeModel(model); }, others_run);
  m.def(
      "describe_import",
      [](const std::string& model, const ModelOptions& options) {
        return DescribeModel(model, options);
      },
      others_run);
}

}  // namespace

void BindCompiler(nb::module_& m) {
  nb::class_<Target>(m, "Target")
      .def(nb::init<const std::string&>(), nb::arg("target") = "llvm")
      .def_prop_ro("kind", &Target::kind)
      .def_prop_ro("features", &Target::features)
      .def("__str__", &Target::str)
      .def("__repr__", [](const Target& t) { return "Target('" + t.str() + "')"; })
      .def(
          "__eq__", [](const Target& a, const Target& b) { return a == b; }, nb::is_operator())
      .def("__hash__", [](const Target& t) { return std::hash<std::string>()(t.str()); });
  nb::class_<Library>(m, "Library")
      .def_prop_ro("functions", &Library::functions)
      .def_prop_ro("target", &Library::target)
      .def_prop_ro("remarks", &Library::remarks)
      .def_prop_ro("device_forms", &Library::device_forms)
      .def("module", &Library::module)
      .def("export_library", &Library::ExportLibrary)
      .def("save", &Library::Save)
      .def("export_to_c", &Library::ExportToC)
      .def("get_source", &Library::GetSource)
      .def("__repr__", [](const Library& library) {
        std::string names;
        for (const std::string& name : library.functions())
          names += (names.empty() ? "" : ", ") + name;
        return "<tenon.Library of " + names + ">";
      });
  m.def("lower", [](const Schedule& s, const nb::list& args, const std::string& name) {
    return Lower(s, ArgumentsFrom(args), name);
  });
  m.def("create_func", [](const nb::list& args, const std::string& name) {
    return CreateFunc(ArgumentsFrom(args), name);
  });
  // The compiler works on immutable data of its own: other Python threads may run meanwhile.
  m.def("build_schedule",
        [](const Schedule& s, const nb::list& args, const Target& target, const std::string& name) {
          const te::Arguments arguments = ArgumentsFrom(args);
          const nb::gil_scoped_release others_run;
          return Build(s, arguments, target, name);
        });
  m.def(
      "build_module", [](const IrModule& ir, const Target& target) { return Build(ir, target); },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("describe_objects", DescribeObjects);
  BindModels(m);
}

}  // namespace tenon::python
