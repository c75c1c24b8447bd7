// What the libraries that are linked statically take of newer libcs than the archive asks for.
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include <cstddef>

extern "C" {

// glibc 2.32: whether the process has one thread, so that atomic operations may be left out. "No"
// is always right.
char __libc_single_threaded = 0;

// glibc 2.33: what malloc has handed out, for LLVM's statistics, with fields of 64 bits.
struct mallinfo2 {
  size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

struct mallinfo2 mallinfo2();
struct mallinfo2 mallinfo2() {
  const struct mallinfo m = mallinfo();
  auto wide = [](int field) { return static_cast<size_t>(static_cast<unsigned>(field)); };
  return {wide(m.arena),   wide(m.ordblks), wide(m.smblks),   wide(m.hblks),    wide(m.hblkhd),
          wide(m.usmblks), wide(m.fsmblks), wide(m.uordblks), wide(m.fordblks), wide(m.keepcost)};
}

// glibc 2.36: a random number that cannot fail to be had.
uint32_t arc4random();
uint32_t arc4random() {
  uint32_t number;
  if (getrandom(&number, sizeof number, 0) != sizeof number) abort();
  return number;
}
}
