#include "frontend/onnx/write_model.h"

#include <fmt/format.h>

#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "frontend/onnx/tensor.h"
#include "support/strings.h"

namespace tenon::onnx {

namespace {

using protozero::pbf_writer;

template <class T, class F>
std::string Written(const T& value, F write) {
  std::string bytes;
  pbf_writer w(bytes);
  write(w, value);
  return bytes;
}

void WriteText(pbf_writer& w, uint32_t field, std::string_view text) {
  if (!text.empty()) w.add_string(field, text.data(), text.size());
}
template <class List>
void WriteTexts(pbf_writer& w, uint32_t field, const List& texts) {
  for (std::string_view text : texts) w.add_string(field, text.data(), text.size());
}
template <class T, class F>
void WriteAll(pbf_writer& w, uint32_t field, const std::vector<T>& values, F write) {
  for (const T& value : values) w.add_message(field, Written(value, write));
}

void WriteEntry(pbf_writer& w, const StringEntry& entry) {
  w.add_string(1, entry.first.data(), entry.first.size());
  w.add_string(2, entry.second.data(), entry.second.size());
}

// Runs of element encodings are packed together, whatever pieces they came in.
void WriteChunks(pbf_writer& w, uint32_t field, const Chunks& chunks) {
  std::string packed;
  for (std::string_view chunk : chunks) packed += chunk;
  if (!packed.empty()) w.add_bytes(field, packed);
}

void WriteTensor(pbf_writer& w, const TensorProto& t) {
  for (int64_t d : t.dims) w.add_int64(1, d);
  w.add_int32(2, t.data_type);
  WriteChunks(w, 4, t.float_data);
  WriteChunks(w, 5, t.int32_data);
  WriteTexts(w, 6, t.strings);
  WriteChunks(w, 7, t.int64_data);
  WriteText(w, 8, t.name);
  if (t.has_raw) w.add_bytes(9, t.raw.data(), t.raw.size());
  WriteChunks(w, 10, t.double_data);
  WriteChunks(w, 11, t.uint64_data);
  WriteAll(w, 13, t.external_data, WriteEntry);
  if (t.data_location != 0) w.add_int32(14, t.data_location);
}

// A sparse tensor is another message.
void WriteSparse(pbf_writer& w, const TensorProto& t) {
  w.add_message(1, Written(t.sparse[0], WriteTensor));
  w.add_message(2, Written(t.sparse[1], WriteTensor));
  for (int64_t d : t.dims) w.add_int64(3, d);
}

void WriteTensors(pbf_writer& w, uint32_t dense, uint32_t sparse,
                  const std::vector<TensorProto>& tensors) {
  for (const TensorProto& t : tensors) {
    if (t.sparse.empty())
      w.add_message(dense, Written(t, WriteTensor));
    else
      w.add_message(sparse, Written(t, WriteSparse));
  }
}

void WriteDim(pbf_writer& w, const DimProto& d) {
  if (d.kind == DimProto::Kind::kValue) w.add_int64(1, d.value);
  if (d.kind == DimProto::Kind::kParam) w.add_string(2, d.param.data(), d.param.size());
}

void WriteType(pbf_writer& w, const ValueInfoProto& info) {
  const auto inner = [&] { return info.inner.empty() ? "" : Written(info.inner[0], WriteType); };
  switch (info.kind) {
    case ValueInfoProto::Kind::kTensor:
      w.add_message(1, Written(info, [](pbf_writer& tensor, const ValueInfoProto& v) {
                      tensor.add_int32(1, v.elem_type);
                      if (v.has_shape)
                        tensor.add_message(
                            2, Written(v, [](pbf_writer& shape, const ValueInfoProto& s) {
                              WriteAll(shape, 1, s.shape, WriteDim);
                            }));
                    }));
      break;
    case ValueInfoProto::Kind::kSequence:
    case ValueInfoProto::Kind::kOptional:
      w.add_message(info.kind == ValueInfoProto::Kind::kSequence ? 4 : 9,
                    Written(inner(), [](pbf_writer& of, const std::string& type) {
                      of.add_message(1, type);
                    }));
      break;
    case ValueInfoProto::Kind::kMap:
      w.add_message(5, Written(info, [&](pbf_writer& map, const ValueInfoProto& v) {
                      map.add_int32(1, v.key_type);
                      map.add_message(2, inner());
                    }));
      break;
    case ValueInfoProto::Kind::kNone:
    case ValueInfoProto::Kind::kOther: break;
  }
}

void WriteInfo(pbf_writer& w, const ValueInfoProto& info) {
  WriteText(w, 1, info.name);
  if (info.kind != ValueInfoProto::Kind::kNone) w.add_message(2, Written(info, WriteType));
}

void WriteGraph(pbf_writer& w, const GraphProto& g);

void WriteAttribute(pbf_writer& w, const AttributeProto& a) {
  WriteText(w, 1, a.name);
  switch (a.type) {
    case AttrProtoType::kFloat: w.add_float(2, a.f); break;
    case AttrProtoType::kInt: w.add_int64(3, a.i); break;
    case AttrProtoType::kString: w.add_bytes(4, a.s.data(), a.s.size()); break;
    default: break;
  }
  WriteTensors(w, 5, 22, a.tensor);
  WriteAll(w, 6, a.graph, WriteGraph);
  for (float f : a.floats) w.add_float(7, f);
  for (int64_t i : a.ints) w.add_int64(8, i);
  WriteTexts(w, 9, a.strings);
  WriteAll(w, 14, a.type_proto, WriteType);
  w.add_int32(20, static_cast<int32_t>(a.type));
  WriteText(w, 21, a.ref_attr_name);
}

void WriteNode(pbf_writer& w, const NodeProto& n) {
  WriteTexts(w, 1, n.inputs);
  WriteTexts(w, 2, n.outputs);
  WriteText(w, 3, n.name);
  WriteText(w, 4, n.op_type);
  WriteAll(w, 5, n.attributes, WriteAttribute);
  WriteText(w, 7, n.domain);
  WriteText(w, 8, n.overload);
}

void WriteGraph(pbf_writer& w, const GraphProto& g) {
  WriteAll(w, 1, g.nodes, WriteNode);
  WriteText(w, 2, g.name);
  WriteTensors(w, 5, 15, g.initializers);
  WriteText(w, 10, g.doc);
  WriteAll(w, 11, g.inputs, WriteInfo);
  WriteAll(w, 12, g.outputs, WriteInfo);
  WriteAll(w, 13, g.value_infos, WriteInfo);
}

void WriteOpset(pbf_writer& w, const OpsetId& id) {
  w.add_string(1, id.domain.data(), id.domain.size());
  w.add_int64(2, id.version);
}

void WriteFunction(pbf_writer& w, const FunctionProto& f) {
  WriteText(w, 1, f.name);
  WriteTexts(w, 4, f.inputs);
  WriteTexts(w, 5, f.outputs);
  WriteTexts(w, 6, f.attributes);
  WriteAll(w, 7, f.nodes, WriteNode);
  WriteAll(w, 9, f.opset_imports, WriteOpset);
  WriteText(w, 10, f.domain);
  WriteAll(w, 11, f.attribute_defaults, WriteAttribute);
  WriteText(w, 13, f.overload);
}

// ---- text

std::string TypeText(int32_t elem_type, const std::vector<std::string>& dims) {
  const Expected<DType> type = ToDType(elem_type);
  const std::string name = type ? type->ToString() : fmt::format("type{}", elem_type);
  return fmt::format("{}[{}]", name, Join(dims, ", "));
}

std::string InfoText(const ValueInfoProto& info) {
  if (info.kind != ValueInfoProto::Kind::kTensor || !info.has_shape) return std::string(info.name);
  std::vector<std::string> dims;
  for (const DimProto& d : info.shape) {
    dims.push_back(d.kind == DimProto::Kind::kValue   ? std::to_string(d.value)
                   : d.kind == DimProto::Kind::kParam ? std::string(d.param)
                                                      : "?");
  }
  return fmt::format("{}: {}", info.name, TypeText(info.elem_type, dims));
}

std::string AttributeText(const AttributeProto& a) {
  switch (a.type) {
    case AttrProtoType::kFloat: return fmt::format("{}={}", a.name, a.f);
    case AttrProtoType::kInt: return fmt::format("{}={}", a.name, a.i);
    case AttrProtoType::kString: return fmt::format("{}=\"{}\"", a.name, a.s);
    case AttrProtoType::kInts: return fmt::format("{}=[{}]", a.name, fmt::join(a.ints, ", "));
    case AttrProtoType::kFloats: return fmt::format("{}=[{}]", a.name, fmt::join(a.floats, ", "));
    case AttrProtoType::kGraph: return fmt::format("{}=graph", a.name);
    default: return fmt::format("{}=…", a.name);
  }
}

// The numbers of a short list of i64, which are axes and shapes more often than not.
std::string IndexText(const TensorProto& t) {
  constexpr size_t kMost = 8;
  if (t.data_type != static_cast<int32_t>(ElemType::kInt64) || !t.has_raw) return "";
  std::vector<int64_t> numbers(t.raw.size() / sizeof(int64_t));
  if (numbers.size() > kMost) return "";
  if (!numbers.empty()) std::memcpy(numbers.data(), t.raw.data(), numbers.size() * sizeof(int64_t));
  return fmt::format(" = [{}]", fmt::join(numbers, ", "));
}

void PrintGraph(const GraphProto& g, const std::string& indent, std::string* out) {
  for (const ValueInfoProto& v : g.inputs) *out += fmt::format("{}input {}\n", indent, InfoText(v));
  for (const TensorProto& t : g.initializers) {
    std::vector<std::string> dims;
    for (int64_t d : t.dims) dims.push_back(std::to_string(d));
    *out += fmt::format("{}constant {}: {}{}\n", indent, t.name, TypeText(t.data_type, dims),
                        IndexText(t));
  }
  for (const NodeProto& n : g.nodes) {
    std::vector<std::string> attributes;
    for (const AttributeProto& a : n.attributes) attributes.push_back(AttributeText(a));
    *out += fmt::format("{}{} = {}{}({}){}{}\n", indent, fmt::join(n.outputs, ", "),
                        n.domain.empty() ? "" : std::string(n.domain) + ".", n.op_type,
                        fmt::join(n.inputs, ", "), attributes.empty() ? "" : " ",
                        Join(attributes, " "));
    for (const AttributeProto& a : n.attributes) {
      for (const GraphProto& inner : a.graph) PrintGraph(inner, indent + "  ", out);
    }
  }
  for (const ValueInfoProto& v : g.outputs) *out += fmt::format("{}output {}\n", indent, v.name);
}

}  // namespace

std::string WriteModel(const ModelProto& model) {
  return Written(model, [](pbf_writer& w, const ModelProto& m) {
    if (m.ir_version != 0) w.add_int64(1, m.ir_version);
    WriteText(w, 2, m.producer_name);
    WriteText(w, 3, m.producer_version);
    WriteText(w, 4, m.domain);
    if (m.model_version != 0) w.add_int64(5, m.model_version);
    WriteText(w, 6, m.doc);
    if (m.has_graph) w.add_message(7, Written(m.graph, WriteGraph));
    WriteAll(w, 8, m.opset_imports, WriteOpset);
    WriteAll(w, 14, m.metadata, WriteEntry);
    WriteAll(w, 25, m.functions, WriteFunction);
  });
}

std::string PrintModel(const ModelProto& model) {
  std::string out;
  for (const OpsetId& id : model.opset_imports)
    out += fmt::format("opset {}{}\n", id.domain.empty() ? "" : std::string(id.domain) + " ",
                       id.version);
  PrintGraph(model.graph, "", &out);
  return out;
}

}  // namespace tenon::onnx
