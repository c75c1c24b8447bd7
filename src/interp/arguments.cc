#include "interp/arguments.h"

#include <fmt/format.h>

#include "arith/analyzer.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/workspace.h"

namespace tenon {

Expected<std::vector<int64_t>> ExtentsOf(const PrimFunc& func, const Buffer& buffer,
                                         const DimValues& dims) {
  VarMap values;
  for (const Var& v : func.dims) {
    auto it = dims.find(v->name);
    if (it != dims.end()) values[v.get()] = IndexConst(it->second);
  }
  std::vector<int64_t> out;
  for (const Expr& extent : buffer->shape) {
    std::optional<int64_t> value = AsInt(Simplify(Substitute(extent, values)));
    if (!value || *value < 0) {
      return MakeError(fmt::format(
          "'{}' has the extent {}, which {}", buffer->name, ToString(extent),
          value ? fmt::format("is {} here", *value) : "depends on a dim without a value"));
    }
    out.push_back(*value);
  }
  return out;
}

int64_t WorkspaceBytes(const PrimFunc& kernel, const DimValues& dims, int team_size) {
  VarMap values;
  for (const Var& v : kernel.dims) {
    auto it = dims.find(v->name);
    values[v.get()] = IndexConst(it == dims.end() ? 0 : it->second);
  }
  return AsInt(Simplify(Substitute(WorkspaceOf(kernel, team_size), values))).value_or(0);
}

InterpArg SmallIntegers(DType dtype, const std::vector<int64_t>& shape, std::mt19937& random) {
  InterpArg sized = InterpArg::Output(dtype, shape);
  std::vector<double> values(static_cast<size_t>(sized.num_elements()));
  for (double& v : values) {
    // Not a distribution: those differ between standard libraries. The low bits are the poorer
    // ones.
    auto bits = static_cast<int64_t>(random() >> 8);
    v = dtype.IsBool()                  ? static_cast<double>(bits % 2)
        : dtype.code == TypeCode::kUInt ? static_cast<double>(bits % 8)
                                        : static_cast<double>(bits % 9 - 4);
  }
  return InterpArg::Tensor(dtype, shape, values);
}

Expected<std::vector<InterpArg>> SmallIntegerArgs(const PrimFunc& func, const DimValues& dims,
                                                  uint32_t seed, int team_size) {
  std::mt19937 random(seed);
  std::vector<InterpArg> args;
  const size_t inputs = func.buffers.size() - static_cast<size_t>(func.num_outputs);
  for (size_t i = 0; i < func.buffers.size(); ++i) {
    const Buffer& b = func.buffers[i];
    TN_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ExtentsOf(func, b, dims));
    args.push_back(i < inputs ? SmallIntegers(b->dtype, shape, random)
                              : InterpArg::Output(b->dtype, shape));
  }
  for (const Var& v : func.scalars) {
    if (v->dtype.IsHandle()) {
      args.push_back(InterpArg::Memory(WorkspaceBytes(func, dims, team_size) +
                                       func.attrs.GetInt("arena_bytes")));
      continue;
    }
    auto value = static_cast<int64_t>(random() % 4);
    args.push_back(v->dtype.IsFloat() ? InterpArg::Float(static_cast<double>(value))
                                      : InterpArg::Int(value));
  }
  return args;
}

}  // namespace tenon
