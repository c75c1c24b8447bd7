#include "driver/prepare.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "artifact/temporary_library.h"
#include "driver/kernels.h"
#include "support/check.h"
#include "support/thread_pool.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

// Copies are done in pieces, so that a large weight never stands in memory as a whole.
constexpr size_t kPiece = size_t{8} << 20;

class WeightWriter {
 public:
  WeightWriter(const graph::LoweredNetwork& network, artifact::WeightSink* writer)
      : network_(network), writer_(writer) {}

  Status Compile(const Target& build_host, const PrepareOptions& options) {
    if (network_.prepare.funcs.empty()) return Ok();
    KernelJob job;
    job.target = &build_host;
    job.jobs = options.jobs;
    job.schedule = [machine = Machine::Of(build_host), this](const Func& kernel) {
      return ops::ScheduleKernel(network_.scheduled.at(kernel->name), machine);
    };
    job.hooks.verify = options.verify_each;
    job.export_bodies = true;
    TN_ASSIGN_OR_RETURN(compiled_, CompileModule(network_.prepare, job));
    std::vector<artifact::ObjectFile> objects;
    for (const std::string& image : compiled_.objects) objects.push_back({"prepare.o", image});
    std::vector<std::string> exports;
    for (const graph::Weight& w : network_.weights) {
      if (!w.prepare.empty()) exports.push_back(w.prepare);
    }
    TN_ASSIGN_OR_RETURN(auto library,
                        artifact::LoadTemporaryLibrary(objects, exports, build_host.triple()));
    library_.emplace(std::move(library));
    return Ok();
  }

  Status Write(const graph::Weight& w) { return w.prepare.empty() ? CopyWeight(w) : Prepare(w); }

 private:
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
    Func f = compiled_.host.Find(w.prepare);
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

  const graph::LoweredNetwork& network_;
  artifact::WeightSink* writer_;
  CompiledModule compiled_;
  std::optional<artifact::TemporaryLibrary> library_;
};

}  // namespace

Status WriteWeights(const graph::LoweredNetwork& network, const Target& build_host,
                    const PrepareOptions& options, artifact::WeightSink* writer,
                    const std::function<void(int64_t, int64_t)>& progress) {
  WeightWriter weights(network, writer);
  TN_RETURN_IF_ERROR(weights.Compile(build_host, options));
  auto n = static_cast<int64_t>(network.weights.size());
  std::vector<Diagnostics> errors(network.weights.size());
  std::atomic<int64_t> done{0};
  ParallelFor(n, options.jobs, [&](int64_t i) {
    Status s = weights.Write(network.weights[static_cast<size_t>(i)]);
    if (!s) errors[static_cast<size_t>(i)] = s.errors();
    if (progress) progress(++done, n);
  });
  for (Diagnostics& e : errors) {
    if (!e.empty()) return e;
  }
  return Ok();
}

}  // namespace tenon::driver
