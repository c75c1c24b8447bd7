// Builds ONNX models as bytes, right ones and wrong ones.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/onnx/import.h"
#include "graph/graph.h"

namespace tenon::onnx::test {

using protozero::pbf_writer;

inline constexpr int kFloat = 1, kUint8 = 2, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9;

/// The bytes of a message written by `write`.
template <class F>
std::string Message(F write) {
  std::string bytes;
  pbf_writer w(bytes);
  write(w);
  return bytes;
}

template <class T>
std::string Raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// A dim: a size, a name, or "" for unknown.
using DimText = std::variant<int, int64_t, const char*>;

inline std::string TensorType(int elem_type, const std::vector<DimText>& dims, bool shape = true) {
  return Message([&](pbf_writer& type) {
    type.add_message(1, Message([&](pbf_writer& tensor) {
                       tensor.add_int32(1, elem_type);
                       if (!shape) return;
                       tensor.add_message(
                           2, Message([&](pbf_writer& s) {
                             for (const DimText& d : dims) {
                               s.add_message(
                                   1, Message([&](pbf_writer& dim) {
                                     if (const char* const* param = std::get_if<const char*>(&d)) {
                                       if (**param) dim.add_string(2, *param);
                                     } else {
                                       dim.add_int64(1, std::holds_alternative<int>(d)
                                                            ? std::get<int>(d)
                                                            : std::get<int64_t>(d));
                                     }
                                   }));
                             }
                           }));
                     }));
  });
}

inline std::string ValueInfo(const std::string& name, const std::string& type) {
  return Message([&](pbf_writer& w) {
    w.add_string(1, name);
    w.add_message(2, type);
  });
}

inline std::string Tensor(const std::string& name, int elem_type, const std::vector<int64_t>& dims,
                          const std::string& raw) {
  return Message([&](pbf_writer& w) {
    for (int64_t d : dims) w.add_int64(1, d);
    w.add_int32(2, elem_type);
    w.add_string(8, name);
    w.add_bytes(9, raw);
  });
}

inline std::string External(const std::string& name, const std::vector<int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  return Message([&](pbf_writer& w) {
    for (int64_t d : dims) w.add_int64(1, d);
    w.add_int32(2, kFloat);
    w.add_string(8, name);
    for (const auto& [key, value] : entries) {
      w.add_message(13, Message([&](pbf_writer& e) {
                      e.add_string(1, key);
                      e.add_string(2, value);
                    }));
    }
    w.add_int32(14, 1);
  });
}

/// Attributes, as messages.
inline std::string Int(const std::string& name, int64_t v) {
  return Message(
      [&](pbf_writer& w) { w.add_string(1, name), w.add_int64(3, v), w.add_int32(20, 2); });
}
inline std::string Float(const std::string& name, float v) {
  return Message(
      [&](pbf_writer& w) { w.add_string(1, name), w.add_float(2, v), w.add_int32(20, 1); });
}
inline std::string Str(const std::string& name, const std::string& v) {
  return Message(
      [&](pbf_writer& w) { w.add_string(1, name), w.add_bytes(4, v), w.add_int32(20, 3); });
}
inline std::string Ints(const std::string& name, const std::vector<int64_t>& v) {
  return Message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (int64_t x : v) w.add_int64(8, x);
    w.add_int32(20, 7);
  });
}
inline std::string FloatList(const std::string& name, const std::vector<float>& v) {
  return Message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (float x : v) w.add_float(7, x);
    w.add_int32(20, 6);
  });
}
inline std::string StrList(const std::string& name, const std::vector<std::string>& v) {
  return Message([&](pbf_writer& w) {
    w.add_string(1, name);
    for (const std::string& x : v) w.add_bytes(9, x);
    w.add_int32(20, 8);
  });
}
inline std::string TensorAttr(const std::string& name, const std::string& tensor) {
  return Message(
      [&](pbf_writer& w) { w.add_string(1, name), w.add_message(5, tensor), w.add_int32(20, 4); });
}

class Model;
/// The graph of another model as an attribute.
std::string GraphAttr(const std::string& name, const Model& graph);

/// A model under construction; the defaults are right.
class Model {
 public:
  int64_t ir_version = 8;
  int64_t opset = 17;

  Model& Input(const std::string& name, const std::vector<DimText>& dims, int elem_type = kFloat) {
    return Field(11, ValueInfo(name, TensorType(elem_type, dims)));
  }
  Model& Output(const std::string& name, int elem_type = kFloat) {
    return Field(12, ValueInfo(name, TensorType(elem_type, {}, false)));
  }
  Model& Init(const std::string& name, int elem_type, const std::vector<int64_t>& dims,
              const std::string& raw) {
    return Field(5, Tensor(name, elem_type, dims, raw));
  }
  Model& Init64(const std::string& name, const std::vector<int64_t>& v) {
    return Init(name, kInt64, {static_cast<int64_t>(v.size())}, Raw(v));
  }
  Model& Node(const std::string& op, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs,
              const std::vector<std::string>& attributes = {}, const std::string& domain = "") {
    return Field(1, Message([&](pbf_writer& w) {
                   for (const std::string& i : inputs) w.add_string(1, i);
                   for (const std::string& o : outputs) w.add_string(2, o);
                   w.add_string(3, "n" + std::to_string(nodes_++));
                   w.add_string(4, op);
                   for (const std::string& a : attributes) w.add_message(5, a);
                   if (!domain.empty()) w.add_string(7, domain);
                 }));
  }
  /// Any field of the graph / of the model.
  Model& Field(uint32_t tag, const std::string& message) {
    pbf_writer(graph_).add_message(tag, message);
    return *this;
  }
  Model& ModelField(uint32_t tag, const std::string& message) {
    pbf_writer(rest_).add_message(tag, message);
    return *this;
  }

  const std::string& graph() const { return graph_; }
  std::string Bytes() const {
    std::string bytes;
    pbf_writer w(bytes);
    if (ir_version != 0) w.add_int64(1, ir_version);
    if (opset != 0) {
      w.add_message(8, Message([&](pbf_writer& o) {
                      o.add_string(1, "");
                      o.add_int64(2, opset);
                    }));
    }
    w.add_message(7, graph_);
    return bytes + rest_;
  }

 private:
  std::string graph_, rest_;
  int nodes_ = 0;
};

inline std::string GraphAttr(const std::string& name, const Model& graph) {
  return Message([&](pbf_writer& w) {
    w.add_string(1, name), w.add_message(6, graph.graph()), w.add_int32(20, 5);
  });
}

/// Bytes as a mapped file that has no name in the file system.
inline std::shared_ptr<const graph::WeightFile> InMemory(std::string_view bytes) {
  const int fd = memfd_create("model", MFD_CLOEXEC);
  size_t done = 0;
  while (fd >= 0 && done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  Expected<MappedFile> map = MappedFile::OpenDescriptor(fd, "model.onnx");
  close(fd);
  return std::make_shared<const graph::WeightFile>("model.onnx", std::move(*map));
}

inline Expected<graph::Graph> Import(const Model& model, const ImportOptions& options = {}) {
  return ImportOnnx(InMemory(model.Bytes()), options);
}

/// All errors as text, or "" where the model is imported.
inline std::string Errors(const Model& model, const ImportOptions& options = {}) {
  Expected<graph::Graph> g = Import(model, options);
  return g ? "" : ToString(g.errors());
}

}  // namespace tenon::onnx::test
