#include "tune/machine_key.h"

#include <fstream>

#include "support/hash.h"
#include "support/strings.h"
#include "support/thread_pool.h"
#include "target/target.h"

namespace tenon::tune {

std::string MachineName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && line.starts_with("model name"))
      return std::string(Trim(std::string_view(line).substr(colon + 1)));
  }
  return Target::Host().cpu();
}

std::string MachineKey() {
  Hasher hasher;
  hasher.Text(MachineName()).Text(Target::Host().ToString());
  return hasher.Int(static_cast<uint64_t>(AvailableCpus())).Finish().ToHex();
}

std::string DeviceKey(const std::string& description) {
  return Hasher().Text(description).Finish().ToHex();
}

}  // namespace tenon::tune
