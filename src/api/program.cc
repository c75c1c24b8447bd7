// From tensors to the schedule of their stages.
#include <algorithm>
#include <set>

#include "api/ir_data.h"
#include "api/schedule_data.h"

namespace tenon::inline v0 {

namespace {

using te::IterVar;
using te::Operation;
using te::OperationData;

// Sizes that are variables of their own, in the order of their first place.
void CollectDims(const std::vector<te::Expr>& shape, inner::te::FuncOptions* options) {
  for (const te::Expr& d : shape) {
    if (!As<VarNode>(te::Unwrap(d))) continue;
    auto var = Cast<VarNode>(te::Unwrap(d));
    if (std::find(options->dims.begin(), options->dims.end(), var) != options->dims.end()) continue;
    for (const inner::Var& other : options->dims) {
      if (other->name != var->name) continue;
      ThrowValue(fmt::format("two sizes are called '{}'; use one, or give them names of their own",
                             var->name));
    }
    options->dims.push_back(var);
    options->ranges.push_back(d.data().range);
  }
}

std::vector<Operation> ProducersFirst(const std::vector<te::Tensor>& outputs) {
  std::vector<Operation> order;
  std::set<const OperationData*> done;
  std::vector<std::pair<Operation, size_t>> stack;
  for (const te::Tensor& out : outputs) {
    te::Unwrap(out);
    stack.emplace_back(out.op(), 0);
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      if (done.count(op.node().get())) {
        stack.pop_back();
      } else if (next < op.node()->inputs.size()) {
        Operation input = op.node()->inputs[next++].op();
        stack.emplace_back(std::move(input), 0);
      } else {
        done.insert(op.node().get());
        order.push_back(op);
        stack.pop_back();
      }
    }
  }
  return order;
}

std::vector<IterVar> LoopsOf(const Operation& op) {
  std::vector<IterVar> loops = op.axis();
  const std::vector<IterVar> reduce = op.reduce_axis();
  loops.insert(loops.end(), reduce.begin(), reduce.end());
  return loops;
}

const inner::te::TensorNode& FirstOf(const Operation& op) { return *op.node()->outputs[0].node(); }

// The stage of a scan is that of its rows: of a row of several tensors, of their loop; else the
// update's.
void FindRows(const Operation& scan, ScheduleData* data) {
  StageData* update = data->Find(scan.input_tensors()[FirstOf(scan).scan->init.size()].op());
  const std::optional<stages::StageId> rows = data->schedule.state()[update->id].rows;
  if (!rows) {
    data->by_op[scan.node().get()] = update;
    return;
  }
  StageData* stage = data->AddStage(scan, *rows);
  const stages::LoopId loop = data->schedule.state()[*rows].roots[0].loop;
  data->loops[loop] = scan.scan_axis();
  data->HandleOf(stage, loop);
}

// The buffers that tensors are stored in. The parts of a scan are all in its own.
void NameTensors(const inner::te::Program& program, const std::vector<Operation>& order,
                 ScheduleData* data) {
  for (const auto& [of, buffer] : program.buffers) data->tensors[of] = buffer->name;
  for (const Operation& op : order) {
    if (op.node()->scan_states.empty()) continue;
    const inner::te::ScanNode& scan = *FirstOf(op).scan;
    for (size_t k = 0; k < scan.init.size(); ++k) {
      const std::string own = data->tensors.at(scan.buffers[k].get());
      for (const auto& part : {scan.init[k], scan.update[k], scan.state[k]}) {
        data->tensors[part->buffer.get()] = own;
      }
    }
  }
}

// Every operation gets the stage of its block; what is extern has no loops of its own.
void AddStages(const inner::te::Program& program, const std::vector<Operation>& order,
               ScheduleData* data) {
  for (const Operation& op : order) {
    if (!op.node()->scan_states.empty()) {
      FindRows(op, data);
      continue;
    }
    const stages::State& s = data->schedule.state();
    const auto block = program.blocks.find(&FirstOf(op));
    std::optional<stages::StageId> id;
    if (block != program.blocks.end()) {
      id = s.StageOf(block->second);
    } else {
      const std::string& name = data->NameOf(op.output(0));
      auto input = std::find_if(s.order.begin(), s.order.end(), [&](stages::StageId other) {
        return s[other].block.empty() && s[other].tensors[0] == name;
      });
      if (input != s.order.end()) id = *input;
    }
    if (!id) ThrowValue(fmt::format("'{}' is computed by no block", op.name()));
    data->BindLoops(data->AddStage(op, *id), LoopsOf(op));
  }
}

}  // namespace

Schedule CreateSchedule(const std::vector<te::Tensor>& outputs) {
  if (outputs.empty()) ThrowValue("a schedule needs an output");
  std::vector<Operation> order = ProducersFirst(outputs);
  std::vector<inner::te::Tensor> inputs, results;
  inner::te::FuncOptions options;
  std::set<const OperationData*> states;  // of scans, which are no inputs
  for (const Operation& op : order) {
    for (const auto& state : op.node()->scan_states) states.insert(state.get());
  }
  std::erase_if(order, [&](const Operation& op) { return states.count(op.node().get()) != 0; });
  for (const Operation& op : order) {
    if (op.node()->computed) continue;
    inputs.push_back(op.node()->outputs[0]);
    CollectDims(op.node()->shape, &options);
  }
  for (const te::Tensor& out : outputs) {
    if (!out.op().node()->computed) {
      ThrowValue(fmt::format("'{}' is an input, which nothing computes", out.name()));
    }
    results.push_back(te::Unwrap(out));
    CollectDims(out.shape(), &options);
  }
  Take(inner::te::CheckReads(results));
  const inner::te::Program program = Take(inner::te::MakeProgram("main", inputs, results, options));
  inner::Module module = WithExterns(program, order);
  Take(Verify(module, inner::kSchedulable));
  module.Add(Take(WithRequirements(module.Find("main"), module)));
  auto data =
      std::make_shared<ScheduleData>(Take(stages::StageSchedule::Of(std::move(module), "main")));
  data->outputs = outputs;
  NameTensors(program, order, data.get());
  AddStages(program, order, data.get());
  return Schedule(std::move(data));
}

}  // namespace tenon::inline v0
