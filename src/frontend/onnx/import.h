// From an ONNX file to a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "frontend/onnx/proto.h"
#include "graph/graph.h"
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

/// The same from an open mapping. External data is an error where `options.external_data_dir` is
/// empty.
Expected<graph::Graph> ImportOnnx(std::shared_ptr<const graph::WeightFile> model,
                                  const ImportOptions& options = {});

}  // namespace tenon::onnx
