// From an ONNX file to a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/custom_operators.h"
#include "frontend/onnx/overrides.h"
#include "frontend/onnx/proto.h"
#include "graph/program.h"
#include "support/expected.h"

namespace tenon::onnx {

/// The oldest and newest operator sets of the default domain that are read.
inline constexpr int64_t kMinOpset = 1;
inline constexpr int64_t kMaxOpset = 28;
inline constexpr int64_t kMaxIrVersion = 14;

/// What a user says about one dim of an input: a number, or a symbol with a range. One mention of a
/// symbol need say its range; the default one says nothing.
struct DimSpec {
  int64_t value = -1;  // >= 0: this size
  std::string symbol;  // else
  int64_t min = 1;
  int64_t max = std::numeric_limits<int32_t>::max();
  int64_t step = 1;
  friend bool operator==(const DimSpec&, const DimSpec&) = default;
};

/// An operator, in one of its versions, that cannot be imported: at all, or as some nodes use it.
struct Obstacle {
  std::string op_type, domain;  // "" is the default domain
  int64_t version = 0;          // of the domain's operator set; 0: the model does not say
  std::string reason;
  std::vector<std::string> nodes;  // as messages have them
  friend bool operator==(const Obstacle&, const Obstacle&) = default;
};

struct ImportOptions {
  /// Shapes of inputs by name. A number given for a dim that the model calls `batch` fixes `batch`
  /// everywhere; a symbol given for one is the same size wherever it is given.
  std::map<std::string, std::vector<DimSpec>> shapes;
  /// Told of what is odd about a model that is imported all the same; null: nobody is.
  std::function<void(const std::string& warning)> warn;
  /// Sizes that the model leaves open may be 0, too.
  bool empty_sizes = false;
  /// Where external data lies; empty: the model's directory. Nothing outside it is opened.
  std::string external_data_dir;
  /// Links in that directory may lead here, too.
  std::string linked_data_dir;
  ReadLimits limits;
  Overrides overrides;
  CustomOperators operators;
  /// Becomes what keeps the model from being imported, where that is asked for; then all of it is
  /// looked for, not only as much as somebody reads.
  std::vector<Obstacle>* obstacles = nullptr;
};

/// Where the external data of the model at `path` lies: in `given` or, where that is empty, beside
/// the model.
std::string ExternalDataDirectory(const std::string& path, const std::string& given);

/// Imports the model at `path`. The graph verifies, has the model's metadata, and refers to weights
/// in the mapped files. Operators that are not known are reported all at once, with their nodes;
/// other errors name node and tensor.
/// Where the model is a link and no directory is given, its weights may be links into the folder
/// that its own leads to, as in the caches of model hubs.
Expected<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options = {});

/// Imports any model: as a program where it has values that are no tensors of numbers, else as one
/// whose only part is the graph.
Expected<graph::Program> ImportNetwork(const std::string& path, const ImportOptions& options = {});

/// The same as ImportOnnx from an open mapping. External data is an error where
/// `options.external_data_dir` is empty.
Expected<graph::Graph> ImportOnnx(std::shared_ptr<const graph::WeightFile> model,
                                  const ImportOptions& options = {});

}  // namespace tenon::onnx
