#include "codegen/c_family/language.h"

namespace tenon::codegen {

const char* Language::TypeName(DType type) const {
  const DType element = type.Element();
  for (const TypeSpelling& row : types) {
    if (row.type == element) return row.name;
  }
  return nullptr;
}

const char* Language::MathName(Intrinsic intrinsic, DType type, bool approximate) const {
  for (const MathSpelling& row : math) {
    if (row.intrinsic != intrinsic) continue;
    if (type.bits == 64) return row.f64;
    return approximate && row.approximate_f32 ? row.approximate_f32 : row.f32;
  }
  return nullptr;
}

}  // namespace tenon::codegen
