#include "measure/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "support/half.h"

namespace tenon::measure {

namespace {

// Half of a format's bits are lost at most where products are summed in another order.
constexpr ElementType kTypes[] = {
    {"float32", {TN_DL_FLOAT, 32, 1}, 4, 2e-4}, {"float64", {TN_DL_FLOAT, 64, 1}, 8, 1e-9},
    {"float16", {TN_DL_FLOAT, 16, 1}, 2, 1e-2}, {"bfloat16", {TN_DL_BFLOAT, 16, 1}, 2, 4e-2},
    {"int8", {TN_DL_INT, 8, 1}, 1, 0},          {"uint8", {TN_DL_UINT, 8, 1}, 1, 0},
    {"int16", {TN_DL_INT, 16, 1}, 2, 0},        {"uint16", {TN_DL_UINT, 16, 1}, 2, 0},
    {"int32", {TN_DL_INT, 32, 1}, 4, 0},        {"uint32", {TN_DL_UINT, 32, 1}, 4, 0},
    {"int64", {TN_DL_INT, 64, 1}, 8, 0},        {"uint64", {TN_DL_UINT, 64, 1}, 8, 0},
    {"bool", {TN_DL_BOOL, 8, 1}, 1, 0},
};

bool IsFloat(const ElementType& type) { return type.tolerance > 0; }

// Calls f(row-major place, place in the storage) for every element.
template <class F>
void ForEachElement(const Parameter& p, const F& f) {
  std::vector<int64_t> at(p.dims.size(), 0);
  int64_t count = 1;
  for (int64_t d : p.dims) count *= d;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (const StorageTerm& t : p.terms) {
      const auto axis = static_cast<size_t>(t.axis);
      int64_t cell = (at[axis] + (p.begin.empty() ? 0 : p.begin[axis])) / t.divisor;
      if (t.modulus > 0) cell %= t.modulus;
      place += cell * t.stride;
    }
    f(i, place);
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < p.dims[axis]) break;
      at[axis] = 0;
    }
  }
}

int64_t Product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (int64_t n : sizes) product *= n;
  return product;
}

// Whether elements lie in the storage as they do in row-major order.
bool IsPlain(const Parameter& p) {
  if (p.shape != p.dims || p.terms.size() != p.dims.size()) return false;
  int64_t stride = 1;
  for (size_t k = p.dims.size(); k-- > 0;) {
    const StorageTerm& t = p.terms[k];
    const bool is_own = t.axis == static_cast<int64_t>(k) && t.divisor == 1 && t.stride == stride &&
                        (p.begin.empty() || p.begin[k] == 0);
    if (!is_own || (t.modulus > 0 && t.modulus < p.dims[k])) return false;
    stride *= p.dims[k];
  }
  return true;
}

const ElementType& TypeOf(const Parameter& p) { return *FindElementType(p.dtype); }

template <class T>
void Put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T Get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void PutFloat(const ElementType& type, double value, std::byte* to) {
  if (type.bytes == 8) return Put(value, to);
  if (type.bytes == 4) return Put(static_cast<float>(value), to);
  if (type.dl.code == TN_DL_BFLOAT) {
    return Put(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16), to);
  }
  // HalfBits takes what is a half already: eleven bits.
  const double rounded =
      std::isfinite(value) && value != 0
          ? std::ldexp(std::nearbyint(std::ldexp(value, 10 - std::max(std::ilogb(value), -14))),
                       std::max(std::ilogb(value), -14) - 10)
          : value;
  Put(HalfBits(rounded), to);
}

double GetFloat(const ElementType& type, const std::byte* from) {
  if (type.bytes == 8) return Get<double>(from);
  if (type.bytes == 4) return Get<float>(from);
  const auto bits = Get<uint16_t>(from);
  if (type.dl.code != TN_DL_BFLOAT) return HalfValue(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// Normal numbers to take turns with; a prime number of them, so that no row is like the next.
const std::vector<double>& NormalNumbers() {
  static const std::vector<double> kNumbers = [] {
    constexpr size_t kCount = 65521;
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    std::vector<double> numbers(kCount);
    for (double& x : numbers) x = normal(random);
    return numbers;
  }();
  return kNumbers;
}

}  // namespace

const ElementType* FindElementType(std::string_view name) {
  for (const ElementType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::vector<std::byte> MakeElements(const Parameter& p, uint64_t seed) {
  const ElementType& type = TypeOf(p);
  const auto count = static_cast<size_t>(Product(p.dims));
  std::vector<std::byte> out(count * static_cast<size_t>(type.bytes));
  std::mt19937_64 random(seed);
  if (IsFloat(type)) {
    const std::vector<double>& numbers = NormalNumbers();
    size_t next = random() % numbers.size();
    for (size_t i = 0; i < count; ++i) {
      PutFloat(type, numbers[next], &out[i * static_cast<size_t>(type.bytes)]);
      if (++next == numbers.size()) next = 0;
    }
    return out;
  }
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = random();
    if (type.dl.code == TN_DL_BOOL) value &= 1;
    if (p.limit > 0) value %= static_cast<uint64_t>(p.limit);
    // Little-endian, as every machine that code is made on.
    std::memcpy(&out[i * static_cast<size_t>(type.bytes)], &value, static_cast<size_t>(type.bytes));
  }
  return out;
}

Expected<int64_t> StorageBytes(const Parameter& p) {
  constexpr int64_t kMost = int64_t{1} << 36;
  const ElementType* type = FindElementType(p.dtype);
  if (!type) return MakeError(fmt::format("elements of {} are not measured", p.dtype));
  for (const std::vector<int64_t>* sizes : {&p.dims, &p.shape}) {
    int64_t elements = 1;
    for (int64_t n : *sizes) {
      if (n < 0 || (n > 0 && elements > kMost / n)) return MakeError("an operand is too large");
      elements *= n;
    }
  }
  if (!p.begin.empty() && p.begin.size() != p.dims.size())
    return MakeError("an operand's layout is not one of its dims");
  const int64_t elements = Product(p.shape);
  if (Product(p.dims) > 0) {
    int64_t last = 0;
    for (const StorageTerm& t : p.terms) {
      const auto axis = static_cast<size_t>(t.axis);
      if (t.axis < 0 || axis >= p.dims.size() || t.divisor < 1 || t.modulus < 0 || t.stride < 0)
        return MakeError("an operand's layout is not one of its dims");
      const int64_t begin = p.begin.empty() ? 0 : p.begin[axis];
      int64_t cell = (p.dims[axis] - 1 + begin) / t.divisor;
      if (t.modulus > 0) cell = std::min(cell, t.modulus - 1);
      last += cell * t.stride;
    }
    if (last >= elements) return MakeError("an operand's layout leaves its storage");
  }
  return elements * type->bytes;
}

void Store(const Parameter& p, const std::vector<std::byte>& elements, std::byte* storage) {
  const ElementType& type = TypeOf(p);
  const auto bytes = static_cast<size_t>(type.bytes);
  const auto cells = static_cast<size_t>(Product(p.shape));
  if (IsPlain(p)) {
    std::copy(elements.begin(), elements.end(), storage);
    return;
  }
  std::byte padding[8] = {};
  if (IsFloat(type)) {
    PutFloat(type, p.padding, padding);
  } else {
    const auto value = static_cast<int64_t>(p.padding);
    std::memcpy(padding, &value, bytes);
  }
  for (size_t i = 0; i < cells; ++i) std::memcpy(storage + i * bytes, padding, bytes);
  ForEachElement(p, [&](int64_t i, int64_t place) {
    std::memcpy(storage + static_cast<size_t>(place) * bytes,
                &elements[static_cast<size_t>(i) * bytes], bytes);
  });
}

std::vector<std::byte> Load(const Parameter& p, const std::byte* storage) {
  const auto bytes = static_cast<size_t>(TypeOf(p).bytes);
  const size_t all = static_cast<size_t>(Product(p.dims)) * bytes;
  if (IsPlain(p)) return {storage, storage + all};
  std::vector<std::byte> out(all);
  ForEachElement(p, [&](int64_t i, int64_t place) {
    std::memcpy(&out[static_cast<size_t>(i) * bytes], storage + static_cast<size_t>(place) * bytes,
                bytes);
  });
  return out;
}

double ScaleOf(const Parameter& p, const std::vector<std::byte>& elements) {
  const ElementType& type = TypeOf(p);
  if (!IsFloat(type)) return 0;
  const auto bytes = static_cast<size_t>(type.bytes);
  double squares = 0;
  size_t finite = 0;
  for (size_t i = 0; i < elements.size() / bytes; ++i) {
    const double x = GetFloat(type, &elements[i * bytes]);
    if (!std::isfinite(x)) continue;
    squares += x * x;
    ++finite;
  }
  return finite > 0 ? std::sqrt(squares / static_cast<double>(finite)) : 0;
}

std::string FirstDifference(const Parameter& p, const std::vector<std::byte>& got,
                            const std::vector<std::byte>& expected, double scale) {
  const ElementType& type = TypeOf(p);
  const auto bytes = static_cast<size_t>(type.bytes);
  const size_t count = expected.size() / bytes;
  if (!IsFloat(type)) {
    for (size_t i = 0; i < count; ++i) {
      if (std::memcmp(&got[i * bytes], &expected[i * bytes], bytes) != 0)
        return fmt::format("element {} of {} differs", i, count);
    }
    return "";
  }
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(&got[i * bytes], &expected[i * bytes], bytes) == 0) continue;
    const double x = GetFloat(type, &got[i * bytes]), y = GetFloat(type, &expected[i * bytes]);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y || std::abs(x - y) <= type.tolerance * (std::abs(y) + scale)) continue;
    return fmt::format("element {} of {} is {:.6g} instead of {:.6g}", i, count, x, y);
  }
  return "";
}

}  // namespace tenon::measure
