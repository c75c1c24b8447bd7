// Tile intrinsics: what a back end makes of each row of the table computes what the interpreter
// says, to the bit, on random and on special values; as the operation where this machine has it, as
// plain code elsewhere.
#ifdef __x86_64__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <random>

#include "differential.h"
#include "intrin/tile_intrinsic.h"
#include "ir/visit.h"
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
    if (!row.state.empty() || !row.EmissionOf(Emission::Kind::kLlvm)) continue;  // below, GPUs
    Module module;
    module.Add(KernelOf(row));
    module.Add(MeaningOf(row).value());
    std::vector<InterpArg> args;
    const Func f = module.Find("f");
    for (const Buffer& b : f->buffers) args.push_back(Operand(b, random));
    args.back() = InterpArg::Output(f->buffers.back()->dtype, args.back().shape);
    for (const Target& target : TargetsToTry(1)) {
      const bool unit = Target::Host().Has(row.feature) && target.Offers(row.feature);
      printf("%s for %s: %s\n", row.name.c_str(), target.ToString().c_str(),
             unit ? "as the operation" : "by its meaning");
      // The compilers of C take turns, with and without this machine's features.
      for (int turn = 0; turn < (target.kind().family == Family::kPlainCpu ? 4 : 1); ++turn) {
        ExpectSame(module, Compiled(Lowered(module, target), target), "f", args, 3, {});
      }
    }
  }
}

// A product of tiles, or what needs no other row of its kind: in tiles from memory and back.
struct TileProduct {
  const char *row, *a, *b, *c;
  int group;         // elements of B that go with one of a column
  const char* init;  // of the sums: "S" for a buffer's, "zero"
};

// Rows of A, S and C are longer than a tile's: the strides count.
std::string TextOf(const TileProduct& p) {
  const int columns = 16 * p.group;
  const std::string init = std::string(p.init) == "S"
                               ? fmt::format("call @x86.tileloadd.{}(S[0..16, 2..18], T; 20)", p.c)
                               : fmt::format("call @x86.tilezero.{}(T)", p.c);
  return fmt::format(
      R"(func @f(A: {0}[16, {3}], B: {1}[16, 16, {4}], S: {2}[16, 20], out C: {2}[16, 24]) {{exported: true}} {{
  for i in 0..16, j in 0..24 {{
    block C(vi: spatial = i, vj: spatial = j) {{
      writes C[vi, vj]
      C[vi, vj] = 1{2}
    }}
  }}
  alloc Z: {0}[16, {5}] in tile
  alloc T: {2}[16, 16] in tile
  alloc X: {0}[16, {5}] in tile
  alloc Y: {1}[16, 16, {4}] in tile
  {6}
  call @x86.tileloadd.{0}(A[0..16, 3..+{5}], X; {3})
  call @x86.tileloadd.{0}(A[0..16, 0..{5}], Z; {3})
  call @x86.tileloadd.{1}.groups(B, Y; {5})
  call @{7}(X, Y, T)
  call @{7}(Z, Y, T)
  call @x86.tilestored.{2}(T, C[0..16, 5..21]; 24)
}})",
      p.a, p.b, p.c, columns + 8, p.group, columns, init, p.row);
}

// The system lets a process use tiles once it has asked; in libraries the runtime core does.
void AskForTiles() {
#ifdef __x86_64__
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (Target::Host().Has("amx-tile")) syscall(SYS_arch_prctl, kRequestPermission, kTileData);
#endif
}

TEST(Intrinsics, ProductsOfTiles) {
  AskForTiles();
  std::mt19937 random(3);
  for (const TileProduct& p : {TileProduct{"x86.tdpbusd", "u8", "i8", "i32", 4, "S"},
                               TileProduct{"x86.tdpbssd", "i8", "i8", "i32", 4, "zero"},
                               TileProduct{"x86.tdpbf16ps", "bf16", "bf16", "f32", 2, "S"},
                               TileProduct{"x86.tdpbf16ps", "bf16", "bf16", "f32", 2, "zero"}}) {
    Module module = ParseModule(TextOf(p)).value();
    PreOrder(module.Find("f")->body, [&](const NodeRef& n) {
      const auto* call = As<CallFunc>(n);
      if (call) module.Add(MeaningOf(*BuiltinTileIntrinsics().Find(call->callee)).value());
      return !IsA<ExprNode>(n);
    });
    for (int turn = 0; turn < 20; ++turn) {
      std::vector<InterpArg> args;
      const Func f = module.Find("f");
      for (const Buffer& b : f->buffers) args.push_back(Operand(b, random));
      args.back() = InterpArg::Output(f->buffers.back()->dtype, args.back().shape);
      for (const Target& target : TargetsToTry(9)) {
        if (turn == 0) {
          printf("%s for %s: %s\n", p.row, target.ToString().c_str(),
                 target.Has("amx-tile") ? "in tiles" : "by its meaning");
        }
        if (turn > 0 && !target.Has("amx-tile")) continue;  // it is arithmetic like any other
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
