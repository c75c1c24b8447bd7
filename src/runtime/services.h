#pragma once

#include "tenon/kernel_abi.h"

/// The services of this copy of the runtime.
extern "C" __attribute__((visibility("hidden"))) const tn_host_services tn_runtime_services;
