// Compiles hand-made loop IR for this machine and calls it, with guard pages around every buffer.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artifact/temporary_library.h"
#include "codegen/codegen.h"
#include "loop/func.h"
#include "loop/pass/expand_math.h"
#include "support/guarded_buffer.h"
#include "target/target.h"

namespace tenon::test {

inline Buffer FlatBuffer(const std::string& name, DType type, Expr n) {
  return BufferNode::Make(name, type, {std::move(n)});
}

/// The loaded code of a module whose exported functions can be asked for.
class Compiled {
 public:
  explicit Compiled(const Module& given, const Target& target = Target::Host()) {
    PassContext context;
    context.target = &target;
    const Module module = ExpandMath(given, context);
    codegen::EmitOptions options;
    options.verify = true;
    auto object = codegen::EmitObject(module, target, options);
    TN_CHECK(object, "{}", ToString(object.errors()));
    std::vector<std::string> exports;
    for (const auto& [name, func] : module.funcs) {
      if (func->attrs.Get<bool>("exported", false)) exports.push_back(name);
    }
    auto library = artifact::LoadTemporaryLibrary({{"test.o", *object}}, exports, target.triple());
    TN_CHECK(library, "{}", ToString(library.errors()));
    library_ = std::make_unique<artifact::TemporaryLibrary>(std::move(*library));
  }
  template <class Fn>
  Fn* Get(const std::string& name) const {
    void* f = library_->Find(name);
    TN_CHECK(f, "no {}", name);
    return reinterpret_cast<Fn*>(f);
  }

 private:
  std::unique_ptr<artifact::TemporaryLibrary> library_;
};

/// kernel name(buffers; n): the body is made of the buffers and n.
inline Func Kernel(const std::string& name, const std::vector<DType>& buffers,
                   const std::function<Stmt(const std::vector<Buffer>&, Expr n)>& body,
                   std::vector<Var> scalars = {}) {
  PrimFunc f;
  f.name = name;
  Var n = VarNode::Make("n");
  f.dims = {n};
  f.dim_lo = {0};
  f.dim_hi = {-1};
  f.dim_step = {1};
  for (size_t i = 0; i < buffers.size(); ++i) {
    f.buffers.push_back(FlatBuffer("b" + std::to_string(i), buffers[i], n));
  }
  f.num_outputs = 1;
  f.scalars = std::move(scalars);
  f.attrs.Set("exported", true);
  f.body = body(f.buffers, n);
  return PrimFunc::Make(std::move(f));
}

using Lanewise = std::function<Expr(const std::vector<Expr>&)>;

/// out[i] = f(in[i]…) for i < n, `lanes` at a time, the last ones under a mask. The output is the
/// last buffer.
inline Func Elementwise(const std::string& name, std::vector<DType> inputs, DType output,
                        int32_t lanes, const Lanewise& f) {
  inputs.push_back(output);
  return Kernel(name, inputs, [&](const std::vector<Buffer>& b, Expr n) {
    Var i = VarNode::Make("i");
    Expr base = i * lanes;
    Expr index = lanes == 1 ? base : Ramp::Make(base, IndexConst(1), lanes);
    Expr mask;
    if (lanes > 1) mask = Lt(index, Broadcast::Make(n, lanes));
    std::vector<Expr> args;
    for (size_t k = 0; k + 1 < b.size(); ++k) args.push_back(Load::Make(b[k], {index}, mask));
    return For::Make(i, IndexConst(0), CeilDiv(n, IndexConst(lanes)), ForKind::kSerial,
                     Store::Make(b.back(), {index}, f(args), mask));
  });
}

template <class Out, class In>
std::vector<Out> Apply(void (*f)(const In*, Out*, int64_t), const std::vector<In>& x) {
  GuardedBuffer<In> in(x);
  GuardedBuffer<Out> out(x.size());
  f(in.data(), out.data(), static_cast<int64_t>(x.size()));
  EXPECT_TRUE(out.FrontIntact());
  return out.ToVector();
}

template <class Out, class In>
std::vector<Out> Apply(void (*f)(const In*, const In*, Out*, int64_t), const std::vector<In>& x,
                       const std::vector<In>& y) {
  GuardedBuffer<In> a(x), b(y);
  GuardedBuffer<Out> out(x.size());
  f(a.data(), b.data(), out.data(), static_cast<int64_t>(x.size()));
  EXPECT_TRUE(out.FrontIntact());
  return out.ToVector();
}

}  // namespace tenon::test
