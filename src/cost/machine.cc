// Machines from targets, and as text.
//
// A target says what code may use: features, registers, limits, caches. What it does not say, rates
// and latencies, is taken from a row for the architecture with middle values of current parts; so a
// machine follows from its target alone, and the same target gives the same code wherever it is
// compiled. Matrix units are rows by the feature that brings them, each named as the row of the
// table of tile intrinsics that a schedule would put in its place (a test compares the two):
//
//   llvm -mcpu=cascadelake
//
// becomes
//
//   "registers": 32, "vector_bits": 512, "workers": 1, "cycles_per_second": 3000000000.0, …
//   {"row":"","a":"f32","b":"f32","acc":"f32","m":1,"n":16,"k":1,"per_second":6000000000.0}
//   {"row":"x86.vpdpbusd.512.row","a":"u8","b":"i8","acc":"i32","m":1,"n":16,"k":4,…}
//   {"name":"L1","capacity_bytes":32768,"worker_bytes_per_second":384000000000.0,…}
//
// Each struct has one list of its fields, which printing and reading walk; so they cannot differ.
#include "cost/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "support/check.h"
#include "support/json.h"

namespace tenon {

namespace {

constexpr double kGiga = 1e9;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Rates that differ between architectures by more than their vectors' width. Middle values of
// current parts: estimates rank candidates on one machine, and ranks survive an error that all
// candidates share.
struct CoreRates {
  double gigahertz;
  double fma_units;
  double fma_latency_cycles;
  double vector_loads_per_cycle;
  double l2_bytes_per_cycle;       // sustained; half of a line on x86-64, whatever the vectors
  double l3_gigabytes_per_second;  // one core
  double dram_gigabytes_per_second;
};

CoreRates RatesOf(Arch arch) {
  struct Row {
    Arch arch;
    CoreRates rates;
  };
  static constexpr Row kRows[] = {{Arch::kX86_64, {3.0, 2, 4, 2, 32, 30, 16}},
                                  {Arch::kAArch64, {2.2, 2, 4, 2, 8, 20, 10}},
                                  {Arch::kRiscV64, {1.5, 1, 5, 1, 4, 8, 4}}};
  for (const Row& row : kRows) {
    if (row.arch == arch) return row.rates;
  }
  return {2.0, 2, 4, 2, 8, 20, 10};
}

// Units by the feature that brings them. The rate is of operations a cycle for each of the core's
// two vector ports, or by itself for tiles.
struct UnitRow {
  Feature feature;
  const char* row;
  DType a, b, acc;
  int64_t m, n, k;
  double per_cycle;
};

std::vector<UnitRow> UnitRows() {
  const DType u8 = DType::UInt(8), i8 = DType::Int(8), i32 = DType::Int(32);
  const DType bf16 = DType::BFloat16(), f32 = DType::Float(32);
  return {
      {Feature::kAvx512Vnni, "x86.vpdpbusd.512.row", u8, i8, i32, 1, 16, 4, 2},
      {Feature::kAvx512Bf16, "x86.vdpbf16ps.512.row", bf16, bf16, f32, 1, 16, 2, 1},
      {Feature::kAmxInt8, "x86.tdpbusd", u8, i8, i32, 16, 16, 64, 1.0 / 16},
      {Feature::kAmxInt8, "x86.tdpbssd", i8, i8, i32, 16, 16, 64, 1.0 / 16},
      {Feature::kAmxBf16, "x86.tdpbf16ps", bf16, bf16, f32, 16, 16, 32, 1.0 / 16},
  };
}

// Without FMA a multiply and an add take two slots of the same units.
void AddVectorUnits(const Target& cpu, const CoreRates& rates, Machine* m) {
  const double per_cycle = cpu.HasFma() ? rates.fma_units : rates.fma_units / 2;
  for (DType type : {DType::Float(32), DType::Float(64), DType::Int(32)}) {
    m->units.push_back(
        {"", type, type, type, 1, m->Lanes(type), 1, per_cycle * m->cycles_per_second});
  }
  for (const UnitRow& row : UnitRows()) {
    if (!cpu.Has(row.feature)) continue;
    m->units.push_back({row.row, row.a, row.b, row.acc, row.m, row.n, row.k,
                        row.per_cycle * m->cycles_per_second});
  }
}

Machine OfCpu(const Target& cpu) {
  const CoreRates rates = RatesOf(cpu.arch());
  Machine m;
  m.cycles_per_second = rates.gigahertz * kGiga;
  m.registers = cpu.NumVectorRegisters();
  m.vector_bits = cpu.VectorBits();
  m.workers = std::max(1, cpu.cores());
  m.fma_latency_cycles = rates.fma_latency_cycles;
  m.vector_loads_per_cycle = rates.vector_loads_per_cycle;
  m.loop_cycles = 0.5;
  AddVectorUnits(cpu, rates, &m);
  const double vector_bytes = static_cast<double>(m.vector_bits) / 8;
  const double l1 = rates.vector_loads_per_cycle * vector_bytes * m.cycles_per_second;
  const double l3 = rates.l3_gigabytes_per_second * kGiga;
  const double dram = rates.dram_gigabytes_per_second * kGiga;
  // Two or three cores saturate DRAM; L3 grows with the cores further.
  m.memory = {{"L1", cpu.caches().l1, l1, kUnlimited},
              {"L2", cpu.caches().l2, std::min(l1, rates.l2_bytes_per_cycle * m.cycles_per_second),
               kUnlimited},
              {"L3", cpu.caches().l3, l3, 8 * l3},
              {"DRAM", std::numeric_limits<int64_t>::max(), dram, 2.5 * dram}};
  m.pack_bytes_per_second = 0.5 * dram;
  m.launch_seconds = 50e-9;
  m.barrier_seconds = 1e-6;
  return m;
}

// Of a large card of the generation: how many SMs a card has is asked when a library runs, but how
// finely work is cut is decided before. An architecture that has no row takes the last older one's.
struct GpuRates {
  int generation;
  double gigahertz;
  int64_t multiprocessors;
  int64_t lanes;  // f32 multiply-adds a cycle and SM
  int64_t l2_megabytes;
  double l2_gigabytes_per_second;
  double gigabytes_per_second;
};

GpuRates RatesOf(int generation) {
  static constexpr GpuRates kRows[] = {
      {0, 1.5, 64, 128, 32, 3000, 1000},    {53, 0.9, 1, 128, 1, 50, 25},
      {60, 1.4, 56, 64, 4, 1500, 700},      {61, 1.7, 28, 128, 3, 1200, 480},
      {70, 1.5, 80, 64, 6, 2500, 900},      {75, 1.6, 40, 64, 4, 1300, 320},
      {80, 1.4, 108, 64, 40, 4500, 1900},   {86, 1.7, 84, 128, 6, 2500, 900},
      {87, 1.3, 16, 128, 4, 500, 200},      {89, 2.4, 128, 128, 72, 4500, 1000},
      {90, 1.7, 132, 128, 50, 5500, 3000},  {100, 1.8, 148, 128, 126, 8000, 7500},
      {120, 2.4, 170, 128, 96, 6000, 1700},
  };
  GpuRates found = kRows[0];
  for (const GpuRates& row : kRows) {
    if (row.generation <= generation) found = row;
  }
  return found;
}

Machine OfGpu(const Target& target) {
  const GpuLimits& limits = target.gpu();
  const int generation = GpuGeneration(limits.arch);
  Machine m;
  m.warp = std::max<int64_t>(1, limits.thread_warp_size);
  const GpuRates rates = RatesOf(generation);
  m.cycles_per_second = rates.gigahertz * kGiga;
  m.registers = 255;
  m.vector_bits = 128;
  m.workers = rates.multiprocessors;
  m.fma_latency_cycles = 4;
  m.vector_loads_per_cycle = 1;
  m.loop_cycles = 1;
  const DType f32 = DType::Float(32), f16 = DType::Float(16), bf16 = DType::BFloat16();
  m.units.push_back({"", f32, f32, f32, 1, rates.lanes, 1, m.cycles_per_second});
  if (generation >= 80) {  // four tensor cores of 256 multiply-adds a cycle and SM
    const double rate = 4 * 256.0 / (16 * 8 * 16) * m.cycles_per_second;
    m.units.push_back({"ptx.mma.m16n8k16.f16", f16, f16, f32, 16, 8, 16, rate});
    m.units.push_back({"ptx.mma.m16n8k16.bf16", bf16, bf16, f32, 16, 8, 16, rate});
  }
  if (target.Offers("sm_90a")) {  // twice as many, by the threads of a warpgroup together
    const double rate = 4 * 512.0 / (64 * 256 * 64) * m.cycles_per_second;
    m.units.push_back({"ptx.wgmma.m64n256k64.f16", f16, f16, f32, 64, 256, 64, rate});
    m.units.push_back({"ptx.wgmma.m64n256k64.bf16", bf16, bf16, f32, 64, 256, 64, rate});
  }
  m.memory = {{"shared", limits.max_shared_memory_per_block, 128 * m.cycles_per_second, kUnlimited},
              {"L2", rates.l2_megabytes << 20, 64 * m.cycles_per_second,
               rates.l2_gigabytes_per_second * kGiga},
              {"global", std::numeric_limits<int64_t>::max(), 32 * m.cycles_per_second,
               rates.gigabytes_per_second * kGiga}};
  m.pack_bytes_per_second = rates.gigabytes_per_second * kGiga / 2 / static_cast<double>(m.workers);
  m.launch_seconds = 3e-6;
  m.barrier_seconds = 1e-6;
  return m;
}

using Json = nlohmann::ordered_json;

// JSON has no infinity.
Json Number(double value) { return value == kUnlimited ? Json(nullptr) : Json(value); }

// One list of the scalar fields, for both directions.
template <class M, class F>
void ForEachNumber(M& m, F&& f) {
  f("registers", m.registers);
  f("vector_bits", m.vector_bits);
  f("workers", m.workers);
  f("warp", m.warp);
  f("cycles_per_second", m.cycles_per_second);
  f("fma_latency_cycles", m.fma_latency_cycles);
  f("vector_loads_per_cycle", m.vector_loads_per_cycle);
  f("loop_cycles", m.loop_cycles);
  f("pack_bytes_per_second", m.pack_bytes_per_second);
  f("launch_seconds", m.launch_seconds);
  f("barrier_seconds", m.barrier_seconds);
}

// Reads fields of one object and remembers what was wrong.
class Reader {
 public:
  Reader(const nlohmann::json& object, std::string where, Diagnostics* errors)
      : object_(object), where_(std::move(where)), errors_(errors) {}

  template <class T>
  void operator()(const char* name, T& out) {
    const auto it = object_.find(name);
    if (it == object_.end()) return Fail(name, "is missing");
    if constexpr (std::is_same_v<T, std::string>) {
      if (!it->is_string()) return Fail(name, "is no text");
      out = it->template get<std::string>();
    } else if constexpr (std::is_same_v<T, DType>) {
      const auto type =
          it->is_string() ? DType::Parse(it->template get<std::string>()) : std::nullopt;
      if (!type) return Fail(name, "is no type");
      out = *type;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (!it->is_number_integer()) return Fail(name, "is no integer");
      out = it->template get<int64_t>();
      if (out < 0) Fail(name, "is negative");
    } else {
      if (!it->is_number() && !it->is_null()) return Fail(name, "is no number");
      out = it->is_null() ? kUnlimited : it->template get<double>();
      if (!(out >= 0)) Fail(name, "is negative");
    }
  }

 private:
  void Fail(const char* name, const char* what) {
    errors_->push_back(MakeError(fmt::format("machine: {}'{}' {}", where_, name, what)));
  }

  const nlohmann::json& object_;
  std::string where_;
  Diagnostics* errors_;
};

template <class U, class F>
void ForEachField(U& u, F&& f) {
  f("row", u.row);
  f("a", u.a);
  f("b", u.b);
  f("acc", u.acc);
  f("m", u.m);
  f("n", u.n);
  f("k", u.k);
  f("per_second", u.per_second);
}

template <class R, class F>
void ForEachFieldOfMemory(R& r, F&& f) {
  f("name", r.name);
  f("capacity_bytes", r.capacity_bytes);
  f("worker_bytes_per_second", r.worker_bytes_per_second);
  f("machine_bytes_per_second", r.machine_bytes_per_second);
}

struct Writer {
  Json& object;
  void operator()(const char* name, const std::string& v) { object[name] = v; }
  void operator()(const char* name, const DType& v) { object[name] = v.ToString(); }
  void operator()(const char* name, int64_t v) { object[name] = v; }
  void operator()(const char* name, double v) { object[name] = Number(v); }
};

}  // namespace

int64_t Machine::Lanes(DType type) const {
  return std::max<int64_t>(1, vector_bits / std::max(1, type.StorageBits()));
}

const ComputeUnit& Machine::VectorUnit(DType type) const {
  TN_CHECK(!units.empty());
  for (const ComputeUnit& u : units) {
    if (u.row.empty() && u.acc == type) return u;
  }
  return units[0];
}

const ComputeUnit* Machine::MatrixUnit(DType a, DType b, DType acc) const {
  const ComputeUnit* best = nullptr;
  for (const ComputeUnit& u : units) {
    if (u.row.empty() || u.a != a || u.b != b || u.acc != acc) continue;
    if (!best || u.FlopsPerSecond() > best->FlopsPerSecond()) best = &u;
  }
  return best;
}

size_t Machine::LevelFor(int64_t working_set_bytes) const {
  TN_CHECK(!memory.empty());
  for (size_t level = 0; level + 1 < memory.size(); ++level) {
    if (working_set_bytes <= memory[level].capacity_bytes / 2) return level;
  }
  return memory.size() - 1;
}

Machine Machine::Of(TargetRef target) {
  Machine m = target->IsDevice() ? OfGpu(*target) : OfCpu(*target);
  m.target = std::move(target);
  return m;
}

std::string Machine::ToString() const {
  Json j;
  j["machine"] = 1;  // the version of the form
  j["target"] = target.FullText();
  ForEachNumber(*this, Writer{j});
  std::vector<std::string> lines;
  auto list = [](const char* name, const std::vector<std::string>& entries) {
    return fmt::format("  \"{}\": [\n    {}\n  ]", name, fmt::join(entries, ",\n    "));
  };
  std::vector<std::string> entries;
  for (const auto& [name, value] : j.items()) {
    entries.push_back(fmt::format("  \"{}\": {}", name, value.dump()));
  }
  std::vector<std::string> unit_lines, memory_lines;
  for (const ComputeUnit& u : units) {
    Json entry;
    ForEachField(u, Writer{entry});
    unit_lines.push_back(entry.dump());
  }
  for (const MemoryRate& r : memory) {
    Json entry;
    ForEachFieldOfMemory(r, Writer{entry});
    memory_lines.push_back(entry.dump());
  }
  entries.push_back(list("units", unit_lines));
  entries.push_back(list("memory", memory_lines));
  return fmt::format("{{\n{}\n}}\n", fmt::join(entries, ",\n"));
}

Expected<Machine> Machine::Parse(std::string_view text) {
  TN_ASSIGN_OR_RETURN(const nlohmann::json j, ParseJson(text, "machine", 8));
  if (!j.is_object() || j.value("machine", 0) != 1) {
    return MakeError("machine: expected an object with \"machine\": 1");
  }
  Machine m;
  Diagnostics errors;
  Reader read(j, "", &errors);
  std::string target_text;
  read("target", target_text);
  ForEachNumber(m, read);
  auto each = [&](const char* name, auto& out, auto&& fields) {
    const auto it = j.find(name);
    if (it == j.end() || !it->is_array() || it->empty()) {
      errors.push_back(MakeError(fmt::format("machine: expected a list '{}'", name)));
      return;
    }
    for (size_t i = 0; i < it->size(); ++i) {
      out.emplace_back();
      if ((*it)[i].is_object()) {
        fields(out.back(), Reader((*it)[i], fmt::format("{}[{}] ", name, i), &errors));
      } else {
        errors.push_back(MakeError(fmt::format("machine: {}[{}] is no object", name, i)));
      }
    }
  };
  each("units", m.units, [](ComputeUnit& u, Reader r) { ForEachField(u, r); });
  each("memory", m.memory, [](MemoryRate& r, Reader read) { ForEachFieldOfMemory(r, read); });
  if (!errors.empty()) return errors;
  TN_ASSIGN_OR_RETURN(m.target, TargetRef::Parse(target_text));
  return m;
}

Hash128 Machine::Hash() const { return HashText(ToString()); }

}  // namespace tenon
