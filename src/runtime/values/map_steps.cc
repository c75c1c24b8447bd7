// Steps on maps: a map is a sequence of two vectors, its keys and its values. Keys are integers of
// 64 bits, since strings are numbers.
#include "runtime/values/steps.h"

namespace tenon::runtime {
namespace {

/// A map as a step reads it. Valid while the value is.
struct MapView {
  const tn_dl_tensor *keys = nullptr, *values = nullptr;

  int32_t Read(const Value& value) {
    const tn_ffi_array* pair = value.array();
    if (pair && pair->size == 2) {
      keys = Value::TensorOf(pair->data[0]);
      values = Value::TensorOf(pair->data[1]);
    }
    return keys && values ? 0 : Fail("ValueError", "expected a map, but there is none");
  }
  int64_t size() const { return keys->shape[0]; }
  const int64_t* key() const { return DataOf<int64_t>(*keys); }
};

/// Where keys are: open addressing over twice as many entries. Of equal keys the last one.
class Places {
 public:
  int32_t Fill(const int64_t* keys, int64_t n) {
    keys_ = keys;
    int64_t size = 4;
    while (size < 2 * n) size *= 2;
    if (!table_.Resize(size)) return OutOfMemory();
    for (int64_t i = 0; i < n; ++i) table_[Slot(keys[i])] = i + 1;
    return 0;
  }
  /// -1 where there is none.
  int64_t Find(int64_t key) const { return table_[Slot(key)] - 1; }

 private:
  // The entry of a key, or the free one where it would be.
  int64_t Slot(int64_t key) const {
    const auto mask = static_cast<uint64_t>(table_.size() - 1);
    uint64_t at = ((static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15U) >> 20U) & mask;
    while (table_[static_cast<int64_t>(at)] != 0 &&
           keys_[table_[static_cast<int64_t>(at)] - 1] != key)
      at = (at + 1) & mask;
    return static_cast<int64_t>(at);
  }

  const int64_t* keys_ = nullptr;
  List<int64_t> table_;  // a place + 1, or 0
};

// A row of n values of `like`'s type.
int32_t MakeRow(const tn_dl_tensor& like, int64_t n, Value* out, void** data) {
  const int64_t shape[] = {1, n};
  return MakeTensor(like.dtype, 2, shape, out, data);
}

void CopyElement(const tn_dl_tensor& from, int64_t at, void* to, int64_t index) {
  const size_t bytes = from.dtype.bits / 8U;
  memcpy(static_cast<unsigned char*>(to) + static_cast<size_t>(index) * bytes,
         DataOf(from) + static_cast<size_t>(at) * bytes, bytes);
}

}  // namespace

int32_t ZipMapStep(const StepArgs& args) {
  const tn_dl_tensor *keys = TensorIn(args, 0), *rows = TensorIn(args, 1);
  if (!keys || !rows) return -1;
  const int64_t columns = rows->ndim > 0 ? rows->shape[rows->ndim - 1] : 1;
  if (rows->ndim > 2 || keys->ndim != 1 || keys->shape[0] != columns)
    return FailWith("ValueError", "expected rows of %lld values, one for each key",
                    static_cast<long long>(CountOf(*keys)));
  const int64_t count = rows->ndim == 2 ? rows->shape[0] : 1;
  List<tn_ffi_any> maps;
  int32_t status = maps.Reserve(count) ? 0 : OutOfMemory();
  for (int64_t i = 0; status == 0 && i < count; ++i) {
    Value row, map;
    void* data = nullptr;
    List<tn_ffi_any> pair;
    status = pair.Reserve(2) ? MakeTensor(rows->dtype, 1, &columns, &row, &data) : OutOfMemory();
    if (status != 0) break;
    const int64_t bytes = columns * rows->dtype.bits / 8;
    if (bytes > 0) memcpy(data, DataOf(*rows) + i * bytes, static_cast<size_t>(bytes));
    pair.Append(args.in[0].Share().Release());
    pair.Append(row.Release());
    status = Finish(0, &pair, &map);
    if (status == 0) maps.Append(map.Release());
  }
  return Finish(status, &maps, &args.out[0]);
}

int32_t MapRowStep(const StepArgs& args) {
  MapView map;
  Places places;
  const tn_dl_tensor *keys = TensorIn(args, 1), *otherwise = nullptr;
  if (!keys || map.Read(args.in[0]) != 0 || places.Fill(map.key(), map.size()) != 0) return -1;
  if (args.Has(2)) otherwise = args.in[2].tensor();
  const int64_t n = CountOf(*keys);
  void* data = nullptr;
  if (MakeRow(*map.values, n, &args.out[0], &data) != 0) return -1;
  memset(data, 0, static_cast<size_t>(n) * map.values->dtype.bits / 8U);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = places.Find(DataOf<int64_t>(*keys)[i]);
    if (at >= 0)
      CopyElement(*map.values, at, data, i);
    else if (otherwise)
      CopyElement(*otherwise, 0, data, i);
  }
  return 0;
}

int32_t MapValuesStep(const StepArgs& args) {
  MapView map;
  if (map.Read(args.in[0]) != 0) return -1;
  List<int64_t> order;
  const int64_t* keys = map.key();
  if (SortedPlaces(
          map.size(), [&](int64_t a, int64_t b) { return keys[a] < keys[b]; }, &order) != 0)
    return -1;
  void* data = nullptr;
  if (MakeRow(*map.values, map.size(), &args.out[0], &data) != 0) return -1;
  for (int64_t i = 0; i < map.size(); ++i) CopyElement(*map.values, order[i], data, i);
  return 0;
}

}  // namespace tenon::runtime
