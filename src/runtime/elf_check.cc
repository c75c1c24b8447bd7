#include "runtime/elf_check.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/library_checksums.hpp"

namespace tenon::runtime {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr int kMachine = EM_RISCV;
#else
constexpr int kMachine = EM_NONE;
#endif

const char* const kTruncated = "the file is truncated";
const char* const kDamaged = "the file is damaged";

const char* CheckHeader(const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return "expected a 64-bit little-endian library";
  }
  if (header.e_type != ET_DYN) return "expected a shared library but got another kind of ELF file";
  if (header.e_machine == kMachine) return nullptr;
  switch (header.e_machine) {
    case EM_X86_64: return "it is for x86-64, which this machine is not";
    case EM_AARCH64: return "it is for aarch64, which this machine is not";
    case EM_RISCV: return "it is for riscv64, which this machine is not";
    default: return "it is for another architecture than this machine's";
  }
}

const char* CheckSegments(int fd, const Elf64_Ehdr& header, uint64_t file_bytes) {
  uint64_t table_bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "its program headers have a wrong size";
  if (header.e_phoff > file_bytes || table_bytes > file_bytes - header.e_phoff) return kTruncated;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    off_t at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (pread(fd, &segment, sizeof segment, at) != sizeof segment) return kTruncated;
    if (segment.p_type != PT_LOAD) continue;
    // Beyond the end of the file the segment would map and then fault at its first use.
    if (segment.p_offset > file_bytes || segment.p_filesz > file_bytes - segment.p_offset) {
      return kTruncated;
    }
  }
  return nullptr;
}

// Headers, tables and code, where their checksum is there; what was stripped has none.
const char* CheckCode(int fd, uint64_t file_bytes) {
  Checksums sums;
  const uint64_t end = file_bytes - sizeof sums;
  if (pread(fd, &sums, sizeof sums, static_cast<off_t>(end)) != sizeof sums) return nullptr;
  if (memcmp(sums.magic, kChecksumsMagic, sizeof sums.magic) != 0 || sums.all_bytes != end)
    return nullptr;
  const size_t bytes = sums.code_bytes;
  if (bytes > end) return kDamaged;
  auto* words = static_cast<uint64_t*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0));
  if (words == MAP_FAILED) return nullptr;
  uint64_t sum = kChecksumSeed;
  for (size_t i = 0; i < bytes / sizeof sum; ++i) {
    sum ^= words[i];
    sum = (sum << 29 | sum >> 35) * kChecksumFactor;
  }
  munmap(words, bytes);
  return sum == sums.code ? nullptr : kDamaged;
}

}  // namespace

const char* CheckLibraryFile(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return "its size cannot be read";
  if (!S_ISREG(status.st_mode)) return "it is not a regular file";
  Elf64_Ehdr header;
  ssize_t got = pread(fd, &header, sizeof header, 0);
  if (got < SELFMAG || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return got == 0 ? "the file is empty" : "it is not an ELF library";
  }
  if (got < static_cast<ssize_t>(sizeof header)) return kTruncated;
  const auto bytes = static_cast<uint64_t>(status.st_size);
  const char* fault = CheckHeader(header);
  if (!fault) fault = CheckSegments(fd, header, bytes);
  return fault ? fault : CheckCode(fd, bytes);
}

}  // namespace tenon::runtime
