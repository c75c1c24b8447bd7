// What names a machine in records: what it is, never how fast it was found to be.
#pragma once

#include <string>

namespace tenon::tune {

/// A hash of the model of this machine's CPU as its maker calls it, of the features and caches that
/// Target::Host() finds, and of how many CPUs the process may use. 32 hexadecimal digits.
std::string MachineKey();
/// The model alone, for people.
std::string MachineName();
/// A hash of what a device's driver says that it is (tn_device_describe).
std::string DeviceKey(const std::string& description);

}  // namespace tenon::tune
