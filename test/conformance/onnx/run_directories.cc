// run_directories [-v] FOLDER …: runs test cases in the layout that the ONNX project publishes.
//
// A case is a folder with model.onnx and test_data_set_*/{input,output}_N.pb; a folder without a
// model stands for those in it. Each case runs in a process of its own: the model as it stands is
// compiled to a library, which is called with each data set's inputs. Elements may differ by what
// tolerance.txt says ("relative absolute"), else as in ONNX's own backend test. Exit 1: some case
// does not pass, or there are none.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "artifact_source.h"
#include "frontend/onnx/tensor.h"
#include "temporary_folder.h"
#include "values.h"

namespace tenon::tools {
namespace {

namespace fs = std::filesystem;

// ---- Messages of onnx.proto that are no models ----

struct Field {
  uint64_t number = 0;
  std::string_view bytes;  // of a message, else empty
};

Expected<uint64_t> TakeVarint(std::string_view* in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return MakeError("the message is truncated");
}

Expected<std::vector<Field>> Fields(std::string_view in) {
  constexpr uint64_t kVarint = 0, kLength = 2;
  std::vector<Field> out;
  while (!in.empty()) {
    TN_ASSIGN_OR_RETURN(const uint64_t tag, TakeVarint(&in));
    TN_ASSIGN_OR_RETURN(const uint64_t word, TakeVarint(&in));
    out.push_back({tag >> 3, {}});
    if ((tag & 7) == kVarint) continue;
    if ((tag & 7) != kLength || word > in.size()) return MakeError("the message is damaged");
    out.back().bytes = in.substr(0, word);
    in.remove_prefix(word);
  }
  return out;
}

std::string Message(uint64_t number, std::string_view bytes) {
  std::string out;
  const auto add = [&](uint64_t word) {
    for (; word >= 0x80; word >>= 7) out += static_cast<char>(word | 0x80);
    out += static_cast<char>(word);
  };
  add(number << 3 | 2);
  add(bytes.size());
  return out.append(bytes);
}

Json Nested(const std::vector<std::string_view>& texts, std::span<const int64_t> shape,
            size_t* at) {
  if (shape.empty()) return Json(std::string(texts[(*at)++]));
  Json list = Json::array();
  for (int64_t i = 0; i < shape[0]; ++i) list.push_back(Nested(texts, shape.subspan(1), at));
  return list;
}

// Reads values of the files of one case.
class Reader {
 public:
  explicit Reader(std::string scratch) : scratch_(std::move(scratch)) {}

  /// What the file holds, of the type that the model declares; `dtype`: that of a tensor.
  Expected<Value> Read(const fs::path& path, const onnx::ValueInfoProto& declared,
                       tn_dl_data_type dtype) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file) return MakeError("cannot be read", {path.string()});
    return Decode(bytes, declared, dtype);
  }

 private:
  using Kind = onnx::ValueInfoProto::Kind;

  Expected<Value> Decode(std::string_view bytes, const onnx::ValueInfoProto& type,
                         std::optional<tn_dl_data_type> dtype) {
    if (type.kind == Kind::kTensor) return DecodeTensor(bytes, dtype);
    if ((type.kind != Kind::kSequence && type.kind != Kind::kOptional) || type.inner.empty())
      return MakeError("neither maps nor sparse tensors are in published cases");
    // SequenceProto has its elements, and OptionalProto its value, in fields by their types.
    constexpr uint64_t kTensor = 3, kSequence = 5;
    TN_ASSIGN_OR_RETURN(const std::vector<Field> fields, Fields(bytes));
    Json list = Json::array();
    for (const Field& field : fields) {
      if (field.number != kTensor && field.number != kSequence) continue;
      TN_ASSIGN_OR_RETURN(const Value item, Decode(field.bytes, type.inner[0], std::nullopt));
      list.push_back(ToJson(item));
    }
    if (type.kind == Kind::kSequence) return Value(std::move(list));
    return Value(list.empty() ? Json() : list[0]);
  }

  // The tensor is read by those who read models: as an initializer of one.
  Expected<Value> DecodeTensor(std::string_view bytes, std::optional<tn_dl_data_type> dtype) {
    constexpr uint64_t kGraph = 7, kInitializer = 5;
    const std::string path = fmt::format("{}/value_{}", scratch_, count_++);
    std::ofstream(path, std::ios::binary) << Message(kGraph, Message(kInitializer, bytes));
    TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(path));
    const auto file = std::make_shared<const graph::WeightFile>(path, std::move(map));
    TN_ASSIGN_OR_RETURN(const onnx::ModelProto model, onnx::ReadModel(file->map.text(), path, {}));
    if (model.graph.initializers.size() != 1) return MakeError("expected a tensor");
    const onnx::TensorProto& proto = model.graph.initializers[0];
    if (proto.data_type == static_cast<int32_t>(onnx::ElemType::kString)) {
      size_t at = 0;
      const Json json = proto.strings.empty() ? Json{{"shape", proto.dims}, {"data", Json::array()}}
                                              : Nested(proto.strings, proto.dims, &at);
      TN_ASSIGN_OR_RETURN(Tensor texts, TensorFromJson(json, "string"));
      return Value(ToJson(Value(std::move(texts))));
    }
    onnx::ExternalData none("", "");
    TN_ASSIGN_OR_RETURN(const onnx::Tensor read, onnx::ReadTensor(proto, file, &none));
    if (!dtype) {  // in a sequence, whose elements say it
      TN_ASSIGN_OR_RETURN(const Tensor like,
                          TensorFromJson(Json::array(), LongName(read.type.dtype)));
      dtype = like.dtype();
    }
    TN_ASSIGN_OR_RETURN(Tensor out, Tensor::Make(*dtype, proto.dims));
    const std::span<const std::byte> data = read.payload.bytes();
    if (data.size() != out.bytes().size())
      return MakeError(fmt::format("expected {} bytes for {} {}, but got {}", out.bytes().size(),
                                   ToString(*dtype), ShapeText(proto.dims), data.size()));
    if (!data.empty()) std::memcpy(out.bytes().data(), data.data(), data.size());
    return Value(std::move(out));
  }

  const std::string scratch_;
  int count_ = 0;
};

// ---- Cases ----

// input_N.pb of a data set, in the order of N.
std::vector<fs::path> Numbered(const fs::path& folder, const std::string& word) {
  std::vector<fs::path> out;
  for (size_t i = 0; fs::exists(folder / fmt::format("{}_{}.pb", word, i)); ++i)
    out.push_back(folder / fmt::format("{}_{}.pb", word, i));
  return out;
}

std::string DifferenceOf(const Value& got, const Value& want, Tolerance tolerance) {
  constexpr double kTwoLastPlaces = 0x1p-6;  // of bfloat16, as ONNX's runner has it
  const auto *a = std::get_if<Tensor>(&got), *b = std::get_if<Tensor>(&want);
  if (!a || !b) return Difference(ToJson(got), ToJson(want), tolerance);
  if (b->dtype().code == TN_DL_BFLOAT)
    tolerance.relative = std::max(tolerance.relative, kTwoLastPlaces);
  return Difference(*a, *b, tolerance);
}

// A compiled model, and what its file declares.
struct Subject {
  Program program;
  std::map<std::string_view, const onnx::ValueInfoProto*> declared;
  Tolerance tolerance;

  Expected<Value> Read(Reader* reader, const fs::path& path, const Parameter& p) const {
    const auto type = declared.find(p.name);
    if (type == declared.end()) return MakeError(fmt::format("'{}' is not declared", p.name));
    return reader->Read(path, *type->second, p.dtype);
  }
};

Status RunDataSet(const Subject& of, const fs::path& folder, Reader* reader) {
  const std::vector<Parameter>&inputs = of.program.inputs(), &outputs = of.program.outputs();
  const std::vector<fs::path> given = Numbered(folder, "input"),
                              wanted = Numbered(folder, "output");
  if (given.size() != inputs.size() || wanted.size() != outputs.size())
    return MakeError(fmt::format("expected {} inputs and {} outputs, but there are {} and {}",
                                 inputs.size(), outputs.size(), given.size(), wanted.size()),
                     {folder.string()});
  std::vector<Value> values;
  for (size_t i = 0; i < given.size(); ++i) {
    TN_ASSIGN_OR_RETURN(Value value, of.Read(reader, given[i], inputs[i]));
    values.push_back(std::move(value));
  }
  TN_ASSIGN_OR_RETURN(const NamedValues got, CallWithValues(of.program, values));
  for (size_t i = 0; i < wanted.size(); ++i) {
    TN_ASSIGN_OR_RETURN(const Value want, of.Read(reader, wanted[i], outputs[i]));
    const std::string said = DifferenceOf(got[i].second, want, of.tolerance);
    if (!said.empty())
      return MakeError(fmt::format("output '{}': {}", outputs[i].name, said), {folder.string()});
  }
  return Ok();
}

Status RunCase(const fs::path& folder) {
  Tolerance tolerance{.relative = 1e-3, .absolute = 1e-7};
  if (std::ifstream said(folder / "tolerance.txt"); said)
    said >> tolerance.relative >> tolerance.absolute;
  TN_ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Make());
  driver::CompileOptions options;
  options.model = (folder / "model.onnx").string();
  options.output = scratch.path() + "/model.so";
  options.empty_sizes = true;
  TN_RETURN_IF_ERROR(driver::Compile(options));
  TN_ASSIGN_OR_RETURN(MappedFile map, MappedFile::Open(options.model));
  TN_ASSIGN_OR_RETURN(const onnx::ModelProto model, onnx::ReadModel(map.text(), options.model, {}));
  TN_ASSIGN_OR_RETURN(Program program, Program::Load(options.output));
  Subject subject{std::move(program), {}, tolerance};
  for (const auto* list : {&model.graph.inputs, &model.graph.outputs}) {
    for (const onnx::ValueInfoProto& v : *list) subject.declared.emplace(v.name, &v);
  }
  Reader reader(scratch.path());
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("test_data_set_"))
      sets.push_back(entry.path());
  }
  if (sets.empty()) return MakeError("there are no data sets", {folder.string()});
  std::sort(sets.begin(), sets.end());
  for (const fs::path& set : sets) TN_RETURN_IF_ERROR(RunDataSet(subject, set, &reader));
  return Ok();
}

// In a process of its own: a fault of one case is none of the next.
bool Passes(const fs::path& folder, bool verbose) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const Status done = RunCase(folder);
    if (!done)
      fmt::print("{}: {}\n", folder.filename().string(), done.errors()[0].message);
    else if (verbose)
      fmt::print("{}: passed\n", folder.filename().string());
    fflush(stdout);
    _exit(done ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status))
    fmt::print("{}: killed by signal {}\n", folder.filename().string(), WTERMSIG(status));
  return status == 0;
}

int Main(std::span<char*> args) {
  bool verbose = false;
  std::vector<fs::path> cases;
  for (const fs::path arg : args) {
    if (arg == "-v") {
      verbose = true;
    } else if (fs::exists(arg / "model.onnx")) {
      cases.push_back(arg);
    } else if (fs::is_directory(arg)) {
      for (const auto& entry : fs::directory_iterator(arg)) {
        if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
      }
    }
  }
  std::sort(cases.begin(), cases.end());
  const auto passed = std::count_if(cases.begin(), cases.end(),
                                    [&](const fs::path& c) { return Passes(c, verbose); });
  fmt::print("{} of {} cases passed\n", passed, cases.size());
  return !cases.empty() && passed == static_cast<int64_t>(cases.size()) ? 0 : 1;
}

}  // namespace
}  // namespace tenon::tools

int main(int argc, char** argv) {
  return tenon::tools::Main({argv + 1, static_cast<size_t>(std::max(argc - 1, 0))});
}
