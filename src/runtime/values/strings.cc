#include "runtime/values/strings.h"

namespace tenon::runtime {
namespace {

// FNV-1a, whose low bits are mixed once more.
uint64_t HashOf(Text text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int64_t i = 0; i < text.size; ++i)
    hash = (hash ^ static_cast<unsigned char>(text.data[i])) * 0x100000001b3;
  return hash ^ (hash >> 29);
}

}  // namespace

StringTable::~StringTable() {
  for (char* copy : copies_) free(copy);
}

int32_t StringTable::Grow() {
  const int64_t size = table_.size() < 16 ? 64 : table_.size() * 2;
  table_.Clear();
  if (!table_.Resize(size)) return OutOfMemory();
  for (int64_t n = 0; n < texts_.size(); ++n) {
    auto at = static_cast<int64_t>(hashes_[n] & static_cast<uint64_t>(size - 1));
    while (table_[at] != 0) at = (at + 1) & (size - 1);
    table_[at] = n + 1;
  }
  return 0;
}

int32_t StringTable::Add(Text text, bool keep, int64_t* number) {
  if (texts_.size() * 2 >= table_.size() && Grow() != 0) return -1;
  const uint64_t hash = HashOf(text);
  const int64_t mask = table_.size() - 1;
  auto at = static_cast<int64_t>(hash & static_cast<uint64_t>(mask));
  for (; table_[at] != 0; at = (at + 1) & mask) {
    *number = table_[at] - 1;
    if (hashes_[*number] == hash && texts_[*number] == text) return 0;
  }
  if (!texts_.Reserve(texts_.size() + 1) || !hashes_.Reserve(hashes_.size() + 1) ||
      !copies_.Reserve(copies_.size() + 1))
    return OutOfMemory();
  if (!keep && text.size > 0) {
    auto* copy =
        static_cast<char*>(MayTake(text.size) ? malloc(static_cast<size_t>(text.size)) : nullptr);
    if (!copy) return OutOfMemory();
    memcpy(copy, text.data, static_cast<size_t>(text.size));
    copies_.Append(copy);
    text.data = copy;
  }
  *number = texts_.size();
  texts_.Append(text);
  hashes_.Append(hash);
  table_[at] = *number + 1;
  return 0;
}

int32_t StringTable::Get(int64_t number, Text* out) const {
  if (number < 0 || number >= texts_.size())
    return Fail("RuntimeError", "a kernel gave a string that there is not");
  *out = texts_[number];
  return 0;
}

void TextBuilder::Add(uint32_t c) {
  char bytes[4];
  int64_t n = 0;
  if (c < 0x80) {
    bytes[n++] = static_cast<char>(c);
  } else {
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
    bytes[n++] = static_cast<char>(kLead[more] | (c >> (6 * more)));
    for (int i = more - 1; i >= 0; --i)
      bytes[n++] = static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f));
  }
  Add(Text{bytes, n});
}

bool NextCodePoint(Text text, int64_t* at, uint32_t* out) {
  const auto first = static_cast<unsigned char>(text.data[(*at)++]);
  if (first < 0x80) {
    *out = first;
    return true;
  }
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4 || *at + more > text.size) return false;
  uint32_t c = first & (0x3fU >> more);
  for (int i = 0; i < more; ++i) {
    const auto next = static_cast<unsigned char>(text.data[(*at)++]);
    if ((next & 0xc0) != 0x80) return false;
    c = (c << 6) | (next & 0x3f);
  }
  *out = c;
  const bool shortest = more == 1 || c >= (more == 2 ? 0x800U : 0x10000U);
  return shortest && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

bool IsUtf8(Text text) {
  uint32_t c = 0;
  for (int64_t at = 0; at < text.size;) {
    if (!NextCodePoint(text, &at, &c)) return false;
  }
  return true;
}

}  // namespace tenon::runtime
