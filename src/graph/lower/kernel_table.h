// The kernels of a network, each of them once.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/lower/lower.h"
#include "loop/func.h"
#include "ops/kernel.h"

namespace tenon::graph {

/// Kernels by content: equal definitions with equal choices share one function.
class KernelTable {
 public:
  KernelTable(Module* module, std::vector<KernelInfo>* infos,
              std::map<std::string, ops::Kernel>* scheduled)
      : module_(module), infos_(infos), scheduled_(scheduled) {}

  /// The name of the kernel, made anew or found. `launched`: at typical sizes.
  std::string Intern(const ops::Kernel& k, bool launched);

 private:
  Module* module_;
  std::vector<KernelInfo>* infos_;
  std::map<std::string, ops::Kernel>* scheduled_;
  std::unordered_map<uint64_t, std::vector<std::pair<Func, std::string>>> known_;
  std::map<std::string, size_t> index_;
};

}  // namespace tenon::graph
