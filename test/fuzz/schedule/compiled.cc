#include "fuzz/schedule/compiled.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "artifact/temporary_library.h"
#include "codegen/codegen.h"
#include "codegen/opencl/emit.h"
#include "support/atomic_file.h"
#include "support/file.h"
#include "support/guarded_buffer.h"
#include "support/opencl_code.h"
#include "tenon/kernel_abi.h"

namespace tenon::fuzz {

namespace {

std::atomic<uint64_t> running_seed = 0;

// What a kernel is called with: pointers, dims and, behind them, its worker. All travel in 64 bits;
// a callee does not look at those that it does not take.
constexpr size_t kMostArgs = 16;
struct CallOf {
  void* function;
  std::array<int64_t, kMostArgs> args{};
  size_t count = 0;
  bool teams = false;
};

int32_t CallIt(void* closure, int32_t rank, int32_t size, tn_team* team) {
  CallOf call = *static_cast<const CallOf*>(closure);
  std::array<int64_t, kMostArgs>& a = call.args;
  if (call.teams) {
    a[call.count] = rank;
    a[call.count + 1] = size;
    a[call.count + 2] = reinterpret_cast<int64_t>(team);
  }
  using I = int64_t;
  reinterpret_cast<void (*)(I, I, I, I, I, I, I, I, I, I, I, I, I, I, I, I)>(call.function)(
      a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
      a[15]);
  return 0;
}

// "" or what is wrong.
std::string Called(void* function, const Unit& unit, const Run& run, bool teams, int team_size) {
  const Func& lowered = unit.lowered.Find(unit.name);
  CallOf call{function};
  call.teams = teams;
  std::vector<std::unique_ptr<test::GuardedBytes>> memory;
  std::vector<InterpArg> stored;
  auto add = [&](size_t bytes) {
    memory.push_back(std::make_unique<test::GuardedBytes>(bytes));
    call.args.at(call.count++) = reinterpret_cast<int64_t>(memory.back()->data());
  };
  for (size_t i = 0; i < unit.func->buffers.size(); ++i) {
    stored.push_back(ToStorage(run.given[i], unit.func->buffers[i], run.dims));
    const InterpArg& arg = stored.back();
    add(static_cast<size_t>(arg.num_elements() * arg.dtype.Bytes()));
    if (arg.defined) std::memcpy(memory.back()->data(), arg.bytes.data(), arg.bytes.size());
  }
  for (const Var& dim : lowered->dims) call.args.at(call.count++) = run.dims.at(dim->name);
  for (const Var& scalar : lowered->scalars) {
    TN_CHECK(scalar->dtype.IsHandle(), "{} takes a scalar", unit.name);
    const int64_t bytes = WorkspaceBytes(*lowered, run.dims, team_size);
    add(static_cast<size_t>((bytes + 63) / 64 * 64));
  }
  TN_CHECK(call.count + 3 <= kMostArgs, "{} has many arguments", unit.name);
  running_seed = unit.seed;
  tn_core_run_team(CallIt, &call, team_size);
  running_seed = 0;
  std::vector<InterpArg> got = run.want;
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!memory[i]->FrontIntact())
      return "something was written before " + lowered->buffers[i]->name;
    const auto* bytes = static_cast<const uint8_t*>(memory[i]->data());
    stored[i].bytes.assign(bytes, bytes + memory[i]->size());
    FromStorage(stored[i], unit.func->buffers[i], run.dims, &got[i]);
  }
  return Difference(*unit.func, run.want, got);
}

std::vector<Found> RunAll(const std::vector<Unit>& units, const std::string& how, bool teams,
                          const std::function<void*(const std::string&)>& find) {
  std::vector<Found> out;
  for (const Unit& unit : units) {
    void* function = find(unit.name);
    TN_CHECK(function, "no {}", unit.name);
    std::string wrong;
    for (const Run& run : unit.runs) {
      for (const int team : teams ? std::vector<int>{1, 3} : std::vector<int>{1}) {
        if (wrong.empty()) wrong = Called(function, unit, run, teams, team);
      }
    }
    if (!wrong.empty()) out.push_back({unit.seed, fmt::format("{}: {}", how, wrong)});
  }
  return out;
}

Module Together(const std::vector<Unit>& units) {
  Module out;
  for (const Unit& unit : units) {
    for (const auto& [name, func] : unit.lowered.funcs) out.Add(func);
  }
  return out;
}

// One at a time, where all together do not compile.
std::vector<Found> OneByOne(
    const std::vector<Unit>& units, const std::string& what,
    const std::function<std::vector<Found>(const std::vector<Unit>&)>& run) {
  if (units.size() == 1) return {{units[0].seed, what}};
  std::vector<Found> out;
  for (const Unit& unit : units) {
    for (Found& found : run({unit})) out.push_back(std::move(found));
  }
  return out;
}

/// A folder that goes with this object.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "tenon-fuzz-XXXXXX").string();
    TN_CHECK(mkdtemp(path_.data()));
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

uint64_t RunningSeed() { return running_seed; }

std::vector<Found> RunByLlvm(const std::vector<Unit>& units, const Target& target) {
  if (units.empty()) return {};
  std::string what;
  try {
    codegen::EmitOptions options;
    options.verify = true;
    Expected<std::string> object = codegen::EmitObject(Together(units), target, options);
    if (object) {
      std::vector<std::string> exports;
      for (const Unit& unit : units) exports.push_back(unit.name);
      auto library =
          artifact::LoadTemporaryLibrary({{"fuzz.o", *object}}, exports, target.triple());
      TN_CHECK(library, "{}", ToString(library.errors()));
      return RunAll(units, "LLVM, " + target.ToString(), true,
                    [&](const std::string& name) { return library->Find(name); });
    }
    what = ToString(object.errors());
  } catch (const InternalError& error) {
    what = error.what();
  }
  return OneByOne(units, "LLVM, " + target.ToString() + ": " + what,
                  [&](const auto& one) { return RunByLlvm(one, target); });
}

namespace {

std::vector<Found> RunByCompiler(const std::vector<Unit>& units, const Folder& folder,
                                 const std::string& source, const std::string& compiler) {
  const std::string library = folder / "fuzz.so", log = folder / "log";
  const std::string command = compiler + " -std=c11 -Wall -Wextra -Werror -shared -fPIC " + source +
                              " -o " + library + " -lm > " + log + " 2>&1";
  if (system(command.c_str()) != 0) {  // NOLINT(cert-env33-c): a test's own command
    return {{units[0].seed, compiler + ": " + ReadFile(log).value()}};
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  TN_CHECK(handle, "{}", dlerror());
  std::vector<Found> found = RunAll(
      units, compiler, false, [&](const std::string& name) { return dlsym(handle, name.c_str()); });
  dlclose(handle);
  std::filesystem::remove(library);
  return found;
}

}  // namespace

std::vector<Found> RunByC(const std::vector<Unit>& units, const Target& target,
                          const std::vector<std::string>& compilers) {
  if (units.empty()) return {};
  std::string what;
  try {
    Expected<std::string> text = codegen::EmitC(Together(units), target, {});
    if (text) {
      const Folder folder;
      const std::string source = folder / "fuzz.c";
      TN_CHECK(WriteFile(source, *text));
      std::vector<Found> out;
      for (const std::string& compiler : compilers) {
        for (Found& found : RunByCompiler(units, folder, source, compiler)) {
          out.push_back(std::move(found));
        }
      }
      return out;
    }
    what = ToString(text.errors());
  } catch (const InternalError& error) {
    what = error.what();
  }
  return OneByOne(units, "C: " + what,
                  [&](const auto& one) { return RunByC(one, target, compilers); });
}

// ---- OpenCL ----

namespace {

std::string CalledOnDevice(test::OpenClCode* code, const Unit& unit, const Run& run) {
  const Func& lowered = unit.lowered.Find(unit.name);
  std::vector<InterpArg> stored;
  std::vector<test::OpenClCode::Bytes> bytes;
  for (size_t i = 0; i < unit.func->buffers.size(); ++i) {
    stored.push_back(ToStorage(run.given[i], unit.func->buffers[i], run.dims));
    InterpArg& arg = stored.back();
    arg.bytes.resize(static_cast<size_t>(arg.num_elements() * arg.dtype.Bytes()), 0xA5);
  }
  for (InterpArg& arg : stored) bytes.push_back({arg.bytes.data(), arg.bytes.size()});
  std::vector<int64_t> ints;
  for (const Var& dim : lowered->dims) ints.push_back(run.dims.at(dim->name));
  running_seed = unit.seed;
  code->Call(unit.name, bytes, ints);
  running_seed = 0;
  std::vector<InterpArg> got = run.want;
  for (size_t i = 0; i < stored.size(); ++i) {
    FromStorage(stored[i], unit.func->buffers[i], run.dims, &got[i]);
  }
  return Difference(*unit.func, run.want, got);
}

bool IsLeftOut(const Unit& unit, const Target& target) {
  auto source = codegen::EmitOpenCl(unit.lowered, target, {});
  if (source) return false;
  const std::vector<Diagnostic>& errors = source.errors();
  return std::all_of(errors.begin(), errors.end(), [](const Diagnostic& d) {
    return d.message.find("in global memory on a GPU") != std::string::npos ||
           d.message.find("of type handle") != std::string::npos;  // to such memory
  });
}

std::vector<Found> RunOnDevice(const std::vector<Unit>& units, const Target& target) {
  std::string what;
  try {
    test::OpenClCode code(Together(units), target);
    std::vector<Found> out;
    for (const Unit& unit : units) {
      std::string wrong;
      for (const Run& run : unit.runs) {
        if (wrong.empty()) wrong = CalledOnDevice(&code, unit, run);
      }
      if (!wrong.empty()) out.push_back({unit.seed, "OpenCL: " + wrong});
    }
    return out;
  } catch (const InternalError& error) {
    what = error.what();
  }
  return OneByOne(units, "OpenCL: " + what,
                  [&](const auto& one) { return RunOnDevice(one, target); });
}

}  // namespace

std::vector<Found> RunByOpenCl(const std::vector<Unit>& units, const Target& target,
                               size_t* left_out) {
  std::vector<Unit> those;
  for (const Unit& unit : units) {
    if (!IsLeftOut(unit, target)) those.push_back(unit);
  }
  *left_out += units.size() - those.size();
  return those.empty() ? std::vector<Found>() : RunOnDevice(those, target);
}

}  // namespace tenon::fuzz
