#include "driver/weights.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "artifact/temporary_library.h"
#include "driver/build.h"
#include "support/check.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

// Copies are done in pieces, so that a large weight never stands in memory as a whole.
constexpr size_t kPiece = size_t{8} << 20;

// Less takes longer to compile for than to compute.
constexpr size_t kLittle = size_t{1} << 14;

class WeightWriter {
 public:
  WeightWriter(const Weights& weights, artifact::WeightSink* writer)
      : weights_(weights), writer_(writer) {}

  Status Compile(const BuildRequest& whole) {
    if (weights_.prepare.funcs.empty()) return Ok();
    BuildRequest request;
    request.module = weights_.prepare;
    request.schedule = weights_.schedule;
    request.export_bodies = true;
    request.hooks.passes.verify = whole.hooks.passes.verify;
    request.jobs = whole.jobs;
    request.cache = whole.cache;
    request.quickly = BytesToRead() <= kLittle;
    TN_ASSIGN_OR_RETURN(Built prepare, Build(std::move(request)));
    std::vector<std::string> exports;
    for (const graph::Weight& w : weights_.list) {
      if (!w.prepare.empty()) exports.push_back(w.prepare);
    }
    TN_ASSIGN_OR_RETURN(auto library, LoadBuilt(prepare, exports));
    library_.emplace(std::move(library));
    host_ = std::move(prepare.host);
    return Ok();
  }

  Status Write(const graph::Weight& w) { return w.prepare.empty() ? CopyWeight(w) : Prepare(w); }

 private:
  // What is computed of is read once, or more than that in a product.
  size_t BytesToRead() const {
    size_t bytes = 0;
    for (const graph::Weight& w : weights_.list) {
      if (w.prepare.empty()) continue;
      bytes += w.bytes;
      for (const graph::Payload& p : w.sources) bytes += p.bytes().size();
    }
    return bytes;
  }

  static void Release(const graph::Payload& p) {
    if (p.file()) p.file()->map.ReleasePages(p.offset(), p.bytes().size());
  }

  Status CopyWeight(const graph::Weight& w) {
    std::span<const std::byte> bytes = w.source.bytes();
    TN_CHECK(bytes.size() == w.bytes, "weight '{}' has {} bytes, stored as {}", w.name,
             bytes.size(), w.bytes);
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      TN_RETURN_IF_ERROR(
          writer_->Write(w.offset + at, bytes.subspan(at, std::min(kPiece, bytes.size() - at))));
    }
    Release(w.source);
    return Ok();
  }

  Status Prepare(const graph::Weight& w) {
    auto body = reinterpret_cast<tn_body_fn>(library_->Find(w.prepare));
    Func f = host_.Find(w.prepare);
    TN_CHECK(body && f, "no function {}", w.prepare);
    TN_ASSIGN_OR_RETURN(auto range, writer_->Map(w.offset, w.bytes));
    // The arena of one worker; it is large only where a weight passes through several kernels.
    auto arena_bytes = static_cast<size_t>(f->attrs.GetInt("arena_bytes"));
    std::unique_ptr<std::byte, decltype(&std::free)> arena(
        static_cast<std::byte*>(std::aligned_alloc(64, (arena_bytes + 63) / 64 * 64 + 64)),
        &std::free);
    if (!arena) return MakeLimitError(fmt::format("no memory to compute weight '{}'", w.name));
    std::vector<const void*> closure;
    for (const graph::Payload& p : w.sources) closure.push_back(p.bytes().data());
    closure.push_back(range.bytes().data());
    closure.push_back(arena.get());
    TN_CHECK(body(static_cast<void*>(closure.data()), 0, 1, nullptr) == 0, "{} failed", w.prepare);
    for (const graph::Payload& p : w.sources) Release(p);
    return Ok();
  }

  const Weights& weights_;
  artifact::WeightSink* writer_;
  Module host_;  // the prepare functions, lowered
  std::optional<artifact::TemporaryLibrary> library_;
};

}  // namespace

static Status WriteAll(const BuildRequest& request, artifact::WeightSink* writer) {
  const std::vector<graph::Weight>& list = request.weights->list;
  WeightWriter weights(*request.weights, writer);
  TN_RETURN_IF_ERROR(weights.Compile(request));
  const auto n = static_cast<int64_t>(list.size());
  std::vector<Diagnostics> errors(list.size());
  std::atomic<int64_t> done{0};
  ParallelFor(n, request.jobs, [&](int64_t i) {
    Status s = weights.Write(list[static_cast<size_t>(i)]);
    if (!s) errors[static_cast<size_t>(i)] = s.errors();
    if (request.hooks.progress) request.hooks.progress("weights", ++done, n);
  });
  for (Diagnostics& e : errors) {
    if (!e.empty()) return e;
  }
  return Ok();
}

Status WriteWeights(const Built& built, artifact::WeightSink* writer) {
  if (!built.request.weights) return Ok();
  return InPhase(built.request.hooks, "weights", [&] { return WriteAll(built.request, writer); });
}

}  // namespace tenon::driver
