// The elements of operands, as numbers: what they are filled with, how they lie, and when two
// results are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/protocol.h"
#include "support/expected.h"
#include "tenon/c_api.h"

namespace tenon::measure {

/// How an element type is read, written and compared.
struct ElementType {
  const char* name;  // "float32"
  tn_dl_data_type dl;
  int64_t bytes;
  double
      tolerance;  // of results, relative to what they are and to their root mean square; 0: equal
};
/// Null for a type that is not measured: of less than a byte, or of eight bits and floating.
const ElementType* FindElementType(std::string_view name);

/// The elements of a parameter in row-major order, as bytes: floats from the standard normal
/// distribution, integers from their whole range or below the parameter's limit. The same for the
/// same `seed`.
std::vector<std::byte> MakeElements(const Parameter& parameter, uint64_t seed);

/// The number of bytes that a parameter's storage takes. Errors: types that are not known, sizes
/// that no memory has, places outside of the storage.
Expected<int64_t> StorageBytes(const Parameter& parameter);
/// Puts elements where the parameter's layout has them, and its padding everywhere else.
void Store(const Parameter& parameter, const std::vector<std::byte>& elements, std::byte* storage);
/// The elements of a storage, in row-major order.
std::vector<std::byte> Load(const Parameter& parameter, const std::byte* storage);

/// What errors of these elements are held against besides themselves: the root of the mean of the
/// squares of those that are finite; 0 of integers.
double ScaleOf(const Parameter& parameter, const std::vector<std::byte>& elements);
/// "" where the results are the same as the type has it (NaN is NaN), else the first that differs.
/// `scale`: of what is expected, which is compared with more than once.
std::string FirstDifference(const Parameter& parameter, const std::vector<std::byte>& got,
                            const std::vector<std::byte>& expected, double scale);

}  // namespace tenon::measure
