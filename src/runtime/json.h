// A reader of JSON in place: values are ranges of the text, nothing is built. For the text that our
// own compiler puts into libraries; broken text reads as missing values, never out of bounds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::runtime {

/// A value's text, without surrounding space. Empty: there is no such value.
struct JsonValue {
  const char* begin = nullptr;
  const char* end = nullptr;

  bool exists() const { return begin != end; }
  bool IsString() const { return exists() && *begin == '"'; }
};

/// The value of `key` in an object.
JsonValue JsonFind(JsonValue object, const char* key);

/// Walks the items of an array, or the values of an object with their keys.
class JsonItems {
 public:
  explicit JsonItems(JsonValue container);
  /// The next value (its key in *key where that is asked for), or a missing one at the end.
  JsonValue Next(JsonValue* key = nullptr);

 private:
  const char* cursor_;
  const char* end_;
  bool object_;
};

int32_t JsonCount(JsonValue array);
/// Whether a string value is this text (which needs no escapes).
bool JsonEquals(JsonValue string, const char* text);
/// The number, or `fallback` where the value is no integer.
int64_t JsonInt(JsonValue value, int64_t fallback);
/// Room that a string needs decoded, with its NUL; decoding into it. A value that is no string
/// gives its text as it stands.
size_t JsonStringRoom(JsonValue string);
void JsonDecode(JsonValue string, char* out);

}  // namespace tenon::runtime
