// Models that must be refused, and the words of the refusal.
#pragma once

#include <gtest/gtest.h>

#include "model_builder.h"

#define EXPECT_SAYS(model, words) \
  EXPECT_NE(Errors(model).find(words), std::string::npos) << "errors:\n" << Errors(model)

namespace tenon::onnx::test {

/// y = op(x0, x1, …), its inputs of these dims.
inline Model One(const std::string& op, const std::vector<std::vector<DimText>>& inputs,
                 const std::vector<std::string>& attrs = {}) {
  Model m;
  std::vector<std::string> names;
  for (const std::vector<DimText>& dims : inputs) {
    names.push_back("x" + std::to_string(names.size()));
    m.Input(names.back(), dims);
  }
  m.Node(op, names, {"y"}, attrs).Output("y");
  return m;
}

}  // namespace tenon::onnx::test
