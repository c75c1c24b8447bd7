#include "loop/verify.h"

#include <unordered_set>

#include "loop/verify_impl.h"

namespace tenon {

namespace {

constexpr size_t kMaxErrors = 20;

class NodeLister final : public ChildVisitor {
 public:
  explicit NodeLister(std::vector<NodeRef>* out) : out_(*out) {}
  void VisitChild(const NodeRef& child, FieldRole) override {
    if (!child->IsUnique() && !seen_.insert(child.get()).second) return;
    out_.push_back(child);
    child->VisitChildren(*this);
  }

 private:
  std::vector<NodeRef>& out_;
  std::unordered_set<const Node*> seen_;
};

struct RuleEntry {
  VerifyRule rule;
  void (*check)(const VerifyContext&);
};

constexpr RuleEntry kRules[] = {
#define TN_VERIFY_RULE(function, name, stage, doc) {{#name, Stage::stage, doc}, function},
#include "loop/verify_rules.def"
#undef TN_VERIFY_RULE
};

}  // namespace

VerifyContext::VerifyContext(const Module& module, const Func& func, Diagnostics* errors)
    : module(module), func(*func), root(func), errors_(errors) {
  NodeLister(&nodes_).VisitChild(root, FieldRole::kChild);
}

void VerifyContext::ForEach(const std::function<void(const NodeRef&)>& visit) const {
  for (const NodeRef& node : nodes_) visit(node);
}

std::string Describe(const NodeRef& node) {
  if (const auto* s = As<For>(node)) return fmt::format("loop '{}'", s->var->name);
  if (const auto* s = As<Block>(node)) return fmt::format("block '{}'", s->name);
  if (const auto* s = As<Let>(node)) return fmt::format("let '{}'", s->var->name);
  if (const auto* s = As<Alloc>(node)) return fmt::format("alloc '{}'", s->buffer->name);
  if (const auto* s = As<Bind>(node)) return fmt::format("bind '{}'", s->buffer->name);
  if (const auto* s = As<Store>(node)) return fmt::format("store to '{}'", s->buffer->name);
  if (const auto* s = As<Atomic>(node)) return fmt::format("atomic on '{}'", s->buffer->name);
  if (const auto* s = As<CallFunc>(node)) return fmt::format("call of '{}'", s->callee);
  if (const auto* s = As<Launch>(node)) return fmt::format("launch of '{}'", s->kernel);
  std::string name = Name(node->kind);
  name[0] = static_cast<char>(name[0] | 0x20);
  return name;
}

const std::vector<VerifyRule>& VerifyRules() {
  static const std::vector<VerifyRule> rules = [] {
    std::vector<VerifyRule> list;
    for (const RuleEntry& entry : kRules) list.push_back(entry.rule);
    return list;
  }();
  return rules;
}

Status Verify(const Module& module, Stage stage) {
  Diagnostics errors;
  for (const auto& [name, func] : module.funcs) {
    const VerifyContext context(module, func, &errors);
    for (const RuleEntry& entry : kRules) {
      if (entry.rule.stage == Stage::kLowered && stage != Stage::kLowered) continue;
      const size_t before = errors.size();
      entry.check(context);
      // Later rules lean on earlier ones: one broken rule of a function is enough.
      if (errors.size() > before) break;
    }
    if (errors.size() >= kMaxErrors) break;
  }
  if (errors.empty()) return Ok();
  if (errors.size() > kMaxErrors) errors.resize(kMaxErrors);
  return errors;
}

}  // namespace tenon
