#include "codegen/array_size.h"

#include <fmt/format.h>

#include "ir/print.h"
#include "support/strings.h"

namespace tenon::codegen {

std::optional<int64_t> ArrayElements(const Buffer& buffer) {
  int64_t elements = 1, bytes = 0;
  for (const Expr& extent : buffer->shape) {
    const auto n = AsInt(extent);
    if (!n || __builtin_mul_overflow(elements, *n, &elements)) return std::nullopt;
  }
  if (__builtin_mul_overflow(elements, buffer->dtype.Bytes(), &bytes) || bytes > kMaxArrayBytes)
    return std::nullopt;
  return elements;
}

std::string WhyNoArray(const Buffer& buffer) {
  for (const Expr& extent : buffer->shape) {
    if (AsInt(extent)) continue;
    return fmt::format(
        "buffer '{}' in {} has the size {}, which is not constant: memory of a thread or a block "
        "has a fixed size; split the loops by constants and compute_at the inner ones, or keep it "
        "in global",
        buffer->name, Name(buffer->scope), ToString(NodeRef(extent)));
  }
  std::vector<std::string> dims;
  for (const Expr& extent : buffer->shape) dims.push_back(ToString(NodeRef(extent)));
  return fmt::format(
      "buffer '{}' in {}, {}[{}], has more than {} KiB: expected a tile of it, by compute_at in an "
      "inner loop, or global",
      buffer->name, Name(buffer->scope), buffer->dtype.ToString(), Join(dims, ", "),
      kMaxArrayBytes / 1024);
}

}  // namespace tenon::codegen
