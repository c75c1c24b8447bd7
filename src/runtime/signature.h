// The names, types and shapes of a module's inputs and outputs, and the model's metadata, read from
// its information text.
#pragma once

#include "runtime/json.h"
#include "tenon/c_api.h"

namespace tenon::runtime {

struct ParameterList {
  const tn_parameter_t* items;
  int32_t count;
};

/// Of the first function.
struct Signature {
  const char* name;
  ParameterList inputs, outputs;
};

struct Metadata {
  struct Item {
    const char* key;
    const char* value;
  };
  const Item* items;
  int32_t count;
};

/// Each is one block of memory, freed with free(); null when memory is out.
Signature* ReadSignature(JsonValue info);
Metadata* ReadMetadata(JsonValue info);

}  // namespace tenon::runtime
