// The part of onnx.proto that the importer uses, read as views into the file's bytes.
//
// ReadModel is the trust boundary of the front end: it accepts any bytes, allocates in proportion
// to the file (the limits below bound the factor), never recurses deeper than the message nesting
// written out in proto.cc, and copies no payload: every string_view here points into the bytes that
// were given, which must outlive the result. Graphs in attributes are read too, down to a depth.
// Meaning (names resolve, shapes fit, types are known) is the importer's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/expected.h"

namespace tenon::onnx {

/// Bounds that keep a small hostile file from asking for a large amount of work.
struct ReadLimits {
  size_t max_nodes = size_t{1} << 20;    // over the main graph and all functions
  size_t max_tensors = size_t{1} << 19;  // initializers, constants, inputs, outputs and value infos
  size_t max_attributes = size_t{1} << 20;  // over all nodes
  size_t max_operands = size_t{1} << 22;    // over all nodes
  // Entries of one list attribute, or pieces of one unpacked typed field. Forests of trees have
  // millions; each takes a byte of the file at least, and 16 of memory at most.
  size_t max_list = size_t{1} << 26;
  size_t max_functions = 10000;
  size_t max_rank = 64;
  size_t max_name = size_t{1} << 16;  // bytes
  size_t max_depth = 15;              // of graphs in attributes
};

using StringEntry = std::pair<std::string_view, std::string_view>;

/// The numbers of TensorProto.DataType.
enum class ElemType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBfloat16 = 16,
};

/// A repeated scalar field. Each chunk is a run of element encodings: packed fields give one chunk,
/// unpacked ones a chunk per element, so concatenating the chunks gives the packed form whatever
/// the writer chose.
using Chunks = std::vector<std::string_view>;

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  bool has_raw = false;
  std::string_view raw;
  Chunks float_data, int32_data, int64_data, double_data, uint64_data;
  bool has_strings = false;
  std::vector<std::string_view> strings;
  bool has_segment = false;
  int32_t data_location = 0;  // 1: external
  std::vector<StringEntry> external_data;
  /// Of a sparse tensor, whose name, type and dims are above: the elements that are not 0, and
  /// their places. Else empty.
  std::vector<TensorProto> sparse;
};

/// The numbers of AttributeProto.AttributeType.
enum class AttrProtoType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

struct GraphProto;
struct ValueInfoProto;

/// `type` as the file gives it, or, for files of IR version 1 and 2 that leave it out, the one
/// field that is set.
struct AttributeProto {
  std::string_view name;
  std::string_view ref_attr_name;  // not empty: stands for an attribute of the enclosing function
  AttrProtoType type = AttrProtoType::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<TensorProto> tensor;         // none or one; a sparse one too
  std::vector<GraphProto> graph;           // none or one
  std::vector<ValueInfoProto> type_proto;  // none or one, without a name
};

struct NodeProto {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;  // "" where an optional one is left out
  std::vector<std::string_view> outputs;
  std::vector<AttributeProto> attributes;
  int64_t opset = 0;  // not in the file: the version where a function's differs from the model's
};

struct DimProto {
  enum class Kind { kUnknown, kValue, kParam };
  Kind kind = Kind::kUnknown;
  int64_t value = 0;
  std::string_view param;
  std::string_view denotation;  // what the dim is for: "DATA_BATCH"
};

struct ValueInfoProto {
  enum class Kind { kNone, kTensor, kSequence, kOptional, kMap, kOther };  // kOther: sparse, opaque
  std::string_view name;
  Kind kind = Kind::kNone;
  int32_t elem_type = 0;
  bool has_shape = false;
  std::vector<DimProto> shape;
  int32_t key_type = 0;               // of a map
  std::vector<ValueInfoProto> inner;  // of a sequence, an optional or a map: what it is made of
};

/// The main graph, or one in an attribute, which reads tensors of those around it by name.
struct GraphProto {
  std::string_view name, doc;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;  // sparse ones too
  std::vector<ValueInfoProto> inputs, outputs, value_infos;
};

struct OpsetId {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opset_imports;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version, domain, doc;
  int64_t model_version = 0;
  std::vector<OpsetId> opset_imports;
  std::vector<StringEntry> metadata;
  std::vector<FunctionProto> functions;
  bool has_graph = false;
  GraphProto graph;
};

/// Reads a ModelProto. Errors name `file` and the field path, e.g. "graph.node[3].attribute[0]".
Expected<ModelProto> ReadModel(std::string_view bytes, const std::string& file,
                               const ReadLimits& limits = {});

/// Element decoding of Chunks. Each appends to `out` and answers false where the encoding is broken
/// or holds more than `max_count` elements.
bool DecodeVarints(const Chunks& chunks, size_t max_count, std::vector<uint64_t>* out);

}  // namespace tenon::onnx
