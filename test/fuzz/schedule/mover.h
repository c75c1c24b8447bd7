// One random move: a primitive, or several that belong together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dependence/body.h"
#include "fuzz/schedule/moves.h"
#include "schedule/run.h"

namespace tenon::fuzz {

class Mover {
 public:
  /// Looks at the schedule's state now; all of them outlive the mover.
  Mover(Schedule* schedule, Random& random, const MoveOptions& options, Counts* counts);
  /// There is a loop and a block to work on.
  bool CanMove() const { return !loops_.empty() && !blocks_.empty(); }
  /// More moves would take long.
  bool IsLarge() const { return loops_.size() > 40; }
  /// A random row of the table below.
  void Move();
  /// The last step that was refused.
  const TraceStep& last_refused() const { return last_refused_; }
  /// Is there a row of that name?
  static bool HasMove(const std::string& primitive);

  // ---- For the rows of the table ----
  Random& random() { return random_; }
  const MoveOptions& options() const { return options_; }
  int64_t Number(int64_t lo, int64_t hi) { return Between(random_, lo, hi); }
  bool Sometimes(int64_t of) { return Chance(random_, of); }

  /// Any one; now and then the name of nothing.
  std::string Loop();
  std::string Block();
  std::string Buffer();
  std::string Scope();
  /// A loop around the block; any one where there is none.
  std::string LoopOf(const std::string& block);
  /// A loop around the block that its reduction runs over, if there is one.
  std::string ReduceLoopOf(const std::string& block);
  std::vector<std::string> LoopsOf(const std::string& block) const;
  /// A buffer that the block touches.
  std::string BufferOf(const std::string& block);
  /// A thread axis that the options allow, or one that there is none of.
  std::string Axis();
  /// Binds one of the loops around the block, or a part of it; the state after this move's steps is
  /// looked at.
  void BindLoopOf(const std::string& block);
  /// The first buffer that the block writes, after this move's steps; "" where there is none.
  std::string WrittenBy(const std::string& block);
  /// A block that reads what `block` writes, or the other way round; any one where there is none.
  std::string Neighbour(const std::string& block, bool reader);
  /// Up to `most` of the loops around the block, in their order or in any.
  std::vector<std::string> SomeLoopsOf(const std::string& block, size_t most, bool in_order);
  /// The text of a map of `rank` coordinates onto as many or more.
  std::string Map(size_t rank);
  size_t RankOf(const std::string& buffer) const;
  /// An intrinsic that the module describes, and how many loops its nest has; 0: there is none.
  std::pair<std::string, size_t> Intrinsic();
  /// A condition over the function's dims, where it has any.
  std::string Condition();

  struct Done {
    bool ok = false;
    std::vector<std::string> results;
  };
  /// The step, a choice with what it chooses; its results where it is legal.
  Done Try(const std::string& primitive, primitive::Args args,
           std::vector<std::string> chosen = {});

 private:
  Schedule* schedule_;
  Random& random_;
  MoveOptions options_;
  Counts* counts_;
  Body body_;
  std::vector<std::string> loops_, blocks_, buffers_;
  TraceStep last_refused_;
};

}  // namespace tenon::fuzz
