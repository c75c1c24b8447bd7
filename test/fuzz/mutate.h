// Mutations of bytes, for the fuzz tests that run as unit tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tenon::fuzz {

/// Bytes changed in one to `most` places: bits, bytes that protobuf takes for lengths and tags,
/// cuts, repeats, and pieces of another sample. Deterministic for a seed.
class Mutator {
 public:
  Mutator(uint64_t seed, std::vector<std::string> samples, size_t most = 4)
      : random_(seed), samples_(std::move(samples)), most_(most) {}

  std::string Next() {
    std::string s = samples_[Below(samples_.size())];
    for (size_t n = 1 + Below(most_); n > 0; --n) Mutate(&s);
    return s;
  }

 private:
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

  void Mutate(std::string* s) {
    if (s->empty()) s->push_back('\0');
    const size_t at = Below(s->size());
    const size_t length = 1 + Below(std::min<size_t>(s->size() - at, 16));
    switch (Below(8)) {
      case 0: (*s)[at] = static_cast<char>((*s)[at] ^ (1 << Below(8))); break;
      case 1: (*s)[at] = static_cast<char>(Below(256)); break;
      case 2: (*s)[at] = "\x00\x01\x7f\x80\xff\xfe\x0a\x12"[Below(8)]; break;
      case 3: s->resize(at); break;
      case 4: s->erase(at, length); break;
      case 5: s->insert(at, s->substr(Below(s->size()), length)); break;
      case 6: s->insert(at, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 1 + Below(9)); break;
      default: {
        const std::string& other = samples_[Below(samples_.size())];
        const size_t from = Below(other.size());
        s->replace(at, length, other.substr(from, 1 + Below(64)));
        break;
      }
    }
  }

  std::mt19937_64 random_;
  const std::vector<std::string> samples_;
  const size_t most_;
};

/// The seed of a run: TENON_FUZZ_SEED, else a fixed one.
inline uint64_t Seed() {
  const char* text = getenv("TENON_FUZZ_SEED");
  return text ? strtoull(text, nullptr, 0) : 20251120;
}

}  // namespace tenon::fuzz
