#include "tune/same_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "loop/print.h"
#include "support/hash.h"

namespace tenon::tune {

std::string IdentityOf(const LoweredCandidate& lowered) {
  std::string text = Print(lowered.module);
  for (const measure::Parameter& p : lowered.parameters) {
    text += fmt::format("\n{} {} {} {} {} {} {}", p.dtype, p.dims, p.shape, p.begin, p.padding,
                        p.limit, p.copies);
    for (const measure::StorageTerm& t : p.terms)
      text += fmt::format(" {}/{}%{}*{}", t.axis, t.divisor, t.modulus, t.stride);
  }
  return HashText(text).ToHex();
}

size_t SameKernels::FirstOf(size_t place, const Expected<std::string>& identity) {
  if (const auto known = first_.find(place); known != first_.end()) return known->second;
  const size_t first = identity ? kernels_.emplace(*identity, place).first->second : place;
  return first_[place] = first;
}

}  // namespace tenon::tune
