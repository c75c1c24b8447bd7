// The description that an artifact carries (kernel_abi.h, tn_blob_info).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "cost/machine.h"
#include "driver/compile.h"
#include "graph/lower/lower.h"
#include "support/hash.h"
#include "target/target.h"

namespace tenon::driver {

/// The time of one launch as it was planned, or by its size where nobody did, in microseconds, on
/// the machine's workers.
double EstimateMicroseconds(const graph::KernelInfo& kernel, const Machine& machine);

/// A tensor of a signature; sizes that are not constant are texts.
nlohmann::ordered_json TensorJson(const std::string& name, DType dtype,
                                  const std::vector<Expr>& dims);

/// What a library says of itself, as its data: the text, the features that its code needs, and the
/// idle arenas of `main`.
std::vector<codegen::DataBlob> DescriptionBlobs(const std::string& info,
                                                const std::vector<std::string>& features);

/// Adds the idle arenas of every exported function that borrows one and has none among the blobs.
void AddInstances(const Module& host, std::vector<codegen::DataBlob>* blobs);

/// What a call of a lowered host function borrows, at the largest sizes of its dims; 0: nothing, or
/// these have no end.
int64_t ArenaBytes(const PrimFunc& host);

/// What an artifact was made from.
struct SourceHashes {
  Hash128 source;       // of the model
  std::string profile;  // of measured rates (profile.h); "": the target's preset
};

/// JSON text, of what was compiled for the machine's target. `records`: what was measured of
/// kernels and followed (measured_prices.h); null: nobody asked for that. `host` holds the lowered
/// host functions; `params` names the file of weights beside the library, "" where there is none.
std::string InfoJson(const graph::Program& program, const graph::LoweredNetwork& network,
                     const Module& host, const Machine& machine, const CompileOptions& options,
                     const SourceHashes& hashes, const std::string& params,
                     const nlohmann::ordered_json& records);

}  // namespace tenon::driver
