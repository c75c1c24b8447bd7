// Small functions that emitted source calls where an operator of the language does not mean what
// ours does: division that cannot trap, saturating conversions, 16-bit floats, unaligned access.
// Only those that are used are written out, each for the types it is used with.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "codegen/c_family/language.h"

namespace tenon::codegen {

enum HelperClass : unsigned {
  kSigned = 1,
  kUnsigned = 2,
  kFloats = 4,
  kF16 = 8,
  kBF16 = 16,
  kOther = 32
};
constexpr unsigned kInts = kSigned | kUnsigned;
constexpr unsigned kMemory = kInts | kFloats | kF16 | kBF16 | kOther;

// In the text of a HelperRow (language.h), with braces doubled: {q} qualifiers; {T} and {t} the
// type and its short name, {F} and {f} those of the second type; {U} the unsigned type of its
// width, {W} an unsigned type that arithmetic on it is done in (no promotion to int overflows); {B}
// its bits; {MIN} {MAX} its limits; {ABOVE} the power of two above them, in the second type; {s}
// {S} an f where the type is f32.

class Helpers {
 public:
  explicit Helpers(const Language& language) : language_(language) {}

  /// The name of helper `family` for a type; `from` for those of two types. A family that does not
  /// exist for the type is a bug of the caller.
  std::string Use(const std::string& family, DType type, DType from = DType::Handle());
  bool Has(const std::string& family, DType type) const;
  /// The helpers used so far, each behind those that it calls. Independent of the order of use.
  std::string Text() const;

 private:
  const HelperRow* Find(const std::string& family, DType type, size_t* place) const;

  const Language& language_;
  std::set<std::pair<int, std::string>> texts_;  // by place in the table, then by text
};

}  // namespace tenon::codegen
