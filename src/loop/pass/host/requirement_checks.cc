// What an exported function requires of its sizes and numbers, as checks.
#include <fmt/format.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "loop/pass/host/argument_checks.h"
#include "loop/requirements.h"
#include "support/check.h"

namespace tenon {

using namespace packed;  // NOLINT(google-build-using-namespace): its words, in a file made of them

namespace {

// "n + 2=" and its value; of a constant, its value.
void AddNamed(const Expr& value, std::vector<Expr>* parts) {
  if (AsInt(value)) return parts->push_back(Text(ToString(value)));
  parts->push_back(Text(ToString(value) + "="));
  parts->push_back(value);
}

std::vector<Expr> ValuesOf(const Requirement& r) {
  std::vector<Expr> parts;
  if (r.holds->op == BinaryOp::kNe) {
    parts.push_back(Text("Division by zero: " + r.what + " at "));
    AddNamed(r.holds->lhs, &parts);
    return parts;
  }
  parts.push_back(Text("Index out of range: " + r.what + " takes the value "));
  if (r.holds->op == BinaryOp::kLe) {
    AddNamed(r.holds->rhs, &parts);
    return parts;
  }
  AddNamed(r.holds->lhs, &parts);
  parts.push_back(Text(", but the dim has "));
  AddNamed(r.holds->rhs, &parts);
  parts.push_back(Text(" elements"));
  return parts;
}

std::vector<Expr> MessageOf(const Requirement& r) {
  std::vector<Expr> parts = ValuesOf(r);
  for (const Requirement::Loop& l : r.every) {
    parts.push_back(Text(" at " + l.var->name + "="));
    parts.push_back(l.var);
  }
  return parts;
}

bool Uses(const Requirement& r, const VarNode* var) {
  bool used = UsesVar(r.holds, var) || (r.when && UsesVar(r.when, var));
  for (const Requirement::Loop& l : r.every) used |= UsesVar(l.min, var) || UsesVar(l.end, var);
  return used;
}

}  // namespace

void ArgumentChecker::CheckRequirements(StmtList* list) {
  const std::vector<Requirement> needs = Requirement::Parse(func_);
  for (size_t i = 0; i < func_.scalars.size(); ++i) {
    const Var& scalar = func_.scalars[i];
    const bool used = std::any_of(needs.begin(), needs.end(),
                                  [&](const Requirement& r) { return Uses(r, scalar.get()); });
    if (!used) continue;
    const size_t slot = func_.buffers.size() + func_.dims.size() + i;
    Expr value = LoadAt(scalar->dtype, closure_, static_cast<int64_t>(slot) * kSlotBytes);
    list->Open([scalar, value](Stmt body) { return Let::Make(scalar, value, std::move(body)); });
  }
  Require(list);
}

// "Expected batch * rows % 4 == 0 but got batch=3, rows=5".
void ArgumentChecker::RequireConditions(StmtList* list) const {
  const std::vector<NodeRef> scope(func_.dims.begin(), func_.dims.end());
  const auto conditions = func_.attrs.Get<std::vector<std::string>>(kConditionsAttr, {});
  for (size_t i = 0; i < conditions.size(); ++i) {
    const std::string& text = conditions[i];
    auto holds = ParseExpr(text, scope);
    TN_CHECK(holds, "condition '{}' of {}: {}", text, func_.name, ToString(holds.errors()));
    std::vector<Expr> parts = {Text("Expected " + text + " but got")};
    for (const Var& dim : func_.dims) {
      if (!UsesVar(*holds, dim.get())) continue;
      parts.push_back(Text(fmt::format("{}{}=", parts.size() > 1 ? ", " : " ", dim->name)));
      parts.push_back(dim);
    }
    AddAsker(kConditionAskersAttr, i, &parts);
    list->Add(Fail(*holds, "ValueError", std::move(parts)));
  }
}

void ArgumentChecker::Require(StmtList* list) {
  RequireConditions(list);
  Analyzer known;
  for (size_t i = 0; i < func_.dims.size(); ++i) {
    const DimRange range = func_.dim_range(i);
    known.BindInterval(func_.dims[i], {range.lo, range.hi < 0 ? Interval::kPosInf : range.hi});
  }
  for (const Requirement& r : Requirement::Parse(func_)) {
    Expr holds = r.holds;
    if (r.when) holds = Or(Not(r.when), holds);
    holds = known.Simplify(holds);
    if (AsInt(holds) == 1) continue;
    Stmt check = Fail(holds, "ValueError", MessageOf(r));
    for (auto l = r.every.rbegin(); l != r.every.rend(); ++l) {
      check = For::Make(l->var, l->min, known.Simplify(l->end - l->min), ForKind::kSerial, check);
    }
    list->Add(check);
  }
}

}  // namespace tenon
