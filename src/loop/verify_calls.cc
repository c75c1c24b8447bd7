// Rules about what leaves a function: writes to parameters, calls, effects, returns,
// synchronisation.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "ir/print.h"
#include "loop/threads.h"
#include "loop/verify_impl.h"
#include "support/strings.h"

namespace tenon {

namespace {

struct Arguments {
  const std::string* callee;
  const std::vector<Region>* buffers;
  const std::vector<Expr>* scalars;
};

std::optional<Arguments> AsCall(const NodeRef& node) {
  if (const auto* s = As<CallFunc>(node)) return Arguments{&s->callee, &s->buffers, &s->scalars};
  if (const auto* s = As<Launch>(node)) return Arguments{&s->kernel, &s->buffers, &s->scalars};
  return std::nullopt;
}

// Calls `visit` on every buffer that a statement writes.
void ForEachWrite(const Module& module, const NodeRef& node,
                  const std::function<void(const Buffer&)>& visit) {
  if (const auto* s = As<Store>(node)) visit(s->buffer);
  if (const auto* s = As<Atomic>(node)) visit(s->buffer);
  if (const auto* s = As<Copy>(node)) visit(s->dst->buffer);
  auto call = AsCall(node);
  Func callee = call ? module.Find(*call->callee) : nullptr;
  if (!callee) return;
  const size_t n = std::min(call->buffers->size(), callee->buffers.size());
  for (size_t i = callee->buffers.size() - static_cast<size_t>(callee->num_outputs); i < n; ++i) {
    visit((*call->buffers)[i]->buffer);
  }
}

}  // namespace

void CheckWrites(const VerifyContext& context) {
  const PrimFunc& f = context.func;
  std::unordered_set<const Node*> inputs, reported;
  for (size_t i = 0; i + static_cast<size_t>(f.num_outputs) < f.buffers.size(); ++i) {
    inputs.insert(f.buffers[i].get());
  }
  context.ForEach([&](const NodeRef& node) {
    ForEachWrite(context.module, node, [&](const Buffer& b) {
      const bool is_input = inputs.count(b.get()) != 0;
      if ((!is_input && b->scope != Scope::kConst) || !reported.insert(b.get()).second) return;
      context.Error("{} writes '{}', which is {}", Describe(node), b->name,
                    is_input ? "an input" : "constant");
    });
  });
}

// ---- calls ----

namespace {

void CheckArguments(const VerifyContext& c, const std::string& what, const Arguments& args,
                    const PrimFunc& callee) {
  if (args.buffers->size() != callee.buffers.size()) {
    return c.Error("{}: expected {} buffers but got {}", what, callee.buffers.size(),
                   args.buffers->size());
  }
  for (size_t i = 0; i < args.buffers->size(); ++i) {
    const DType given = (*args.buffers)[i]->buffer->dtype, expected = callee.buffers[i]->dtype;
    if (given == expected) continue;
    c.Error("{}: expected {} for '{}' but got {}", what, expected.ToString(),
            callee.buffers[i]->name, given.ToString());
  }
  std::vector<Var> params = callee.dims;
  params.insert(params.end(), callee.scalars.begin(), callee.scalars.end());
  if (args.scalars->size() != params.size()) {
    return c.Error("{}: expected {} dims and scalars but got {}", what, params.size(),
                   args.scalars->size());
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const DType given = (*args.scalars)[i]->dtype, expected = params[i]->dtype;
    if (given == expected) continue;
    c.Error("{}: expected {} for '{}' but got {}", what, expected.ToString(), params[i]->name,
            given.ToString());
  }
}

// True when calls lead from `from` back to it.
bool IsRecursive(const Module& module, const PrimFunc& from) {
  std::set<std::string> seen;
  std::vector<const PrimFunc*> todo = {&from};
  while (!todo.empty()) {
    const PrimFunc* f = todo.back();
    todo.pop_back();
    bool back = false;
    PreOrder(f->body, [&](const NodeRef& node) {
      if (auto call = AsCall(node)) {
        back |= *call->callee == from.name;
        Func callee = module.Find(*call->callee);
        if (callee && seen.insert(callee->name).second) todo.push_back(callee.get());
      }
      return IsA<StmtNode>(node);
    });
    if (back) return true;
  }
  return false;
}

}  // namespace

void CheckCalls(const VerifyContext& context) {
  bool calls = false;
  context.ForEach([&](const NodeRef& node) {
    auto args = AsCall(node);
    if (!args) return;
    calls = true;
    const std::string what = Describe(node);
    Func callee = context.module.Find(*args->callee);
    if (!callee) return context.Error("{}, which is not in the module", what);
    const auto* launch = As<Launch>(node);
    if (launch && callee->func_kind != FuncKind::kKernel) {
      context.Error("{}: expected a kernel but it is a {} function", what, Name(callee->func_kind));
    }
    if (!launch && callee->func_kind == FuncKind::kPacked) {
      context.Error("{}: a packed function is called from outside only", what);
    }
    CheckArguments(context, what, *args, *callee);
  });
  if (calls && IsRecursive(context.module, context.func))
    context.Error("the function calls itself");
}

void CheckEffects(const VerifyContext& context) {
  std::unordered_set<const Node*> whole, lets;
  context.ForEach([&](const NodeRef& node) {
    if (const auto* s = As<Evaluate>(node)) {
      const auto* call = As<Call>(s->call);
      if (!call || Info(call->intrinsic).purity != Purity::kEffect) {
        context.Error("a statement without effect: {}", ToString(NodeRef(s->call)));
      }
      whole.insert(s->call.get());
    }
    if (const auto* s = As<Let>(node)) lets.insert(s->value.get());
  });
  context.ForEach([&](const NodeRef& node) {
    const auto* call = As<Call>(node);
    if (!call || Info(call->intrinsic).purity != Purity::kEffect || whole.count(call) != 0) return;
    if (call->intrinsic == Intrinsic::kExtern && lets.count(call) != 0) return;
    context.Error("{} inside an expression: expected it as a statement{}",
                  Info(call->intrinsic).text,
                  call->intrinsic == Intrinsic::kExtern ? " or as the value of a let" : "");
  });
}

void CheckReturns(const VerifyContext& context) {
  const FuncKind kind = context.func.func_kind;
  const bool status = kind == FuncKind::kHost || kind == FuncKind::kPacked;
  context.ForEach([&](const NodeRef& node) {
    const auto* s = As<Return>(node);
    if (!s || !s->value) return;
    if (!status) {
      context.Error("a {} function returns nothing but got a value of {}", Name(kind),
                    s->value->dtype.ToString());
    } else if (s->value->dtype != DType::Int(32)) {
      context.Error("return: expected i32 but got {}", s->value->dtype.ToString());
    }
  });
}

// ---- synchronisation ----

namespace {

bool IsAtomicOp(BinaryOp op) {
  static constexpr BinaryOp kOps[] = {BinaryOp::kAdd,    BinaryOp::kMin,   BinaryOp::kMax,
                                      BinaryOp::kBitAnd, BinaryOp::kBitOr, BinaryOp::kBitXor};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

void CheckRoles(const VerifyContext& c, const Roles& roles) {
  std::set<std::string> names;
  for (size_t i = 0; i < roles.names.size(); ++i) {
    const std::string& name = roles.names[i];
    if (!names.insert(name).second) c.Error("two roles are named '{}'", name);
    if (roles.sizes[i] < 1)
      c.Error("role '{}': expected a size of at least 1 but got {}", name, roles.sizes[i]);
    if (roles.registers[i] < 0) c.Error("role '{}': {} registers", name, roles.registers[i]);
  }
}

void CheckBarrier(const VerifyContext& c, const Barrier& s) {
  const BufferNode& b = *s.buffer;
  if (b.scope != Scope::kBarrier) {
    c.Error("{} on '{}': expected a buffer in barrier but it is in {}", Name(s.op), b.name,
            Name(b.scope));
  } else if (b.dtype != DType::UInt(64)) {
    c.Error("{} on '{}': expected barriers of type u64 but got {}", Name(s.op), b.name,
            b.dtype.ToString());
  }
}

}  // namespace

namespace {

// An attribute of a function whose value is a word of an enum, up to `last`.
template <class E>
void CheckWord(const VerifyContext& c, const char* attr, E value, E last) {
  const AttrValue* text = c.func.attrs.Find(attr);
  if (!text || value != E::kNone) return;
  std::vector<std::string> words;
  for (int i = 1; i <= static_cast<int>(last); ++i) words.push_back(Name(static_cast<E>(i)));
  c.Error("attribute {}: expected one of {} but got {}", attr, Join(words, ", "), ToString(*text));
}

}  // namespace

void CheckParts(const VerifyContext& context) {
  CheckWord(context, kAsyncAttr, AsyncPartOf(context.func), AsyncPart::kBulk);
  CheckWord(context, kLaunchOrderAttr, LaunchOrderOf(context.func), LaunchOrder::kBegin);
}

void CheckSync(const VerifyContext& context) {
  context.ForEach([&](const NodeRef& node) {
    if (const auto* s = As<Atomic>(node)) {
      if (!IsAtomicOp(s->op))
        context.Error("{}: there is no atomic {}", Describe(node), Info(s->op).text);
    } else if (const auto* s = As<Barrier>(node)) {
      CheckBarrier(context, *s);
    } else if (const auto* s = As<Roles>(node)) {
      CheckRoles(context, *s);
    }
  });
}

}  // namespace tenon
