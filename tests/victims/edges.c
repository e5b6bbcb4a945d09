// SPDX-License-Identifier: Apache-2.0
// Victim `edges`: gives functions, and the kernel, texts that end at the last byte that can be
// read, with their NUL or without it.
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(by_jump);
VICTIM_COUNTER(by_uprobe);

enum { kPage = 4096, kPages = 3 };

static char* edge;  // What is here, and for a page on, cannot be read.

VICTIM_FUNCTION uint64_t by_jump(const char* text, uint64_t size) {
  __asm__ volatile("nop" : "+r"(text)::"memory");
  return size + 1;
}

// Its first instruction changes its argument, and is too long for bytes that serve both ways: a
// probe that asks for it is a uprobe.
uint64_t by_uprobe(const char* text, uint64_t size);
__asm__(
    ".text\n.balign 16\n.globl by_uprobe\n.type by_uprobe, @function\nby_uprobe:\n"
    ".cfi_startproc\n {disp32} lea (%edi), %edi\n lea 2(%rsi), %rax\n nop\n nop\n nop\n "
    "ret\n.cfi_endproc\n"
    ".size by_uprobe, . - by_uprobe\n");

static void find_edge(void) {
  if (edge != NULL) return;
  char* const all = mmap(NULL, (size_t)(kPages + 1) * kPage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  VICTIM_CHECK(all != MAP_FAILED);
  edge = all + (size_t)kPages * kPage;
  VICTIM_CHECK(mprotect(edge, kPage, PROT_NONE) == 0);
}

// So many letters; the letter says how far it is from the text's end.
static const char* text_of(uint64_t size, int has_end) {
  find_edge();
  char* const end = edge - has_end;
  for (size_t left = 1; left <= size; ++left)
    end[-(ptrdiff_t)left] = (char)('a' + left * left % 26);
  if (has_end) *end = 0;
  return end - size;
}

static uint64_t call(const char* text, uint64_t size) {
  VICTIM_COUNT(by_jump);
  VICTIM_COUNT(by_uprobe);
  return victim_mix(by_jump(text, size), by_uprobe(text, size));
}

static void show(uint64_t size, int has_end) {
  const char* const text = text_of(size, has_end);
  victim_print("text", (uintptr_t)text);
  victim_print("result", call(text, size));
}

static void whole(uint64_t size) {
  show(size, 1);
}

static void cut(uint64_t size) {
  show(size, 0);
}

// A file that is not there, or no path at all.
static void opens_whole(uint64_t size) {
  VICTIM_CHECK(open(text_of(size, 1), O_RDONLY) < 0);
  victim_print("opens", 1);
}

static void opens_cut(uint64_t size) {
  VICTIM_CHECK(open(text_of(size, 0), O_RDONLY) < 0);
  victim_print("opens", 1);
}

const struct VictimCommand victim_commands[] = {
    {"whole", whole}, {"cut", cut}, {"opens_whole", opens_whole}, {"opens_cut", opens_cut}, {0}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, call(text_of(round % kPage, round % 2 == 0), round));
  return digest;
}
