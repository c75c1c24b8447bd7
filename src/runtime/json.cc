#include "runtime/json.h"

#include <stdlib.h>
#include <string.h>

namespace tenon::runtime {
namespace {

const char* SkipSpace(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) ++p;
  return p;
}

const char* SkipString(const char* p, const char* end) {
  for (++p; p < end; ++p) {
    if (*p == '\\' && p + 1 < end) {
      ++p;
    } else if (*p == '"') {
      return p + 1;
    }
  }
  return end;
}

// The end of the value that starts at p: brackets are counted, so depth costs nothing.
const char* SkipValue(const char* p, const char* end) {
  int64_t depth = 0;
  while (p < end) {
    char c = *p;
    if (c == '"') {
      p = SkipString(p, end);
    } else {
      if (depth == 0 && (c == ',' || c == ']' || c == '}' || c == ':')) return p;
      if (depth == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) return p;
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
      ++p;
    }
    if (depth == 0 && (c == '"' || c == ']' || c == '}')) return p;
  }
  return end;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads the four digits of a \u escape; 0xfffd where they are none.
uint32_t ReadHex4(const char* p, const char* end) {
  if (end - p < 4) return 0xfffd;
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    int digit = HexDigit(p[i]);
    if (digit < 0) return 0xfffd;
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  return value;
}

char* AppendUtf8(uint32_t code, char* out) {
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
    return out;
  }
  int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  *out++ = static_cast<char>(kLead[tail] | code >> 6 * tail);
  for (int i = tail - 1; i >= 0; --i) *out++ = static_cast<char>(0x80 | (code >> 6 * i & 0x3f));
  return out;
}

// Decodes one escape at p (the letter after the backslash); returns what follows it.
const char* DecodeEscape(const char* p, const char* end, char** out) {
  constexpr char kLetters[] = "nrtbf", kValues[] = "\n\r\t\b\f";
  if (*p != 'u') {
    const char* known = strchr(kLetters, *p);
    *(*out)++ = known && *p ? kValues[known - kLetters] : *p;
    return p + 1;
  }
  uint32_t code = ReadHex4(p + 1, end);
  p = end - p < 5 ? end : p + 5;
  bool high = code >= 0xd800 && code < 0xdc00;
  if (high && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    uint32_t low = ReadHex4(p + 2, end);
    if (low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      p += 6;
    }
  }
  if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
  *out = AppendUtf8(code, *out);
  return p;
}

}  // namespace

JsonItems::JsonItems(JsonValue container) : cursor_(container.begin), end_(container.end) {
  object_ = container.exists() && *container.begin == '{';
  if (object_ || (container.exists() && *container.begin == '[')) {
    ++cursor_;
  } else {
    cursor_ = end_;
  }
}

JsonValue JsonItems::Next(JsonValue* key) {
  cursor_ = SkipSpace(cursor_, end_);
  if (cursor_ < end_ && *cursor_ == ',') cursor_ = SkipSpace(cursor_ + 1, end_);
  if (object_) {
    const char* key_end = SkipValue(cursor_, end_);
    if (key) *key = {cursor_, key_end};
    cursor_ = SkipSpace(key_end, end_);
    if (cursor_ < end_ && *cursor_ == ':') cursor_ = SkipSpace(cursor_ + 1, end_);
  }
  JsonValue value = {cursor_, SkipValue(cursor_, end_)};
  cursor_ = value.end;
  if (!value.exists()) cursor_ = end_;
  return value;
}

JsonValue JsonFind(JsonValue object, const char* key) {
  JsonItems items(object);
  JsonValue found_key;
  while (true) {
    JsonValue value = items.Next(&found_key);
    if (!value.exists() || JsonEquals(found_key, key)) return value;
  }
}

int32_t JsonCount(JsonValue array) {
  JsonItems items(array);
  int32_t count = 0;
  while (items.Next().exists()) ++count;
  return count;
}

bool JsonEquals(JsonValue string, const char* text) {
  size_t length = strlen(text);
  return string.IsString() && static_cast<size_t>(string.end - string.begin) == length + 2 &&
         memcmp(string.begin + 1, text, length) == 0;
}

int64_t JsonInt(JsonValue value, int64_t fallback) {
  char digits[24] = {};
  size_t length = static_cast<size_t>(value.end - value.begin);
  if (length == 0 || length >= sizeof digits) return fallback;
  memcpy(digits, value.begin, length);
  char* end;
  long long number = strtoll(digits, &end, 10);
  return end == digits + length ? number : fallback;
}

size_t JsonStringRoom(JsonValue string) {
  return static_cast<size_t>(string.end - string.begin) + 1;  // escapes only shrink
}

void JsonDecode(JsonValue string, char* out) {
  const char *p = string.begin, *end = string.end;
  if (string.IsString()) {
    ++p;
    if (end > p && end[-1] == '"') --end;
  }
  while (p < end) {
    if (string.IsString() && *p == '\\' && p + 1 < end) {
      p = DecodeEscape(p + 1, end, &out);
    } else {
      *out++ = *p++;
    }
  }
  *out = '\0';
}

}  // namespace tenon::runtime
