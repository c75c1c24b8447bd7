// Writing tar files (ustar).
#pragma once

#include <string>
#include <string_view>

namespace tenon {

/// Files in the order in which they are added. Owner and time are zero, so that equal contents give
/// equal bytes.
class TarWriter {
 public:
  /// `name` has at most 100 characters, the content less than 8 GiB.
  void Add(std::string_view name, std::string_view content);
  /// The whole archive; nothing may be added afterwards.
  std::string Finish();

 private:
  std::string bytes_;
};

}  // namespace tenon
