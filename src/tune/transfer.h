// What was measured of one kernel, for kernels that differ from it in sizes alone: their prices are
// wrong in much the same way, and what was best there is a good guess here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "tune/residual_model.h"

namespace tenon::tune {

/// Kernels of one family have the same operators, attributes and types, but for sizes.
struct Family {
  std::string text;
  std::vector<double> sizes;  // logarithms of what differs, in the order of the text
};
/// Attributes that are a size of the first operand (the groups of a depthwise convolution) are
/// sizes, too. Sizes that are open have no number: the family of such a region is its own.
Family FamilyOf(const graph::Graph& region);

class Transfer {
 public:
  /// What measurements of a kernel say about its predictions: the logarithm of measured over
  /// predicted, by trace.
  void Add(const graph::Graph& region, const std::string& kernel,
           std::map<std::string, double> residuals);
  bool empty() const { return known_.empty(); }

  struct Neighbour {
    std::string kernel;
    double distance = 0;  // of sizes, as logarithms; 0: the same
    const std::map<std::string, double>* residuals = nullptr;
  };
  /// The nearest kernel of the region's family, where one is near enough to say something; of
  /// equal ones the first by its hash.
  std::optional<Neighbour> NearestTo(const graph::Graph& region) const;
  /// What the price of a point of the region is wrong by: what it was at the neighbour, the less of
  /// that the farther it is, and for the rest the model's opinion, a standard deviation more.
  static double Residual(const Neighbour& neighbour, const std::string& trace,
                         const Gaussian& opinion);

 private:
  struct Known {
    std::vector<double> sizes;
    std::map<std::string, double> residuals;
  };
  std::map<std::string, std::map<std::string, Known>> known_;  // by family, then by kernel
};

}  // namespace tenon::tune
