// A content hash that is the same on every machine and in every run: MurmurHash3 x64_128 (Austin
// Appleby, public domain), fed piece by piece. It tells contents apart and names things; it does
// not resist an adversary.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits.
  std::string ToHex() const;
};

/// Accumulates bytes; how they are cut into calls does not matter, so Add("ab") equals
/// Add("a").Add("b"). Int and Text are framed: integers take 8 bytes, texts are preceded by their
/// length, so that lists of them cannot run together.
class Hasher {
 public:
  explicit Hasher(uint64_t seed = 0) : h1_(seed), h2_(seed) {}

  Hasher& Add(std::span<const std::byte> bytes);
  Hasher& Int(uint64_t value);
  Hasher& Text(std::string_view text);
  /// The hash of what was added so far; more may be added afterwards.
  Hash128 Finish() const;

 private:
  void Block(const std::byte* block);

  uint64_t h1_;
  uint64_t h2_;
  uint64_t length_ = 0;
  std::array<std::byte, 16> pending_;  // the length_ % 16 bytes that do not fill a block yet
};

Hash128 HashBytes(std::span<const std::byte> bytes, uint64_t seed = 0);
Hash128 HashText(std::string_view text, uint64_t seed = 0);

}  // namespace tenon

template <>
struct std::hash<tenon::Hash128> {
  size_t operator()(const tenon::Hash128& h) const { return h.low; }
};
