// Runs a function of plain buffers both in the interpreter and as compiled code, and compares every
// byte.
#pragma once

#include <cmath>
#include <cstring>

#include "edge_values.h"
#include "harness.h"
#include "interp/interp.h"
#include "support/remote.h"

namespace tenon::test {

/// Elements of `type` agree: equal bytes, or both NaN, or (where `any_zero`) both zero.
inline bool SameElement(DType type, const uint8_t* a, const uint8_t* b, bool any_zero) {
  const auto size = static_cast<size_t>(type.Bytes());
  if (std::memcmp(a, b, size) == 0) return true;
  if (!type.IsFloat()) return false;
  if (type.IsFloat8()) {
    const double v = FormatOf(type.float8).NumberOf(*a), w = FormatOf(type.float8).NumberOf(*b);
    return (std::isnan(v) && std::isnan(w)) || (any_zero && v == 0 && w == 0);
  }
  uint64_t x = 0, y = 0;
  std::memcpy(&x, a, size);
  std::memcpy(&y, b, size);
  const int exponent = type.bits == 64                                     ? 11
                       : type.bits == 32 || type.code == TypeCode::kBFloat ? 8
                                                                           : 5;
  const int mantissa = type.bits - 1 - exponent;
  const uint64_t inf = ((uint64_t{1} << exponent) - 1) << mantissa;
  const uint64_t magnitude = (uint64_t{1} << (type.bits - 1)) - 1;
  if ((x & magnitude) > inf && (y & magnitude) > inf) return true;
  return any_zero && (x & magnitude) == 0 && (y & magnitude) == 0;
}

/// Calls compiled code; what went wrong, "" where nothing did. Code of this process is called with
/// up to six buffers and integers together, which travel in the same registers.
template <class Code>
std::string CallKernel(const Code& code, const std::string& name,
                       const std::vector<std::unique_ptr<GuardedBytes>>& buffers,
                       const std::vector<int64_t>& ints) {
  if constexpr (requires { code.Call(name, {}, ints); }) {
    std::vector<RemoteLibrary::Bytes> bytes;
    for (const auto& b : buffers) bytes.push_back({b->data(), b->size()});
    return code.Call(name, bytes, ints);
  } else {
    using I = int64_t;
    std::vector<I> args;
    for (const auto& b : buffers) args.push_back(reinterpret_cast<I>(b->data()));
    for (I i : ints) args.push_back(i);
    TN_CHECK(args.size() <= 6);
    args.resize(6, 0);
    auto* f = reinterpret_cast<void (*)(I, I, I, I, I, I)>(code.template Get<void()>(name));
    f(args[0], args[1], args[2], args[3], args[4], args[5]);
    return "";
  }
}

/// Interprets `name` of the module with the arguments, runs `code`'s version, and compares the
/// outputs (the buffers from `first_output` on). `any_zero`: the sign of zeros does not matter.
inline void ExpectSame(const Module& module, const Compiled& code, const std::string& name,
                       std::vector<InterpArg> args, size_t first_output, std::vector<int64_t> ints,
                       bool any_zero = false) {
  std::vector<std::unique_ptr<GuardedBytes>> memory;
  std::vector<void*> pointers;
  for (const InterpArg& a : args) {
    if (a.kind != InterpArg::Kind::kTensor) continue;
    const auto bytes = static_cast<size_t>(a.num_elements() * a.dtype.Bytes());
    memory.push_back(std::make_unique<GuardedBytes>(bytes));
    if (a.defined && bytes > 0) std::memcpy(memory.back()->data(), a.bytes.data(), bytes);
    pointers.push_back(memory.back()->data());
  }
  ASSERT_EQ(CallKernel(code, name, memory, ints), "") << name;
  InterpOptions options;
  const Func func = module.Find(name);
  for (size_t i = 0; i < func->dims.size() && i < ints.size(); ++i) {
    options.dims[func->dims[i]->name] = ints[i];
  }
  Status status = Interpret(module, name, args, options);
  ASSERT_TRUE(status) << name << ": " << ToString(status.errors());
  for (size_t k = first_output; k < pointers.size(); ++k) {
    const InterpArg& want = args[k];
    EXPECT_TRUE(memory[k]->FrontIntact()) << name;
    const auto* got = static_cast<const uint8_t*>(pointers[k]);
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      const int64_t at = i * want.dtype.Bytes();
      if (SameElement(want.dtype, got + at, want.bytes.data() + at, any_zero)) continue;
      auto show = [&](const uint8_t* p) {
        uint64_t bits = 0;
        std::memcpy(&bits, p, static_cast<size_t>(want.dtype.Bytes()));
        return fmt::format("{:#x}", bits);
      };
      std::string inputs;
      for (size_t j = 0; j < first_output; ++j) {
        if (args[j].num_elements() != want.num_elements()) continue;
        inputs += " " + show(args[j].bytes.data() + i * args[j].dtype.Bytes());
      }
      ADD_FAILURE() << name << ": element " << i << " of " << want.dtype.ToString() << " is "
                    << show(got + at) << ", interpreted " << show(want.bytes.data() + at)
                    << ", from" << inputs;
      break;
    }
  }
}

}  // namespace tenon::test
