// The table of importers: the families' rows, found by name and version.
#include <cstdint>
#include <unordered_map>

#include "frontend/onnx/import.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/ops_oldest.h"

namespace tenon::onnx {

std::span<const std::span<const OpRow>> AllRows() {
  static const std::span<const OpRow> kFamilies[] = {
      AttentionRows(),    ComputeRows(),       ContribRows(),         ContribAttentionRows(),
      ContribBlockRows(), ContribExpertRows(), ContribQuantizeRows(), ControlRows(),
      ElementwiseRows(),  IndexRows(),         IntegerRows(),         MathRows(),
      MlRows(),           MovementRows(),      NormalizationRows(),   QuantizeRows(),
      RandomRows(),       RecurrentRows(),     ReduceRows(),          RegionRows(),
      ResizeRows(),       SamplingRows(),      ScatterRows(),         SignalRows(),
      TrainingRows(),     WindowRows(),        OldestRows()};
  return kFamilies;
}

const OpRow* FindRow(std::string_view domain, std::string_view op_type, int64_t opset) {
  static const auto* kByName = [] {
    auto* map = new std::unordered_map<std::string_view, std::vector<const OpRow*>>();
    for (std::span<const OpRow> family : AllRows()) {
      for (const OpRow& row : family) (*map)[row.name].push_back(&row);
    }
    return map;
  }();
  auto it = kByName->find(op_type);
  if (it == kByName->end()) return nullptr;
  const auto newest_until = [&](int64_t set) {
    const OpRow* best = nullptr;
    for (const OpRow* row : it->second) {
      const bool fits = domain == row->domain && row->since <= set;
      if (fits && (!best || row->since > best->since)) best = row;
    }
    return best;
  };
  if (!domain.empty()) return newest_until(INT64_MAX);
  // Before set 6 most operators were what they are there, but for `consumed_inputs`; those that
  // were not have rows of their own.
  const OpRow* row = newest_until(opset);
  return row ? row : newest_until(6);
}

}  // namespace tenon::onnx
