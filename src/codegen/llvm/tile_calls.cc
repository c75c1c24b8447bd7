// Calls of device functions that stand for an operation of the machine: a row of src/intrin.
//
// Operands in memory are loaded and stored around the operation; those in register buffers are
// allocas with constant indices, which sroa turns into the registers themselves. Tiles are named by
// number: LLVM neither allots nor spills them, so that what a function uses is what it says.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "arith/analyzer.h"
#include "codegen/llvm/function_emitter.h"
#include "ir/print.h"
#include "ir/visit.h"
#include "support/check.h"

namespace tenon::codegen {

using llvm::Value;

namespace {

int64_t BytesOf(const Region& region, const PrimFunc& callee, size_t operand) {
  int64_t elements = 1;
  for (const Expr& extent : callee.buffers[operand]->shape) elements *= AsInt(extent).value_or(0);
  return elements * region->buffer->dtype.Bytes();
}

}  // namespace

llvm::Value* FunctionEmitter::TileArgument(const CallFunc& s, const PrimFunc& callee,
                                           const EmissionArg& arg, llvm::Type* param) {
  const auto operand = static_cast<size_t>(arg.operand);
  const Region& region = s.buffers[arg.kind == ArgKind::kStride ? 0 : operand];
  switch (arg.kind) {
    case ArgKind::kValue: {
      Value* v = exprs_.LoadAt(region, exprs_.values().MemoryTypeOf(arg.type));
      return ir_.CreateBitCast(v, param);
    }
    case ArgKind::kSplat: {
      const int64_t bytes = BytesOf(region, callee, operand);
      Value* v = exprs_.LoadAt(region, ir_.getIntNTy(static_cast<unsigned>(8 * bytes)));
      const auto times = static_cast<unsigned>(arg.type.Bytes() / bytes);
      return ir_.CreateBitCast(ir_.CreateVectorSplat(times, v), param);
    }
    case ArgKind::kTile: return TileNumber(region);
    case ArgKind::kAddress: return RegionAddress(region);
    case ArgKind::kStride: {
      Value* elements = exprs_.Emit(s.scalars[operand]);
      return ir_.CreateNSWMul(elements, llvm::ConstantInt::get(param, arg.type.Bytes()));
    }
  }
  TN_UNREACHABLE();
}

// All eight, whole: 16 rows of 64 bytes. The format is that of LDTILECFG.
static llvm::Constant* TileConfiguration(llvm::Module& module) {
  constexpr const char* kName = ".tile_configuration";
  if (llvm::GlobalVariable* known = module.getNamedGlobal(kName)) return known;
  constexpr size_t kBytes = 64, kRowBytesAt = 16, kRowsAt = 48;
  uint8_t bytes[kBytes] = {1};  // the palette
  for (size_t tile = 0; tile < size_t{kNumTiles}; ++tile) {
    bytes[kRowBytesAt + 2 * tile] = 64;
    bytes[kRowsAt + tile] = 16;
  }
  llvm::Constant* data =
      llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef<uint8_t>(bytes));
  auto* global = new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, data, kName);
  global->setAlignment(llvm::Align(kBytes));
  return global;
}

static bool AllocatesTiles(const Stmt& body) {
  bool found = false;
  PreOrder(body, [&](const NodeRef& n) {
    const auto* alloc = As<Alloc>(n);
    found |= alloc && alloc->buffer->scope == Scope::kTile;
    return !found && !IsA<ExprNode>(n);
  });
  return found;
}

// Once per worker and call of the function; tile_release gives the registers back to the system,
// which saves them at every switch otherwise.
void FunctionEmitter::ConfigureTiles() {
  uses_tiles_ = HasTiles() && AllocatesTiles(func_.body);
  if (!uses_tiles_) return;
  ir_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {TileConfiguration(module_.out())});
}

// Whether nothing but operations of tiles touches the buffer; what does is an error.
bool FunctionEmitter::OnlyTileOperand(const Alloc& s) {
  const BufferNode* tile = s.buffer.get();
  std::string fault;
  PreOrder(s.body, [&](const NodeRef& n) {
    const auto* load = As<Load>(n);
    const auto* store = As<Store>(n);
    if ((load && load->buffer.get() == tile) || (store && store->buffer.get() == tile)) {
      fault =
          "elements of " + tile->name + ", which is in tiles: they are reached by intrinsics only";
    }
    const auto* call = As<CallFunc>(n);
    const Func callee = call ? module_.Find(call->callee) : nullptr;
    if (!callee || IntrinsicOf(*callee)) return fault.empty();
    for (const Region& r : call->buffers) {
      if (r->buffer.get() == tile)
        fault = "a call of " + call->callee + " with the tile " + tile->name;
    }
    if (AllocatesTiles(callee->body)) {
      fault = "a call of " + call->callee + ", which uses tiles, while " + tile->name + " is alive";
    }
    return fault.empty();
  });
  if (!fault.empty()) Unsupported(fault);
  return fault.empty();
}

void FunctionEmitter::EmitTileAlloc(const Alloc& s, int64_t bytes) {
  if (!OnlyTileOperand(s)) return;
  const int64_t count = (bytes + kTileBytes - 1) / kTileBytes;
  if (num_tiles_ + count > kNumTiles) {
    return Unsupported("more than " + std::to_string(kNumTiles) + " tiles at a time (" +
                       s.buffer->name + " needs " + std::to_string(count) + " and " +
                       std::to_string(num_tiles_) + " are taken)");
  }
  tiles_[s.buffer.get()] = num_tiles_;
  num_tiles_ += count;
  EmitStmt(s.body);
  num_tiles_ -= count;
}

Value* FunctionEmitter::TileNumber(const Region& region) {
  auto it = tiles_.find(region->buffer.get());
  int64_t number = 0;
  if (it == tiles_.end()) {
    Unsupported("memory (" + region->buffer->name + ") in the place of a tile");
    return ir_.getInt8(0);
  }
  for (const Range& range : region->ranges) {
    const auto first = AsInt(Simplify(range->min));
    if (!first || region->ranges.size() != 1) {
      Unsupported("a tile of " + region->buffer->name + " that is not constant (" +
                  tenon::ToString(range->min) + "); unroll the loops around it");
      return ir_.getInt8(0);
    }
    number = it->second + *first * region->buffer->dtype.Bytes() / kTileBytes;
  }
  return ir_.getInt8(static_cast<uint8_t>(number));
}

// Steps that are written out may bring one tile twice, as those of products of parts do. What was
// emitted since in this block of code tells whether it is still there.
bool FunctionEmitter::IsLoaded(int64_t tile, const CallFunc& load) const {
  const llvm::BasicBlock& block = *ir_.GetInsertBlock();
  for (auto i = block.rbegin(); i != block.rend(); ++i) {
    const auto write = tile_writes_.find(&*i);
    if (write == tile_writes_.end()) {
      if (i->mayWriteToMemory()) return false;
      continue;
    }
    if (write->second.tile != tile) continue;
    const CallFunc* last = write->second.load;
    const auto same = [](const NodeRef& a, const NodeRef& b) { return StructuralEqual(a, b); };
    return last && last->callee == load.callee && same(last->buffers[0], load.buffers[0]) &&
           std::equal(last->scalars.begin(), last->scalars.end(), load.scalars.begin(), same);
  }
  return false;
}

void FunctionEmitter::EmitTileIntrinsic(const CallFunc& s, const PrimFunc& callee,
                                        const Emission& emission) {
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(emission.text);
  TN_CHECK(id != llvm::Intrinsic::not_intrinsic, "LLVM has no {}", emission.text);
  llvm::Function* operation = llvm::Intrinsic::getDeclaration(f_->getParent(), id);
  const auto is = [](ArgKind kind) {
    return [kind](const EmissionArg& arg) { return arg.kind == kind; };
  };
  const auto any = [&](ArgKind kind) {
    return std::any_of(emission.args.begin(), emission.args.end(), is(kind));
  };
  const bool writes_tile = any(ArgKind::kTile) && tiles_.count(s.buffers.back()->buffer.get()) > 0;
  TileWrite write{-1};
  if (writes_tile) {
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(TileNumber(s.buffers.back()));
    write.tile = number ? number->getSExtValue() : -1;
    if (any(ArgKind::kAddress)) {
      if (IsLoaded(write.tile, s)) return;
      write.load = &s;
    }
  }
  std::vector<Value*> args;
  for (const EmissionArg& arg : emission.args) {
    llvm::Type* param =
        operation->getFunctionType()->getParamType(static_cast<unsigned>(args.size()));
    args.push_back(TileArgument(s, callee, arg, param));
  }
  llvm::CallInst* result = ir_.CreateCall(operation, args);
  if (writes_tile) tile_writes_.emplace(result, write);
  if (!result->getType()->isVoidTy()) exprs_.StoreAt(s.buffers.back(), result);
}

}  // namespace tenon::codegen
