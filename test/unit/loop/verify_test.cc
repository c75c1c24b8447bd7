// What no text can say (texts are well scoped); the rest of the rules has a case each in
// test/text/loop/verify.
#include "loop/verify.h"

#include <gtest/gtest.h>

#include "loop/parse.h"

namespace tenon {
namespace {

const Buffer kBuffer = BufferNode::Make("A", DType::Index(), {IndexConst(8)});

std::string Errors(Stmt body, std::vector<Buffer> buffers = {kBuffer}) {
  PrimFunc f;
  f.name = "f";
  f.num_outputs = static_cast<int64_t>(buffers.size());
  f.buffers = std::move(buffers);
  f.body = std::move(body);
  Module m;
  m.Add(PrimFunc::Make(f));
  Status ok = Verify(m, Stage::kSchedulable);
  return ok ? "" : ToString(ok.errors());
}

Stmt Set(const Expr& i) { return Store::Make(kBuffer, {i}, i); }
Stmt Loop(const Var& v, Stmt body) {
  return For::Make(v, IndexConst(0), IndexConst(8), ForKind::kSerial, std::move(body));
}

TEST(Verify, UsesNeedADefinitionAround) {
  Var i = VarNode::Make("i");
  EXPECT_EQ(Errors(Loop(i, Set(i))), "");
  EXPECT_EQ(Errors(Seq::Make({Loop(i, Set(i)), Set(i)})),
            "@f: error: the variable 'i' is used where it is not defined\n");
  EXPECT_EQ(Errors(Set(IndexConst(0)), {}),
            "@f: error: the buffer 'A' is used where it is not defined\n");
  // The bounds of a loop do not see its variable.
  EXPECT_EQ(Errors(For::Make(i, i, IndexConst(8), ForKind::kSerial, Set(i))),
            "@f: error: the variable 'i' is used where it is not defined\n");
}

TEST(Verify, NothingIsBoundTwice) {
  Var i = VarNode::Make("i");
  EXPECT_EQ(Errors(Seq::Make({Loop(i, Set(i)), Loop(i, Set(i))})),
            "@f: error: 'i' is bound twice\n");
  EXPECT_EQ(Errors(Set(IndexConst(0)), {kBuffer, kBuffer}), "@f: error: 'A' is bound twice\n");
}

TEST(Verify, BuffersMayShareALayout) {
  Var i = VarNode::Make("i");
  Layout layout = LayoutNode::Make({i}, {i / 4, i % 4});
  auto buffer = [&](const char* name) {
    return BufferNode::Make(name, DType::Index(), {IndexConst(8)}, Scope::kGlobal, layout);
  };
  EXPECT_EQ(Errors(Set(IndexConst(0)), {kBuffer, buffer("B"), buffer("C")}), "");
}

// Nests what Seq::Make would flatten, as a rewriter of children can.
class Nester final : public ChildMapper {
 public:
  NodeRef MapChild(const NodeRef& child, FieldRole) override {
    return child->kind == NodeKind::kStore
               ? NodeRef(Seq::Make({Set(IndexConst(1)), Set(IndexConst(2))}))
               : child;
  }
};

TEST(Verify, ListsAreFlat) {
  Nester nester;
  NodeRef nested = Seq::Make({Set(IndexConst(0)), Return::Make()})->MapChildren(nester);
  EXPECT_EQ(Errors(Stmt(static_cast<const StmtNode*>(nested.get()))),
            "@f: error: a list of statements inside a list\n");
}

TEST(Verify, AtMostTwentyErrors) {
  std::string text = "func @f(out A: f32[1]) {";
  for (int i = 0; i < 50; ++i) text += "\nlet x" + std::to_string(i) + " = -true";
  auto module = ParseModule(text + "\n}");
  ASSERT_TRUE(module);
  EXPECT_EQ(Verify(*module, Stage::kSchedulable).errors().size(), 20u);
}

TEST(Verify, RulesAreNamedAndExplained) {
  EXPECT_GT(VerifyRules().size(), 10u);
  for (const VerifyRule& rule : VerifyRules()) EXPECT_NE(std::string(rule.doc), "") << rule.name;
}

}  // namespace
}  // namespace tenon
