// te.hpp: expressions, loops, tensors.
#include "tenon/te.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.h"

namespace tenon::python {

namespace {

using te::Expr;
using te::IterVar;
using te::Operation;
using te::Var;

bool IsInteger(const Expr& e) {
  return e.dtype().code == TN_DL_INT || e.dtype().code == TN_DL_UINT;
}

// Python's `/`: of integers it is refused, since it would give a float there.
Expr TrueDivide(const Expr& a, const Expr& b) {
  if (IsInteger(a) && IsInteger(b)) {
    throw Error("TypeError",
                "`/` of integers is ambiguous; use // (floor) or te.truncdiv, or cast to a float");
  }
  return a / b;
}

Expr FromNumber(const nb::handle& value) {
  if (PyFloat_Check(value.ptr())) return Expr(PyFloat_AsDouble(value.ptr()));
  return Expr(nb::cast<long long>(value));
}

// A scalar of NumPy, or an array of no dims: a number that has its value.
class NumpyScalar : public nb::object {
 public:
  NB_OBJECT_DEFAULT(NumpyScalar, nb::object, "numpy.generic", Check)
  static bool Check(PyObject* object) {
    const nb::handle h = object;
    if (!nb::hasattr(h, "__array_interface__") || !nb::hasattr(h, "item")) return false;
    PyObject* shape = PyObject_GetAttrString(object, "shape");
    const Py_ssize_t dims = shape != nullptr ? PyObject_Length(shape) : -1;
    Py_XDECREF(shape);
    if (dims < 0) PyErr_Clear();
    return dims == 0;
  }
};

Expr FromNumpy(const NumpyScalar& value) {
  nb::object item = value.attr("item")();
  if (PyFloat_Check(item.ptr()) || PyLong_Check(item.ptr())) return FromNumber(item);
  // Scalars of 16 bits that NumPy does not know, of ml_dtypes, give floats too.
  return Expr(nb::cast<double>(nb::float_(item)));
}

Expr IndexOf(const te::Tensor& t, nb::handle index) {
  if (PySlice_Check(index.ptr()) || index.ptr() == Py_Ellipsis || index.is_none()) {
    throw Error("TypeError", "'" + t.name() +
                                 "' is indexed element by element: a slice is no value; te.compute "
                                 "makes a tensor of a part");
  }
  Expr out(0);
  if (!nb::try_cast(index, out)) {
    throw Error("TypeError", "an index of '" + t.name() + "': expected an expression or an " +
                                 "integer but got " + nb::type_name(index.type()).c_str());
  }
  return out;
}

Expr Item(const te::Tensor& t, const nb::object& index) {
  std::vector<Expr> indices;
  if (PyTuple_Check(index.ptr())) {
    for (nb::handle h : nb::cast<nb::tuple>(index)) indices.push_back(IndexOf(t, h));
  } else {
    indices.push_back(IndexOf(t, index));
  }
  return t.At(indices);
}

// Numbers where they are numbers.
nb::tuple Shape(const te::Tensor& t) {
  nb::list dims;
  for (const Expr& d : t.shape()) {
    const std::string text = d.str();
    if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
      dims.append(nb::int_(nb::str(text.c_str())));
    } else {
      dims.append(d);
    }
  }
  return nb::tuple(dims);
}

// The last of the constructors of a class whose objects Python makes: it takes what no other does.
constexpr const char* kNoArguments =
    "def __init__(self, *args: typing.NoReturn, **kwargs: typing.NoReturn) -> None";
[[noreturn]] void Refuse(const std::string& name, const std::string& expected, const nb::args& args,
                         const nb::kwargs& kwargs) {
  std::string given;
  for (nb::handle a : args) {
    given += (given.empty() ? "" : ", ") + std::string(nb::type_name(a.type()).c_str());
  }
  for (auto [key, value] : kwargs) {
    given += (given.empty() ? "" : ", ") + nb::cast<std::string>(key) + "=" +
             nb::type_name(value.type()).c_str();
  }
  throw Error("TypeError", name + ": expected (" + expected + ") but got (" + given + ")");
}

template <class F>
void Operators(nb::class_<F>& c) {
  c.def(
       "__add__", [](const Expr& a, const Expr& b) { return a + b; }, nb::is_operator())
      .def(
          "__radd__", [](const Expr& a, const Expr& b) { return b + a; }, nb::is_operator())
      .def(
          "__sub__", [](const Expr& a, const Expr& b) { return a - b; }, nb::is_operator())
      .def(
          "__rsub__", [](const Expr& a, const Expr& b) { return b - a; }, nb::is_operator())
      .def(
          "__mul__", [](const Expr& a, const Expr& b) { return a * b; }, nb::is_operator())
      .def(
          "__rmul__", [](const Expr& a, const Expr& b) { return b * a; }, nb::is_operator())
      .def("__truediv__", TrueDivide, nb::is_operator())
      .def(
          "__rtruediv__", [](const Expr& a, const Expr& b) { return TrueDivide(b, a); },
          nb::is_operator())
      .def("__floordiv__", te::FloorDiv, nb::is_operator())
      .def(
          "__rfloordiv__", [](const Expr& a, const Expr& b) { return te::FloorDiv(b, a); },
          nb::is_operator())
      .def("__mod__", te::FloorMod, nb::is_operator())
      .def(
          "__rmod__", [](const Expr& a, const Expr& b) { return te::FloorMod(b, a); },
          nb::is_operator())
      .def(
          "__pow__", [](const Expr& a, const Expr& b) { return te::Pow(a, b); }, nb::is_operator())
      .def(
          "__rpow__", [](const Expr& a, const Expr& b) { return te::Pow(b, a); }, nb::is_operator())
      .def("__neg__", [](const Expr& a) { return -a; })
      .def("__invert__", [](const Expr& a) { return ~a; })
      .def("__abs__", [](const Expr& a) { return te::CallIntrinsic("abs", {a}); })
      .def(
          "__lt__", [](const Expr& a, const Expr& b) { return a < b; }, nb::is_operator())
      .def(
          "__le__", [](const Expr& a, const Expr& b) { return a <= b; }, nb::is_operator())
      .def(
          "__gt__", [](const Expr& a, const Expr& b) { return a > b; }, nb::is_operator())
      .def(
          "__ge__", [](const Expr& a, const Expr& b) { return a >= b; }, nb::is_operator())
      .def(
          "__and__", [](const Expr& a, const Expr& b) { return a & b; }, nb::is_operator())
      .def(
          "__rand__", [](const Expr& a, const Expr& b) { return b & a; }, nb::is_operator())
      .def(
          "__or__", [](const Expr& a, const Expr& b) { return a | b; }, nb::is_operator())
      .def(
          "__ror__", [](const Expr& a, const Expr& b) { return b | a; }, nb::is_operator())
      .def(
          "__xor__", [](const Expr& a, const Expr& b) { return a ^ b; }, nb::is_operator())
      .def(
          "__rxor__", [](const Expr& a, const Expr& b) { return b ^ a; }, nb::is_operator())
      .def(
          "__lshift__", [](const Expr& a, const Expr& b) { return a << b; }, nb::is_operator())
      .def(
          "__rlshift__", [](const Expr& a, const Expr& b) { return b << a; }, nb::is_operator())
      .def(
          "__rshift__", [](const Expr& a, const Expr& b) { return a >> b; }, nb::is_operator())
      .def(
          "__rrshift__", [](const Expr& a, const Expr& b) { return b >> a; }, nb::is_operator())
      .def("__eq__", te::Equal, nb::is_operator())
      .def("__ne__", te::NotEqual, nb::is_operator())
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<intptr_t>(self.ptr()) >> 4; });
}

void BindExpr(nb::module_& m) {
  nb::class_<Expr> expr(m, "Expr");
  expr.def("__init__", [](Expr* self, nb::int_ value) { new (self) Expr(FromNumber(value)); })
      .def("__init__", [](Expr* self, nb::float_ value) { new (self) Expr(FromNumber(value)); })
      .def("__init__",
           [](Expr* self, const NumpyScalar& value) { new (self) Expr(FromNumpy(value)); })
      .def(
          "__init__",
          [](Expr*, const nb::args& args, const nb::kwargs& kwargs) {
            Refuse("Expr", "int | float", args, kwargs);
          },
          nb::sig(kNoArguments));
  nb::implicitly_convertible<nb::int_, Expr>();
  nb::implicitly_convertible<nb::float_, Expr>();
  nb::implicitly_convertible<NumpyScalar, Expr>();
  Operators(expr);
  expr.def_prop_ro("dtype", [](const Expr& e) { return ToString(e.dtype()); })
      .def(
          "astype",
          [](const Expr& e, const std::string& dtype) { return te::Cast(e, ParseDataType(dtype)); },
          nb::arg("dtype"))
      .def("__bool__",
           [](const Expr&) -> bool {
             throw Error("TypeError",
                         "an expression has no truth value; use te.select, te.all or te.any");
           })
      .def("__str__", &Expr::str)
      .def("__repr__", &Expr::str);
  nb::class_<Var, Expr>(m, "Var")
      .def(nb::init<const std::string&, int64_t, int64_t, int64_t>(), nb::arg("name"),
           nb::arg("lo") = 0, nb::arg("hi") = -1, nb::arg("step") = 1)
      .def(
          "__init__",
          [](Var* self, const std::string& name, const std::string& dtype) {
            const DataType type = ParseDataType(dtype);
            const bool is_size = type.code == TN_DL_INT || type.code == TN_DL_UINT;
            is_size ? new (self) Var(name) : new (self) Var(name, type);
          },
          nb::arg("name"), nb::arg("dtype"))
      .def(
          "__init__",
          [](Var*, const nb::args& args, const nb::kwargs& kwargs) {
            Refuse("Var", "name: str, lo: int = 0, hi: int = -1, step: int = 1", args, kwargs);
          },
          nb::sig(kNoArguments))
      .def_static(
          "number",
          [](const std::string& name, const std::string& dtype) {
            return Var(name, ParseDataType(dtype));
          },
          nb::arg("name"), nb::arg("dtype"))
      .def_prop_ro("name", &Var::name);
  nb::class_<IterVar, Expr>(m, "IterVar")
      .def_prop_ro("name", &IterVar::name)
      .def_prop_ro("var", [](const IterVar& v) -> Expr { return v; })
      .def_prop_ro(
          "extent",
          [](const IterVar& v) -> nb::object {
            const Expr extent = v.extent();
            return extent ? nb::cast(extent) : nb::none();
          },
          nb::sig("def extent(self) -> Expr | None"),
          "How many iterations it has; None where a schedule made it.")
      .def(
          "__eq__", [](const IterVar& a, const IterVar& b) { return a == b; }, nb::is_operator())
      .def("__eq__", te::Equal, nb::is_operator())
      .def("__hash__",
           [](const IterVar& v) { return reinterpret_cast<intptr_t>(v.node().get()) >> 4; })
      .def("__str__", &IterVar::name)
      .def("__repr__", [](const IterVar& v) { return "IterVar(" + v.name() + ")"; });
}

void BindTensor(nb::module_& m) {
  nb::class_<te::Tensor>(m, "Tensor")
      .def("__getitem__", Item)
      // Else its items, of which there is no end, were asked for one by one.
      .def("__iter__",
           [](const te::Tensor& t) -> nb::object {
             throw Error("TypeError", "'" + t.name() +
                                          "' is one tensor, where several things are " +
                                          "expected; a list or tuple of it may be meant");
           })
      .def("__call__", [](const te::Tensor& t, const nb::args& index) { return Item(t, index); })
      .def_prop_ro("name", &te::Tensor::name)
      .def_prop_ro("shape", Shape, nb::sig("def shape(self) -> tuple[int | Expr, ...]"))
      .def_prop_ro("ndim", [](const te::Tensor& t) { return t.shape().size(); })
      .def_prop_ro("dtype", [](const te::Tensor& t) { return ToString(t.dtype()); })
      .def_prop_ro("op", &te::Tensor::op)
      .def_prop_ro("value_index", &te::Tensor::value_index)
      .def(
          "__eq__", [](const te::Tensor& a, const te::Tensor& b) { return a == b; },
          nb::is_operator())
      .def("__hash__",
           [](const te::Tensor& t) { return reinterpret_cast<intptr_t>(t.op().node().get()) >> 4; })
      .def("__repr__", [](const te::Tensor& t) {
        std::string shape;
        for (const Expr& d : t.shape()) shape += (shape.empty() ? "" : ", ") + d.str();
        return "Tensor(" + t.name() + ", [" + shape + "], " + ToString(t.dtype()) + ")";
      });
  nb::class_<Operation>(m, "Operation")
      .def_prop_ro("name", &Operation::name)
      .def_prop_ro("axis", &Operation::axis)
      .def_prop_ro("reduce_axis", &Operation::reduce_axis)
      .def_prop_ro("input_tensors", &Operation::input_tensors)
      .def_prop_ro("scan_axis", &Operation::scan_axis)
      .def_prop_ro("num_outputs", &Operation::num_outputs)
      .def("output", &Operation::output, nb::arg("index"))
      .def_prop_ro("body", &Operation::body)
      .def(
          "__eq__", [](const Operation& a, const Operation& b) { return a.node() == b.node(); },
          nb::is_operator())
      .def("__hash__",
           [](const Operation& o) { return reinterpret_cast<intptr_t>(o.node().get()) >> 4; })
      .def("__repr__", [](const Operation& o) { return "Operation(" + o.name() + ")"; });
}

}  // namespace

void BindExpressions(nb::module_& m) {
  BindExpr(m);
  BindTensor(m);
  m.def("placeholder",
        [](const std::vector<Expr>& shape, const std::string& dtype, const std::string& name) {
          return te::Placeholder(shape, ParseDataType(dtype), name);
        });
  nb::class_<te::Tuple>(m, "Tuple")
      .def(
          "__init__",
          [](te::Tuple* self, std::vector<Expr> values, std::vector<IterVar> axes,
             decltype(te::Tuple::combine) combine, std::vector<Expr> identity) {
            new (self) te::Tuple{std::move(values), std::move(axes), std::move(combine),
                                 std::move(identity)};
          },
          nb::arg("values"), nb::arg("axes") = nb::list(), nb::arg("combine").none() = nb::none(),
          nb::arg("identity") = nb::list())
      .def_ro("values", &te::Tuple::values)
      .def("__repr__", [](const te::Tuple& t) {
        std::string text;
        for (const Expr& e : t.values) text += (text.empty() ? "" : ", ") + e.str();
        return "Tuple(" + text + ")";
      });
  m.def("compute", te::ComputeTuple);
  m.def("scan", [](const std::vector<te::Tensor>& init, const std::vector<te::Tensor>& update,
                   const std::vector<te::Tensor>& state, const std::string& name,
                   int axis) { return te::Scan(init, update, state, name, axis); });
  m.def("reduce_axis", te::ReduceAxis);
  m.def("thread_axis", [](const std::string& tag, const std::optional<Expr>& extent) {
    return extent ? te::ThreadAxis(*extent, tag) : te::ThreadAxis(tag);
  });
  m.def("sum", te::Sum);
  m.def("max", te::Max);
  m.def("min", te::Min);
  m.def("prod", te::Prod);
  m.def("maximum", te::Maximum);
  m.def("minimum", te::Minimum);
  m.def("select", te::Select);
  m.def("cast", [](const Expr& e, const std::string& t) { return te::Cast(e, ParseDataType(t)); });
  m.def("const", [](const Expr& e, const std::string& t) { return te::Cast(e, ParseDataType(t)); });
  m.def("reinterpret",
        [](const Expr& e, const std::string& t) { return te::Reinterpret(e, ParseDataType(t)); });
  m.def("call_intrinsic", te::CallIntrinsic);
  m.def("logical_not", [](const Expr& a) { return !a; });
  m.def("divide", [](const Expr& a, const Expr& b) {
    return IsInteger(a) && IsInteger(b) ? te::TruncDiv(a, b) : a / b;
  });
  m.def("truncdiv", te::TruncDiv);
  m.def("truncmod", te::TruncMod);
  m.def("isfinite", te::IsFinite);
  m.def("copysign", te::CopySign);
  m.def("nextafter", te::NextAfter);
  m.def("ldexp", te::LdExp);
  m.def("min_value", [](const std::string& t) { return te::MinValue(ParseDataType(t)); });
  m.def("max_value", [](const std::string& t) { return te::MaxValue(ParseDataType(t)); });
  m.def("infinity", [](const std::string& t) { return te::Infinity(ParseDataType(t)); });
  m.def("all", te::All);
  m.def("any", te::Any);
  m.def("equal", te::Equal);
  m.def("not_equal", te::NotEqual);
}

}  // namespace tenon::python
