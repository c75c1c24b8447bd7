// The strings of one call, as numbers.
#pragma once

#include "runtime/values/value.h"

namespace tenon::runtime {

struct Text {
  const char* data;
  int64_t size;
};
inline bool operator==(Text a, Text b) {
  return a.size == b.size &&
         (a.size == 0 || memcmp(a.data, b.data, static_cast<size_t>(a.size)) == 0);
}

/// Keeps: number i is the i-th distinct string that was added, and those of the program come first.
class StringTable {
 public:
  StringTable() = default;
  ~StringTable();
  StringTable(const StringTable&) = delete;
  StringTable& operator=(const StringTable&) = delete;

  /// The string's number. `keep`: its bytes outlive the table; else they are copied.
  int32_t Add(Text text, bool keep, int64_t* number);
  /// A number that came out of a kernel; an error where it is none.
  int32_t Get(int64_t number, Text* out) const;
  int64_t size() const { return texts_.size(); }

 private:
  int32_t Grow();

  List<Text> texts_;
  List<uint64_t> hashes_;
  List<int64_t> table_;  // by hash, open addressing: a number + 1, or 0
  List<char*> copies_;
};

/// A string that is being made. An append that fails leaves `ok` false.
class TextBuilder {
 public:
  void Add(Text text) {
    ok_ = ok_ && chars_.Reserve(chars_.size() + text.size);
    for (int64_t i = 0; ok_ && i < text.size; ++i) chars_.Append(text.data[i]);
  }
  void Add(uint32_t code_point);
  void Clear() { chars_.Clear(); }
  bool ok() const { return ok_; }
  Text text() const { return {chars_.data(), chars_.size()}; }

 private:
  List<char> chars_;
  bool ok_ = true;
};

/// Reads one code point at *at and moves on; false where the bytes are not UTF-8.
bool NextCodePoint(Text text, int64_t* at, uint32_t* out);
bool IsUtf8(Text text);

}  // namespace tenon::runtime
