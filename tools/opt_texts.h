// What tenon-opt does with a text, the same way for loop IR and for graphs.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "graph/text.h"
#include "graph/verify.h"
#include "loop/parse.h"
#include "loop/pass/pass.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "opt_interpret.h"
#include "opt_replay.h"
#include "plan/passes.h"

namespace tenon {

struct LoopText {
  using Ir = Module;
  static constexpr const char* kWhat = "loop IR";
  static auto Parse(const std::string& text, const std::string& file, const graph::WeightSource&) {
    return ParseModule(text, file);
  }
  static std::string Print(const Module& m) { return tenon::Print(m); }
  static Status Verify(const Module& m) { return tenon::Verify(m, Stage::kSchedulable); }
  static Status VerifyLowered(const Module& m) { return tenon::Verify(m, Stage::kLowered); }
  static const PassInfo* FindPass(const std::string& name) { return FindLoopPass(name); }
  static std::string TargetText(const Module& m) {
    for (const auto& [name, func] : m.funcs) {
      if (func->target) return func->target.text();
    }
    return "";
  }
  static bool Equal(const Module& a, const Module& b, std::string* where) {
    for (const auto& [name, func] : a.funcs) {
      if (!StructuralEqual(func, b.Find(name), where)) return false;
    }
    return a.funcs.size() == b.funcs.size() && a.attrs == b.attrs;
  }
  /// Schedules the text's one function by a trace, of loops or of stages.
  static Expected<Module> Replay(const Module& m, const std::string& trace, bool stages, bool check,
                                 std::vector<std::string>* refusals) {
    TN_ASSIGN_OR_RETURN(Replayed replayed, (stages ? ReplayStages : ReplayText)(m, trace, check));
    *refusals = std::move(replayed.refusals);
    return std::move(replayed.module);
  }
  static Expected<std::string> Interpret(const Module& m, const InterpretOptions& options) {
    return InterpretText(m, options);
  }
  static Expected<Module> Run(const PassInfo& pass, const Module& m, const Target* target,
                              std::vector<std::string>* remarks) {
    PassContext context;
    context.target = target;
    context.remarks = remarks;
    return RunPass(pass, m, context);
  }
};

struct GraphText {
  using Ir = graph::Graph;
  static constexpr const char* kWhat = "a graph";
  static auto Parse(const std::string& text, const std::string& file,
                    const graph::WeightSource& weights) {
    return graph::Parse(text, file, weights);
  }
  static std::string Print(const Ir& g) { return graph::Print(g); }
  static Status Verify(const Ir& g) { return graph::Verify(g); }
  static Status VerifyLowered(const Ir&) {
    return MakeError("a graph is not lowered: expected loop IR");
  }
  static const graph::GraphPassInfo* FindPass(const std::string& name) {
    return graph::FindAnyGraphPass(name);
  }
  static std::string TargetText(const Ir&) { return "llvm"; }
  static bool Equal(const Ir& a, const Ir& b, std::string* where) {
    return graph::StructuralEqual(a, b, where);
  }
  static Expected<Ir> Replay(const Ir&, const std::string&, bool, bool, std::vector<std::string>*) {
    return MakeError("a graph has no schedule: expected loop IR");
  }
  static Expected<std::string> Interpret(const Ir&, const InterpretOptions&) {
    return MakeError("a graph is not interpreted: expected loop IR");
  }
  static Expected<Ir> Run(const graph::GraphPassInfo& pass, const Ir& g, const Target* target,
                          std::vector<std::string>*) {
    const Machine machine = Machine::Of(*target);
    return pass.run(g, graph::GraphPassContext{&machine});
  }
};

}  // namespace tenon
