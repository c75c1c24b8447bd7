// Fragments and the operations that the lanes of a warp do together.
#include "interp/grid.h"
#include "interp/machine.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon::interp {

View Worker::WindowOn(const Buffer& param, const View& view, const Region& region, Worker* callee) {
  View out{param, 0, nullptr, {}, {}, nullptr, nullptr};
  for (const Expr& d : param->shape) out.shape.push_back(callee->EvalInt(d));
  out.table = m_.TableOf(param->layout, out.shape);
  Window window;
  for (size_t d = 0; d < region->ranges.size(); ++d) {
    window.origin.push_back(EvalInt(region->ranges[d]->min));
    if (EvalInt(region->ranges[d]->extent) != 1) window.dims.push_back(d);
  }
  const bool flat = !IsFragment(*view.buffer) && !IsTile(*param);
  if (view.window || (flat && view.shape.size() != 1) ||
      (!flat && window.dims.size() != out.shape.size())) {
    Fail("unsupported: " + view.buffer->name + " as the fragment " + param->name);
  }
  window.lanes.push_back(view);
  out.window = std::make_shared<const Window>(std::move(window));
  return out;
}

// Without threads a fragment is the buffer that it looks like. With them each lane has what its
// layout gives it; once storage is flat, a lane's part of the box is in one piece, in the order of
// the parameter's own layout.
Spot Worker::LocateInWindow(const View& view, std::span<const int64_t> indices) {
  CheckBounds(view, indices);
  const Window& window = *view.window;
  const View& first = window.lanes[0];
  const bool flat = !IsFragment(*first.buffer) && !IsTile(*view.buffer);
  std::vector<int64_t> at = window.origin;
  if (!flat) {
    for (size_t d = 0; d < indices.size(); ++d) at[window.dims[d]] += indices[d];
    if (window.lanes.size() == 1 || !IsFragment(*first.buffer)) {
      return {first.memory,
              first.address + static_cast<uintptr_t>(Offset(first, at, /*check=*/true))};
    }
    CheckBounds(first, at);
  }
  Indices storage = flat ? StorageOf(view, indices) : StorageOf(first, at);
  const size_t rank = storage.size();
  if (rank < 2 || storage[0] < 0 || storage[0] >= static_cast<int64_t>(window.lanes.size()))
    Fail("fragment " + first.buffer->name + " has no layout over the lanes of a warp");
  int64_t offset = flat ? at[0] : 0, stride = 1;
  for (size_t i = rank; i-- > 1;) {
    offset += storage[i] * (flat ? stride : first.strides[i]);
    if (flat) stride *= EvalInt(m_.StorageOf(view.buffer)[i]);
  }
  const View& lane = window.lanes[static_cast<size_t>(storage[0])];
  return {lane.memory, lane.address + static_cast<uintptr_t>(offset * view.buffer->dtype.Bytes())};
}

namespace {

[[noreturn]] void Differ(const Func& callee, const std::string& what) {
  Fail("call of " + callee->name + ": the lanes of a warp pass different " + what);
}

// What the first lane passes, with the other lanes' parts of the fragments.
Frame Together(const Func& callee, const std::vector<Frame*>& lanes) {
  const int64_t expected = LanesOf(*callee);
  if (lanes.size() != static_cast<size_t>(expected)) {
    Fail("call of " + callee->name + " in a warp" + (expected == kLanes ? "" : "group") + " of " +
         std::to_string(lanes.size()) + " threads, expected " + std::to_string(expected));
  }
  Frame out = *lanes[0];
  out.vars.ForEach([&](const VarNode* var, Lane value) {
    for (const Frame* lane : lanes) {
      const Lane* other = lane->vars.Find(var);
      if (!other || other->i != value.i) Differ(callee, "values of " + var->name);
    }
  });
  for (const Buffer& param : callee->buffers) {
    View& view = out.buffers.At(param.get());
    Window all;
    for (const Frame* lane : lanes) {
      const View& other = lane->buffers.At(param.get());
      if (!view.window && other.address != view.address) Differ(callee, "parts of " + param->name);
      if (!view.window) continue;
      if (other.window->origin != view.window->origin) Differ(callee, "parts of " + param->name);
      all.lanes.push_back(other.window->lanes[0]);
    }
    if (!view.window) continue;
    all.origin = view.window->origin;
    all.dims = view.window->dims;
    view.window = std::make_shared<const Window>(std::move(all));
  }
  return out;
}

}  // namespace

void Worker::ExecWarpCall(const CallFunc& n, const Func& callee, Frame frame) {
  const int64_t lanes = tenon::LanesOf(*callee);
  thread_->posted = &frame;
  thread_->Meet(n, lanes);
  if (thread_->lane(lanes) == 0) {
    Frame all = Together(callee, thread_->PostedByGroup(lanes));
    thread_->SetReadsFor(lanes);
    RunCallee(n, callee, std::move(all));
    thread_->SetReadsFor(1);
  }
  thread_->Meet(n, lanes);
}

}  // namespace tenon::interp
