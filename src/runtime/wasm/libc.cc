// The little of C's library that a module carries, so that it imports nothing.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Memory ----

extern "C" unsigned char __heap_base;  // where the linker's data ends

namespace {

constexpr size_t kPage = 64 * 1024;
constexpr size_t kAlign = 64;

// Stands in the 64 bytes before a block. Free blocks are kept in lists by the power of two that
// their size is; they are neither split nor joined: a module asks for the same few sizes again and
// again.
struct Block {
  Block* next;
  unsigned power;
};

Block* free_blocks[32];
uintptr_t unused;      // the first address that was never given
uintptr_t memory_end;  // of the memory there is

// Takes fresh memory, growing it where needed; null where the engine refuses.
Block* Fresh(size_t size) {
  if (unused == 0) {
    unused = (reinterpret_cast<uintptr_t>(&__heap_base) + kAlign - 1) / kAlign * kAlign;
    memory_end = __builtin_wasm_memory_size(0) * kPage;
  }
  if (size > memory_end - unused) {
    size_t pages = (size - (memory_end - unused) + kPage - 1) / kPage;
    if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return nullptr;
    memory_end += pages * kPage;
  }
  auto* block = reinterpret_cast<Block*>(unused);
  unused += size;
  return block;
}

}  // namespace

extern "C" void* malloc(size_t size) {
  if (size > SIZE_MAX / 4) return nullptr;
  unsigned power = 32 - static_cast<unsigned>(__builtin_clz(size + kAlign - 1));
  Block* block = free_blocks[power];
  if (block) {
    free_blocks[power] = block->next;
  } else {
    block = Fresh(size_t{1} << power);
    if (!block) return nullptr;
    block->power = power;
  }
  return reinterpret_cast<unsigned char*>(block) + kAlign;
}

extern "C" void free(void* memory) {
  if (!memory) return;
  auto* block = reinterpret_cast<Block*>(static_cast<unsigned char*>(memory) - kAlign);
  block->next = free_blocks[block->power];
  free_blocks[block->power] = block;
}

// One instruction each, given -mbulk-memory.
extern "C" void* memcpy(void* to, const void* from, size_t size) {
  return __builtin_memcpy(to, from, size);
}
extern "C" void* memmove(void* to, const void* from, size_t size) {
  return __builtin_memmove(to, from, size);
}
extern "C" void* memset(void* to, int byte, size_t size) {
  return __builtin_memset(to, byte, size);
}

// ---- Arithmetic ----

// The product of two 128-bit integers, which compilers call for where they look for overflow.
extern "C" __int128 __multi3(__int128 a, __int128 b) {
  const auto al = static_cast<uint64_t>(a), bl = static_cast<uint64_t>(b);
  const uint64_t a0 = al & 0xffffffff, a1 = al >> 32, b0 = bl & 0xffffffff, b1 = bl >> 32;
  const uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32);
  const uint64_t mid2 = a0 * b1 + (mid & 0xffffffff);
  uint64_t high = a1 * b1 + (mid >> 32) + (mid2 >> 32);
  high += static_cast<uint64_t>(a >> 64) * bl + al * static_cast<uint64_t>(b >> 64);
  const uint64_t whole_low = (mid2 << 32) | (low & 0xffffffff);
  return static_cast<__int128>(static_cast<unsigned __int128>(high) << 64 | whole_low);
}

// ---- Text ----

extern "C" size_t strnlen(const char* text, size_t most) {
  size_t length = 0;
  while (length < most && text[length] != '\0') ++length;
  return length;
}
extern "C" size_t strlen(const char* text) { return strnlen(text, SIZE_MAX); }

namespace {

class Output {
 public:
  Output(char* out, size_t size) : out_(out), size_(size) {}
  void Char(char c) {
    if (used_ + 1 < size_) out_[used_] = c;
    ++used_;
  }
  void Text(const char* text) {
    while (*text) Char(*text++);
  }
  void Unsigned(uint64_t value) {
    char digits[20];
    int count = 0;
    do digits[count++] = static_cast<char>('0' + value % 10);
    while (value /= 10);
    while (count > 0) Char(digits[--count]);
  }
  void Signed(int64_t value) {
    if (value < 0) Char('-');
    Unsigned(value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  }
  void Double(double value);
  int Finish() {
    if (size_ > 0) out_[used_ < size_ ? used_ : size_ - 1] = '\0';
    return static_cast<int>(used_);
  }

 private:
  char* out_;
  size_t size_, used_ = 0;
};

// Six significant digits, as %g gives them but for the last one's rounding.
void Output::Double(double value) {
  if (value != value) return Text("nan");
  if (value < 0) Char('-');
  if (value < 0) value = -value;
  if (value > 1.7976931348623157e308) return Text("inf");
  if (value == 0) return Char('0');
  int exponent = 0;
  for (; value >= 10; value /= 10) ++exponent;
  for (; value < 1; value *= 10) --exponent;
  auto digits = static_cast<uint32_t>(value * 1e5 + 0.5);
  if (digits >= 1000000) digits /= 10, ++exponent;
  char text[6];
  for (int i = 5; i >= 0; --i, digits /= 10) text[i] = static_cast<char>('0' + digits % 10);
  int last = 5;
  while (last > 0 && text[last] == '0') --last;
  const bool scientific = exponent < -4 || exponent >= 6;
  const int before = scientific ? 1 : exponent + 1;  // digits before the point
  if (before <= 0) {
    Text("0.");
    for (int i = before; i < 0; ++i) Char('0');
  }
  for (int i = 0; i <= last || i < before; ++i) {
    if (i == before && i > 0) Char('.');
    Char(text[i]);
  }
  if (!scientific) return;
  Char('e');
  Char(exponent < 0 ? '-' : '+');
  if (exponent < 0) exponent = -exponent;
  if (exponent < 10) Char('0');
  Unsigned(static_cast<uint64_t>(exponent));
}

}  // namespace

extern "C" int vsnprintf(char* out, size_t size, const char* format, va_list args) {
  Output output(out, size);
  for (; *format; ++format) {
    if (*format != '%') {
      output.Char(*format);
      continue;
    }
    switch (*++format) {
      case 's': output.Text(va_arg(args, const char*)); break;
      case 'd': output.Signed(va_arg(args, int)); break;
      case 'u': output.Unsigned(va_arg(args, unsigned)); break;
      case 'g': output.Double(va_arg(args, double)); break;
      case 'l':
        format += 2;  // of lld
        output.Signed(va_arg(args, long long));
        break;
      default: output.Char(*format); break;
    }
  }
  return output.Finish();
}

extern "C" int snprintf(char* out, size_t size, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(out, size, format, args);
  va_end(args);
  return length;
}
