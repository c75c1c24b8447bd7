#include "npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "support/atomic_file.h"
#include "support/file.h"
#include "verbs.h"

namespace tenon::tools {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  const char* descr;
  tn_dl_data_type type;
};

constexpr TypeName kTypes[] = {
    {"<f2", {TN_DL_FLOAT, 16, 1}},
    {"<V2", {TN_DL_BFLOAT, 16, 1}},
    {"|V2", {TN_DL_BFLOAT, 16, 1}},
    {"<f4", {TN_DL_FLOAT, 32, 1}},
    {"<f8", {TN_DL_FLOAT, 64, 1}},
    {"|b1", {TN_DL_BOOL, 8, 1}},
    {"|i1", {TN_DL_INT, 8, 1}},
    {"<i2", {TN_DL_INT, 16, 1}},
    {"<i4", {TN_DL_INT, 32, 1}},
    {"<i8", {TN_DL_INT, 64, 1}},
    {"|u1", {TN_DL_UINT, 8, 1}},
    {"<u2", {TN_DL_UINT, 16, 1}},
    {"<u4", {TN_DL_UINT, 32, 1}},
    {"<u8", {TN_DL_UINT, 64, 1}},
    // Of 8-bit floats an array says that it has bytes, but for one type.
    {"<V1", {TN_DL_UINT, 8, 1}},
    {"|V1", {TN_DL_UINT, 8, 1}},
    {"<f1", {TN_DL_FLOAT8_E5M2, 8, 1}},
};

// The dictionary in the head: a Python literal, of which NumPy writes a small part.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Expected<NpyHeader> Read() {
    if (!Take('{')) return Broken("expected '{'");
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    while (!Take('}')) {
      std::string_view key;
      if (!TakeString(&key) || !Take(':')) return Broken("expected a key");
      Status status = Ok();
      if (key == "descr") {
        descr = true;
        status = ReadType(&header.dtype);
      } else if (key == "fortran_order") {
        order = true;
        header.fortran_order = TakeWord("True");
        if (!header.fortran_order && !TakeWord("False")) status = Broken("expected True or False");
      } else if (key == "shape") {
        shape = true;
        status = ReadShape(&header.shape);
      } else {
        return Broken(fmt::format("unknown key '{}'", key));
      }
      if (!status) return std::move(status.errors());
      if (!Take(',') && Peek() != '}') return Broken("expected ','");
    }
    if (!descr || !order || !shape) return Broken("expected descr, fortran_order and shape");
    return header;
  }

 private:
  Status ReadType(tn_dl_data_type* out) {
    std::string_view name;
    if (!TakeString(&name)) return Broken("expected the name of a plain element type");
    for (const TypeName& t : kTypes) {
      if (name == t.descr) {
        *out = t.type;
        return Ok();
      }
    }
    if (ReadTextType(name, out)) return Ok();
    return MakeError(fmt::format("element type '{}' is not supported; expected float16, "
                                 "bfloat16, float32, float64, an integer type, bool, or strings "
                                 "(<U, |S), little-endian",
                                 name),
                     {file_});
  }

  // "<U12", "|S5".
  static bool ReadTextType(std::string_view name, tn_dl_data_type* out) {
    if (!name.starts_with("<U") && !name.starts_with("|S")) return false;
    uint16_t width = 0;
    const char* end = name.data() + name.size();
    const auto [rest, fault] = std::from_chars(name.data() + 2, end, width);
    *out = {TN_DL_HANDLE, static_cast<uint8_t>(name[1] == 'U' ? 32 : 8), width};
    return fault == std::errc() && rest == end && width > 0;
  }

  Status ReadShape(std::vector<int64_t>* out) {
    constexpr size_t kMaxDims = 64;
    if (!Take('(')) return Broken("expected '('");
    while (!Take(')')) {
      Peek();
      int64_t extent = 0;
      auto [end, fault] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (fault != std::errc() || extent < 0) return Broken("expected a size in the shape");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      out->push_back(extent);
      if (out->size() > kMaxDims) return Broken("more than 64 dimensions");
      if (!Take(',') && Peek() != ')') return Broken("expected ',' in the shape");
    }
    return Ok();
  }

  char Peek() {
    size_t at = text_.find_first_not_of(" \n");
    text_.remove_prefix(std::min(at, text_.size()));
    return text_.empty() ? '\0' : text_.front();
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view word) {
    Peek();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool TakeString(std::string_view* out) {
    char quote = Peek();
    if (quote != '\'' && quote != '"') return false;
    size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return false;
    *out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  Diagnostic Broken(const std::string& what) const {
    return MakeError("the array's head cannot be read: " + what, {file_});
  }

  std::string_view text_;
  const std::string& file_;
};

size_t ElementBytes(tn_dl_data_type type) { return size_t{type.bits} / 8 * type.lanes; }

// Bytes of the data; false where they do not fit 63 bits.
bool CountBytes(const NpyHeader& header, uint64_t* out) {
  uint64_t bytes = ElementBytes(header.dtype);
  for (int64_t extent : header.shape) {
    if (extent == 0) {
      *out = 0;
      return true;
    }
  }
  for (int64_t extent : header.shape) {
    if (bytes > std::numeric_limits<int64_t>::max() / static_cast<uint64_t>(extent)) return false;
    bytes *= static_cast<uint64_t>(extent);
  }
  *out = bytes;
  return true;
}

}  // namespace

Expected<NpyHeader> ParseNpyHeader(std::string_view bytes, const std::string& file) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) {
    return MakeError("expected an .npy array, which begins with \"\\x93NUMPY\"", {file});
  }
  auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  size_t version = byte(6);
  if (version < 1 || version > 3) {
    return MakeError(fmt::format("expected version 1, 2 or 3 of .npy but got {}", version), {file});
  }
  size_t start = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > std::min(bytes.size(), kMaxNpyHeader) - start) {
    return MakeError("the file ends inside the array's head, or that is too long", {file});
  }
  TN_ASSIGN_OR_RETURN(NpyHeader header, HeaderReader(bytes.substr(start, length), file).Read());
  header.header_bytes = start + length;
  if (!CountBytes(header, &header.data_bytes)) {
    return MakeLimitError(fmt::format("an array of {} is too large", ShapeText(header.shape)),
                          {file});
  }
  return header;
}

std::string FormatNpyHeader(tn_dl_data_type dtype, std::span<const int64_t> shape) {
  std::string descr = IsFloat8(dtype) && dtype.code != TN_DL_FLOAT8_E5M2 ? "|V1" : "";
  for (const TypeName& t : kTypes) {
    if (descr.empty() && t.type == dtype) descr = t.descr;
  }
  if (IsText(dtype)) descr = fmt::format("{}{}", dtype.bits == 32 ? "<U" : "|S", dtype.lanes);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr size_t kBefore = 10, kAlign = 64;
  text.append((kAlign - (kBefore + text.size() + 1) % kAlign) % kAlign, ' ');
  text += '\n';
  std::string head(kMagic);
  head += {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return head + text;
}

Expected<Tensor> ReadNpy(const std::string& path) {
  Expected<MappedFile> opened = MappedFile::Open(path);
  if (!opened) return InFile(std::move(opened.errors()), path);
  const MappedFile file = std::move(*opened);
  TN_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(file.text(), path));
  if (file.size() - header.header_bytes != header.data_bytes) {
    return MakeError(fmt::format("expected {} bytes of data for {} of {} but the file has {}",
                                 header.data_bytes, ShapeText(header.shape), ToString(header.dtype),
                                 file.size() - header.header_bytes),
                     {path});
  }
  TN_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(header.dtype, header.shape));
  if (header.data_bytes > 0) {
    std::memcpy(tensor.bytes().data(), file.data() + header.header_bytes, header.data_bytes);
  }
  return header.fortran_order ? FromFortranOrder(tensor) : tensor;
}

Expected<Tensor> FromFortranOrder(const Tensor& columns) {
  std::vector<int64_t> shape(columns.shape().begin(), columns.shape().end());
  TN_ASSIGN_OR_RETURN(Tensor rows, Tensor::Make(columns.dtype(), shape));
  size_t element = ElementBytes(columns.dtype());
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < columns.num_elements(); ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    std::memcpy(rows.bytes().data() + static_cast<size_t>(at) * element,
                columns.bytes().data() + static_cast<size_t>(i) * element, element);
    for (size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
  return rows;
}

Status CheckWritable(const Tensor& tensor, const std::string& name) {
  if (IsPlainType(tensor.dtype()) || IsText(tensor.dtype())) return Ok();
  return MakeError(fmt::format("'{}' of type {} cannot be written as a NumPy array", name,
                               ToString(tensor.dtype())));
}

Status WriteNpy(const std::string& path, const Tensor& tensor) {
  TN_RETURN_IF_ERROR(CheckWritable(tensor, path));
  TN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  TN_RETURN_IF_ERROR(file.Append(FormatNpyHeader(tensor.dtype(), tensor.shape())));
  TN_RETURN_IF_ERROR(file.Append(tensor.bytes()));
  return file.Commit();
}

}  // namespace tenon::tools
