#include "ir/place.h"

#include <charconv>

namespace tenon {

std::string Place::ToString() const {
  return IsHost() ? "host" : "device " + std::to_string(device);
}

std::optional<Place> Place::Parse(std::string_view text) {
  constexpr std::string_view kDevice = "device ";
  if (text == "host") return Place{};
  if (!text.starts_with(kDevice)) return std::nullopt;
  text.remove_prefix(kDevice.size());
  int32_t number = kHost;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || number < 0 || number > kMostDevices) return std::nullopt;
  return Device(number);
}

}  // namespace tenon
