// Steps on tensors of strings, whose elements are numbers of the call's table.
#include <stdio.h>

#include "runtime/values/steps.h"

namespace tenon::runtime {
namespace {

// The tensor of strings (or of anything that is asked for as one) that an input is.
const tn_dl_tensor* StringsIn(const StepArgs& args, int32_t i) {
  const tn_dl_tensor* t = i < args.num_in ? args.in[i].tensor() : nullptr;
  if (!t || !SameType(t->dtype, kInt64Type)) {
    Fail("RuntimeError", "expected a tensor of strings");
    return nullptr;
  }
  return t;
}

int32_t Like(const tn_dl_tensor& t, tn_dl_data_type type, Value* out, void** data) {
  return MakeTensor(type, t.ndim, t.shape, out, data);
}

// Where an element of the broadcast shape is in a tensor.
int64_t PlaceIn(const tn_dl_tensor& t, int32_t ndim, const int64_t* at) {
  int64_t place = 0;
  for (int32_t i = 0; i < t.ndim; ++i)
    place = place * t.shape[i] + (t.shape[i] == 1 ? 0 : at[ndim - t.ndim + i]);
  return place;
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Hands out the pieces of a text: between delimiters, or words where there is none.
class Splitter {
 public:
  Splitter(Text text, Text delimiter, int64_t most) : rest_(text), by_(delimiter), left_(most) {
    done_ = by_.size == 0 && !SkipSpace();
  }
  bool Next(Text* piece) {
    if (done_) return false;
    int64_t end = 0;
    while (end < rest_.size && (left_ == 0 || !IsBreak(end))) ++end;
    *piece = {rest_.data, end};
    if (by_.size == 0) {
      Advance(end);
      done_ = !SkipSpace();
    } else {
      done_ = end >= rest_.size;
      Advance(done_ ? end : end + by_.size);
    }
    if (left_ > 0) --left_;
    return true;
  }

 private:
  bool IsBreak(int64_t at) const {
    if (by_.size == 0) return IsSpace(rest_.data[at]);
    return at + by_.size <= rest_.size && Text{rest_.data + at, by_.size} == by_;
  }
  void Advance(int64_t by) { rest_ = {rest_.data + by, rest_.size - by}; }
  bool SkipSpace() {
    while (rest_.size > 0 && IsSpace(*rest_.data)) Advance(1);
    return rest_.size > 0;
  }

  Text rest_, by_;
  int64_t left_;  // breaks; negative: any number
  bool done_ = false;
};

// Simple case mapping of the alphabets that have a case in one block.
uint32_t Lower(uint32_t c) {
  if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7)) return c + 32;
  if (c >= 0x391 && c <= 0x3a9 && c != 0x3a2) return c + 32;  // Greek
  if (c >= 0x410 && c <= 0x42f) return c + 32;                // Cyrillic
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  if (c >= 0x531 && c <= 0x556) return c + 48;  // Armenian
  if (c == 0x178) return 0xff;
  const bool odd_is_upper = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
  const bool paired = (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) ||
                      (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481) ||
                      (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f) ||
                      (c >= 0x1e00 && c <= 0x1e95) || (c >= 0x1ea0 && c <= 0x1eff);
  if (odd_is_upper) return (c & 1) != 0 ? c + 1 : c;
  return paired ? c | 1 : c;
}
uint32_t Upper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  // Those whose lower case they are stand 1, 32, 48 or 80 before them.
  static constexpr uint32_t kDistances[] = {1, 32, 48, 80};
  if (c == 0xff) return 0x178;
  for (uint32_t distance : kDistances) {
    if (Lower(c) == c && c - distance >= 0x80 && Lower(c - distance) == c) return c - distance;
  }
  return c == 0x3c2 ? 0x3a3 : c;  // the final sigma
}

void AppendCased(Text text, int32_t change, TextBuilder* out) {
  uint32_t c = 0;
  for (int64_t at = 0; at < text.size && NextCodePoint(text, &at, &c);)
    out->Add(change == 1 ? Lower(c) : change == 2 ? Upper(c) : c);
}

/// A matcher of an automaton: what states an input can lead to, all at once, so that a text takes
/// time in proportion to its length whatever the pattern. The automaton is the one that
/// frontend/onnx/regex.h describes.
class Matcher {
 public:
  Matcher(const int32_t* numbers)
      : states_(numbers[0]), code_(numbers + 1), ranges_(numbers + 1 + int64_t{3} * numbers[0]) {}

  int32_t Match(Text text, bool* out) {
    if (!now_.Reserve(states_) || !next_.Reserve(states_) || !stack_.Reserve(states_ + 1) ||
        !seen_.Resize(states_))
      return OutOfMemory();
    memset(seen_.data(), 0, static_cast<size_t>(states_) * sizeof(int64_t));
    matched_ = false;
    now_.Clear();
    int64_t at = 0, step = 1;
    uint32_t before = 0, c = 0;
    int64_t ahead = 0;
    bool more = Peek(text, &ahead, &c);
    Reach(0, step, {at == 0, !more, false, more && IsWord(c)}, &now_);
    while (more) {
      before = c;
      at = ahead;
      const uint32_t taken = c;
      more = Peek(text, &ahead, &c);
      matched_ = false;
      next_.Clear();
      ++step;
      const Place place{false, !more, IsWord(before), more && IsWord(c)};
      for (int32_t state : now_) {
        if (Takes(state, taken)) Reach(state + 1, step, place, &next_);
      }
      now_.Clear();
      for (int32_t state : next_) now_.Append(state);
    }
    *out = matched_;
    return 0;
  }

 private:
  enum Code { kSet, kSplit, kJump, kMatch, kBegin, kEnd, kWordBorder, kNoWordBorder };
  struct Place {
    bool begin, end, word_before, word_after;
  };

  static bool Peek(Text text, int64_t* at, uint32_t* c) {
    return *at < text.size && NextCodePoint(text, at, c);
  }
  static bool IsWord(uint32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  bool Takes(int32_t state, uint32_t c) const {
    const int32_t* code = code_ + int64_t{3} * state;
    for (int32_t i = 0; i < code[2]; ++i) {
      const int32_t* range = ranges_ + int64_t{2} * (code[1] + i);
      if (c >= static_cast<uint32_t>(range[0]) && c <= static_cast<uint32_t>(range[1])) return true;
    }
    return false;
  }

  // The states that wait for a character, from `state` on without taking one.
  void Reach(int32_t state, int64_t step, const Place& place, List<int32_t>* out) {
    stack_.Clear();
    stack_.Append(state);
    while (stack_.size() > 0) {
      const int32_t s = stack_[stack_.size() - 1];
      stack_.Resize(stack_.size() - 1);
      if (seen_[s] == step) continue;
      seen_[s] = step;
      const int32_t* code = code_ + int64_t{3} * s;
      switch (code[0]) {
        case kSet: out->Append(s); break;
        case kSplit: stack_.Append(code[2]); [[fallthrough]];
        case kJump: stack_.Append(code[1]); break;
        case kMatch: matched_ = place.end; break;
        default: {
          const bool border = place.word_before != place.word_after;
          const bool holds = code[0] == kBegin ? place.begin
                             : code[0] == kEnd ? place.end
                                               : border == (code[0] == kWordBorder);
          if (holds) stack_.Append(s + 1);
        }
      }
    }
  }

  const int32_t states_;
  const int32_t *code_, *ranges_;
  List<int32_t> now_, next_, stack_;
  List<int64_t> seen_;  // by state: the last step that reached it
  bool matched_ = false;
};

double HalfToDouble(uint16_t bits, bool brain) {
  uint32_t word = static_cast<uint32_t>(bits) << 16;
  if (!brain) {
    const uint32_t field = (bits >> 10) & 31, fraction = bits & 1023;
    const double magnitude = field == 0 ? static_cast<double>(fraction) / (1 << 24) : 0;
    if (field == 0) return bits >> 15 ? -magnitude : magnitude;
    word = (static_cast<uint32_t>(bits >> 15) << 31) | ((field == 31 ? 255 : field + 112) << 23) |
           (fraction << 13);
  }
  float number;
  memcpy(&number, &word, sizeof number);
  return static_cast<double>(number);
}

int32_t Written(double number, int digits, char* out, size_t size) {
  if (number != number) return snprintf(out, size, "NaN");
  if (number - number != 0) return snprintf(out, size, number > 0 ? "INF" : "-INF");
  return snprintf(out, size, "%.*g", digits, number);
}

// The element as text; its length.
int32_t WriteNumber(const tn_dl_tensor& t, int64_t i, char* out, size_t size) {
  const uint8_t bits = t.dtype.bits;
  const unsigned char* p = DataOf(t) + i * (bits / 8);
  if (t.dtype.code == TN_DL_FLOAT || t.dtype.code == TN_DL_BFLOAT) {
    double number;
    float single;
    uint16_t half;
    if (bits == 64) return memcpy(&number, p, 8), Written(number, 17, out, size);
    if (bits == 32)
      return memcpy(&single, p, 4), Written(static_cast<double>(single), 8, out, size);
    memcpy(&half, p, 2);
    return Written(HalfToDouble(half, t.dtype.code == TN_DL_BFLOAT), 8, out, size);
  }
  uint64_t word = 0;
  memcpy(&word, p, bits / 8U);
  if (t.dtype.code != TN_DL_INT)
    return snprintf(out, size, "%llu", static_cast<unsigned long long>(word));
  const int shift = 64 - bits;
  return snprintf(out, size, "%lld",
                  static_cast<long long>(static_cast<int64_t>(word << shift) >> shift));
}

uint16_t ToHalf(double number, bool brain) {
  const auto single = static_cast<float>(number);
  uint32_t word;
  memcpy(&word, &single, 4);
  if (single != single) return static_cast<uint16_t>(brain ? 0x7fc0 : 0x7e00);
  if (brain) return static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  const uint32_t sign = (word >> 16) & 0x8000, magnitude = word & 0x7fffffff;
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {  // steps of 2^-24
    float up;
    const uint32_t half = (magnitude >> 23) > 0 ? magnitude : 0;
    memcpy(&up, &half, 4);
    const float scaled = up * 16777216.0F;
    auto steps = static_cast<uint32_t>(scaled);
    const float rest = scaled - static_cast<float>(steps);
    if (rest > 0.5F || (rest == 0.5F && (steps & 1) != 0)) ++steps;
    return static_cast<uint16_t>(sign | steps);
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000;
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

// Stores the number that a text is; false where it is none of the type.
bool ReadText(Text text, tn_dl_data_type type, unsigned char* out) {
  char copy[128];
  if (text.size == 0 || text.size >= static_cast<int64_t>(sizeof copy)) return false;
  memcpy(copy, text.data, static_cast<size_t>(text.size));
  copy[text.size] = 0;
  char* end = nullptr;
  if (type.code == TN_DL_INT || type.code == TN_DL_UINT || type.code == TN_DL_BOOL) {
    const long long number = strtoll(copy, &end, 10);
    const bool flag = number != 0;
    memcpy(out, type.code == TN_DL_BOOL ? static_cast<const void*>(&flag) : &number,
           type.bits / 8U);
    const int shift = 64 - type.bits;
    const auto wide = static_cast<uint64_t>(number) << shift;
    const bool fits = type.code == TN_DL_INT ? (static_cast<int64_t>(wide) >> shift) == number
                                             : type.code == TN_DL_BOOL ||
                                                   static_cast<long long>(wide >> shift) == number;
    return end == copy + text.size && fits;
  }
  const double number = strtod(copy, &end);
  const auto single = static_cast<float>(number);
  const uint16_t half = ToHalf(number, type.code == TN_DL_BFLOAT);
  memcpy(out,
         type.bits == 64   ? static_cast<const void*>(&number)
         : type.bits == 32 ? static_cast<const void*>(&single)
                           : &half,
         type.bits / 8U);
  return end == copy + text.size;
}

}  // namespace

int32_t StringConcatStep(const StepArgs& args) {
  const tn_dl_tensor *a = StringsIn(args, 0), *b = StringsIn(args, 1);
  if (!a || !b) return -1;
  const int32_t ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
  int64_t shape[kMaxDims], at[kMaxDims] = {};
  for (int32_t i = 0; i < ndim; ++i) {
    const int64_t of_a = i < ndim - a->ndim ? 1 : a->shape[i - (ndim - a->ndim)];
    const int64_t of_b = i < ndim - b->ndim ? 1 : b->shape[i - (ndim - b->ndim)];
    if (of_a != of_b && of_a != 1 && of_b != 1)
      return FailWith("ValueError",
                      "the shapes of strings do not broadcast: %lld and %lld at dim %d",
                      static_cast<long long>(of_a), static_cast<long long>(of_b), i);
    shape[i] = of_a == 1 ? of_b : of_a;
  }
  void* data = nullptr;
  if (MakeTensor(kInt64Type, ndim, shape, &args.out[0], &data) != 0) return -1;
  const int64_t count = CountOf(*args.out[0].tensor());
  TextBuilder text;
  for (int64_t n = 0; n < count; ++n) {
    Text left, right;
    if (args.strings->Get(DataOf<int64_t>(*a)[PlaceIn(*a, ndim, at)], &left) != 0 ||
        args.strings->Get(DataOf<int64_t>(*b)[PlaceIn(*b, ndim, at)], &right) != 0)
      return -1;
    text.Clear();
    text.Add(left);
    text.Add(right);
    if (!text.ok()) return OutOfMemory();
    if (args.strings->Add(text.text(), false, &static_cast<int64_t*>(data)[n]) != 0) return -1;
    for (int32_t i = ndim - 1; i >= 0 && ++at[i] == shape[i]; --i) at[i] = 0;
  }
  return 0;
}

int32_t StringSplitStep(const StepArgs& args) {
  const tn_dl_tensor* t = StringsIn(args, 0);
  Text delimiter{nullptr, 0};
  if (!t || (args.numbers[0] >= 0 && args.strings->Get(args.numbers[0], &delimiter) != 0))
    return -1;
  const int64_t most = args.numbers[1], count = CountOf(*t);
  void* data = nullptr;
  if (t->ndim + 1 > kMaxDims) return Fail("ValueError", "a tensor has too many dims");
  if (Like(*t, kInt64Type, &args.out[1], &data) != 0) return -1;
  auto* sizes = static_cast<int64_t*>(data);
  List<int64_t> pieces;
  int64_t widest = 0;
  for (int64_t i = 0; i < count; ++i) {
    Text text, piece;
    if (args.strings->Get(DataOf<int64_t>(*t)[i], &text) != 0) return -1;
    sizes[i] = 0;
    for (Splitter split(text, delimiter, most); split.Next(&piece); ++sizes[i]) {
      int64_t number = 0;
      // The bytes are the table's own.
      if (args.strings->Add(piece, true, &number) != 0) return -1;
      if (!pieces.Append(number)) return OutOfMemory();
    }
    if (sizes[i] > widest) widest = sizes[i];
  }
  int64_t shape[kMaxDims], empty = 0;
  memcpy(shape, t->shape, static_cast<size_t>(t->ndim) * sizeof(int64_t));
  shape[t->ndim] = widest;
  if (args.strings->Add({nullptr, 0}, true, &empty) != 0 ||
      TensorBytes(kInt64Type, t->ndim + 1, shape) < 0 ||
      MakeTensor(kInt64Type, t->ndim + 1, shape, &args.out[0], &data) != 0)
    return -1;
  const int64_t* next = pieces.data();
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < widest; ++k)
      static_cast<int64_t*>(data)[i * widest + k] = k < sizes[i] ? *next++ : empty;
  }
  return 0;
}

int32_t StringNormalizeStep(const StepArgs& args) {
  const tn_dl_tensor* t = StringsIn(args, 0);
  if (!t) return -1;
  if (t->ndim < 1 || t->ndim > 2 || (t->ndim == 2 && t->shape[0] != 1))
    return Fail("ValueError", "expected strings of the shape [C] or [1, C]");
  const int32_t change = args.numbers[0];
  const bool exact = args.numbers[1] != 0;
  List<int64_t> kept, stops;
  TextBuilder cased;
  // Without case, words are compared as their lower case.
  auto comparable = [&](int64_t number, int64_t* out) -> int32_t {
    *out = number;
    Text text;
    if (exact) return 0;
    if (args.strings->Get(number, &text) != 0) return -1;
    cased.Clear();
    AppendCased(text, 1, &cased);
    return cased.ok() ? args.strings->Add(cased.text(), false, out) : OutOfMemory();
  };
  for (int32_t i = 2; i < args.num_numbers; ++i) {
    int64_t word = 0;
    if (comparable(args.numbers[i], &word) != 0) return -1;
    if (!stops.Append(word)) return OutOfMemory();
  }
  for (int64_t i = 0; i < CountOf(*t); ++i) {
    int64_t number = DataOf<int64_t>(*t)[i], word = 0;
    if (comparable(number, &word) != 0) return -1;
    bool stopped = false;
    for (int64_t stop : stops) stopped |= stop == word;
    if (stopped) continue;
    Text text;
    if (args.strings->Get(number, &text) != 0) return -1;
    cased.Clear();
    AppendCased(text, change, &cased);
    if (!cased.ok()) return OutOfMemory();
    if (args.strings->Add(cased.text(), false, &number) != 0) return -1;
    if (!kept.Append(number)) return OutOfMemory();
  }
  if (kept.size() == 0) {
    int64_t empty = 0;
    if (args.strings->Add({nullptr, 0}, true, &empty) != 0) return -1;
    if (!kept.Append(empty)) return OutOfMemory();
  }
  const int64_t shape[2] = {t->ndim == 2 ? 1 : kept.size(), kept.size()};
  void* data = nullptr;
  if (MakeTensor(kInt64Type, t->ndim, shape, &args.out[0], &data) != 0) return -1;
  memcpy(data, kept.data(), static_cast<size_t>(kept.size()) * sizeof(int64_t));
  return 0;
}

int32_t RegexStep(const StepArgs& args) {
  const tn_dl_tensor* t = StringsIn(args, 0);
  void* data = nullptr;
  if (!t || Like(*t, kBoolType, &args.out[0], &data) != 0) return -1;
  Matcher matcher(args.numbers);
  for (int64_t i = 0; i < CountOf(*t); ++i) {
    Text text;
    if (args.strings->Get(DataOf<int64_t>(*t)[i], &text) != 0 ||
        matcher.Match(text, &static_cast<bool*>(data)[i]) != 0)
      return -1;
  }
  return 0;
}

int32_t ToStringStep(const StepArgs& args) {
  const tn_dl_tensor* t = args.in[0].tensor();
  void* data = nullptr;
  if (!t || Like(*t, kInt64Type, &args.out[0], &data) != 0) return -1;
  for (int64_t i = 0; i < CountOf(*t); ++i) {
    char text[64];
    const int32_t size = WriteNumber(*t, i, text, sizeof text);
    if (args.strings->Add({text, size}, false, &static_cast<int64_t*>(data)[i]) != 0) return -1;
  }
  return 0;
}

int32_t FromStringStep(const StepArgs& args) {
  const tn_dl_tensor* t = StringsIn(args, 0);
  tn_dl_data_type type;
  memcpy(&type, &args.numbers[0], sizeof type);
  void* data = nullptr;
  if (!t || Like(*t, type, &args.out[0], &data) != 0) return -1;
  for (int64_t i = 0; i < CountOf(*t); ++i) {
    Text text;
    if (args.strings->Get(DataOf<int64_t>(*t)[i], &text) != 0) return -1;
    if (ReadText(text, type, static_cast<unsigned char*>(data) + i * (type.bits / 8))) continue;
    return FailWith("ValueError", "string '%.*s' is no number of the type it is cast to",
                    static_cast<int>(text.size < 80 ? text.size : 80), text.data);
  }
  return 0;
}

int32_t StringRanksStep(const StepArgs& args) {
  const tn_dl_tensor* t = StringsIn(args, 0);
  void *ranks = nullptr, *distinct = nullptr;
  if (!t || Like(*t, kInt64Type, &args.out[0], &ranks) != 0) return -1;
  const auto* numbers = DataOf<int64_t>(*t);
  const int64_t count = CountOf(*t);
  List<Text> texts;
  if (!texts.Resize(count)) return OutOfMemory();
  for (int64_t i = 0; i < count; ++i) {
    if (args.strings->Get(numbers[i], &texts[i]) != 0) return -1;
  }
  const auto less = [&](int64_t a, int64_t b) {
    const Text x = texts[a], y = texts[b];
    const int64_t size = x.size < y.size ? x.size : y.size;
    const int order = size > 0 ? memcmp(x.data, y.data, static_cast<size_t>(size)) : 0;
    return order != 0 ? order < 0 : x.size < y.size;
  };
  List<int64_t> order, table;
  if (SortedPlaces(count, less, &order) != 0) return -1;
  if (!table.Reserve(count)) return OutOfMemory();
  for (int64_t at : order) {
    if (table.size() == 0 || table[table.size() - 1] != numbers[at]) table.Append(numbers[at]);
    static_cast<int64_t*>(ranks)[at] = table.size() - 1;
  }
  const int64_t size = table.size();
  if (MakeTensor(kInt64Type, 1, &size, &args.out[1], &distinct) != 0) return -1;
  if (size > 0) memcpy(distinct, table.data(), static_cast<size_t>(size) * sizeof(int64_t));
  return 0;
}

}  // namespace tenon::runtime
