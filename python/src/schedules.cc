// schedule.hpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <variant>

#include "bindings.h"
#include "tenon/schedule.hpp"

namespace tenon::python {

namespace {

using te::IterVar;
using Number = std::variant<int64_t, std::string>;  // "$name" is what that choice gave
using Numbers = std::vector<Number>;

Value ValueOf(const Number& number) {
  return std::visit([](const auto& v) { return Value(v); }, number);
}

Values ValuesOf(const Numbers& numbers) {
  Values out;
  for (const Number& n : numbers) out.push_back(ValueOf(n));
  return out;
}

// An empty text stands for none.
Value PragmaOf(const std::variant<std::monostate, bool, int64_t, double, std::string>& given) {
  return std::visit(
      [](const auto& v) {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) {
          return Value("");
        } else {
          return Value(v);
        }
      },
      given);
}

// Textbooks give loops one by one, or as a list.
std::vector<IterVar> LoopsOf(const char* primitive, const nb::args& args) {
  const bool is_list = args.size() == 1 && nb::isinstance<nb::sequence>(args[0]);
  const nb::handle items = is_list ? nb::handle(args[0]) : nb::handle(args);
  std::vector<IterVar> loops;
  for (nb::handle h : items) {
    if (!nb::isinstance<IterVar>(h)) {
      throw Error("TypeError", std::string(primitive) +
                                   ": expected IterVar for each loop but got " +
                                   nb::type_name(h.type()).c_str());
    }
    loops.push_back(nb::cast<IterVar>(h));
  }
  return loops;
}

template <class List>
nb::tuple TupleOf(const List& loops) {
  nb::list items;
  for (const IterVar& v : loops) items.append(v);
  return nb::tuple(items);
}

nb::tuple Split(Stage& s, const IterVar& parent, const std::optional<Number>& factor,
                const std::optional<Number>& nparts,
                const std::optional<std::vector<std::optional<Number>>>& factors) {
  if (factor.has_value() + nparts.has_value() + factors.has_value() != 1) {
    throw Error("ValueError", "split: expected one of factor, nparts and factors");
  }
  if (factors) {
    Values numbers;
    for (const std::optional<Number>& f : *factors) numbers.push_back(f ? ValueOf(*f) : Value(-1));
    return TupleOf(s.SplitFactors(parent, numbers));
  }
  auto [outer, inner] =
      factor ? s.Split(parent, ValueOf(*factor)) : s.SplitParts(parent, ValueOf(*nparts));
  return nb::make_tuple(outer, inner);
}

/// What an argument of a primitive is in Python.
template <class T>
struct Given {
  using Type = T;
  static const T& Plain(const T& given) { return given; }
};
template <>
struct Given<Value> {
  using Type = Number;
  static Value Plain(const Number& given) { return ValueOf(given); }
};
template <>
struct Given<Values> {
  using Type = Numbers;
  static Values Plain(const Numbers& given) { return ValuesOf(given); }
};

// The method of a row of stage_primitives.def.
template <class... A, class... Names>
void AddDoor(nb::class_<Stage>& stage, const char* name, const char* doc,
             void (Stage::*method)(const A&...), const Names&... names) {
  stage.def(
      name,
      [method](Stage& s, const typename Given<A>::Type&... given) {
        (s.*method)(Given<A>::Plain(given)...);
      },
      names..., doc);
}

// A tensor; of a reduction of tuples, one for each component.
nb::object RFactor(Schedule& s, const te::Tensor& tensor, const IterVar& axis, int factor_axis) {
  const te::Tensor part = s.RFactor(tensor, axis, factor_axis);
  const te::Operation op = part.op();
  if (op.num_outputs() == 1) return nb::cast(part);
  nb::list parts;
  for (int k = 0; k < op.num_outputs(); ++k) parts.append(op.output(k));
  return nb::tuple(parts);
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
    if (nb::isinstance<te::Tensor>(h)) return nb::cast<te::Tensor>(h).op();
    if (nb::isinstance<te::Operation>(h)) return nb::cast<te::Operation>(h);
    throw Error("TypeError", std::string("cache_read: expected Tensor | Operation for 'readers' ") +
                                 "but got " + nb::type_name(h.type()).c_str());
  };
  if (nb::isinstance<te::Tensor>(readers) || nb::isinstance<te::Operation>(readers)) {
    return {op(readers)};
  }
  std::vector<te::Operation> ops;
  if (!nb::isinstance<nb::sequence>(readers)) return {op(readers)};
  for (nb::handle h : nb::cast<nb::sequence>(readers)) ops.push_back(op(h));
  return ops;
}

// A tensor of a tensor, a list of several.
nb::object CacheWrite(Schedule& s, const nb::object& tensor, const std::string& scope) {
  if (nb::isinstance<te::Tensor>(tensor))
    return nb::cast(s.CacheWrite(nb::cast<te::Tensor>(tensor), scope));
  std::vector<te::Tensor> tensors;
  const bool is_list = nb::isinstance<nb::list>(tensor) || nb::isinstance<nb::tuple>(tensor);
  if (!is_list || !nb::try_cast(tensor, tensors)) {
    throw Error("TypeError", std::string("cache_write: expected Tensor | Sequence[Tensor] for ") +
                                 "'tensor' but got " + nb::type_name(tensor.type()).c_str());
  }
  return nb::cast(s.CacheWrite(tensors, scope));
}

}  // namespace

void BindSchedules(nb::module_& m) {
  nb::class_<Stage> stage(m, "Stage");
  stage.def_prop_ro("op", &Stage::op)
      .def_prop_ro("leaf_iter_vars", &Stage::leaf_iter_vars)
      .def("split", Split, nb::arg("parent"), nb::arg("factor") = nb::none(),
           nb::arg("nparts") = nb::none(), nb::arg("factors") = nb::none(),
           nb::sig("def split(self, parent: IterVar, factor: int | str | None = None, "
                   "nparts: int | str | None = None, "
                   "factors: collections.abc.Sequence[int | str | None] | None = None) -> "
                   "tuple[IterVar, ...]"),
           "Outer and inner: inner of `factor` iterations, or outer of `nparts`; or as many loops "
           "as there are `factors`, outermost first, of which one may be None. \"$name\" is what "
           "the choice of that name gave (Schedule.decide).")
      .def(
          "tile",
          [](Stage& s, const IterVar& x, const IterVar& y, const Number& x_factor,
             const Number& y_factor) {
            return TupleOf(s.Tile(x, y, ValueOf(x_factor), ValueOf(y_factor)));
          },
          nb::arg("x_parent"), nb::arg("y_parent"), nb::arg("x_factor"), nb::arg("y_factor"),
          nb::sig("def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: int | str, "
                  "y_factor: int | str) -> tuple[IterVar, IterVar, IterVar, IterVar]"),
          "x outer, y outer, x inner, y inner.")
      .def(
          "fuse", [](Stage& s, const nb::args& loops) { return s.Fuse(LoopsOf("fuse", loops)); },
          "Neighbouring loops, outermost first, become one.")
      .def(
          "reorder", [](Stage& s, const nb::args& order) { s.Reorder(LoopsOf("reorder", order)); },
          "Puts these loops into this order at the places that they occupy.")
      .def(
          "bind", &Stage::Bind, nb::arg("ivar"), nb::arg("thread_ivar"),
          "The iterations are the threads of an axis. A reduce loop may be bound to the threads of "
          "a block, which then combine their parts.")
      .def(
          "pragma",
          [](Stage& s, const IterVar& var, const std::string& type,
             const std::variant<std::monostate, bool, int64_t, double, std::string>& value) {
            s.Pragma(var, type, PragmaOf(value));
          },
          nb::arg("var"), nb::arg("pragma_type"), nb::arg("pragma_value") = nb::none(),
          "An attribute of the loop, for passes and back ends.")
      .def(
          "assume_independent",
          [](Stage& s, const IterVar& var) { s.Pragma(var, "assume_independent", ""); },
          nb::arg("var"),
          "A promise: no iteration of the loop touches what another one writes. What runs it in "
          "parallel relies on it.")
      .def(
          "storage_align",
          [](Stage& s, const IterVar& axis, const Number& factor, const Number& offset) {
            s.StorageAlign(axis, ValueOf(factor), ValueOf(offset));
          },
          nb::arg("axis"), nb::arg("factor"), nb::arg("offset") = 0)
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
      .def("set_store_predicate", &Stage::SetStorePredicate, nb::arg("predicate"),
           "Where threads have the same result, those store it for which the condition holds, such "
           "as tx.var.equal(0): without it the first.")
      .def(
          "tensorize",
          [](Stage& s, const IterVar& var, const nb::object& intrin) {
            s.Tensorize(var, NameOf(intrin));
          },
          nb::arg("var"), nb::arg("tensor_intrin"),
          "This loop and those inside become a call: of what tir.TensorIntrin.register gave, or by "
          "name.");
#define TN_STAGE_WAITS(Method, name, phase, parameters, arguments, doc, ...) \
  AddDoor(stage, name, doc, &Stage::Method __VA_OPT__(, ) __VA_ARGS__);
#define TN_STAGE_DOES TN_STAGE_WAITS
#include "tenon/stage_primitives.def"
  nb::class_<Schedule>(m, "Schedule")
      .def(
          "__getitem__", [](const Schedule& s, const te::Tensor& t) { return s[t]; },
          nb::keep_alive<0, 1>())
      .def(
          "__getitem__", [](const Schedule& s, const te::Operation& op) { return s[op]; },
          nb::keep_alive<0, 1>())
      .def("__str__", &Schedule::str)
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
      .def(
          "pad_einsum",
          [](Schedule& s, const te::Tensor& tensor, const Numbers& padding) {
            return s.PadEinsum(tensor, ValuesOf(padding));
          },
          nb::arg("tensor"), nb::arg("padding"))
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
      .def(
          "cache_write", CacheWrite, nb::arg("tensor"), nb::arg("scope"),
          nb::sig("def cache_write(self, tensor: Tensor | collections.abc.Sequence[Tensor], "
                  "scope: str) -> Tensor | list[Tensor]"),
          "The tensor is computed into the result, from which its own stage copies. Of a list, all "
          "outputs of an operation: a list of the results.")
      .def("rfactor", RFactor, nb::arg("tensor"), nb::arg("axis"), nb::arg("factor_axis") = 0,
           nb::sig("def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> "
                   "Tensor | tuple[Tensor, ...]"),
           "Partial results along a reduce loop; the tensor's stage reduces them.");
  m.def("create_schedule", CreateSchedule);
}

}  // namespace tenon::python
