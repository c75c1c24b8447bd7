#pragma once

#include "tenon/kernel_abi.h"

/// The services of this copy of the runtime, exported under TN_HOST_SYMBOL.
extern "C" const tn_host_services tn_host_services_v2;
