// The wire format of https://protobuf.dev/programming-guides/encoding, decoded by protozero. A
// field whose number is not known, or whose wire type is not the schema's, is skipped, as protobuf
// itself does.
//
// A message is a run of fields: number, wire type, payload. The reader walks it once, over the
// mapped file, and keeps only what the importer asks for; raw data of tensors stays a range of the
// file. For example
//
//   0a 04 'c' 'o' 'n' 'v'     field 1, length-delimited, 4 bytes: a name
//   12 …                      field 2: a message, walked with one more level on the trail
//
// protozero checks bounds, but trusts its caller about wire types and takes lengths of 32 bits, so
// both are looked at first. Depth, sizes and counts have limits of their own (a file is not
// trusted). What goes wrong is said with the trail of fields that were being read.

#include "frontend/onnx/proto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <protozero/pbf_reader.hpp>

#include "support/strings.h"

namespace tenon::onnx {
namespace {

// A packed list, behind what is there.
void AppendFloats(std::string_view packed, std::vector<float>* out) {
  if (packed.size() % 4 != 0) throw protozero::invalid_length_exception{};
  const size_t at = out->size();
  out->resize(at + packed.size() / 4);
  if (!packed.empty()) memcpy(out->data() + at, packed.data(), packed.size());
}

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr uint32_t Varint(uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::varint);
}
constexpr uint32_t Bytes(uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::length_delimited);
}
constexpr uint32_t Fixed32(uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::fixed32);
}
constexpr uint32_t Fixed64(uint32_t field) {
  return protozero::tag_and_type(field, pbf_wire_type::fixed64);
}

// Thrown inside this file only, for what protozero has no exception for.
struct ReadError {
  std::string message;
  ErrorKind kind = ErrorKind::kInput;
};

// Walks the messages. `trail_` holds the fields being read; it is left as it stands when an
// exception passes, so that the error can say where.
class ModelReader {
 public:
  explicit ModelReader(const ReadLimits& limits) : limits_(limits) {}

  ModelProto Model(pbf_reader r);
  std::string Where() const;

 private:
  struct Step {
    const char* field;
    size_t index;
    bool indexed;
  };

  GraphProto Graph(pbf_reader r);
  NodeProto Node(pbf_reader r);
  AttributeProto Attribute(pbf_reader r);
  TensorProto Tensor(pbf_reader r);
  TensorProto SparseTensor(pbf_reader r);
  ValueInfoProto ValueInfo(pbf_reader r);
  void Type(pbf_reader r, ValueInfoProto* out);
  void InnerType(pbf_reader r, ValueInfoProto* out);
  void TypeValue(pbf_reader r, AttributeProto* a);
  void TensorType(pbf_reader r, ValueInfoProto* out);
  DimProto Dim(pbf_reader r);
  FunctionProto Function(pbf_reader r);
  OpsetId Opset(pbf_reader r);
  StringEntry Entry(pbf_reader r);

  // The payload of a length-delimited field. protozero keeps lengths in 32 bits, so the varint is
  // looked at first.
  std::string_view View(pbf_reader& r);
  pbf_reader Message(pbf_reader& r) {
    std::string_view v = View(r);
    return pbf_reader(v.data(), v.size());
  }
  // A string: valid UTF-8 without NUL.
  std::string_view Text(pbf_reader& r);
  // A string that names something: not longer than the limit.
  std::string_view Name(pbf_reader& r);
  // Reads one element, unpacked, or the whole packed run, of a repeated field into chunks.
  void Chunk(pbf_reader& r, Chunks* out);
  void Varints(pbf_reader& r, size_t limit, std::vector<int64_t>* out);

  template <class F>
  auto In(const char* field, F f) {
    trail_.push_back({field, 0, false});
    auto result = f();
    trail_.pop_back();
    return result;
  }
  template <class T, class F>
  void Append(const char* field, std::vector<T>* to, F f) {
    trail_.push_back({field, to->size(), true});
    to->push_back(f());
    trail_.pop_back();
  }
  static void Count(size_t* count, size_t limit, const char* what) {
    if (++*count > limit) {
      throw ReadError{fmt::format("more than {} {}", limit, what), ErrorKind::kLimit};
    }
  }

  const ReadLimits limits_;
  std::vector<Step> trail_;
  size_t nodes_ = 0, tensors_ = 0, attributes_ = 0, operands_ = 0, functions_ = 0;
  size_t depth_ = 0;
};

std::string ModelReader::Where() const {
  std::string out;
  for (const Step& step : trail_) {
    if (!out.empty()) out += '.';
    out += step.field;
    if (step.indexed) out += fmt::format("[{}]", step.index);
  }
  return out;
}

std::string_view ModelReader::View(pbf_reader& r) {
  protozero::data_view rest = r.data();
  const char* p = rest.data();
  uint64_t length = protozero::decode_varint(&p, rest.data() + rest.size());
  if (length > static_cast<uint64_t>(rest.data() + rest.size() - p)) {
    throw ReadError{fmt::format("field {} claims {} bytes where {} are left", r.tag(), length,
                                rest.data() + rest.size() - p)};
  }
  if (length > INT32_MAX) {
    throw ReadError{
        fmt::format("field {} has {} bytes; protobuf allows 2147483647", r.tag(), length)};
  }
  protozero::data_view v = r.get_view();
  return {v.data(), v.size()};
}

std::string_view ModelReader::Text(pbf_reader& r) {
  std::string_view s = View(r);
  if (!IsUtf8(s) || s.find('\0') != std::string_view::npos) {
    throw ReadError{"a string that is not valid UTF-8 without NUL"};
  }
  return s;
}

std::string_view ModelReader::Name(pbf_reader& r) {
  std::string_view s = Text(r);
  if (s.size() > limits_.max_name) {
    throw ReadError{
        fmt::format("a name of {} bytes; at most {} are accepted", s.size(), limits_.max_name),
        ErrorKind::kLimit};
  }
  return s;
}

void ModelReader::Chunk(pbf_reader& r, Chunks* out) {
  if (out->size() >= limits_.max_list) {
    throw ReadError{fmt::format("typed data in more than {} pieces", limits_.max_list),
                    ErrorKind::kLimit};
  }
  if (r.wire_type() == pbf_wire_type::length_delimited) {
    if (std::string_view v = View(r); !v.empty()) out->push_back(v);
    return;
  }
  const char* begin = r.data().data();
  r.skip();
  out->emplace_back(begin, static_cast<size_t>(r.data().data() - begin));
}

void ModelReader::Varints(pbf_reader& r, size_t limit, std::vector<int64_t>* out) {
  Chunks chunk;
  Chunk(r, &chunk);
  std::vector<uint64_t> values;
  if (!DecodeVarints(chunk, limit - std::min(limit, out->size()), &values)) {
    throw ReadError{fmt::format("a broken integer list, or one of more than {} entries", limit)};
  }
  for (uint64_t v : values) out->push_back(static_cast<int64_t>(v));
}

ModelProto ModelReader::Model(pbf_reader r) {
  ModelProto m;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Varint(1): m.ir_version = r.get_int64(); break;
      case Bytes(2): m.producer_name = View(r); break;
      case Bytes(3): m.producer_version = View(r); break;
      case Bytes(4): m.domain = View(r); break;
      case Varint(5): m.model_version = r.get_int64(); break;
      case Bytes(6): m.doc = View(r); break;
      case Bytes(7):
        if (m.has_graph) throw ReadError{"a second graph"};
        m.has_graph = true;
        m.graph = In("graph", [&] { return Graph(Message(r)); });
        break;
      case Bytes(8):
        Append("opset_import", &m.opset_imports, [&] { return Opset(Message(r)); });
        break;
      case Bytes(14):
        Append("metadata_props", &m.metadata, [&] { return Entry(Message(r)); });
        break;
      case Bytes(25):
        Count(&functions_, limits_.max_functions, "local functions");
        Append("functions", &m.functions, [&] { return Function(Message(r)); });
        break;
      default: r.skip();
    }
  }
  return m;
}

GraphProto ModelReader::Graph(pbf_reader r) {
  GraphProto g;
  auto value_info = [&] {
    Count(&tensors_, limits_.max_tensors, "tensors");
    return ValueInfo(Message(r));
  };
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1):
        Count(&nodes_, limits_.max_nodes, "nodes");
        Append("node", &g.nodes, [&] { return Node(Message(r)); });
        break;
      case Bytes(2): g.name = Name(r); break;
      case Bytes(5):
        Count(&tensors_, limits_.max_tensors, "tensors");
        Append("initializer", &g.initializers, [&] { return Tensor(Message(r)); });
        break;
      case Bytes(10): g.doc = View(r); break;
      case Bytes(11): Append("input", &g.inputs, value_info); break;
      case Bytes(12): Append("output", &g.outputs, value_info); break;
      case Bytes(13): Append("value_info", &g.value_infos, value_info); break;
      case Bytes(15):
        Append("sparse_initializer", &g.initializers, [&] { return SparseTensor(Message(r)); });
        break;
      default: r.skip();
    }
  }
  return g;
}

NodeProto ModelReader::Node(pbf_reader r) {
  NodeProto n;
  auto name = [&] { return Name(r); };
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1):
      case Bytes(2): {
        std::vector<std::string_view>* list = r.tag() == 1 ? &n.inputs : &n.outputs;
        Count(&operands_, limits_.max_operands, "operands");
        Append(r.tag() == 1 ? "input" : "output", list, name);
        break;
      }
      case Bytes(3): n.name = In("name", name); break;
      case Bytes(4): n.op_type = In("op_type", name); break;
      case Bytes(5):
        Count(&attributes_, limits_.max_attributes, "attributes");
        Append("attribute", &n.attributes, [&] { return Attribute(Message(r)); });
        break;
      case Bytes(7): n.domain = In("domain", name); break;
      case Bytes(8): n.overload = In("overload", name); break;
      default: r.skip();
    }
  }
  return n;
}

AttributeProto ModelReader::Attribute(pbf_reader r) {
  AttributeProto a;
  AttrProtoType seen =
      AttrProtoType::kUndefined;  // of the last value field; for files without `type`
  auto room = [&](size_t size) {
    if (size >= limits_.max_list) {
      throw ReadError{fmt::format("a list of more than {} entries", limits_.max_list),
                      ErrorKind::kLimit};
    }
  };
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1): a.name = In("name", [&] { return Name(r); }); break;
      case Bytes(21): a.ref_attr_name = In("ref_attr_name", [&] { return Name(r); }); break;
      case Varint(20): a.type = static_cast<AttrProtoType>(r.get_int32()); break;
      case Fixed32(2):
        a.f = r.get_float();
        seen = AttrProtoType::kFloat;
        break;
      case Varint(3):
        a.i = r.get_int64();
        seen = AttrProtoType::kInt;
        break;
      case Bytes(4):
        a.s = View(r);
        seen = AttrProtoType::kString;
        break;
      case Bytes(5):
        Count(&tensors_, limits_.max_tensors, "tensors");
        if (!a.tensor.empty()) throw ReadError{"a second tensor in one attribute"};
        Append("t", &a.tensor, [&] { return Tensor(Message(r)); });
        seen = AttrProtoType::kTensor;
        break;
      case Fixed32(7):
        room(a.floats.size());
        a.floats.push_back(r.get_float());
        seen = AttrProtoType::kFloats;
        break;
      case Bytes(7): {
        const std::string_view packed = View(r);
        room(a.floats.size() + packed.size() / 4);
        AppendFloats(packed, &a.floats);
        seen = AttrProtoType::kFloats;
        break;
      }
      case Varint(8):
      case Bytes(8):
        In("ints", [&] { return Varints(r, limits_.max_list, &a.ints), 0; });
        seen = AttrProtoType::kInts;
        break;
      case Bytes(9):
        room(a.strings.size());
        a.strings.push_back(View(r));
        seen = AttrProtoType::kStrings;
        break;
      case Bytes(6):
        if (!a.graph.empty()) throw ReadError{"a second graph in one attribute"};
        if (++depth_ > limits_.max_depth) {
          throw ReadError{fmt::format("graphs nested deeper than {}", limits_.max_depth),
                          ErrorKind::kLimit};
        }
        Append("g", &a.graph, [&] { return Graph(Message(r)); });
        --depth_;
        seen = AttrProtoType::kGraph;
        break;
      case Bytes(11): r.skip(), seen = AttrProtoType::kGraphs; break;
      case Bytes(10): r.skip(), seen = AttrProtoType::kTensors; break;
      case Bytes(14): TypeValue(Message(r), &a), seen = AttrProtoType::kTypeProto; break;
      case Bytes(22):
        if (!a.tensor.empty()) throw ReadError{"a second tensor in one attribute"};
        Append("sparse_tensor", &a.tensor, [&] { return SparseTensor(Message(r)); });
        seen = AttrProtoType::kSparseTensor;
        break;
      default: r.skip();
    }
  }
  if (a.type == AttrProtoType::kUndefined) a.type = seen;
  return a;
}

void ModelReader::TypeValue(pbf_reader r, AttributeProto* a) {
  a->type_proto.resize(1);
  In("tp", [&] { return Type(r, &a->type_proto[0]), 0; });
}

TensorProto ModelReader::Tensor(pbf_reader r) {
  TensorProto t;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Varint(1):
      case Bytes(1): In("dims", [&] { return Varints(r, limits_.max_rank, &t.dims), 0; }); break;
      case Varint(2): t.data_type = r.get_int32(); break;
      case Bytes(3):
        t.has_segment = true;
        r.skip();
        break;
      case Fixed32(4):
      case Bytes(4): Chunk(r, &t.float_data); break;
      case Varint(5):
      case Bytes(5): Chunk(r, &t.int32_data); break;
      case Bytes(6):
        t.has_strings = true;
        if (t.strings.size() >= limits_.max_list) {
          throw ReadError{fmt::format("a list of more than {} entries", limits_.max_list),
                          ErrorKind::kLimit};
        }
        t.strings.push_back(View(r));
        break;
      case Varint(7):
      case Bytes(7): Chunk(r, &t.int64_data); break;
      case Bytes(8): t.name = In("name", [&] { return Name(r); }); break;
      case Bytes(9):
        t.has_raw = true;
        t.raw = View(r);
        break;
      case Fixed64(10):
      case Bytes(10): Chunk(r, &t.double_data); break;
      case Varint(11):
      case Bytes(11): Chunk(r, &t.uint64_data); break;
      case Bytes(13):
        if (t.external_data.size() >= 64) throw ReadError{"more than 64 external_data entries"};
        Append("external_data", &t.external_data, [&] { return Entry(Message(r)); });
        break;
      case Varint(14): t.data_location = r.get_int32(); break;
      default: r.skip();
    }
  }
  return t;
}

TensorProto ModelReader::SparseTensor(pbf_reader r) {
  TensorProto t;
  t.sparse.resize(2);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1):
      case Bytes(2): {
        const bool values = r.tag() == 1;
        Count(&tensors_, limits_.max_tensors, "tensors");
        t.sparse[values ? 0 : 1] =
            In(values ? "values" : "indices", [&] { return Tensor(Message(r)); });
        break;
      }
      case Varint(3):
      case Bytes(3): In("dims", [&] { return Varints(r, limits_.max_rank, &t.dims), 0; }); break;
      default: r.skip();
    }
  }
  t.name = t.sparse[0].name;
  t.data_type = t.sparse[0].data_type;
  return t;
}

ValueInfoProto ModelReader::ValueInfo(pbf_reader r) {
  ValueInfoProto v;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1): v.name = In("name", [&] { return Name(r); }); break;
      case Bytes(2): In("type", [&] { return Type(Message(r), &v), 0; }); break;
      default: r.skip();
    }
  }
  return v;
}

void ModelReader::Type(pbf_reader r, ValueInfoProto* out) {
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1):
        out->kind = ValueInfoProto::Kind::kTensor;
        In("tensor_type", [&] { return TensorType(Message(r), out), 0; });
        break;
      case Bytes(4):
      case Bytes(5):
      case Bytes(9):
        out->kind = r.tag() == 4   ? ValueInfoProto::Kind::kSequence
                    : r.tag() == 5 ? ValueInfoProto::Kind::kMap
                                   : ValueInfoProto::Kind::kOptional;
        InnerType(Message(r), out);
        break;
      case Bytes(7):
      case Bytes(8):
        out->kind = ValueInfoProto::Kind::kOther;
        r.skip();
        break;
      default: r.skip();
    }
  }
}

// What a sequence or an optional value is made of, or the keys and the values of a map.
void ModelReader::InnerType(pbf_reader r, ValueInfoProto* out) {
  constexpr size_t kMostNested = 8;
  if (++depth_ > limits_.max_depth + kMostNested)
    throw ReadError{"types nested too deep", ErrorKind::kLimit};
  const bool is_map = out->kind == ValueInfoProto::Kind::kMap;
  out->inner.resize(1);
  while (r.next()) {
    if (is_map && r.tag_and_type() == Varint(1)) {
      out->key_type = r.get_int32();
    } else if (r.tag_and_type() == Bytes(is_map ? 2 : 1)) {
      In("elem_type", [&] { return Type(Message(r), &out->inner[0]), 0; });
    } else {
      r.skip();
    }
  }
  --depth_;
}

void ModelReader::TensorType(pbf_reader r, ValueInfoProto* out) {
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Varint(1): out->elem_type = r.get_int32(); break;
      case Bytes(2): {
        out->has_shape = true;
        out->shape.clear();
        pbf_reader shape = Message(r);
        while (shape.next()) {
          if (shape.tag_and_type() != Bytes(1)) {
            shape.skip();
            continue;
          }
          if (out->shape.size() >= limits_.max_rank) {
            throw ReadError{fmt::format("more than {} dimensions", limits_.max_rank),
                            ErrorKind::kLimit};
          }
          Append("dim", &out->shape, [&] { return Dim(Message(shape)); });
        }
        break;
      }
      default: r.skip();
    }
  }
}

DimProto ModelReader::Dim(pbf_reader r) {
  DimProto d;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Varint(1):
        d.kind = DimProto::Kind::kValue;
        d.value = r.get_int64();
        break;
      case Bytes(2):
        d.param = Name(r);
        d.kind = d.param.empty() ? DimProto::Kind::kUnknown : DimProto::Kind::kParam;
        break;
      case Bytes(3): d.denotation = Name(r); break;
      default: r.skip();
    }
  }
  return d;
}

FunctionProto ModelReader::Function(pbf_reader r) {
  FunctionProto f;
  auto name = [&] { return Name(r); };
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1): f.name = In("name", name); break;
      case Bytes(4): Append("input", &f.inputs, name); break;
      case Bytes(5): Append("output", &f.outputs, name); break;
      case Bytes(6): Append("attribute", &f.attributes, name); break;
      case Bytes(7):
        Count(&nodes_, limits_.max_nodes, "nodes");
        Append("node", &f.nodes, [&] { return Node(Message(r)); });
        break;
      case Bytes(9):
        Append("opset_import", &f.opset_imports, [&] { return Opset(Message(r)); });
        break;
      case Bytes(10): f.domain = In("domain", name); break;
      case Bytes(11):
        Count(&attributes_, limits_.max_attributes, "attributes");
        Append("attribute_proto", &f.attribute_defaults, [&] { return Attribute(Message(r)); });
        break;
      case Bytes(13): f.overload = In("overload", name); break;
      default: r.skip();
    }
  }
  return f;
}

OpsetId ModelReader::Opset(pbf_reader r) {
  OpsetId o;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1): o.domain = Name(r); break;
      case Varint(2): o.version = r.get_int64(); break;
      default: r.skip();
    }
  }
  return o;
}

StringEntry ModelReader::Entry(pbf_reader r) {
  StringEntry e;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case Bytes(1): e.first = Text(r); break;
      case Bytes(2): e.second = Text(r); break;
      default: r.skip();
    }
  }
  return e;
}

}  // namespace

bool DecodeVarints(const Chunks& chunks, size_t max_count, std::vector<uint64_t>* out) {
  size_t count = 0;
  for (std::string_view chunk : chunks) {
    const char* p = chunk.data();
    const char* end = p + chunk.size();
    while (p != end) {
      if (++count > max_count) return false;
      try {
        out->push_back(protozero::decode_varint(&p, end));
      } catch (const protozero::exception&) {
        return false;
      }
    }
  }
  return true;
}

// What else people hand over, by its first bytes; "" for what nobody knows.
static std::string_view SeemsToBe(std::string_view bytes) {
  using namespace std::literals;
  constexpr std::pair<std::string_view, std::string_view> kHeads[] = {
      {"\0asm"sv, "a module of WebAssembly"},
      {"PK\x03\x04"sv, "an archive, as torch.save and numpy.savez write; export the model to ONNX"},
      {"\x80\x02"sv, "a pickle; export the model to ONNX"},
      {"\x89HDF"sv, "an HDF5 file, as Keras saves; convert the model to ONNX"},
      {"version https://git-lfs"sv, "a pointer of Git LFS: `git lfs pull` fetches the file"},
      {"<"sv, "a page or XML (was it downloaded in a browser?)"},
  };
  for (const auto& [head, what] : kHeads) {
    if (bytes.starts_with(head)) return what;
  }
  const std::string_view begin = bytes.substr(0, 512);
  const bool is_text = std::all_of(begin.begin(), begin.end(), [](unsigned char c) {
    return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n' || c == '\r';
  });
  return is_text ? "text" : "";
}

Expected<ModelProto> ReadModel(std::string_view bytes, const std::string& file,
                               const ReadLimits& limits) {
  ModelReader reader(limits);
  auto fail = [&](const std::string& what, ErrorKind kind) {
    Diagnostic d = MakeError(what, SourceLoc{.file = file, .item = reader.Where()});
    d.kind = kind;
    return d;
  };
  if (bytes.empty())
    return fail("expected an ONNX model, but the file is empty", ErrorKind::kInput);
  if (bytes.starts_with("\x7f"
                        "ELF")) {
    return fail(
        "not an ONNX model but a compiled library or a program; what Tenon compiled is for "
        "`tenon run`, `bench` and `inspect`",
        ErrorKind::kInput);
  }
  try {
    return reader.Model(pbf_reader(bytes.data(), bytes.size()));
  } catch (const ReadError& e) {
    return fail("not a readable ONNX model: " + e.message, e.kind);
  } catch (const protozero::exception& e) {
    const std::string_view what = SeemsToBe(bytes);
    if (!what.empty())
      return fail(fmt::format("not an ONNX model but {}", what), ErrorKind::kInput);
    return fail(fmt::format("not an ONNX model, or a damaged one: {} (protobuf)", e.what()),
                ErrorKind::kInput);
  }
}

}  // namespace tenon::onnx
