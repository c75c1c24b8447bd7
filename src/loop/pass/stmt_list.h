// Statements in order, some of which bind a variable for all that follow.
#pragma once

#include <functional>
#include <vector>

#include "loop/stmt.h"

namespace tenon {

class StmtList {
 public:
  void Add(Stmt stmt) { frames_.back().stmts.push_back(std::move(stmt)); }
  /// What follows stands inside: `wrap` makes the statement from its body.
  void Open(std::function<Stmt(Stmt)> wrap) { frames_.push_back({std::move(wrap), {}}); }
  /// let name = value
  Var Define(const std::string& name, Expr value) {
    Var var = VarNode::Make(name, value->dtype);
    Open([=](Stmt body) { return Let::Make(var, value, std::move(body)); });
    return var;
  }
  /// All of it as one statement; the list is empty afterwards.
  Stmt Close() {
    Stmt body;
    while (!frames_.empty()) {
      Frame frame = std::move(frames_.back());
      frames_.pop_back();
      if (body) frame.stmts.push_back(std::move(body));
      body = Seq::Make(std::move(frame.stmts));
      if (frame.wrap) body = frame.wrap(std::move(body));
    }
    frames_.push_back({});
    return body;
  }

 private:
  struct Frame {
    std::function<Stmt(Stmt)> wrap;
    std::vector<Stmt> stmts;
  };
  std::vector<Frame> frames_ = std::vector<Frame>(1);
};

}  // namespace tenon
