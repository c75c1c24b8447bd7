#include "support/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon {

namespace {

constexpr uint64_t kC1 = 0x87c37b91114253d5;
constexpr uint64_t kC2 = 0x4cf5ad432745937f;

// Little-endian, whatever the machine is.
uint64_t Load(const std::byte* p, size_t count) {
  uint64_t value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, p, count);
  } else {
    for (size_t i = 0; i < count; ++i) value |= static_cast<uint64_t>(p[i]) << (8 * i);
  }
  return value;
}

uint64_t Mix1(uint64_t k) { return std::rotl(k * kC1, 31) * kC2; }
uint64_t Mix2(uint64_t k) { return std::rotl(k * kC2, 33) * kC1; }

uint64_t Avalanche(uint64_t k) {
  k = (k ^ (k >> 33)) * 0xff51afd7ed558ccd;
  k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53;
  return k ^ (k >> 33);
}

}  // namespace

std::string Hash128::ToHex() const { return fmt::format("{:016x}{:016x}", high, low); }

void Hasher::Block(const std::byte* block) {
  h1_ ^= Mix1(Load(block, 8));
  h1_ = (std::rotl(h1_, 27) + h2_) * 5 + 0x52dce729;
  h2_ ^= Mix2(Load(block + 8, 8));
  h2_ = (std::rotl(h2_, 31) + h1_) * 5 + 0x38495ab5;
}

Hasher& Hasher::Add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return *this;
  const size_t held = length_ % pending_.size();
  length_ += bytes.size();
  if (held > 0) {
    const size_t take = std::min(bytes.size(), pending_.size() - held);
    std::memcpy(pending_.data() + held, bytes.data(), take);
    bytes = bytes.subspan(take);
    if (held + take < pending_.size()) return *this;
    Block(pending_.data());
  }
  for (; bytes.size() >= pending_.size(); bytes = bytes.subspan(pending_.size()))
    Block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  return *this;
}

Hasher& Hasher::Int(uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return Add(bytes);
}

Hasher& Hasher::Text(std::string_view text) {
  return Int(text.size()).Add(std::as_bytes(std::span(text)));
}

Hash128 Hasher::Finish() const {
  const size_t held = length_ % pending_.size();
  uint64_t h1 = h1_;
  uint64_t h2 = h2_;
  if (held > 8) h2 ^= Mix2(Load(pending_.data() + 8, held - 8));
  if (held > 0) h1 ^= Mix1(Load(pending_.data(), std::min<size_t>(held, 8)));
  h1 ^= length_;
  h2 ^= length_;
  h1 += h2;
  h2 += h1;
  h1 = Avalanche(h1);
  h2 = Avalanche(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

Hash128 HashBytes(std::span<const std::byte> bytes, uint64_t seed) {
  return Hasher(seed).Add(bytes).Finish();
}

Hash128 HashText(std::string_view text, uint64_t seed) {
  return HashBytes(std::as_bytes(std::span(text)), seed);
}

}  // namespace tenon
