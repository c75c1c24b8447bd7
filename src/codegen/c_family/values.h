// Arithmetic of the loop IR as source text: every operator with exactly the meaning that ir/expr.h
// gives it, on scalars (a lane of a vector is one).
//
// What is true of every text: its C type is that of the IR (language.h), or, for integers narrower
// than int and for literals, int with a value of that type. f16 and bf16 travel as their bits.
#pragma once

#include <vector>

#include "codegen/c_family/helpers.h"
#include "codegen/c_family/text.h"
#include "loop/stmt.h"

namespace tenon::codegen {

class SourceValues {
 public:
  SourceValues(const Language& language, Helpers* helpers)
      : language_(language), helpers_(*helpers) {}

  const Language& language() const { return language_; }
  /// Bits of the integers that indices are computed in: 64, or 32 where none needs more.
  void SetIndexBits(int bits) { index_bits_ = bits; }
  /// Whether functions may be approximated (`fp: reassoc`) where the language knows how.
  void SetApproximate(bool approximate) { approximate_ = approximate; }

  /// Of a value in registers, and of an element in memory (bool takes a byte); "" where the
  /// language has no such type.
  std::string TypeName(DType type) const;
  std::string MemoryTypeName(DType type) const;

  SourceText Int(DType type, int64_t value);
  SourceText Float(DType type, double value);
  SourceText Unary(UnaryOp op, DType type, const SourceText& v);
  /// `type` is that of the operands; `nonnegative`: both are.
  SourceText Binary(BinaryOp op, DType type, const SourceText& l, const SourceText& r,
                    bool nonnegative);
  SourceText Cast(DType from, DType to, const SourceText& v);
  SourceText Reinterpret(DType from, DType to, const SourceText& v);
  SourceText Select(const SourceText& c, const SourceText& t, const SourceText& f);
  /// What the language has a function or a helper for, abs and pow of integers; an empty text for
  /// others.
  SourceText Math(Intrinsic intrinsic, DType type, const std::vector<SourceText>& args);
  /// a * b + c, in one rounding or two.
  SourceText MulAdd(DType type, const SourceText& a, const SourceText& b, const SourceText& c);
  SourceText CallOf(const std::string& name, const std::vector<SourceText>& args);
  Helpers& helpers() { return helpers_; }

 private:
  SourceText Infix(const char* op, Binding binding, const SourceText& l, const SourceText& r);
  SourceText CastTo(const std::string& type, const SourceText& v);
  SourceText Helper(const char* family, DType type, const std::vector<SourceText>& args) {
    return CallOf(helpers_.Use(family, type.IsIndex() ? DType::Int(index_bits_) : type), args);
  }
  SourceText Wrapping(BinaryOp op, DType type, const SourceText& l, const SourceText& r);
  SourceText Compare(BinaryOp op, DType type, const SourceText& l, const SourceText& r);
  SourceText FloatBinary(BinaryOp op, DType type, const SourceText& l, const SourceText& r);
  SourceText IntBinary(BinaryOp op, DType type, const SourceText& l, const SourceText& r);
  SourceText IndexBinary(BinaryOp op, DType type, const SourceText& l, const SourceText& r,
                         bool nonnegative);
  SourceText Widen(DType half, const SourceText& v);
  SourceText Narrow(DType half, const SourceText& v);

  const Language& language_;
  Helpers& helpers_;
  int index_bits_ = 64;
  bool approximate_ = false;
};

}  // namespace tenon::codegen
