// Warps with work of their own, barriers and tensor maps: what source_function.cc writes for GPUs
// that have them (Language::gpu->roles).
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c_family/function.h"
#include "loop/threads.h"
#include "loop/warpgroup.h"

namespace tenon::codegen {

// The source of a copy by the copy engine, and a kernel's parameter that is nothing else.
bool SourceFunction::IsTensorMap(const Buffer& param) const {
  if (!language_.gpu || !language_.gpu->roles) return false;
  if (AsyncPartOf(func_) == AsyncPart::kBulk) return param == func_.buffers[0];
  const auto names = func_.attrs.Get<std::vector<std::string>>(kTensorMapsAttr, {});
  const bool named = std::find(names.begin(), names.end(), param->name) != names.end();
  return named && func_.func_kind == FuncKind::kKernel;
}

bool SourceFunction::BindTensorMap(const Buffer& param) {
  if (!IsTensorMap(param)) return false;
  const RolesSpelling& roles = *language_.gpu->roles;
  const std::string name = Declare(param->name);
  exprs_.BindBuffer(param.get(), {name, /*is_private=*/false, /*is_distinct=*/true, 0, ""});
  params_.push_back(func_.func_kind == FuncKind::kKernel
                        ? fmt::format(fmt::runtime(roles.map_param), name)
                        : fmt::format("const {}* {}", roles.tensor_map, name));
  return true;
}

// Descriptions come from afar; nothing that is waited for is in them.
void SourceFunction::FetchTensorMaps() {
  if (func_.func_kind != FuncKind::kKernel) return;
  for (const Buffer& b : func_.buffers) {
    if (IsTensorMap(b))
      Line(fmt::format(fmt::runtime(language_.gpu->roles->fetch_map), exprs_.NameOf(b)));
  }
}

// What a call passes for a buffer: the address of the box, or the map that it is a part of.
SourceText SourceFunction::ArgumentOf(const PrimFunc& callee, size_t i, const Region& region) {
  const bool map = i == 0 && AsyncPartOf(callee) == AsyncPart::kBulk;
  if (!map) return RegionAddress(region);
  if (!IsTensorMap(region->buffer)) Unsupported("a copy from " + region->buffer->name);
  return {"&" + exprs_.NameOf(region->buffer)};
}

void SourceFunction::EmitBarrier(const Barrier& s) {
  const RolesSpelling* roles = language_.gpu ? language_.gpu->roles : nullptr;
  if (!roles) return Unsupported(std::string(Name(s.op)) + " in " + language_.name);
  std::vector<Expr> roots = s.indices;
  if (s.value) roots.push_back(s.value);
  Begin(roots);
  const std::string at = exprs_.ElementAddress(s.buffer, s.indices).text;
  const std::string value = s.value ? exprs_.Emit(s.value).As(Binding::kUnary) : "";
  Flush();
  const char* text = nullptr;
  switch (s.op) {
    case BarrierOp::kArrive: text = roles->arrive; break;
    case BarrierOp::kExpect: text = roles->expect; break;
    case BarrierOp::kWait: text = roles->wait; break;
  }
  Line(fmt::format(fmt::runtime(text), at, value));
}

// A warpgroup that is to have `registers` for each of its threads. A launch gives all the same.
void SourceFunction::EmitRegisters(int64_t registers) {
  if (registers == 0) return;
  int64_t threads = 1;
  for (const For* loop : PeelThreads(func_).axes) {
    if (IsThreadAxis(loop->thread)) threads *= AsInt(loop->extent).value_or(1);
  }
  constexpr int64_t kRegisters = 65536, kGranule = 8;
  const int64_t given = kRegisters / std::max<int64_t>(threads, 1) / kGranule * kGranule;
  const RolesSpelling& roles = *language_.gpu->roles;
  const char* text = registers > given ? roles.more_registers : roles.fewer_registers;
  Line(fmt::format(fmt::runtime(text), registers));
}

void SourceFunction::EmitRoles(const Roles& s) {
  const RolesSpelling* roles = language_.gpu ? language_.gpu->roles : nullptr;
  if (!roles) return Unsupported(std::string("roles in ") + language_.name);
  const std::string warp = Declare("warp");
  Line(fmt::format("const int {} = {};", warp, roles->warp));
  int64_t end = 0;
  for (size_t i = 0; i < s.bodies.size(); ++i) {
    end += s.sizes[i];
    const bool last = i + 1 == s.bodies.size();
    const std::string condition = last ? "" : fmt::format("if ({} < {})", warp, end);
    if (i == 0) {
      OpenBlock(condition);
    } else {
      CloseBlock(last ? "} else {" : "} else " + condition + " {");
      ++indent_;
      scopes_.emplace_back();
    }
    EmitRegisters(s.registers[i]);
    EmitStmt(s.bodies[i]);
  }
  if (!s.bodies.empty()) CloseBlock();
}

}  // namespace tenon::codegen
