// The exported query function, and empty definitions of what the generated object may leave out.
#include "runtime/core/query.h"

#include "runtime/core/error.h"

// Weak, so that the generated object's definitions win; not const, so that nothing here is folded.
extern "C" {
#define TN_WEAK __attribute__((weak, visibility("hidden")))
TN_WEAK extern const char tn_blob_info[] = "{}";
TN_WEAK extern const uint64_t tn_blob_info_size = 2;
TN_WEAK extern const char tn_cpu_required[] = "";
TN_WEAK tn_instances tn_main_instances = {};
TN_WEAK extern const tn_device_code tn_blob_device_code = {sizeof(tn_device_code), 0, 0, 0, 1, 0};
TN_WEAK tn_device_state tn_blob_device_state = {};
TN_WEAK extern const unsigned char tn_weights_base[] = {0};
TN_WEAK extern const uint64_t tn_weights_size = 0;
TN_WEAK extern const char tn_params_name[] = "";
TN_WEAK extern const uint64_t tn_params_id[2] = {0, 0};

// NOLINTNEXTLINE: the name is that of the convention
__attribute__((visibility("default"))) const tn_module_info* __tenon_query_v5(void);
}

const tn_module_info* __tenon_query_v5(void) {
  static const tn_module_info info = {
      TN_ABI_VERSION,        sizeof(tn_module_info),
      tn_blob_info,          &tn_blob_info_size,
      tn_cpu_required,       tn_weights_base,
      &tn_weights_size,      &tn_main_instances,
      tn_core_check_cpu,     tenon::runtime::ReserveInstances,
      tenon::runtime::Adopt, tenon::runtime::LastError,
      &tn_blob_device_code,  &tn_blob_device_state,
  };
  return &info;
}
