// Functions to be scheduled, and what is known of them: which block computes which tensor, and
// which buffer it is in.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "te/te.h"

namespace tenon::te {

/// The tensors that `outputs` need, producers first, without those of `stop` and what these alone
/// need.
std::vector<TensorRef> ProducersFirst(const std::vector<Tensor>& outputs,
                                      const std::unordered_set<const TensorNode*>& stop = {});

/// Which block computes a tensor; of tensors that are computed together, the same.
using BlockNames = std::unordered_map<const TensorNode*, std::string>;

/// MakeFunc, which tells it.
Expected<Func> MakeFunc(const std::string& name, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& outputs, const FuncOptions& options,
                        BlockNames* blocks);

/// As people write programs: they often call several tensors by one name, and mention sizes and
/// numbers where they need them.
struct Program {
  Func func;          // names of buffers are its own, and variables that nothing gives a value are
                      // parameters
  BlockNames blocks;  // of computed tensors
  std::unordered_map<const BufferNode*, Buffer> buffers;  // the function's, by the tensors'
};
Expected<Program> MakeProgram(const std::string& name, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& outputs, const FuncOptions& options = {});

/// That no tensor that the outputs need is certain to be read outside, whatever is in it. Errors
/// name the tensor, the index and the value that it takes.
Status CheckReads(const std::vector<Tensor>& outputs);

}  // namespace tenon::te
