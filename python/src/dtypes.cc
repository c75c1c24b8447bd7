#include "dtypes.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace tenon::python {

namespace {

struct Row {
  std::string_view name;
  tn_dl_data_type type;
};
// Those with a DLPack code of their own.
constexpr Row kRows[] = {{"bfloat16", {TN_DL_BFLOAT, 16, 1}},
                         {"float8_e3m4", {TN_DL_FLOAT8_E3M4, 8, 1}},
                         {"float8_e4m3", {TN_DL_FLOAT8_E4M3, 8, 1}},
                         {"float8_e4m3b11fnuz", {TN_DL_FLOAT8_E4M3B11FNUZ, 8, 1}},
                         {"float8_e4m3fn", {TN_DL_FLOAT8_E4M3FN, 8, 1}},
                         {"float8_e4m3fnuz", {TN_DL_FLOAT8_E4M3FNUZ, 8, 1}},
                         {"float8_e5m2", {TN_DL_FLOAT8_E5M2, 8, 1}},
                         {"float8_e5m2fnuz", {TN_DL_FLOAT8_E5M2FNUZ, 8, 1}},
                         {"float8_e8m0fnu", {TN_DL_FLOAT8_E8M0FNU, 8, 1}}};

const Row* Find(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const Row* Find(tn_dl_data_type type) {
  for (const Row& row : kRows) {
    if (row.type.code == type.code && row.type.bits == type.bits && type.lanes == 1) return &row;
  }
  return nullptr;
}

// A type's attribute, where it is text; else "".
std::string TextOf(PyTypeObject* type, const char* attribute) {
  PyObject* value = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), attribute);
  const char* text = value && PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, nullptr) : "";
  std::string out = text ? text : "";
  Py_XDECREF(value);
  PyErr_Clear();
  return out;
}

}  // namespace

std::string NameOf(PyTypeObject* type) {
  const std::string module = TextOf(type, "__module__"), name = TextOf(type, "__qualname__");
  return module.empty() || module == "builtins" ? name : module + "." + name;
}

bool IsOfMlDtypes(DataType type) { return Find(type) != nullptr; }

tn_dl_data_type TypeOfScalar(PyTypeObject* scalar) {
  static std::unordered_map<PyTypeObject*, tn_dl_data_type> known;  // types that are held
  const auto found = known.find(scalar);
  if (found != known.end()) return found->second;
  const Row* row =
      TextOf(scalar, "__module__") == "ml_dtypes" ? Find(TextOf(scalar, "__name__")) : nullptr;
  if (!row) return {0, 0, 1};
  Py_INCREF(scalar);
  known.emplace(scalar, row->type);
  return row->type;
}

}  // namespace tenon::python
