// The model as it lies in its files.
#pragma once

#include <future>
#include <span>
#include <stop_token>
#include <vector>

#include "cost/machine.h"
#include "driver/compile.h"
#include "driver/file_facts.h"
#include "graph/program.h"
#include "support/hash.h"

namespace tenon::driver {

/// Reads the model that the options name. Nothing is compiled; weights stay in their files.
/// `obstacles`, where given, becomes all that keeps it from being read (import.h).
Expected<graph::Program> ImportModel(const CompileOptions& options,
                                     std::vector<onnx::Obstacle>* obstacles = nullptr);

/// Why a program cannot be a part of what is compiled: where that is, for a message; null: it can.
const char* WhyNoProgram(const CompileOptions& options);
/// An error where a network is a program and cannot be one; it says what makes it one.
Status CheckProgram(const CompileOptions& options, const graph::Program& program);

/// A hash of the bytes of the model's file and of the files of weights that the graphs, which came
/// from it, refer to: hundreds of milliseconds for each gigabyte. Releases the pages it reads.
class SourceHash {
 public:
  SourceHash() : stop_(std::nostopstate) {}
  ~SourceHash() { stop_.request_stop(); }  // nobody waits for it any more
  SourceHash(SourceHash&&) = default;
  SourceHash& operator=(SourceHash&&) = default;

  /// Opens the files. `beside`: reads them on a thread of its own from now on; else Get does.
  /// `facts` (outlives this) knows the hashes of files that are what they were.
  static Expected<SourceHash> Of(const CompileOptions& options,
                                 std::span<const graph::Graph> graphs, bool beside,
                                 const FileFacts& facts);
  /// Once.
  Hash128 Get() { return result_.get(); }

 private:
  std::stop_source stop_;
  std::future<Hash128> result_;  // goes first: waits for the thread
};

/// The path of a file of weights beside the model.
std::string PathOf(const CompileOptions& options, const graph::WeightFile& file);

/// Whether the weights of imported graphs are more than stays near a core from call to call.
bool HasFarWeights(std::span<const graph::Graph> graphs, const Machine& machine);

/// The files that constants of the graphs lie in, in the order of the model.
std::vector<const graph::WeightFile*> WeightFilesOf(std::span<const graph::Graph> graphs);

}  // namespace tenon::driver
