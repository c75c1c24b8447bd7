#include "driver/cache.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <memory>

#include "console.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

struct Arguments {
  bool list = false, clear = false;
};

std::string Megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(bytes));
}

Status ShowCache(const Arguments& args) {
  TN_ASSIGN_OR_RETURN(const std::string directory, driver::CacheDirectory());
  TN_ASSIGN_OR_RETURN(const int64_t limit, driver::CacheLimit());
  const std::vector<driver::CacheEntry> entries = driver::CacheEntries(directory);
  int64_t bytes = 0;
  for (const driver::CacheEntry& e : entries) {
    bytes += e.bytes;
    if (!args.list) continue;
    const auto used = static_cast<time_t>(e.used);
    Print("{:%Y-%m-%d %H:%M}  {:>12}  {}\n", fmt::localtime(used), Megabytes(e.bytes),
          std::filesystem::path(e.path).filename().string());
  }
  const std::string most = limit == 0 ? "of any size" : fmt::format("at most {}", Megabytes(limit));
  Print("{}: {} {}, {} ({}, TENON_CACHE_SIZE)\n", directory, entries.size(),
        entries.size() == 1 ? "library" : "libraries", Megabytes(bytes), most);
  const FileCache::Size kernels = driver::KernelsIn(directory)->TakeSize();
  Print("code of kernels: {} {}, {}\n", kernels.entries, kernels.entries == 1 ? "entry" : "entries",
        Megabytes(kernels.bytes));
  if (!args.clear) return Ok();
  driver::ClearCache(directory);
  Print("emptied\n");
  return Ok();
}

}  // namespace

Run AddCache(CLI::App& app, const Common& common) {
  auto args = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("cache", "what is kept of what was compiled");
  verb->footer(
      "Examples:\n"
      "  tenon cache --list\n"
      "  tenon cache --clear\n"
      "The cache is TENON_CACHE_DIR (default ~/.cache/tenon). It keeps libraries of models that "
      "were "
      "compiled to be run, and the code of kernels. What has not been used for longest goes where "
      "libraries would be larger than TENON_CACHE_SIZE (10G), and kernels than a tenth of it.");
  verb->add_flag("--list", args->list, "each library and when it was used, longest ago first");
  verb->add_flag("--clear", args->clear, "remove all libraries and kernels");
  return [args, &common]() -> int {
    Status status = ShowCache(*args);
    return status ? kDone : Report(status.errors(), common);
  };
}

}  // namespace tenon::tools
