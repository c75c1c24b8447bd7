// Buffers, bounds and elements.
//
// An access is checked twice, in the two coordinates that it has. Indices are held against the
// buffer's logical shape; then the layout's expressions are evaluated for them, which gives storage
// coordinates, and with the strides a byte address, which must lie in memory that is there and
// written. For A: f32[8, 33] layout (i, j) -> (j size _, i size 10) and A[2, 5] that is
//
//   0 <= 2 < 8, 0 <= 5 < 33      A[8, 5] is out of bounds: its shape is [8, 33]
//   storage (5, 2), element 5 * 10 + 2, byte 208 of the view's memory
//
// and the padding, elements 8 and 9 of each row of storage, is reached by no index. A buffer in a
// fragment has its lane as first storage coordinate; who touches it must be that lane. Memory keeps
// a bit per byte that says whether it was written, and what is needed to report races.

#include <algorithm>
#include <array>

#include "interp/grid.h"
#include "interp/machine.h"
#include "loop/threads.h"
#include "support/check.h"

namespace tenon::interp {

namespace {

// What loop IR computes with handles, it computes with numbers.
uint8_t* BytesAt(uintptr_t address) {
  return reinterpret_cast<uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

Lane ZeroLane(DType type) { return type.IsFloat() ? FloatLane(0) : IntLane(0); }

}  // namespace

const View& Worker::ViewOf(const Buffer& buffer) {
  const View* view = frame_.buffers.Find(buffer.get());
  if (!view) Fail("buffer " + buffer->name + " is not in scope");
  return *view;
}

View Worker::MakeView(const Buffer& buffer, uintptr_t address) {
  if (buffer->dtype.StorageBits() < 8)
    Fail("unsupported: " + buffer->dtype.ToString() + " elements of " + buffer->name);
  const bool threads = buffer->layout && !buffer->layout->threads.empty();
  if ((threads && !IsFragment(*buffer)) || (buffer->layout && buffer->layout->replicas != 1)) {
    Fail("unsupported: layout of " + buffer->name + " over threads");
  }
  View view{buffer, address, m_.memory.Find(address), {}, {}, nullptr, nullptr};
  for (const Expr& d : buffer->shape) view.shape.push_back(EvalInt(d));
  view.table = m_.TableOf(buffer->layout, view.shape);
  for (const Expr& s : buffer->strides) view.strides.push_back(EvalInt(s));
  if (!buffer->strides.empty()) return view;
  const std::vector<Expr>& extents = m_.StorageOf(buffer);
  view.strides.resize(extents.size());
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    view.strides[i] = stride;
    stride *= EvalInt(extents[i]);
  }
  if (threads && thread_) view.strides[0] = 0;  // each lane has its own
  return view;
}

int64_t Worker::StorageElements(const Buffer& buffer) {
  const std::vector<Expr>& extents = m_.StorageOf(buffer);
  int64_t elements = 1, last = 0;
  const bool lanes = thread_ && buffer->layout && !buffer->layout->threads.empty();
  for (size_t i = lanes ? 1 : 0; i < extents.size(); ++i) {
    int64_t extent = EvalInt(extents[i]);
    if (__builtin_mul_overflow(elements, extent, &elements)) {
      Fail("buffer " + buffer->name + " is too large");
    }
    if (!buffer->strides.empty()) last += (extent - 1) * EvalInt(buffer->strides[i]);
  }
  if (elements < 0) Fail("buffer " + buffer->name + " has a negative size");
  return buffer->strides.empty() || elements == 0 ? elements : last + 1;
}

std::string Accessed::ToString() const {
  std::string out(name_);
  if (!is_element_) return out;
  out += "[";
  for (size_t i = 0; i < indices_.size(); ++i) out += (i ? ", " : "") + std::to_string(indices_[i]);
  return out + "]";
}

void Worker::CheckBounds(const View& view, std::span<const int64_t> indices) const {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < view.shape[i]) continue;
    std::string shape;
    for (int64_t d : view.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(d);
    Fail("access of " + Accessed(view, indices).ToString() + " is out of bounds: its shape is [" +
         shape + "]");
  }
}

// An element's place among the storage dimensions.
Indices Worker::StorageOf(const View& view, std::span<const int64_t> indices) {
  const Layout& layout = view.buffer->layout;
  if (!layout) {
    Indices storage(indices.size());
    for (size_t i = 0; i < indices.size(); ++i) storage[i] = indices[i];
    return storage;
  }
  const std::optional<size_t> element = view.table ? view.table->ElementAt(indices) : std::nullopt;
  if (element && view.table->Knows(*element)) return view.table->At(*element);
  // The coordinates are this access's alone; a layout's expressions mention nothing else that they
  // could shadow.
  for (size_t i = 0; i < indices.size(); ++i)
    frame_.vars.Set(layout->coords[i].get(), IntLane(indices[i]));
  Indices storage = IndicesOf(layout->storage);
  if (element) view.table->Keep(*element, storage);
  return storage;
}

int64_t Worker::Offset(const View& view, std::span<const int64_t> indices, bool check) {
  if (indices.size() != view.shape.size()) {
    Fail("access of " + view.buffer->name + " with " + std::to_string(indices.size()) +
         " indices, expected " + std::to_string(view.shape.size()));
  }
  if (check) CheckBounds(view, indices);
  Indices storage = StorageOf(view, indices);
  const bool lanes = thread_ && view.buffer->layout && !view.buffer->layout->threads.empty();
  if (lanes && check) {
    const int64_t lane = thread_->lane(EvalInt(m_.StorageOf(view.buffer)[0]));
    if (storage[0] != lane)
      Fail(Accessed(view, indices).ToString() + " lies in lane " + std::to_string(storage[0]) +
           " and is touched by lane " + std::to_string(lane));
  }
  int64_t offset = 0;
  for (size_t i = 0; i < storage.size(); ++i) offset += storage[i] * view.strides[i];
  return offset * view.buffer->dtype.Bytes();
}

uintptr_t Worker::AddressOf(const Load& n) {
  View view = ViewOf(n.buffer);
  const Indices indices = IndicesOf(n.indices);
  return view.address + static_cast<uintptr_t>(Offset(view, indices, /*check=*/false));
}

void Worker::CheckInside(const Memory* memory, uintptr_t address, DType type,
                         const Accessed& what) {
  auto offset = static_cast<int64_t>(address - memory->address());
  if (offset < 0 || offset + type.Element().Bytes() > memory->size()) {
    Fail(what.ToString() + " is outside the memory of " + memory->name() + ": byte " +
         std::to_string(offset) + " of " + std::to_string(memory->size()));
  }
}

// Atomics of a team order themselves; those of a launch do so with each other only.
void Worker::NoteAccess(Memory* memory, int64_t offset, int64_t bytes, AccessKind kind,
                        const Accessed& what) {
  for (Promise& p : promises_) {
    const std::string broken = p.Note(*memory, offset, bytes, kind != AccessKind::kRead);
    if (!broken.empty()) Fail(what.ToString() + " " + broken);
  }
  if (thread_) return thread_->Touch(memory, offset, bytes, kind, what);
  if (!team_ || kind == AccessKind::kAtomic) return;
  const bool write = kind == AccessKind::kWrite;
  if (memory->Touch(offset, bytes, static_cast<uint8_t>(rank_ + 1), m_.phase, write)) return;
  Fail("race: " + what.ToString() +
       (write ? " is written by one worker and touched by another without a barrier between"
              : " is read by one worker and written by another without a barrier between"));
}

Lane Worker::ReadAt(Memory* memory, uintptr_t address, DType type, const Accessed& what,
                    AccessKind kind) {
  const int64_t bytes = type.Element().Bytes();
  if (memory) {
    CheckInside(memory, address, type, what);
    auto offset = static_cast<int64_t>(address - memory->address());
    if (memory->IsUnderWay(offset, bytes))
      Fail(what.ToString() + " is read while a copy to it is under way");
    if (!memory->IsDefined(offset, bytes)) Fail(what.ToString() + " is read before it is written");
    NoteAccess(memory, offset, bytes, kind, what);
  }
  return Decode(type.Element(), BytesAt(address));
}

void Worker::WriteAt(Memory* memory, uintptr_t address, DType type, Lane v, const Accessed& what,
                     AccessKind kind) {
  const int64_t bytes = type.Element().Bytes();
  if (memory) {
    CheckInside(memory, address, type, what);
    auto offset = static_cast<int64_t>(address - memory->address());
    if (memory->IsUnderWay(offset, bytes))
      Fail(what.ToString() + " is written while a copy to it is under way");
    if (!memory->writable())
      Fail(what.ToString() + " is written, but " + memory->name() + " is constant");
    NoteAccess(memory, offset, bytes, kind, what);
    memory->Define(offset, bytes);
  }
  Encode(type.Element(), v, BytesAt(address));
}

Spot Worker::Locate(const View& view, std::span<const int64_t> indices) {
  if (view.window) return LocateInWindow(view, indices);
  return {view.memory,
          view.address + static_cast<uintptr_t>(Offset(view, indices, /*check=*/true))};
}

Lane Worker::Read(const View& view, std::span<const int64_t> indices) {
  const auto [memory, address] = Locate(view, indices);
  return ReadAt(memory, address, view.buffer->dtype, Accessed(view, indices));
}

// One lane of a vector. It may be one whose value nobody uses, of memory that nothing has written
// or that another worker or thread writes at the same time: then it has any value, here one that
// shows in whatever is made of it. (The read is not noted either; where it does race with a write
// after it, another order of the threads has that write before it.)
Lane Worker::ReadLane(const View& view, std::span<const int64_t> indices) {
  auto address = view.address + static_cast<uintptr_t>(Offset(view, indices, /*check=*/true));
  const DType type = view.buffer->dtype.Element();
  if (view.memory) {
    CheckInside(view.memory, address, type, Accessed(view, indices));
    const auto offset = static_cast<int64_t>(address - view.memory->address());
    const bool torn =
        thread_ ? thread_->SeesAnything(view.memory, offset, type.Bytes())
                : team_ && view.memory->IsWrittenByAnother(
                               offset, type.Bytes(), static_cast<uint8_t>(rank_ + 1), m_.phase);
    if (torn || !view.memory->IsDefined(offset, type.Bytes())) {
      constexpr std::array<uint8_t, 8> kAnything = {255, 255, 255, 255, 255, 255, 255, 255};
      return Decode(type, kAnything.data());
    }
  }
  return Decode(type, BytesAt(address));
}

void Worker::Write(const View& view, std::span<const int64_t> indices, Lane v) {
  const auto [memory, address] = Locate(view, indices);
  if (copying_) return BeginWrite(memory, address, view.buffer->dtype, v, Accessed(view, indices));
  WriteAt(memory, address, view.buffer->dtype, v, Accessed(view, indices));
}

Indices Worker::IndicesOf(const std::vector<Expr>& indices) {
  Indices out(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) out[i] = EvalInt(indices[i]);
  return out;
}

LaneIndices Worker::LaneIndicesOf(const std::vector<Expr>& indices) {
  std::vector<Value> values;
  values.reserve(indices.size());
  for (const Expr& e : indices) values.push_back(Eval(e));
  return LaneIndices(std::move(values));
}

Lane Worker::LoadScalar(const Load& n) {
  const bool touched = !n.mask || EvalBool(n.mask);
  const Indices indices = IndicesOf(n.indices);
  const View& view = ViewOf(n.buffer);
  return touched ? Read(view, indices) : ZeroLane(n.dtype);
}

Value Worker::LoadVector(const Load& n) {
  const size_t lanes = LanesOf(n.dtype);
  Value mask;
  if (n.mask) mask = Eval(n.mask);
  LaneIndices indices = LaneIndicesOf(n.indices);
  const View& view = ViewOf(n.buffer);
  Value out{n.dtype, {}, {}};
  out.lanes.reserve(lanes);
  for (size_t i = 0; i < lanes; ++i) {
    const bool touched = (!n.mask || mask.at(i).i != 0) && Active(i);
    out.lanes.push_back(touched ? ReadLane(view, indices.At(i)) : ZeroLane(n.dtype));
  }
  out.first = out.lanes[0];
  return out;
}

// A scalar value stored at vector indices goes to every lane; lanes are written in order.
void Worker::ExecStore(const Store& n) {
  const bool scalar =
      n.value->dtype.IsScalar() && std::all_of(n.indices.begin(), n.indices.end(),
                                               [](const Expr& e) { return e->dtype.IsScalar(); });
  if (scalar) {
    const Lane value = EvalScalar(n.value);
    const bool touched = !n.mask || EvalBool(n.mask);
    const Indices indices = IndicesOf(n.indices);
    const View& view = ViewOf(n.buffer);
    if (touched) Write(view, indices, value);
    return;
  }
  Value value = Eval(n.value), mask;
  if (n.mask) mask = Eval(n.mask);
  size_t lanes = LanesOf(n.value->dtype);
  for (const Expr& e : n.indices) lanes = std::max(lanes, LanesOf(e->dtype));
  LaneIndices indices = LaneIndicesOf(n.indices);
  const View& view = ViewOf(n.buffer);
  for (size_t i = 0; i < lanes; ++i) {
    if (!n.mask || mask.at(i).i != 0) Write(view, indices.At(i), value.at(i));
  }
}

// Between its read and its write nobody else runs.
void Worker::ExecAtomic(const Atomic& n) {
  const Lane operand = EvalScalar(n.value);
  const Indices indices = IndicesOf(n.indices);
  const View& view = ViewOf(n.buffer);
  const Accessed what(view, indices);
  auto address = view.address + static_cast<uintptr_t>(Offset(view, indices, /*check=*/true));
  const DType type = n.buffer->dtype;
  Lane old = ReadAt(view.memory, address, type, what, AccessKind::kAtomic);
  std::optional<Lane> sum = Apply(n.op, type, old, operand);
  if (!sum) Fail("atomic on " + what.ToString() + ": overflow");
  if (view.memory) CheckInside(view.memory, address, type, what);
  Encode(type.Element(), *sum, BytesAt(address));
}

}  // namespace tenon::interp
