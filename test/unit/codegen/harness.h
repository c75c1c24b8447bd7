// Makes small kernels of loop IR, has a back end compile them (compiled.h is the back end's own)
// and calls them, with guard pages around every buffer.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiled.h"
#include "loop/func.h"
#include "support/guarded_buffer.h"

namespace tenon::test {

inline Buffer FlatBuffer(const std::string& name, DType type, Expr n, int64_t align = 0) {
  return BufferNode::Make(name, type, {std::move(n)}, Scope::kGlobal, nullptr, {}, align);
}

/// kernel name(buffers; n): the body is made of the buffers and n.
inline Func Kernel(const std::string& name, const std::vector<DType>& buffers,
                   const std::function<Stmt(const std::vector<Buffer>&, Expr n)>& body,
                   std::vector<Var> scalars = {}, int64_t align = 0) {
  PrimFunc f;
  f.name = name;
  Var n = VarNode::Make("n");
  f.dims = {n};
  f.dim_lo = {0};
  f.dim_hi = {-1};
  f.dim_step = {1};
  for (size_t i = 0; i < buffers.size(); ++i) {
    f.buffers.push_back(FlatBuffer("b" + std::to_string(i), buffers[i], n, align));
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
