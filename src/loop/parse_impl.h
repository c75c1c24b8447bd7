// The recursive descent behind loop/parse.h; functions in parse.cc, statements in parse_stmt.cc.
#pragma once

#include <fmt/format.h>

#include <functional>

#include "ir/parse_core.h"
#include "loop/func.h"
#include "support/strings.h"

namespace tenon {

class LoopParser final : public TextParser {
 public:
  using TextParser::TextParser;
  Expected<Module> WholeModule();

 private:
  /// A statement, or what wraps the rest of its list (let, alloc, bind).
  struct Item {
    Stmt stmt;
    std::function<Stmt(Stmt)> wrap;
  };
  struct Domain {
    Expr min, extent;
  };

  // ---- functions ----
  void TakeModuleItem(Module* module);
  Func TakeFunc();
  void TakeDims(PrimFunc* f);
  void TakeDimRange(DimRange* range);
  void TakeParams(PrimFunc* f);
  bool SkipBufferParam();
  std::string TakeFuncName();
  TargetRef TakeTarget();

  // ---- lists of statements ----
  Stmt TakeBody(std::string_view where);
  Stmt TakeStatements();
  Item TakeStatement();
  void EndStatement();
  void SkipStatement(const Token& start);
  static Stmt Fold(std::vector<Item> items);

  // ---- statements; the word that starts them is still there ----
  Item TakeLet();
  Item TakeAlloc();
  Item TakeBind();
  Item Scoped(const Token& at, const std::string& name, const NodeRef& node,
              std::function<Stmt(Stmt)> wrap);
  Stmt TakeFor();
  Stmt TakeIf();
  Stmt TakeWhile();
  Stmt TakeStore();
  Stmt TakeBlock();
  Stmt TakeEvaluate();
  Stmt TakeCall();
  Stmt TakeLaunch();
  Stmt TakeCopy();
  Stmt TakeAssert();
  Stmt TakeReturn();
  Stmt TakeSync();
  Stmt TakeArrive() { return TakeBarrier(BarrierOp::kArrive); }
  Stmt TakeExpect() { return TakeBarrier(BarrierOp::kExpect); }
  Stmt TakeWait() { return TakeBarrier(BarrierOp::kWait); }
  Stmt TakeBarrier(BarrierOp op);
  Stmt TakeRoles();
  Stmt TakeAtomic();
  IterVar TakeIter();
  void TakeBlockFlags(Block* block);
  std::vector<Region> TakeRegions();
  void TakeArguments(std::vector<Region>* buffers, std::vector<Expr>* scalars);
  Expr TakeStored(const Access& access);

  /// One of the names of an enum, the last of which is `last`.
  template <class E>
  E TakeEnum(std::string_view what, E last) {
    std::vector<std::string> names;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      names.push_back(Name(static_cast<E>(i)));
      if (Accept(names.back())) return static_cast<E>(i);
    }
    FailExpected(fmt::format("{}: one of {}", what, Join(names, ", ")));
  }

  std::unordered_map<const Node*, Domain> loops_;  // of all loops read so far
  int wraps_ = 0;                                  // lets, allocs and binds around this place
};

}  // namespace tenon
