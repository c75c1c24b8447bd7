// NVRTC keeps memory of its own until the process ends, which the leak check of address-sanitized
// builds would report.
extern "C" {
const char* __lsan_default_suppressions();  // NOLINT: the sanitizer's own name
const char* __lsan_default_suppressions() { return "leak:libnvrtc"; }  // NOLINT
}
