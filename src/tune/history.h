// What a log says about one machine, in the form in which it is asked: by kernel, by point.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/prices.h"
#include "tune/record.h"
#include "tune/residual_model.h"
#include "tune/task.h"
#include "tune/transfer.h"

namespace tenon::tune {

/// What records must be about to count.
struct Circumstances {
  std::string machine;  // MachineKey(); "": any
  std::string target;   // Target::ToString()
  int64_t team = 1;
  std::string cache = "";  // state of the caches: "warm", "far weights"; "": any
};

/// Whether the record was measured in these circumstances, of an algorithm as it is today.
bool Counts(const Record& record, const Circumstances& circumstances);

/// The state of the caches that kernels are measured in, as records have it.
inline const char* CacheState(bool far_weights) { return far_weights ? "far weights" : "warm"; }

/// What is known of one kernel.
struct KernelHistory {
  /// Seconds by trace, of several measurements the median. What is not known to be faster than the
  /// best leader counts no less than that.
  std::map<std::string, double> seconds;
  std::map<std::string, std::string> ids;  // of a record of each of these
  std::map<std::string, int> deaths;       // attempts that ended a worker or a session, by trace
  std::set<std::string> failed;            // traces that were wrong, or could not be built
  std::string best;                        // the trace with the least seconds; "": none
  double noise = 0;
  int64_t trials = 0;

  /// Nobody tries it again: it failed, or two attempts were the last thing somebody did.
  bool IsBanned(const std::string& trace) const;
};

class History {
 public:
  /// Of the contents' records, those of these circumstances and of the algorithms' epochs.
  static History Of(const LogContents& contents, const Circumstances& circumstances);

  /// Null where nothing is known.
  const KernelHistory* Find(const std::string& kernel) const;
  const std::map<std::string, KernelHistory>& kernels() const { return kernels_; }
  /// What a network of this plan takes, of the time of the one that is planned without records;
  /// nullopt: nobody raced them.
  std::optional<double> RatioOf(const std::string& plan) const;
  /// The groups that networks were faster with in parts; of several ways the fastest.
  const plan::Cuts& cuts() const { return cuts_; }
  /// Whether a network was raced with that group in such parts.
  bool KnowsParts(const std::string& key, size_t nodes) const;
  /// Records that are about other circumstances, or another epoch of their algorithm.
  int64_t others() const { return others_; }

 private:
  struct Parts {
    std::vector<double> ratios;
    bool leader = false;  // one of these was beyond noise
  };
  void SettleCuts();

  std::map<std::string, KernelHistory> kernels_;
  std::map<std::string, std::vector<double>> networks_;   // ratios, by plan
  std::map<std::string, std::map<size_t, Parts>> parts_;  // by group and number of nodes
  plan::Cuts cuts_;
  int64_t others_ = 0;
};

/// A log as prices for planning: of a kernel that it knows, what was measured; and for points that
/// were not, the prediction corrected by what the log's measurements say about predictions, and by
/// a standard deviation more, so that a point is taken on trust only where it is sure to be better.
/// A kernel that it knows in another state of the caches alone counts with that. One that it does
/// not know has predictions that are corrected by those of its nearest kin (transfer.h), or by what
/// all kernels say, and so have relayouts: what is measured is never held against a raw prediction.
/// A measurement with one team says of another what predictions are wrong by. A function of the
/// log's contents alone.
class LogPrices : public plan::Prices {
 public:
  /// `shapes`: Prices::Shapes.
  LogPrices(const LogContents& contents, const Circumstances& circumstances, const Machine& machine,
            std::vector<plan::ShapeWeight> shapes = {});

  std::optional<double> Find(const ops::Algorithm& algorithm, const ops::Site& site,
                             const ops::Point& point) const override;
  double Relayout(const graph::TensorType& from, const Layout& to, double predicted) const override;
  const std::vector<plan::ShapeWeight>& Shapes() const override { return shapes_; }
  const plan::Cuts& FusionCuts() const override { return history_.cuts(); }
  /// Records that count nowhere.
  int64_t others() const { return elsewhere_.others(); }
  /// History::RatioOf, in the state of the caches that is asked for.
  std::optional<double> RatioOf(const std::string& plan) const { return history_.RatioOf(plan); }
  /// History::KnowsParts, likewise.
  bool KnowsParts(const std::string& key, size_t nodes) const {
    return history_.KnowsParts(key, nodes);
  }
  /// Null where nothing is known of a kernel.
  const KernelHistory* FindKernel(const std::string& kernel) const;

 private:
  const Machine machine_;
  const std::vector<plan::ShapeWeight> shapes_;
  History history_, elsewhere_;  // in the state of the caches that is asked for; in any
  ResidualModel model_;
  Transfer transfer_;
};

/// What the measurements of a task say about predictions, for the model and for other sizes; null:
/// nobody asks for these.
void Learn(const Task& task, const KernelHistory& known, ResidualModel* model, Transfer* transfer);
/// What the measurement of a relayout says.
void Learn(const Relayout& relayout, const KernelHistory& known, const Machine& machine,
           ResidualModel* model);
/// What a log's measurements say about the predictions of all its kernels.
void Learn(const LogContents& contents, const History& history, const Machine& machine,
           ResidualModel* model, Transfer* transfer);

}  // namespace tenon::tune
