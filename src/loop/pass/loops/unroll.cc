#include "loop/pass/loops/unroll.h"

#include <fmt/format.h>

#include "loop/rewrite.h"

namespace tenon {

namespace {

class LoopUnroller final : public ScopedRewriter {
 public:
  LoopUnroller(const Func& func, const PassContext& context)
      : func_(*func), context_(context), names_(*func), stmts_(CountStmts(func->body)) {
    Learn(*func, &analyzer_);
  }

 private:
  Stmt VisitStmt(const Stmt& stmt) override {
    const auto* loop = As<For>(stmt);
    if (!loop || loop->for_kind != ForKind::kUnrolled) return Children(stmt);
    Stmt body = VisitStmt(loop->body);
    if (!body) return nullptr;
    auto extent = AsInt(loop->extent);
    if (!extent) return KeepSerial(*loop, body, "its extent is not constant");
    if (*extent <= 0) return nullptr;
    int64_t more = (*extent - 1) * CountStmts(body);
    if (*extent > context_.max_unrolled_stmts || stmts_ + more > context_.max_unrolled_stmts) {
      return KeepSerial(*loop, body, fmt::format("{} statements", stmts_ + more));
    }
    stmts_ += more;
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      VarMap value{{loop->var.get(), loop->min + i}};
      copies.push_back(i == 0 ? Substitute(body, value) : FreshCopy(body, value, &names_));
    }
    return Seq::Make(std::move(copies));
  }

  Stmt KeepSerial(const For& loop, const Stmt& body, const std::string& why) {
    context_.Remark(
        fmt::format("{}: loop {} is not unrolled: {}", func_.name, loop.var->name, why));
    return For::Make(loop.var, loop.min, loop.extent, ForKind::kSerial, body, loop.attrs);
  }

  const PrimFunc& func_;
  const PassContext& context_;
  NameSupply names_;
  int64_t stmts_;
};

}  // namespace

Module Unroll(const Module& module, const PassContext& context) {
  return MapFuncs(module, [&](const Func& func) {
    return WithBody(func, LoopUnroller(func, context).Rewrite(func->body));
  });
}

}  // namespace tenon
