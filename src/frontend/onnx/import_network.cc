// A network of a file: as one part, which is a graph, or as the parts of a program where a graph
// may not have what the network does.
#include <algorithm>
#include <deque>
#include <filesystem>

#include "frontend/onnx/import_program.h"
#include "frontend/onnx/inline_functions.h"
#include "frontend/onnx/overrides.h"

namespace tenon::onnx {

using graph::WeightFile;

// The options of a model that lies in a file.
static ImportOptions BesideFile(const std::string& path, const ImportOptions& options) {
  ImportOptions out = options;
  out.external_data_dir = ExternalDataDirectory(path, options.external_data_dir);
  std::error_code none;
  if (options.external_data_dir.empty())
    out.linked_data_dir = std::filesystem::canonical(path, none).parent_path().string();
  return out;
}

Expected<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  auto file = std::make_shared<const WeightFile>(path, std::move(map));
  return ImportOnnx(std::move(file), BesideFile(path, options));
}

// A network of tensors: all of it is one graph.
static Expected<graph::Program> AsOnePart(const std::shared_ptr<const WeightFile>& file,
                                          const ModelProto& model, const ImportOptions& options,
                                          bool* assumes_rank, PartFaults* faults) {
  TN_ASSIGN_OR_RETURN(ImportedPart whole, ImportPart(file, model, options, faults));
  *assumes_rank = whole.assumes_rank;
  graph::Program out;
  out.parts.push_back(std::move(whole.graph));
  return out;
}

// Whether there are branches or loops, in the bodies of other nodes too.
static bool HasControl(const GraphProto& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const NodeProto& n) {
    if (n.op_type == "If" || n.op_type == "Loop") return true;
    return std::any_of(n.attributes.begin(), n.attributes.end(), [](const AttributeProto& a) {
      return !a.graph.empty() && HasControl(a.graph[0]);
    });
  });
}

Expected<graph::Program> ImportNetwork(const std::string& path, const ImportOptions& options) {
  TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
  auto file = std::make_shared<const WeightFile>(path, std::move(map));
  const ImportOptions beside = BesideFile(path, options);
  TN_ASSIGN_OR_RETURN(ModelProto proto, ReadModel(file->map.text(), path, options.limits));
  TN_RETURN_IF_ERROR(Apply(options.overrides, &proto.graph));
  std::deque<std::string> names;
  TN_RETURN_IF_ERROR(InlineFunctions(&proto, options.limits.max_nodes, &names, path));
  bool assumes_rank = false;
  PartFaults faults;
  Expected<graph::Program> program = NeedsProgram(proto)
                                         ? ImportProgram(file, proto, beside)
                                         : AsOnePart(file, proto, beside, &assumes_rank, &faults);
  // What one part could not do another may have done.
  const auto whole = [&](Expected<graph::Program> made) {
    if (options.obstacles) options.obstacles->clear();
    return made;
  };
  if (program && !assumes_rank) return whole(std::move(program));
  // Steps may be branches, loops and ranks that a graph may not have; limits hold for both.
  const Diagnostics why = program ? Diagnostics() : program.errors();
  const bool limit = std::any_of(why.begin(), why.end(),
                                 [](const Diagnostic& d) { return d.kind == ErrorKind::kLimit; });
  const bool needed = HasControl(proto.graph) || assumes_rank || !faults.of_found_sizes.empty() ||
                      HasRanksOfCalls(proto.graph, options);
  if (!needed || limit) return program;
  ImportOptions again = beside;
  again.obstacles = nullptr;
  Expected<graph::Program> steps = ImportProgram(std::move(file), proto, again, true);
  return steps ? whole(std::move(steps)) : std::move(program);
}

std::string ExternalDataDirectory(const std::string& path, const std::string& given) {
  if (!given.empty()) return given;
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace tenon::onnx
