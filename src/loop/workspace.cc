#include "loop/workspace.h"

#include <algorithm>

#include "arith/analyzer.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon {

namespace {

void Set(const Expr& bytes, const char* constant, const char* text, PrimFunc* kernel) {
  kernel->attrs.Set(constant, AsInt(bytes).value_or(0));
  if (!AsInt(bytes)) kernel->attrs.Set(text, ToString(bytes));
}

Expr Parsed(const PrimFunc& func, const char* text) {
  auto e = ParseExpr(func.attrs.GetString(text), {func.dims.begin(), func.dims.end()});
  TN_CHECK(e, "{} of {}: {}", text, func.name, ToString(e.errors()));
  return *e;
}

Expr Get(const PrimFunc& kernel, const char* constant, const char* text) {
  if (!kernel.attrs.Has(text)) return IndexConst(kernel.attrs.GetInt(constant));
  return Parsed(kernel, text);
}

}  // namespace

void SetWorkspace(const Expr& shared, const Expr& per_worker, PrimFunc* kernel) {
  Set(shared, kWorkspaceBytes, kWorkspaceSize, kernel);
  Set(per_worker, kScratchBytes, kScratchSize, kernel);
}

Expr WorkspaceOf(const PrimFunc& kernel, int64_t team_size) {
  return Simplify(Get(kernel, kWorkspaceBytes, kWorkspaceSize) +
                  Get(kernel, kScratchBytes, kScratchSize) * IndexConst(team_size));
}

void SetTeamWidth(const Expr& width, PrimFunc* func) {
  if (!AsInt(width)) func->attrs.Set(kTeamWidth, ToString(width));
}

Expr TeamWidthOf(const PrimFunc& func) {
  return func.attrs.Has(kTeamWidth) ? Parsed(func, kTeamWidth) : nullptr;
}

bool IsOfDims(const Expr& e, const PrimFunc& func) {
  bool known = true;
  PreOrder(e, [&](const NodeRef& n) {
    auto is = [&](const Var& dim) { return dim.get() == n.get(); };
    const bool other = IsA<VarNode>(n) && std::none_of(func.dims.begin(), func.dims.end(), is);
    known &= !other && !IsA<Load>(n);
    return known;
  });
  return known;
}

Expr ElementsOfOpenSize(std::span<const Region> args) {
  Expr all = IndexConst(0);
  for (const Region& r : args) {
    Expr count = IndexConst(1);
    for (const Range& range : r->ranges) count = count * range->extent;
    if (!AsInt(Simplify(count))) all = all + count;
  }
  return all;
}

}  // namespace tenon
