// Expressions as text: none crashes; what parses prints to a text that reads back equal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ir/parse.h"
#include "ir/print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  static const std::vector<NodeRef> scope = {
      VarNode::Make("i"),
      VarNode::Make("x", DType::Float(32)),
      VarNode::Make("s", DType::Int(8)),
      VarNode::Make("p", DType::Bool()),
      VarNode::Make("h", DType::Handle()),
      VarNode::Make("v", DType::Float(32).WithLanes(4, true)),
      BufferNode::Make("A", DType::Float(16), {IndexConst(8), IndexConst(4)}),
      BufferNode::Make("Z", DType::UInt(64), {})};
  const auto e = ParseExpr({reinterpret_cast<const char*>(data), size}, scope);
  if (!e) return 0;
  const std::string text = ToString(*e);
  const auto again = ParseExpr(text, scope);
  if (!again || ToString(*again) != text || !StructuralEqual(*e, *again)) abort();
  return 0;
}
