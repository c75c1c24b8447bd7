// The importer's main line: header, names and order, unsupported operators, inputs, nodes, outputs.
//
// Import looks at everything that could be wrong before it builds anything, so that one run reports
// it all: versions, names, cycles, operators without a row, each by the nodes that use it. Nodes
// are then taken in an order in which inputs come first. A node's operator and version select a row
// of the table, whose function turns it into operators of the graph, with constants of small size
// at hand as numbers:
//
//   node "fc" Gemm(x, w, b) {transB: 1}
//
// becomes
//
//   %7: f32[1, 64] = matmul(%0, %1) {trans_b: true}
//   %8 "fc": f32[1, 64] = add(%7, %2)
//
// Types and shapes are inferred by the graph's own rules. An error in one node poisons its results,
// and what depends on those is not reported again.

#include "frontend/onnx/import.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "frontend/onnx/call_sizes.h"
#include "frontend/onnx/import_program.h"
#include "frontend/onnx/inline_functions.h"
#include "frontend/onnx/input_shapes.h"
#include "frontend/onnx/narrow.h"
#include "frontend/onnx/node_order.h"
#include "frontend/onnx/op_context.h"
#include "graph/verify.h"
#include "support/check.h"
#include "support/strings.h"

namespace tenon::onnx {
namespace {

using graph::Quoted;
using graph::WeightFile;

constexpr size_t kMostErrors = 20, kMostObstacles = 1000;
constexpr ValueId kPoisoned =
    -2;  // a tensor whose producer failed; what reads it is skipped without a word

std::string_view DomainOf(const NodeProto& node) {
  return node.domain == "ai.onnx" ? std::string_view() : node.domain;
}

// A graph being imported: the main one, or one of an attribute inside another.
struct Scope {
  graph::Builder* builder;
  ImportedRegion* region = nullptr;  // of a graph that becomes a region; null: it is the builder's
  Scope* outer = nullptr;
  std::unordered_map<std::string_view, ValueId> values = {};
};

// One import. scope_ is that of the graph whose nodes are being imported, and a name means what it
// is there or, seen from there, outside. A value that could not be made is no reason for further
// errors: each diagnostic is about a cause.
class Importer : private RegionImporter {
 public:
  Importer(std::shared_ptr<const WeightFile> file, const ImportOptions& options,
           ExternalData external, PartFaults* faults = nullptr)
      : file_(std::move(file)),
        options_(options),
        external_(std::move(external)),
        faults_(faults),
        shapes_(builder_.graph(), options.shapes, options.empty_sizes) {}

  Expected<graph::Graph> Run(const ModelProto& model);
  /// Of the graph's outputs, after Run: the model's element types.
  std::vector<int32_t> OutputTypes() const { return output_types_; }
  bool AssumesRank() const { return assumes_rank_; }

 private:
  Diagnostic Error(std::string item, std::string message) const {
    return MakeError(std::move(message), {.file = file_->path, .item = std::move(item)});
  }
  void Report(Diagnostics errors, const std::string& item, std::vector<std::string> notes = {});
  void ReportNode(const NodeProto& node, const std::string& item, Diagnostics errors,
                  std::vector<std::string> notes);
  bool Lasts(const NodeProto& node, const OpRow& row, std::span<const ValueId> inputs,
             const Diagnostics& errors) const;
  size_t most_errors() const { return options_.obstacles ? kMostObstacles : kMostErrors; }
  void AddObstacle(const NodeProto& node, const std::string& item, const std::string& reason);

  Expected<ImportedRegion> Import(const GraphProto& g, std::span<const Formal> formals) override;
  Expected<std::vector<ValueId>> Inline(const GraphProto& g,
                                        std::span<const ValueId> inputs) override;
  std::optional<int64_t> DeclaredRank(std::string_view name) const override;
  void AssumeRank() override { assumes_rank_ = true; }
  Expected<std::vector<ValueId>> ImportBody(const GraphProto& g, Scope* scope);

  graph::Builder& builder() { return *scope_->builder; }
  /// The value of that name in the graph being imported, captured where it is of one outside.
  ValueId Find(std::string_view name) { return FindIn(scope_, name); }
  ValueId FindIn(Scope* scope, std::string_view name);
  NarrowValues& narrow() { return narrow_[scope_->builder]; }
  static bool IsKnown(const Scope* scope, std::string_view name);

  int64_t OpsetOf(const NodeProto& node) const { return node.opset ? node.opset : opset_; }
  Status CheckHeader(const ModelProto& model);
  void NoteMissingImports(const ModelProto& model);
  void CheckOperators(const GraphProto& g);
  Status CheckShapeOptions(const GraphProto& g) const;
  Expected<Tensor> ReadInitializer(const TensorProto& t);
  void ImportInitializers(const GraphProto& g);
  void ImportInputs(const GraphProto& g);
  ValueId Received(const ValueInfoProto& input, TensorType type);
  ValueId Recast(ValueId v, DType to);
  void ReadDeclaredRanks(const GraphProto& g, std::span<const size_t> order);
  Expected<TensorType> InputType(const ValueInfoProto& input);
  Status CheckDeclaredType(const ValueInfoProto& declared, const TensorType& type) const;
  Status CheckDeclaredShape(const ValueInfoProto& declared, const TensorType& type) const;
  void Warn(const Diagnostics& warnings, const std::string& item) const;
  void ImportNode(const NodeProto& node, size_t index);
  const CustomOperator* CustomOf(const NodeProto& node) const {
    return FindCustom(options_.operators, DomainOf(node), node.op_type);
  }
  const OpRow* RowOf(const NodeProto& node) const {
    static const OpRow kCustom = {"", 1, nullptr, OpKind::kCall};
    return CustomOf(node) ? &kCustom : FindRow(DomainOf(node), node.op_type, OpsetOf(node));
  }
  Status RunImporter(const NodeProto& node, const OpRow& row, const std::string& item,
                     std::vector<ValueId> inputs);
  void ImportOutputs(const GraphProto& g);
  void CheckValueInfos(const GraphProto& g);

  const std::shared_ptr<const WeightFile> file_;
  const ImportOptions& options_;
  ExternalData external_;
  PartFaults* const faults_;
  int64_t opset_ = 0;
  std::map<std::string, int64_t> versions_;  // of the operator sets, by domain
  graph::Builder builder_;
  Scope main_{&builder_};
  Scope* scope_ = &main_;
  InputShapes shapes_;
  std::unordered_map<std::string_view, int64_t> declared_ranks_;  // of the main graph's values
  std::map<const graph::Builder*, NarrowValues> narrow_;  // of each graph that is being built
  std::vector<std::string> notes_;                        // what was taken for granted
  std::map<std::string, SourceLoc> askers_;  // of the graph's constraints, by their text
  std::vector<std::string> overruled_;  // sizes that the user changes, which may be why it fails
  Diagnostics errors_;
  std::vector<int32_t> output_types_;
  bool assumes_rank_ = false;
};

std::optional<int64_t> Importer::DeclaredRank(std::string_view name) const {
  if (scope_ != &main_) return std::nullopt;
  const auto it = declared_ranks_.find(name);
  return it == declared_ranks_.end() ? std::nullopt : std::optional(it->second);
}

// What the model says, and what follows for operands of elementwise operators.
void Importer::ReadDeclaredRanks(const GraphProto& g, std::span<const size_t> order) {
  for (const auto* list : {&g.value_infos, &g.outputs}) {
    for (const ValueInfoProto& v : *list) {
      if (v.kind == ValueInfoProto::Kind::kTensor && v.has_shape)
        declared_ranks_[v.name] = static_cast<int64_t>(v.shape.size());
    }
  }
  for (size_t i = order.size(); i-- > 0;) {
    const NodeProto& n = g.nodes[order[i]];
    if (n.inputs.empty() || n.outputs.empty()) continue;
    const OpRow* row = RowOf(n);
    if (!row || graph::Info(row->op).map != graph::IndexMapClass::kElementwise ||
        graph::Info(row->op).max_inputs != 1)
      continue;
    const auto result = declared_ranks_.find(n.outputs[0]);
    if (result != declared_ranks_.end()) declared_ranks_.emplace(n.inputs[0], result->second);
  }
}

void Importer::Report(Diagnostics errors, const std::string& item, std::vector<std::string> notes) {
  for (Diagnostic& d : errors) {
    if (errors_.size() >= most_errors()) return;
    d.loc = {.file = file_->path, .item = item};
    d.notes.insert(d.notes.end(), notes.begin(), notes.end());
    errors_.push_back(std::move(d));
  }
}

void Importer::AddObstacle(const NodeProto& node, const std::string& item,
                           const std::string& reason) {
  if (!options_.obstacles) return;
  const std::string domain(DomainOf(node));
  int64_t version = OpsetOf(node);
  if (!domain.empty()) {
    const auto set = versions_.find(domain);
    version = set == versions_.end() ? 0 : set->second;
  }
  std::vector<Obstacle>& all = *options_.obstacles;
  Obstacle one{std::string(node.op_type), domain, version, reason, {}};
  auto known = std::find_if(all.begin(), all.end(), [&](const Obstacle& o) {
    return o.op_type == one.op_type && o.domain == domain && o.version == version &&
           o.reason == reason;
  });
  if (known == all.end()) known = all.insert(all.end(), std::move(one));
  known->nodes.push_back(item);
}

void Importer::ReportNode(const NodeProto& node, const std::string& item, Diagnostics errors,
                          std::vector<std::string> notes) {
  for (const Diagnostic& d : errors) AddObstacle(node, item, d.message);
  Report(std::move(errors), item, std::move(notes));
}

void Importer::Warn(const Diagnostics& warnings, const std::string& item) const {
  for (const Diagnostic& d : warnings) {
    if (options_.warn)
      options_.warn(fmt::format("{}: {}: warning: {}", file_->path, item, d.message));
  }
}

// Scopes nest no deeper than ReadLimits::max_depth.
ValueId Importer::FindIn(Scope* scope, std::string_view name) {
  if (auto it = scope->values.find(name); it != scope->values.end()) return it->second;
  ValueId v = FindIn(scope->outer, name);  // OrderNodes has seen to it that it is somewhere
  if (v >= 0 && scope->region) {
    const NarrowType* type = narrow_[scope->outer->builder].Of(v);
    v = scope->region->CaptureValue(*scope->outer->builder, v);
    narrow_[scope->builder].Set(v, type);
  }
  return scope->values[name] = v;
}

bool Importer::IsKnown(const Scope* scope, std::string_view name) {
  for (; scope; scope = scope->outer) {
    if (scope->values.contains(name)) return true;
  }
  return false;
}

// An empty list of errors says that they have been reported.
Expected<std::vector<ValueId>> Importer::ImportBody(const GraphProto& g, Scope* scope) {
  Scope* outer = std::exchange(scope_, scope);
  auto import = [&]() -> Expected<std::vector<ValueId>> {
    const size_t before = errors_.size();
    const auto is_outside = [&](std::string_view name) { return IsKnown(outer, name); };
    const Expected<std::vector<size_t>> order = OrderNodes(g, file_->path, is_outside);
    if (!order) {
      errors_.insert(errors_.end(), order.errors().begin(), order.errors().end());
      return Diagnostics{};
    }
    ImportInitializers(g);
    for (size_t n : *order) {
      if (errors_.size() >= most_errors()) break;
      ImportNode(g.nodes[n], n);
    }
    if (errors_.size() > before) return Diagnostics{};
    std::vector<ValueId> outputs;
    for (const ValueInfoProto& output : g.outputs) outputs.push_back(Find(output.name));
    if (std::find(outputs.begin(), outputs.end(), kPoisoned) != outputs.end()) return Diagnostics{};
    return outputs;
  };
  Expected<std::vector<ValueId>> outputs = import();
  scope_ = outer;
  return outputs;
}

Expected<ImportedRegion> Importer::Import(const GraphProto& g, std::span<const Formal> formals) {
  if (g.inputs.size() != formals.size()) {
    return MakeError(fmt::format("expected a graph with {} inputs, but {} has {}", formals.size(),
                                 Quoted(g.name), g.inputs.size()));
  }
  ImportedRegion region{std::make_unique<graph::Builder>(std::string(g.name)), {}, {}, {}, {}};
  region.builder->ShareDims(builder());
  narrow_.erase(region.builder.get());  // of another that was there before
  Scope scope{region.builder.get(), &region, scope_};
  for (size_t i = 0; i < formals.size(); ++i) {
    const std::string name(g.inputs[i].name);
    ValueId v;
    if (formals[i].constant) {
      const int64_t number = *formals[i].constant;
      v = region.builder->Constant(
          name, formals[i].type.tensor(),
          graph::MakePayload(DType::Bool(), std::span<const int64_t>(&number, 1)));
    } else if (formals[i].make) {
      TN_ASSIGN_OR_RETURN(v, formals[i].make(region));
    } else {
      v = region.builder->Input(name, formals[i].type);
    }
    region.formals.push_back(v);
    narrow_[region.builder.get()].Set(v, formals[i].narrow);
    scope.values[g.inputs[i].name] = v;
  }
  TN_ASSIGN_OR_RETURN(region.outputs, ImportBody(g, &scope));
  for (ValueId v : region.outputs) region.narrow.push_back(narrow_[region.builder.get()].Of(v));
  return region;
}

Expected<std::vector<ValueId>> Importer::Inline(const GraphProto& g,
                                                std::span<const ValueId> inputs) {
  if (g.inputs.size() != inputs.size()) {
    return MakeError(fmt::format("expected a graph with {} inputs, but {} has {}", inputs.size(),
                                 Quoted(g.name), g.inputs.size()));
  }
  Scope scope{scope_->builder, nullptr, scope_};
  for (size_t i = 0; i < inputs.size(); ++i) scope.values[g.inputs[i].name] = inputs[i];
  return ImportBody(g, &scope);
}

// The nodes of a graph and of those in its attributes, which nest no deeper than
// ReadLimits::max_depth.
void CollectNodes(const GraphProto& g, std::vector<std::pair<const NodeProto*, size_t>>* all) {
  for (size_t n = 0; n < g.nodes.size(); ++n) {
    all->emplace_back(&g.nodes[n], n);
    for (const AttributeProto& a : g.nodes[n].attributes) {
      for (const GraphProto& inner : a.graph) CollectNodes(inner, all);
    }
  }
}

// Of a domain that nothing imports the newest operators are taken.
void Importer::NoteMissingImports(const ModelProto& model) {
  std::set<std::string_view> imported;
  const auto add = [&](const std::vector<OpsetId>& ids) {
    for (const OpsetId& id : ids) imported.insert(id.domain == "ai.onnx" ? "" : id.domain);
  };
  add(model.opset_imports);
  for (const FunctionProto& f : model.functions) add(f.opset_imports);
  if (opset_ == 0) imported.erase("");
  std::vector<std::pair<const NodeProto*, size_t>> nodes;
  CollectNodes(model.graph, &nodes);
  for (const auto& [node, index] : nodes) {
    const std::string_view domain = DomainOf(*node);
    if (domain.empty() && node->opset != 0) continue;  // of a function, which imports it
    if (!domain.empty() && !FindRow(domain, node->op_type, kMaxOpset)) continue;
    if (!imported.insert(domain).second) continue;
    notes_.push_back(
        domain.empty()
            ? fmt::format("the model imports no version of the default domain: its operators are "
                          "those of opset {}",
                          kMaxOpset)
            : fmt::format("the model imports no version of the domain {}: its operators are the "
                          "newest",
                          Quoted(domain)));
  }
}

Status Importer::CheckHeader(const ModelProto& model) {
  if (!model.has_graph)
    return Error("model", "expected an ONNX model with a graph, but there is none");
  if (model.ir_version < 1 || model.ir_version > kMaxIrVersion) {
    return Error("model", fmt::format("expected an IR version of 1 to {}, but got {}",
                                      kMaxIrVersion, model.ir_version));
  }
  for (const OpsetId& id : model.opset_imports) {
    if (!id.domain.empty() && id.domain != "ai.onnx") continue;
    if (opset_ != 0 && opset_ != id.version)
      return Error("model", "expected one version of the default operator set, but got several");
    if (id.version < kMinOpset || id.version > kMaxOpset) {
      return Error("model", fmt::format("expected operator set {} to {}, but got {}", kMinOpset,
                                        kMaxOpset, id.version));
    }
    opset_ = id.version;
  }
  NoteMissingImports(model);
  if (opset_ == 0) opset_ = kMaxOpset;
  for (const FunctionProto& f : model.functions) {
    for (const OpsetId& id : f.opset_imports) {
      const bool fits = id.version >= kMinOpset && id.version <= kMaxOpset;
      if (fits || (!id.domain.empty() && id.domain != "ai.onnx")) continue;
      return Error("function " + Quoted(f.name),
                   fmt::format("expected operator set {} to {}, but got {}", kMinOpset, kMaxOpset,
                               id.version));
    }
  }
  return Ok();
}

// One error per operator that cannot be imported, with the nodes that use it; what these give is
// not looked at further, but all else is.
void Importer::CheckOperators(const GraphProto& g) {
  const size_t before = errors_.size();
  using Place = std::pair<const NodeProto*, size_t>;
  std::vector<Place> all;
  CollectNodes(g, &all);
  auto describe = [](const Place& p) { return DescribeNode(*p.first, p.second); };
  std::map<std::pair<std::string, std::string>, std::vector<Place>> unknown;
  for (const Place& place : all) {
    const NodeProto& node = *place.first;
    const std::string domain(DomainOf(node));
    if (RowOf(node)) continue;
    unknown[{domain, std::string(node.op_type)}].push_back(place);
    AddObstacle(node, describe(place), "the operator is not supported");
  }
  for (const auto& [op, nodes] : unknown) {
    if (errors_.size() >= kMostObstacles) break;
    const std::string where = op.first.empty()
                                  ? fmt::format("of opset {}", OpsetOf(*nodes[0].first))
                                  : fmt::format("of domain {}", Quoted(op.first));
    Diagnostic d =
        Error(describe(nodes[0]),
              fmt::format("operator {} {} is not supported ({} node{})", Quoted(op.second), where,
                          nodes.size(), nodes.size() == 1 ? "" : "s"));
    for (size_t i = 0; i < nodes.size() && i < 8; ++i) d.notes.push_back(describe(nodes[i]));
    if (nodes.size() > 8) d.notes.push_back(fmt::format("and {} more", nodes.size() - 8));
    errors_.push_back(std::move(d));
  }
  if (errors_.size() == before) return;
  std::vector<std::string>& notes = errors_[before].notes;
  if (!options_.operators.empty()) {
    std::vector<std::string> given;
    for (const auto& [name, op] : options_.operators)
      given.push_back(name.first.empty() ? name.second : name.first + "::" + name.second);
    notes.push_back("operators of your own: " + Join(given, ", "));
  }
  notes.insert(notes.end(), notes_.begin(), notes_.end());
}

// Names of initializers in regions are not those of the model's.
Expected<Tensor> Importer::ReadInitializer(const TensorProto& t) {
  const auto given = options_.overrides.initializers.find(std::string(t.name));
  if (scope_ != &main_ || given == options_.overrides.initializers.end())
    return ReadTensor(t, file_, &external_);
  Tensor out;
  TN_ASSIGN_OR_RETURN(out.type.dtype, StorageOf(t.data_type));
  for (int64_t d : t.dims) out.type.dims.push_back(IndexConst(d));
  TN_RETURN_IF_ERROR(graph::CheckType(out.type));
  out.narrow = NarrowTypeOf(t.data_type);
  const std::vector<std::byte>& bytes = given->second.bytes;
  const int64_t expected = *graph::StaticCount(out.type.dims) * out.type.dtype.Bytes();
  if ((out.narrow && out.narrow->bits < 8) || static_cast<int64_t>(bytes.size()) != expected)
    return MakeError(fmt::format("expected {} bytes for it, but got {}", expected, bytes.size()));
  out.payload = graph::Payload::Owned(bytes);
  return out;
}

void Importer::ImportInitializers(const GraphProto& g) {
  // A file that is not there is the fault of every tensor in it, and is said once.
  struct Fault {
    std::string item;
    Diagnostics errors;
    size_t others = 0;
  };
  std::map<std::string, Fault> faults;  // by message
  for (const TensorProto& t : g.initializers) {
    Expected<Tensor> tensor = ReadInitializer(t);
    if (tensor) {
      const ValueId v = AddConstant(builder(), std::string(t.name), std::move(*tensor));
      narrow().Set(v, NarrowTypeOf(t.data_type));
      scope_->values[t.name] = v;
    } else {
      scope_->values[t.name] = kPoisoned;
      const std::string message = ToString(tensor.errors());
      const auto [fault, is_new] = faults.try_emplace(
          message, Fault{"initializer " + Quoted(t.name), std::move(tensor.errors())});
      if (!is_new) ++fault->second.others;
    }
  }
  for (auto& [message, fault] : faults) {
    std::vector<std::string> notes;
    if (fault.others > 0) notes.push_back(fmt::format("and {} more", fault.others));
    Report(std::move(fault.errors), fault.item, std::move(notes));
  }
}

Status Importer::CheckShapeOptions(const GraphProto& g) const {
  std::vector<std::string> names;
  for (const ValueInfoProto& input : g.inputs) {
    if (!scope_->values.contains(input.name)) names.emplace_back(input.name);
  }
  for (const auto& [name, dims] : options_.shapes) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    Diagnostic d =
        Error("input " + Quoted(name), "a shape is given for it, but the model has no such input");
    for (const std::string& n : names) d.notes.push_back("input " + Quoted(n));
    return d;
  }
  return Ok();
}

Expected<TensorType> Importer::InputType(const ValueInfoProto& input) {
  if (input.kind == ValueInfoProto::Kind::kNone)
    return MakeError("expected a type, but the model gives none");
  if (input.kind != ValueInfoProto::Kind::kTensor) {
    return MakeError("expected a tensor; sparse tensors and opaque values are not supported");
  }
  TensorType type;
  TN_ASSIGN_OR_RETURN(type.dtype, StorageOf(input.elem_type));
  TN_ASSIGN_OR_RETURN(type.dims, shapes_.Dims(input));
  TN_RETURN_IF_ERROR(graph::CheckType(type));
  return type;
}

// A constant, or what the nodes give, beside what the model says it is. What a model leaves open,
// and sizes that are not known yet, say nothing.
Status Importer::CheckDeclaredType(const ValueInfoProto& declared, const TensorType& type) const {
  if (declared.kind != ValueInfoProto::Kind::kTensor || declared.elem_type == 0) return Ok();
  TN_ASSIGN_OR_RETURN(const DType dtype, StorageOf(declared.elem_type));
  if (dtype == type.dtype) return Ok();
  return MakeError(fmt::format("expected {} as the model declares, but it is {}", dtype.ToString(),
                               type.dtype.ToString()));
}

Status Importer::CheckDeclaredShape(const ValueInfoProto& declared, const TensorType& type) const {
  // Sizes that the user changes change others, which the model still declares.
  if (declared.kind != ValueInfoProto::Kind::kTensor || !declared.has_shape || !overruled_.empty())
    return Ok();
  bool fits = declared.shape.size() == type.dims.size();
  std::vector<std::string> dims;
  for (size_t i = 0; i < declared.shape.size(); ++i) {
    const DimProto& d = declared.shape[i];
    const bool is_number = d.kind == DimProto::Kind::kValue;
    dims.push_back(is_number ? std::to_string(d.value) : "?");
    const std::optional<int64_t> found = fits ? AsInt(type.dims[i]) : std::nullopt;
    if (is_number && found && *found != d.value) fits = false;
  }
  if (fits) return Ok();
  return MakeError(fmt::format("expected the shape [{}] as the model declares, but it is {}",
                               Join(dims, ", "), graph::DimsText(type.dims)));
}

// An input of the whole graph. Callers give 8-bit floats, which the graph has as bytes.
ValueId Importer::Received(const ValueInfoProto& input, TensorType type) {
  const NarrowType* narrow_type = NarrowTypeOf(input.elem_type);
  const DType storage = type.dtype;
  if (narrow_type) type.dtype = narrow_type->caller();
  ValueId v = builder().Input(std::string(input.name), std::move(type));
  if (narrow_type && narrow_type->caller() != storage) v = Recast(v, storage);
  narrow().Set(v, narrow_type);
  return v;
}

ValueId Importer::Recast(ValueId v, DType to) {
  const Expected<ValueId> cast =
      builder().Add(graph::OpKind::kBitCast, {v}, "", {{"to", to.ToString()}});
  TN_CHECK(cast, "bytes of 8-bit floats");
  return *cast;
}

void Importer::ImportInputs(const GraphProto& g) {
  std::vector<const ValueInfoProto*> inputs;
  for (const ValueInfoProto& input : g.inputs) {
    const auto fixed = scope_->values.find(input.name);
    if (fixed == scope_->values.end()) {
      inputs.push_back(&input);
    } else if (fixed->second != kPoisoned) {  // by an initializer
      const TensorType& type = builder().type(fixed->second);
      Status same = CheckDeclaredType(input, type);
      if (same) same = CheckDeclaredShape(input, type);
      if (!same) Report(std::move(same.errors()), "initializer " + Quoted(input.name));
    }
  }
  for (const ValueInfoProto* input : inputs) {
    Status bound = shapes_.Bind(*input);
    if (bound) continue;
    Report(std::move(bound.errors()), "input " + Quoted(input->name));
    scope_->values[input->name] = kPoisoned;
  }
  for (const ValueInfoProto* input : inputs) {
    for (std::string& line : shapes_.Overruled(*input)) overruled_.push_back(std::move(line));
  }
  for (const ValueInfoProto* input : inputs) {
    if (scope_->values.contains(input->name)) continue;
    Expected<TensorType> type = InputType(*input);
    if (!type) Report(std::move(type.errors()), "input " + Quoted(input->name));
    scope_->values[input->name] = type ? Received(*input, std::move(*type)) : kPoisoned;
  }
}

Status Importer::RunImporter(const NodeProto& node, const OpRow& row, const std::string& item,
                             std::vector<ValueId> inputs) {
  std::set<std::string_view> names;
  for (const AttributeProto& a : node.attributes) {
    if (!names.insert(a.name).second)
      return MakeError(fmt::format("attribute {} is given twice", Quoted(a.name)));
  }
  const std::string name(!node.name.empty()     ? node.name
                         : node.outputs.empty() ? node.op_type
                                                : node.outputs[0]);
  // Of another domain there is one version, whose importers may be those of the newest operators.
  const int64_t opset = DomainOf(node).empty() ? OpsetOf(node) : kMaxOpset;
  OpContext context(builder(), node, row, opset, name, std::move(inputs), file_, &external_, this,
                    &narrow());
  context.in_region = scope_->builder != &builder_;
  const size_t first_node = builder().graph().nodes.size();
  const CustomOperator* custom = CustomOf(node);
  TN_RETURN_IF_ERROR(custom ? ImportCustom(context, *custom) : row.import(context));
  if (!context.asked_for_narrow())
    TN_RETURN_IF_ERROR(narrow().Follow(builder().graph(), first_node));
  TN_RETURN_IF_ERROR(context.CheckDone());
  TN_RETURN_IF_ERROR(builder().CheckRequired());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty()) scope_->values[node.outputs[i]] = context.outputs()[i];
  }
  return Ok();
}

// A message whose numbers do not count: what it says of other ranks.
std::string WithoutNumbers(const Diagnostic& error) {
  std::string out;
  for (char ch : error.message) {
    const bool digit = ch >= '0' && ch <= '9';
    if (!digit && ch != '-') out += ch;
  }
  return out;
}

// Whether a node fails alike with inputs of other ranks and sizes: alone, with the same constants,
// and all else, or the first input, of one rank after another. A message that tells a type does not
// come back, and one that comes back is of no error where some rank has none.
bool Importer::Lasts(const NodeProto& node, const OpRow& row, std::span<const ValueId> inputs,
                     const Diagnostics& errors) const {
  constexpr int kOwnRank = -1, kMostRank = 6;
  const bool has_graph = std::any_of(node.attributes.begin(), node.attributes.end(),
                                     [](const AttributeProto& a) { return !a.graph.empty(); });
  if (has_graph || errors.empty()) return false;
  const graph::Graph& g = scope_->builder->graph();
  ImportOptions silent = options_;
  silent.shapes.clear();
  silent.warn = nullptr;
  silent.obstacles = nullptr;
  int alike = 0;
  for (int trial = kOwnRank; trial <= 2 * kMostRank + 1; ++trial) {
    const bool first_only = trial > kMostRank;
    if (first_only && (inputs.empty() || inputs[0] == kNoValue || g.value(inputs[0]).IsConstant()))
      break;
    const int rank = first_only ? trial - kMostRank - 1 : trial;
    Importer other(file_, silent, external_);
    other.opset_ = opset_;
    other.versions_ = versions_;
    std::vector<ValueId> given;
    for (ValueId v : inputs) {
      given.push_back(kNoValue);
      if (v == kNoValue) continue;
      const graph::Value& value = g.value(v);
      if (!value.type.IsTensor()) return false;
      const TensorType& type = value.type.tensor();
      if (value.IsConstant()) {
        given.back() = other.builder_.Constant(value.name, type, value.payload);
      } else {
        ValueInfoProto open;
        open.has_shape = true;
        const bool own = rank == kOwnRank || (first_only && given.size() > 1);
        open.shape.resize(static_cast<size_t>(own ? type.rank() : rank));
        for (DimProto& d : open.shape) d.kind = DimProto::Kind::kUnknown;
        Expected<std::vector<Expr>> dims = other.shapes_.Dims(open);
        if (!dims) return false;
        given.back() = other.builder_.Input(value.name, TensorType{type.dtype, std::move(*dims)});
      }
      const auto narrow = narrow_.find(scope_->builder);
      if (narrow != narrow_.end()) other.narrow().Set(given.back(), narrow->second.Of(v));
    }
    const Status done = other.RunImporter(node, row, "", std::move(given));
    if (done) return false;
    if (rank != kOwnRank && WithoutNumbers(done.errors().front()) == WithoutNumbers(errors.front()))
      ++alike;
  }
  return alike > 2;  // two of them may be of the node's own ranks
}

void Importer::ImportNode(const NodeProto& node, size_t index) {
  std::vector<ValueId> inputs;
  bool poisoned = false;
  for (std::string_view input : node.inputs) {
    inputs.push_back(input.empty() ? kNoValue : Find(input));
    poisoned |= inputs.back() == kPoisoned;
  }
  const OpRow* row = RowOf(node);
  if (!poisoned && row) {
    const std::string item = DescribeNode(node, index);
    const size_t asked = builder_.graph().constraints.size();
    std::string before_it = builder().SetAsker(AskerOf(node, index));
    Status done = RunImporter(node, *row, item, inputs);
    builder().SetAsker(std::move(before_it));
    const std::vector<graph::Constraint>& constraints = builder_.graph().constraints;
    for (size_t i = asked; i < constraints.size(); ++i)
      askers_.emplace(graph::DimText(constraints[i].holds),
                      SourceLoc{.file = file_->path, .item = item});
    if (done) return;
    std::vector<std::string> notes;
    for (size_t i = 0; i < inputs.size() && i < 8; ++i) {
      if (inputs[i] == kNoValue) continue;
      notes.push_back(fmt::format("input {}: {} is {}", i, Quoted(node.inputs[i]),
                                  builder().graph().value(inputs[i]).type.ToString()));
    }
    const bool lasts = faults_ && Lasts(node, *row, inputs, done.errors());
    if (faults_ && errors_.empty() && scope_->builder == &builder_ &&
        HaveFoundSizes(builder_, inputs))
      faults_->of_found_sizes = item;
    const size_t before = errors_.size();
    ReportNode(node, item, std::move(done.errors()), std::move(notes));
    for (size_t e = before; lasts && e < errors_.size(); ++e)
      faults_->lasting.insert(FaultOf(errors_[e]));
  }
  for (std::string_view output : node.outputs) {
    if (!output.empty()) scope_->values[output] = kPoisoned;
  }
}

void Importer::ImportOutputs(const GraphProto& g) {
  if (g.outputs.empty()) {
    Report({MakeError("expected outputs, but there are none")},
           g.name.empty() ? "graph" : "graph " + Quoted(g.name));
  }
  for (const ValueInfoProto& output : g.outputs) {
    const ValueId v = Find(output.name);
    if (v == kPoisoned) continue;
    const std::string item = "output " + Quoted(output.name);
    if (builder().graph().IsTensor(v)) {
      const TensorType& type = builder().type(v);
      if (Status same = CheckDeclaredType(output, type); !same)
        Report(std::move(same.errors()), item);
      // Editors of models leave old shapes behind; what the nodes give counts.
      if (Status same = CheckDeclaredShape(output, type); !same) Warn(same.errors(), item);
    }
    const NarrowType* type = narrow().Of(v);
    const bool recast = type && type->caller() != type->storage();
    output_types_.push_back(type ? type->code : FromDType(builder().type(v).dtype));
    builder().Output(std::string(output.name), recast ? Recast(v, type->caller()) : v);
  }
}

// What the model says of values between its nodes. Shapes may be those of another time, which one
// warning says of all.
void Importer::CheckValueInfos(const GraphProto& g) {
  size_t stale = 0;
  std::string first;
  for (const ValueInfoProto& declared : g.value_infos) {
    const auto value = scope_->values.find(declared.name);
    if (value == scope_->values.end() || value->second < 0 ||
        !builder().graph().IsTensor(value->second) ||
        declared.kind != ValueInfoProto::Kind::kTensor)
      continue;
    const TensorType& type = builder().type(value->second);
    const std::string item = "value " + Quoted(declared.name);
    if (Status same = CheckDeclaredType(declared, type); !same) {
      Report(std::move(same.errors()), item);
    } else if (same = CheckDeclaredShape(declared, type); !same) {
      if (stale++ == 0) first = fmt::format("{}: {}", item, same.errors().front().message);
    }
  }
  if (stale > 0)
    Warn({MakeError(stale == 1 ? first
                               : fmt::format("{} declared shapes are not those that the nodes "
                                             "give; {}",
                                             stale, first))},
         "graph");
}

Expected<graph::Graph> Importer::Run(const ModelProto& model) {
  TN_RETURN_IF_ERROR(CheckHeader(model));
  const GraphProto& g = model.graph;
  for (const OpsetId& id : model.opset_imports)
    versions_.emplace(std::string(id.domain), id.version);
  CheckOperators(g);
  TN_ASSIGN_OR_RETURN(std::vector<size_t> order, OrderNodes(g, file_->path));
  ImportInitializers(g);
  TN_RETURN_IF_ERROR(CheckShapeOptions(g));
  ReadDeclaredRanks(g, order);
  ImportInputs(g);
  for (size_t n : order) {
    if (errors_.size() >= most_errors()) break;
    ImportNode(g.nodes[n], n);
  }
  if (errors_.empty()) CheckValueInfos(g);
  if (errors_.empty()) ImportOutputs(g);
  if (!errors_.empty()) {
    std::vector<std::string>& notes = errors_[0].notes;
    notes.insert(notes.end(), notes_.begin(), notes_.end());
    notes.insert(notes.end(), overruled_.begin(), overruled_.end());
    return std::move(errors_);
  }
  builder_.graph().name = "main";
  if (!notes_.empty()) {
    builder_.graph().metadata["notes"] = Join(notes_, "; ");
    if (options_.warn) options_.warn(fmt::format("{}: note: {}", file_->path, Join(notes_, "; ")));
  }
  for (const auto& [key, value] : model.metadata)
    builder_.graph().metadata[std::string(key)] = std::string(value);
  graph::Graph out = std::move(builder_).Finish();
  TN_ASSIGN_OR_RETURN(out, SettleDims(std::move(out), options_.shapes, askers_, overruled_));
  TN_RETURN_IF_ERROR(graph::Verify(out));
  return out;
}

}  // namespace

Expected<graph::Graph> ImportOnnx(std::shared_ptr<const WeightFile> model,
                                  const ImportOptions& options) {
  TN_ASSIGN_OR_RETURN(ModelProto proto, ReadModel(model->map.text(), model->path, options.limits));
  TN_RETURN_IF_ERROR(Apply(options.overrides, &proto.graph));
  std::deque<std::string> names;
  TN_RETURN_IF_ERROR(InlineFunctions(&proto, options.limits.max_nodes, &names, model->path));
  return Importer(model, options, {options.external_data_dir, options.linked_data_dir}).Run(proto);
}

Expected<ImportedPart> ImportPart(std::shared_ptr<const WeightFile> model, const ModelProto& proto,
                                  const ImportOptions& options, PartFaults* faults) {
  Importer importer(std::move(model), options, {options.external_data_dir, options.linked_data_dir},
                    faults);
  TN_ASSIGN_OR_RETURN(graph::Graph g, importer.Run(proto));
  return ImportedPart{std::move(g), importer.OutputTypes(), importer.AssumesRank()};
}

std::string FaultOf(const Diagnostic& error) { return error.loc.item + ": " + error.message; }

}  // namespace tenon::onnx
