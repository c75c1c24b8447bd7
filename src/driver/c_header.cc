#include "driver/c_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/build.h"
#include "driver/check_options.h"
#include "driver/info.h"
#include "ir/print.h"
#include "loop/pass/host/make_packed.h"
#include "support/strings.h"

namespace tenon::driver {

namespace {

std::string CType(DType t) {
  if (t.IsBool() || t.IsFloat8()) return "uint8_t";
  if (t.code == TypeCode::kBFloat || (t.IsFloat() && t.bits == 16)) return "uint16_t";
  if (t.IsFloat()) return t.bits == 64 ? "double" : "float";
  return fmt::format("{}int{}_t", t.code == TypeCode::kUInt ? "u" : "", t.StorageBits());
}

std::string Upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return isalnum(c) ? static_cast<char>(toupper(c)) : '_'; });
  return text;
}

// What the function is called where its arguments are packed.
std::string ExportName(const PrimFunc& host) {
  return host.attrs.GetString("export_name", host.name);
}

std::vector<Func> PlainHosts(const Built& built) {
  std::vector<Func> out;
  for (const auto& [name, f] : built.host.funcs) {
    if (f->func_kind == FuncKind::kHost && f->attrs.Has(kPlain)) out.push_back(f);
  }
  return out;
}

// The names of tensors where C can have them, else numbered.
std::vector<std::string> ParameterNames(const PrimFunc& f) {
  std::set<std::string> names;
  for (const Buffer& b : f.buffers) {
    if (CheckExportName(b->name)) names.insert(b->name);
  }
  for (const Var& v : f.dims) names.insert(v->name);
  for (const Var& v : f.scalars) names.insert(v->name);
  const bool own = names.size() == f.buffers.size() + f.dims.size() + f.scalars.size();
  const size_t inputs = f.buffers.size() - static_cast<size_t>(f.num_outputs);
  std::vector<std::string> out;
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    const std::string numbered =
        i < inputs ? fmt::format("input{}", i) : fmt::format("output{}", i - inputs);
    out.push_back(own ? f.buffers[i]->name : numbered);
  }
  return out;
}

constexpr char kDeclaration[] = R"(
/* What a call of {plain} needs for intermediate values, aligned to 64 bytes. */
#define {upper}_WORKSPACE_BYTES {workspace}
/* Runs on the caller's thread and allocates nothing; the tensors are compact and row-major, of these
 * sizes, which cannot be checked. Several threads may call it at once, each with a workspace of its
 * own. Returns 0, or -1, having done nothing, where the CPU lacks what the code needs, a size is out
 * of its range or would lead outside a tensor, a pointer is null or not aligned (a tensor's to its
 * element, the workspace to 64 bytes), or an output overlaps another tensor{failure}.
{tensors} */
int32_t {plain}({parameters}void* workspace);
/* The same in the packed signature of TVM-FFI, with all arguments checked. */
int32_t __tvm_ffi_{name}(void* self, void* args, int32_t num_args, void* result);
/* What went wrong in this thread's last call that returned -1: "ValueError: Parameter ...". */
const char* {name}_error(void);
)";

constexpr char kLoadDeclaration[] = R"(
/* Reads the weights from a file, once and before the first call. Returns 0, or -1 where it is not
 * there or not the file that was made with this source. */
int32_t {}_load(const char* path);
)";

std::string DeclarationOf(const PrimFunc& host, const PrimFunc& f, bool loads) {
  std::string parameters, tensors;
  const size_t inputs = f.buffers.size() - static_cast<size_t>(f.num_outputs);
  const std::vector<std::string> names = ParameterNames(f);
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    const BufferNode& b = *f.buffers[i];
    std::string shape;
    for (const Expr& e : b.shape) shape += fmt::format("[{}]", ToString(e));
    parameters += fmt::format("{}{}* {}, ", i < inputs ? "const " : "", CType(b.dtype), names[i]);
    tensors += fmt::format(" *   {}: {}{}\n", names[i], LongName(b.dtype), shape);
  }
  for (size_t i = 0; i < f.dims.size(); ++i) {
    const DimRange range = f.dim_range(i);
    parameters += fmt::format("int64_t {}, ", f.dims[i]->name);
    tensors += fmt::format(" *   {}: at least {}", f.dims[i]->name, range.lo);
    if (range.hi >= 0) tensors += fmt::format(", at most {}", range.hi);
    if (range.step > 1) tensors += fmt::format(", a multiple of {}", range.step);
    tensors += "\n";
  }
  for (size_t i = 0; i + 1 < f.scalars.size(); ++i) {  // the last one is the workspace
    const VarNode& v = *f.scalars[i];
    parameters += fmt::format("{} {}, ", CType(v.dtype), v.name);
    tensors += fmt::format(" *   {}: {}\n", v.name, LongName(v.dtype));
  }
  const std::string name = ExportName(host);
  return (loads ? fmt::format(kLoadDeclaration, name) : "") +
         fmt::format(kDeclaration, fmt::arg("name", name), fmt::arg("plain", f.name),
                     fmt::arg("upper", Upper(name)), fmt::arg("workspace", ArenaBytes(host)),
                     fmt::arg("failure", loads ? ", or while the weights have not been read" : ""),
                     fmt::arg("tensors", tensors), fmt::arg("parameters", parameters));
}

}  // namespace

bool HasPlainFunctions(const Built& built) { return !PlainHosts(built).empty(); }

std::string PlainHeaderText(const Built& built) {
  const std::vector<Func> hosts = PlainHosts(built);
  std::string linked = "the library";
  bool loads = false;
  for (const Output& output : built.request.outputs) {
    if (output.form != "c" && output.form != "obj") continue;
    linked = std::filesystem::path(output.path).filename();
    loads = !output.params.empty() && built.WeightsBytes() > 0;
  }
  const std::string guard = Upper(ExportName(*hosts.at(0))) + "_TENON_H_";
  std::string text = fmt::format(
      "/* Compiled by Tenon: {}{}. */\n#ifndef {}\n#define {}\n\n#include <stdint.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
      linked, linked.ends_with(".c") ? ", C11 that needs the C library alone" : "", guard, guard);
  for (const Func& host : hosts) {
    text += DeclarationOf(*host, *built.host.Find(host->attrs.GetString(kPlain)), loads);
  }
  return text + fmt::format("\n#ifdef __cplusplus\n}}\n#endif\n#endif /* {} */\n", guard);
}

}  // namespace tenon::driver
