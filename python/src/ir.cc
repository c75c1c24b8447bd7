// ir.hpp: loop IR and its schedules. The methods of schedules are written in Python
// (tenon/tir.py) over apply, the door that traces use.
#include "tenon/ir.hpp"

#include "bindings.h"

namespace tenon::python {

namespace {

bool All(const nb::handle& value, bool (*is)(nb::handle)) {
  for (nb::handle item : nb::cast<nb::sequence>(value)) {
    if (!is(item)) return false;
  }
  return true;
}

// NumPy's integers too.
bool IsInt(nb::handle h) { return PyIndex_Check(h.ptr()) != 0 && !PyBool_Check(h.ptr()); }
bool IsNumber(nb::handle h) { return IsInt(h) || PyFloat_Check(h.ptr()); }

Error NoValue(nb::handle value) {
  return {"TypeError", std::string("no primitive takes a value of type ") +
                           nb::cast<std::string>(value.type().attr("__name__"))};
}

std::vector<int64_t> IntsOf(const nb::handle& value) {
  std::vector<int64_t> out;
  for (nb::handle item : nb::cast<nb::sequence>(value)) {
    out.push_back(nb::cast<int64_t>(nb::int_(item)));
  }
  return out;
}

std::vector<double> NumbersOf(const nb::handle& value) {
  std::vector<double> out;
  for (nb::handle item : nb::cast<nb::sequence>(value)) {
    out.push_back(nb::cast<double>(nb::float_(item)));
  }
  return out;
}

// A list of which some items are texts is one of texts: numbers may be names of choices.
std::vector<std::string> TextsOf(const nb::handle& value) {
  std::vector<std::string> out;
  for (nb::handle item : nb::cast<nb::sequence>(value)) {
    if (!IsInt(item) && !PyUnicode_Check(item.ptr())) throw NoValue(item);
    out.push_back(nb::cast<std::string>(nb::str(item)));
  }
  return out;
}

Value FromPython(const nb::handle& value) {
  PyObject* p = value.ptr();
  if (PyBool_Check(p)) return Value(p == Py_True);
  if (IsInt(value)) return Value(static_cast<long long>(nb::cast<int64_t>(nb::int_(value))));
  if (PyFloat_Check(p)) return Value(PyFloat_AsDouble(p));
  if (PyUnicode_Check(p)) return Value(nb::cast<std::string>(value));
  if (!PyList_Check(p) && !PyTuple_Check(p)) throw NoValue(value);
  if (All(value, IsInt)) return Value(Value::Data(IntsOf(value)));
  if (All(value, IsNumber)) return Value(Value::Data(NumbersOf(value)));
  return Value(Value::Data(TextsOf(value)));
}

void BindTrace(nb::module_& m) {
  nb::class_<Trace>(m, "Trace")
      .def_static("parse", &Trace::Parse, nb::arg("text"), "Reads what str() writes.")
      .def_static("from_json", &Trace::FromJson, nb::arg("text"))
      .def("as_json", &Trace::ToJson, "For files and databases.")
      .def("as_python", &Trace::ToPython, "A function `apply` of a tenon.tir.Schedule.")
      .def("as_cpp", &Trace::ToCpp, "A function `Apply` of a tenon::IrSchedule.")
      .def_prop_ro("decisions", &Trace::decisions, "The choices that were made, by name.")
      .def("__len__", &Trace::size)
      .def("__str__", &Trace::str)
      .def("__repr__", &Trace::str);
}

void BindIntrinsics(nb::module_& m) {
  using Tensors = std::vector<te::Tensor>;
  m.def("register_intrinsic",
        [](const std::string& name, const IrModule& desc, const IrModule& impl) {
          TensorIntrin::Register(name, desc, impl);
        });
  m.def("register_intrinsic",
        [](const std::string& name, const IrModule& desc) { TensorIntrin::Register(name, desc); });
  m.def("register_intrinsic",
        [](const std::string& name, const Tensors& desc, const IrModule& impl) {
          TensorIntrin::Register(name, desc, impl);
        });
  m.def("register_intrinsic",
        [](const std::string& name, const Tensors& desc) { TensorIntrin::Register(name, desc); });
  m.def("get_intrinsic", &TensorIntrin::Get);
}

[[noreturn]] void ThrowKind(const char* expected, nb::handle got) {
  throw Error("TypeError", std::string("IrModule: expected ") + expected +
                               " for 'functions' but got " + nb::type_name(got.type()).c_str());
}

// A module of the functions of a dict; names are texts, or have them as `name_hint`.
IrModule FromFunctions(nb::handle functions) {
  IrModule out = IrModule::Joined({});
  if (!nb::isinstance<nb::dict>(functions))
    ThrowKind("functions by their names, a dict", functions);
  for (const auto& [key, function] : nb::borrow<nb::dict>(functions)) {
    nb::object name = nb::getattr(key, "name_hint", key);
    if (!nb::isinstance<nb::str>(name)) ThrowKind("names, texts or ir.GlobalVar's,", key);
    if (!nb::isinstance<IrModule>(function))
      ThrowKind("loop IR, of te.create_prim_func or lower,", function);
    out = out.With(nb::cast<std::string>(name), nb::cast<const IrModule&>(function));
  }
  return out;
}

}  // namespace

void BindIr(nb::module_& m) {
  nb::class_<IrModule>(m, "IrModule")
      .def_static("parse", &IrModule::Parse, nb::arg("text"), "Reads the text form.")
      .def_static("joined", &IrModule::Joined, nb::arg("modules"), "One of all functions.")
      .def(
          "__init__",
          [](IrModule* m, const nb::args& given, const nb::kwargs& named) {
            if (given.size() > 1 || named.size() > 0)
              throw Error("TypeError",
                          "IrModule: expected one dict, functions by their names, for 'functions'");
            new (m) IrModule(given.size() == 0 ? IrModule::Joined({}) : FromFunctions(given[0]));
          },
          nb::sig("def __init__(self, functions: dict = {}, /) -> None"),
          "Of functions by their names: {\"add\": te.create_prim_func([A, B]), \"twice\": "
          "tenon.lower(s, [A, C])}.")
      .def_prop_ro("functions", &IrModule::functions)
      .def("_function", &IrModule::Function, nb::arg("name"))
      .def("_set_function",
           [](IrModule& m, const std::string& name, const IrModule& f) { m = m.With(name, f); })
      .def("__str__", &IrModule::str)
      .def("__repr__", &IrModule::str);
  m.def("extern",
        [](const std::vector<std::vector<te::Expr>>& shapes, const std::vector<te::Tensor>& inputs,
           const IrModule& body, const std::vector<std::string>& dtypes, const std::string& name) {
          std::vector<DataType> types;
          for (const std::string& t : dtypes) types.push_back(ParseDataType(t));
          return te::Extern(shapes, inputs, body, types, name);
        });
  BindTrace(m);
  BindIntrinsics(m);
  nb::class_<IrSchedule>(m, "IrSchedule")
      .def(nb::init<const IrModule&, const std::string&>())
      .def("module", &IrSchedule::module)
      .def("function", &IrSchedule::function)
      .def("trace", &IrSchedule::trace)
      .def("copy", &IrSchedule::Copy)
      .def("get_blocks", &IrSchedule::GetBlocks)
      .def("get_loops", &IrSchedule::GetLoops)
      .def("get_child_blocks", &IrSchedule::GetChildBlocks)
      .def("get_producers", &IrSchedule::GetProducers)
      .def("get_consumers", &IrSchedule::GetConsumers)
      .def("get_block_of", &IrSchedule::GetBlockOf)
      .def("get_reads", &IrSchedule::GetReads)
      .def("get_writes", &IrSchedule::GetWrites)
      .def("get_spatial_loops", &IrSchedule::GetSpatialLoops)
      .def("get_reduce_loops", &IrSchedule::GetReduceLoops)
      .def("get_extent", &IrSchedule::GetExtent)
      .def("has_block", &IrSchedule::HasBlock)
      .def("has_loop", &IrSchedule::HasLoop)
      .def("apply",
           [](IrSchedule& s, const std::string& primitive, const nb::list& args) {
             std::vector<Value> values;
             for (nb::handle a : args) values.push_back(FromPython(a));
             return s.Apply(primitive, values);
           })
      .def("decide", &IrSchedule::Decide)
      .def("sample_categorical", &IrSchedule::SampleCategorical)
      .def("sample_perfect_tile", &IrSchedule::SamplePerfectTile)
      .def("use_decisions", &IrSchedule::UseDecisions)
      .def("check_decisions", &IrSchedule::CheckDecisions)
      .def("replay", &IrSchedule::Replay);
}

}  // namespace tenon::python
