// Planned graphs by what they compute: lowered, scheduled, and run in the interpreter.
#pragma once

#include <gtest/gtest.h>

#include "graph/lower/lower.h"
#include "interp/interp.h"
#include "support/graph_eval.h"

namespace tenon::plan::testing {

/// `main` of a graph without weights, by the schedules of its plans.
inline std::vector<graph::Array> RunPlanned(const graph::Graph& g, const Machine& machine,
                                            const std::vector<graph::Array>& inputs) {
  Expected<graph::LoweredNetwork> network = graph::Lower(g, {&machine, &machine, "main"});
  EXPECT_TRUE(network) << ToString(network.errors());
  if (!network) return {};
  EXPECT_TRUE(network->weights.empty());
  Module module = network->module;
  for (const auto& [name, kernel] : network->scheduled) {
    Expected<Schedule> schedule = ops::ScheduleKernel(kernel, machine);
    EXPECT_TRUE(schedule) << name << ToString(schedule.errors());
    if (!schedule) return {};
    for (const auto& [part, func] : schedule->module().funcs) module.Add(func);
  }
  std::vector<InterpArg> args;
  for (size_t i = 0; i < inputs.size(); ++i)
    args.push_back(InterpArg::Tensor(DType::Float(32), inputs[i].dims, inputs[i].data));
  for (graph::ValueId v : g.outputs)
    args.push_back(InterpArg::Output(DType::Float(32), *g.type(v).StaticDims()));
  const Status ran = Interpret(module, "main", args);
  EXPECT_TRUE(ran) << ToString(ran.errors());
  std::vector<graph::Array> outputs;
  for (size_t k = 0; k < g.outputs.size(); ++k) {
    const InterpArg& got = args[inputs.size() + k];
    outputs.emplace_back(got.shape);
    for (int64_t i = 0; i < got.num_elements(); ++i)
      outputs.back().data[static_cast<size_t>(i)] = got.Get(i);
  }
  return outputs;
}

/// The same numbers; they are small integers, whose sums are exact.
inline void ExpectRuns(const graph::Graph& planned, const Machine& machine,
                       const std::vector<graph::Array>& inputs,
                       const std::vector<graph::Array>& want) {
  const std::vector<graph::Array> got = RunPlanned(planned, machine, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].dims, want[k].dims);
    for (size_t i = 0; i < want[k].data.size(); ++i)
      ASSERT_EQ(got[k].data[i], want[k].data[i]) << "output " << k << " at " << i;
  }
}

}  // namespace tenon::plan::testing
