#include "codegen/c_family/text.h"

#include <fmt/format.h>

#include "support/strings.h"

namespace tenon::codegen {

// The words of C and C++, and names of the standard headers that are included or likely to be.
static constexpr std::string_view kWords =
    "alignas alignof and asm auto bool break case catch char class const constexpr continue "
    "default "
    "delete do double else enum explicit export extern false float for friend goto if inline int "
    "long mutable namespace new not nullptr operator or private protected public register restrict "
    "return short signed sizeof static struct switch template this throw true try typedef typeid "
    "typename union unsigned using virtual void volatile while xor main errno stdin stdout stderr "
    "unix linux abs labs div exp exp2 log log2 log10 pow sqrt sin cos tan tanh erf floor ceil "
    "trunc "
    "round rint fma fmod fabs fmin fmax malloc free calloc realloc abort exit memcpy memset "
    "memmove "
    "remainder remquo nearbyint hypot cbrt ldexp frexp modf nan copysign "
    "strlen index time clock signal remove rename printf gamma y0 y1 yn j0 j1 jn";

Names::Names(std::string_view reserved) {
  for (std::string_view words : {kWords, reserved}) {
    for (std::string_view word : Split(words, ' ')) used_.emplace(word);
  }
}

std::string Names::Take(std::string_view wanted) {
  std::string base = ToIdentifier(wanted);
  // What begins with tn_ is ours, what begins with an underscore the language's.
  if (base.starts_with("tn_") || base.starts_with("_")) base = "v" + base;
  std::string name = base;
  for (int n = 1; !used_.insert(name).second; ++n) name = fmt::format("{}_{}", base, n);
  return name;
}

std::string QuoteC(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c >= 0x7f || c == '?') {
      out += fmt::format("\\{:03o}", c);  // three digits: what follows cannot join; ? for trigraphs
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

}  // namespace tenon::codegen
