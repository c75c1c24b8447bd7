// Tile intrinsics: what a back end makes of each row of the table computes what the interpreter
// says, to the bit, on random and on special values; as the operation where this machine has it, as
// plain code elsewhere.
#include <random>

#include "differential.h"
#include "intrin/tile_intrinsic.h"
#include "loop/parse.h"
#include "loop/pass/pass.h"

namespace tenon::test {
namespace {

constexpr int64_t kTiles = 600;

std::string Shape(const BufferNode& b, const std::string& before) {
  std::string out = before;
  for (const Expr& e : b.shape) out += (out.empty() ? "" : ", ") + std::to_string(*AsInt(e));
  return out;
}

std::string Whole(const BufferNode& b) {
  std::string out = b.name + "[t";
  for (const Expr& e : b.shape) out += ", 0..+" + std::to_string(*AsInt(e));
  return out + "]";
}

// func @f: an operand of each kind per tile; the sums so far come in by a buffer of their own.
Func KernelOf(const TileIntrinsic& row) {
  const Func meaning = MeaningOf(row).value();
  const BufferNode &a = *meaning->buffers.at(0), &b = *meaning->buffers.at(1),
                   &c = *meaning->buffers.at(2);
  const std::string sums = c.dtype.ToString() + "[" + Shape(c, std::to_string(kTiles)) + "]";
  const std::string text = fmt::format(
      R"(func @f(A: {0}[{1}], B: {2}[{3}], S: {4}, out C: {4}) {{
  for t in 0..{5} {{
    for i in 0..{6} {{
      block copy(vt: spatial = t, vi: spatial = i) {{
        reads S[vt, vi]; writes C[vt, vi]
        C[vt, vi] = S[vt, vi]
      }}
    }}
    call @{7}({8}, {9}, {10})
  }}
}})",
      a.dtype.ToString(), Shape(a, std::to_string(kTiles)), b.dtype.ToString(),
      Shape(b, std::to_string(kTiles)), sums, kTiles, *AsInt(c.shape[0]), row.name, Whole(a),
      Whole(b), Whole(c));
  Module module = ParseModule(text + "\n" + row.meaning).value();
  PrimFunc fields = *module.Find("f");
  fields.attrs.Set("exported", true);
  return PrimFunc::Make(std::move(fields));
}

// Random bits; for floats, half of them numbers near one and special values.
InterpArg Operand(const Buffer& b, std::mt19937& random) {
  static constexpr uint16_t kSpecial[] = {0,      0x8000, 0x7f80, 0xff80, 0x7fc0, 0x7f81, 1,
                                          0x8001, 0x7f,   0x80,   0x8080, 0x3f80, 0xbf80, 0x7f7f,
                                          0xff7f, 0x2000, 0x2040, 0x1f80, 0x9f81, 0x6000};
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (const Expr& e : b->shape) elements *= shape.emplace_back(*AsInt(e));
  const auto size = static_cast<size_t>(b->dtype.Bytes());
  std::vector<uint8_t> bytes(static_cast<size_t>(elements) * size);
  for (size_t i = 0; i < bytes.size(); i += size) {
    uint64_t bits = random();
    if (b->dtype.IsFloat()) {
      // As bfloat16, which is the upper half of a 32-bit float.
      uint32_t high = random() & 0xffff;
      if (random() % 4 == 0) high = kSpecial[random() % std::size(kSpecial)];
      if (random() % 4 == 0) high = 0x3f00 + random() % 0x200 + (random() % 2 << 15);
      if (random() % 8 == 0) high = 0x1f00 + random() % 0x200 + (random() % 2 << 15);
      bits = size == 2 ? high : high << 16 | (random() % 2 ? random() & 0xffff : 0);
    }
    std::memcpy(&bytes[i], &bits, size);
  }
  return InterpArg::Tensor(b->dtype, shape, bytes);
}

Module Lowered(Module module, const Target& target) {
  PassContext context;
  context.target = &target;
  for (const char* pass : {"select_intrinsics", "lower_blocks", "flatten_storage", "simplify"}) {
    module = FindLoopPass(pass)->run(module, context);
  }
  return module;
}

TEST(Intrinsics, ComputeWhatTheirMeaningsSay) {
  std::mt19937 random(1);
  for (const TileIntrinsic& row : BuiltinTileIntrinsics().rows()) {
    if (!row.state.empty()) continue;  // of the back end alone that keeps it
    Module module;
    module.Add(KernelOf(row));
    module.Add(MeaningOf(row).value());
    std::vector<InterpArg> args;
    const Func f = module.Find("f");
    for (const Buffer& b : f->buffers) args.push_back(Operand(b, random));
    args.back() = InterpArg::Output(f->buffers.back()->dtype, args.back().shape);
    for (const Target& target : TargetsToTry(1)) {
      const bool unit = Target::Host().Has(row.feature) &&
                        (target.kind() == TargetKind::kC || target.Has(row.feature));
      printf("%s for %s: %s\n", row.name.c_str(), target.ToString().c_str(),
             unit ? "as the operation" : "by its meaning");
      // The compilers of C take turns, with and without this machine's features.
      for (int turn = 0; turn < (target.kind() == TargetKind::kC ? 4 : 1); ++turn) {
        ExpectSame(module, Compiled(Lowered(module, target), target), "f", args, 3, {});
      }
    }
  }
}

// A function that has a row's name but computes something else is compiled as it stands.
TEST(Intrinsics, AnotherFunctionOfTheName) {
  const TileIntrinsic& row = *BuiltinTileIntrinsics().Find("x86.vpdpbusd.512");
  Module module;
  module.Add(KernelOf(row));
  std::string other = row.meaning;
  other.replace(other.find(" * i32(B"), 8, " + i32(B");
  module.Add(ParseFunc(other).value());
  std::mt19937 random(2);
  std::vector<InterpArg> args;
  const Func f = module.Find("f");
  for (const Buffer& b : f->buffers) args.push_back(Operand(b, random));
  for (const Target& target : TargetsToTry(1)) {
    ExpectSame(module, Compiled(Lowered(module, target), target), "f", args, 3, {});
  }
}

}  // namespace
}  // namespace tenon::test
