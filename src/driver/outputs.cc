#include "driver/outputs.h"

#include <dlfcn.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "artifact/link.h"
#include "artifact/symbols.h"
#include "driver/build.h"
#include "driver/c_compiler.h"
#include "driver/c_header.h"
#include "driver/code_generators.h"
#include "driver/companions.h"
#include "driver/info.h"
#include "driver/write_library.h"
#include "driver/write_source.h"
#include "ir/visit.h"
#include "loop/pass/host/make_packed.h"
#include "loop/print.h"
#include "support/atomic_file.h"
#include "support/strings.h"
#include "support/tar.h"
#include "tenon/kernel_abi.h"

namespace tenon::driver {

namespace {

bool IsSource(const Built& built) { return DoesMake(*built.target, Makes::kSource); }

// What `emit` makes of every unit whose code it can show.
using EmitFn = Expected<std::string>(const Module&, const Target&, const codegen::EmitOptions&);
Expected<std::string> TextOfUnits(const Built& built, EmitFn* emit) {
  std::string out;
  for (const CodeUnit& unit : built.units) {
    if (unit.on_device) continue;
    codegen::EmitOptions options;
    options.functions = unit.functions;
    options.quickly = unit.quickly;
    TN_ASSIGN_OR_RETURN(std::string text, emit(unit.module, built.target->Cpu(), options));
    out += text;
  }
  return out;
}

Expected<std::string> LlvmText(const Built& built) { return TextOfUnits(built, codegen::EmitLlvm); }
Expected<std::string> AssemblyText(const Built& built) {
  return TextOfUnits(built, codegen::EmitAssembly);
}

Expected<std::string> LoweredText(const Built& built) {
  if (built.units.size() == 1) return Print(built.units[0].module);
  std::string out;
  Module printed;  // operations of a device, which several kernels have, once
  for (const CodeUnit& unit : built.units) {
    Module defined;
    for (const std::string& name : unit.functions) {
      const Func func = unit.module.Find(name), known = printed.Find(name);
      if (!known || !StructuralEqual(known, func)) defined.Add(func);
      printed.Add(func);
    }
    out += Print(defined) + "\n";
  }
  return out;
}

Expected<std::string> GivenText(const Built& built) { return Print(built.source()); }

Expected<std::string> SourceText(const Built& built) { return SourceOf(built, ""); }

Expected<std::string> HeaderText(const Built& built) {
  return HasPlainFunctions(built) ? PlainHeaderText(built) : PackedHeaderText(built.info);
}

Expected<std::string> MetadataText(const Built& built) {
  return nlohmann::ordered_json::parse(built.info).dump(2) + "\n";
}

// It loads the library that is written besides.
Expected<std::string> ExampleProgram(const Built& built) {
  std::string library = "model.so";
  for (const Output& output : built.request.outputs) {
    if (output.form == "so") library = std::filesystem::path(output.path).filename();
  }
  return ExampleText(built.info, library);
}

// C functions that the code calls and that neither it nor the runtime core has.
std::set<std::string> CallsOfOthers(const Module& lowered) {
  std::set<std::string> missing;
  for (const auto& [name, f] : lowered.funcs) {
    PreOrder(f->body, [&](const NodeRef& n) {
      const auto* call = As<Call>(n);
      if (!call || call->intrinsic != Intrinsic::kExtern) return true;
      const auto* callee = As<StringConst>(call->args[0]);
      // memcpy is there wherever libraries are loaded.
      bool ours = !callee || callee->value.starts_with("tn_") || callee->value == "memcpy" ||
                  callee->value.starts_with("TVMFFI") || lowered.Find(callee->value);
      if (!ours) missing.insert(callee->value);
      return true;
    });
  }
  return missing;
}

Status CheckCalls(const Built& built) {
  std::set<std::string> missing = CallsOfOthers(built.whole);
  std::erase_if(missing, [&](const std::string& name) {
    const auto& linked = built.request.linked;
    return std::any_of(linked.begin(), linked.end(), [&](const auto& object) {
      return !artifact::SymbolContents(object.second, name).empty();
    });
  });
  if (missing.empty() || built.request.open) return Ok();
  return MakeError(fmt::format(
      "the code calls {}, which is not part of it; save an object and link it with what defines "
      "that (create_shared), or, of a model, name that object (--link)",
      Join({missing.begin(), missing.end()}, ", ")));
}

// What a library of C source says of itself: data, whatever language its code is in.
Expected<std::string> DescriptionOfSource(const Built& built) {
  TN_ASSIGN_OR_RETURN(const Target plain, PlainHost());
  codegen::EmitOptions data;
  data.blobs = DescriptionBlobs(built.info, plain.FeatureList());
  AddInstances(built.whole, &data.blobs);
  return codegen::EmitObject(Module(), plain, data);
}

// An object or, of target c, what the machine's compiler makes of the source.
Expected<std::string> LinkSource(const Built& built, artifact::OutputKind kind,
                                 const std::string& soname, bool open = false) {
  TN_ASSIGN_OR_RETURN(const std::string data, DescriptionOfSource(built));
  TN_ASSIGN_OR_RETURN(const std::string source, SourceText(built));
  TN_ASSIGN_OR_RETURN(const std::string code, CompileObject(source));
  artifact::LinkRequest link = RequestLink(built, artifact::OutputKind::kRelocatable);
  link.visible |= kind == artifact::OutputKind::kSharedLibrary;
  link.triple = Target::Host().triple();
  link.objects = {{"module.o", data}, {"source.o", code}};
  TN_ASSIGN_OR_RETURN(std::string image, artifact::LinkImage(link));
  // C source asks more of the C library than a library of ours does: its own linker knows where.
  return kind == artifact::OutputKind::kRelocatable ? image : SharedLibraryOf(image, soname, open);
}

Expected<std::string> Library(const Built& built) {
  return LinkInMemory(built, artifact::OutputKind::kSharedLibrary, built.request.soname);
}
Expected<std::string> Object(const Built& built) {
  return LinkInMemory(built, artifact::OutputKind::kRelocatable, "");
}

// The library and what it was made of, the times of its files zero.
Expected<std::string> Archive(const Built& built) {
  TarWriter tar;
  TN_ASSIGN_OR_RETURN(const std::string library, Library(built));
  tar.Add("deploy_lib.so", library);
  tar.Add("module.tir", Print(built.source()));
  if (IsSource(built)) {
    TN_ASSIGN_OR_RETURN(const std::string source, SourceText(built));
    tar.Add("module.c", source);
  }
  for (const auto& [form, text] : built.device.files) tar.Add("module." + form, text);
  return tar.Finish();
}

enum class Content { kBytes, kCode, kCompanion };

struct OutputForm {
  std::string_view name, suffix;
  Content content;
  Expected<std::string> (*make)(const Built& built);
};

constexpr OutputForm kForms[] = {
#define TN_OUTPUT_FORM(name, suffix, content, make) {name, suffix, Content::content, make},
#include "driver/output_forms.def"
#undef TN_OUTPUT_FORM
};

const OutputForm* Find(std::string_view form) {
  for (const OutputForm& row : kForms) {
    if (row.name == form || (!form.empty() && row.suffix == form)) return &row;
  }
  return nullptr;
}

bool Has(const Built& built, const OutputForm& row) {
  if (row.name == "c") return !built.target->IsDevice();
  if (row.name == "llvm" || row.name == "asm") return !IsSource(built);
  return true;
}

std::string Listed(std::vector<std::string> names) {
  if (names.size() < 2) return Join(names, "");
  const std::string last = names.back();
  names.pop_back();
  return Join(names, ", ") + " or " + last;
}

}  // namespace

Status CheckLinks(const Built& built, artifact::OutputKind kind) {
  if (!built.device.missing.empty()) return built.device.missing;
  // Modules of contained targets import what they call.
  const bool contained = built.target->Cpu().IsContained();
  if (kind == artifact::OutputKind::kSharedLibrary && !contained) return CheckCalls(built);
  return Ok();
}

artifact::LinkRequest RequestLink(const Built& built, artifact::OutputKind kind) {
  artifact::LinkRequest link;
  link.kind = kind;
  for (size_t i = 0; i < built.objects.size(); ++i)
    link.objects.push_back({fmt::format("{}.o", i), built.objects[i]});
  for (const auto& [path, image] : built.request.linked) link.objects.push_back({path, image});
  // They may call anything of the C library.
  link.open = built.request.open || !built.request.linked.empty();
  link.exports = built.exports;
  link.visible = built.request.visible;
  // What a device has loaded of it is not given back.
  link.nodelete = built.target->IsDevice();
  // A library links it by itself; an object must show it to whoever makes a library of it.
  if (kind == artifact::OutputKind::kRelocatable) {
    link.exports.push_back(TN_QUERY_SYMBOL);
    link.weak.push_back(TN_QUERY_SYMBOL);
    for (const auto& [alias, function] : built.request.aliases) {
      for (const char* prefix : {"__tvm_ffi_", "__tvm_ffi__metadata_"})
        link.weak.push_back(prefix + alias);
    }
  }
  link.triple = built.target->Cpu().triple();
  return link;
}

Expected<std::string> LinkInMemory(const Built& built, artifact::OutputKind kind,
                                   const std::string& soname) {
  TN_RETURN_IF_ERROR(CheckLinks(built, kind));
  if (IsSource(built)) return LinkSource(built, kind, soname);
  artifact::LinkRequest link = RequestLink(built, kind);
  link.soname = soname;
  return artifact::LinkImage(link);
}

std::vector<std::string> CodeForms(const Built& built) {
  std::vector<std::string> names;
  for (const auto& [form, text] : built.device.files) names.push_back(form);
  for (const OutputForm& row : kForms) {
    if (row.content == Content::kCode && Has(built, row)) names.emplace_back(row.name);
  }
  return names;
}

Status CheckLibraryFile(const std::string& path, const Target& target) {
  const std::string& triple = target.Cpu().triple();
  const ArchRow* arch = ArchOfTriple(triple);
  const std::string own(arch ? arch->library_suffix : ".so");
  // Of other platforms, and of other files of this kind of work.
  std::vector<std::string> foreign = {".dll", ".dylib", ".exe",  ".a", ".lib",
                                      ".obj", ".wasm",  ".onnx", ".py"};
  for (const OutputForm& row : kForms) {
    if (row.make != Library && !row.suffix.empty())
      foreign.push_back(fmt::format(".{}", row.suffix));
  }
  for (const std::string& suffix : foreign) {
    if (suffix == own || !path.ends_with(suffix)) continue;
    return MakeError(
        fmt::format("'{}' does not end as a library for {} does: expected {}, or another name",
                    path, triple.empty() ? "this target" : triple, own));
  }
  return Ok();
}

Expected<std::string> FormOfFile(const Built& built, const std::string& path) {
  std::vector<std::string> suffixes;
  for (const OutputForm& row : kForms) {
    if (row.suffix.empty()) continue;
    suffixes.push_back(fmt::format(".{}", row.suffix));
    if (path.ends_with(suffixes.back())) return std::string(row.name);
  }
  const ArchRow* arch = ArchOfTriple(built.target->Cpu().triple());
  if (arch && path.ends_with(arch->library_suffix)) return std::string("so");
  for (const auto& [form, text] : built.device.files) {
    suffixes.push_back("." + form);
    if (path.ends_with(suffixes.back())) return form;
  }
  TN_RETURN_IF_ERROR(CheckLibraryFile(path, *built.target));
  return MakeError(fmt::format("cannot tell the format of '{}'; expected {}", path,
                               Listed(std::move(suffixes))));
}

Expected<std::string> MakeCode(const Built& built, std::string_view form) {
  if (form.empty() && built.target->IsDevice()) return built.device.source;
  if (form.empty()) form = IsSource(built) ? "c" : "llvm";
  if (auto it = built.device.files.find(std::string(form)); it != built.device.files.end())
    return it->second;
  const OutputForm* row = Find(form);
  if (row && row->content == Content::kCode && Has(built, *row)) return row->make(built);
  if (!built.device.missing.empty()) return built.device.missing;
  return MakeError(fmt::format("there is no source in the form '{}'; expected {}", form,
                               Listed(CodeForms(built))));
}

Expected<std::string> MakeOutput(const Built& built, std::string_view form) {
  const OutputForm* row = Find(form);
  return row && row->content != Content::kCode ? row->make(built) : MakeCode(built, form);
}

bool CallsOthers(const Built& built) { return !CallsOfOthers(built.whole).empty(); }

Expected<std::string> MakeLibraryHere(const Built& built) {
  std::set<std::string> missing = CallsOfOthers(built.whole);
  std::erase_if(missing, [](const std::string& name) {
    return dlsym(RTLD_DEFAULT, name.c_str()) != nullptr;
  });
  if (!missing.empty() || !CallsOthers(built)) return Library(built);
  if (IsSource(built)) return LinkSource(built, artifact::OutputKind::kSharedLibrary, "", true);
  artifact::LinkRequest link = RequestLink(built, artifact::OutputKind::kSharedLibrary);
  link.open = true;
  return artifact::LinkImage(link);
}

static Expected<Files> Prepared(const Built& built, const Output& output) {
  if (output.form == kGivenText) return PrepareFile(output.path, output.text);
  const OutputForm* row = Find(output.form);
  if (row && row->make == Library) {
    TN_RETURN_IF_ERROR(CheckLibraryFile(output.path, *built.target));
    return PrepareLibrary(built, artifact::OutputKind::kSharedLibrary, output);
  }
  if (row && row->make == Object)
    return PrepareLibrary(built, artifact::OutputKind::kRelocatable, output);
  if (row && row->make == SourceText && Has(built, *row)) return PrepareSource(built, output);
  TN_ASSIGN_OR_RETURN(const std::string bytes, MakeOutput(built, output.form));
  return PrepareFile(output.path, bytes);
}

static Status WriteFiles(const Built& built, const std::vector<Output>& outputs) {
  Files all;
  auto add = [&](Expected<Files> files) -> Status {
    if (!files) return std::move(files.errors());
    for (AtomicFile& file : *files) all.push_back(std::move(file));
    return Ok();
  };
  for (const Output& output : outputs) {
    if (output.form != kDeviceForms) {
      TN_RETURN_IF_ERROR(add(Prepared(built, output)));
      continue;
    }
    for (const auto& [form, text] : built.device.files)
      TN_RETURN_IF_ERROR(add(PrepareFile(output.path + "." + form, text)));
  }
  return CommitTogether(std::move(all));
}

Status WriteOutputs(const Built& built, const std::vector<Output>& outputs) {
  const std::string& folder = built.request.new_folder;
  std::error_code fault;
  if (!folder.empty()) std::filesystem::create_directories(folder, fault);
  if (fault)
    return MakeError(fmt::format("cannot make the folder '{}': {}", folder, fault.message()));
  Status written = WriteFiles(built, outputs);
  // Only where it is empty.
  if (!written && !folder.empty()) rmdir(folder.c_str());
  return written;
}

Expected<Files> PrepareFile(const std::string& path, std::string_view bytes) {
  TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TN_RETURN_IF_ERROR(file.Append(bytes));
  TN_RETURN_IF_ERROR(file.CheckWritten());
  Files files;
  files.push_back(std::move(file));
  return files;
}

Expected<artifact::TemporaryLibrary> LoadBuilt(const Built& built,
                                               const std::vector<std::string>& exports) {
  std::vector<artifact::ObjectFile> objects;
  for (const std::string& image : built.objects) objects.push_back({"module.o", image});
  return artifact::LoadTemporaryLibrary(objects, exports, built.target->triple());
}

}  // namespace tenon::driver
