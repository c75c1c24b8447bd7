// Where a tensor lives and a kernel runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

/// The host (this machine's team of workers), or device k.
struct Place {
  static constexpr int32_t kHost = -1;
  static constexpr int32_t kMostDevices = 1 << 16;
  int32_t device = kHost;

  static Place Device(int32_t k) { return {k}; }
  bool IsHost() const { return device == kHost; }
  /// "host", "device 0".
  std::string ToString() const;
  /// The place that a text calls so; nothing for any other text.
  static std::optional<Place> Parse(std::string_view text);
  friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace tenon
