// SPDX-License-Identifier: Apache-2.0
// A program says itself for which request its threads work, so that Clew can join events by cause:
//
//     from w in entry("app!write_block") join r in First(entry("app!receive")) on r -> w …
//
// One include, in C or C++, in any of the program's files; nothing to link, no thread of its own,
// no memory. Until a query traces it, a call is a call and a return: some 1 ns. The program keeps
// its symbols (or is linked with -rdynamic), since Clew finds these functions by name.
//
// All functions may be called by any thread. In a signal handler that interrupts a traced function
// they may be missed, and what is joined near that moment is left out. A key is the address of what
// is handed over: a job in a queue, a connection, a promise. It is never read. Where a key is put
// again, it carries the newer context.
//
// A request goes to another process, of this machine, by a token: a name for one message, which
// travels in a header of it. All that is known of the request stays with Clew, so nothing that
// comes from elsewhere is read but these 32 hexadecimal digits, and nobody can make up one that
// means something:
//
//     char token[CLEW_CAUSE_TEXT];
//     clew_cause_send_text(token);                    // Publish with the header Clew-Baggage: …
//
//     if (!clew_cause_receive_text(value, length))    // Where the message is received.
//       clew_cause_begin();                           // No token: a request begins here.
//
// The first token of a process takes a page of memory for the number that its tokens are made from
// (mmap, madvise, getrandom); a token costs some tens of nanoseconds, traced or not, since Clew
// writes nothing into programs that could tell them to do without.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CLEW_CAUSE_TEXT 33            // Of a token, with a 0 behind it.
#define CLEW_CAUSE_MEMBER 38          // In a baggage: ",clew=" and a token.
#define CLEW_CAUSE_BAGGAGE_MAX 8192U  // A longer one has no token for us (W3C Baggage, 3.3.2).

// Of a header with a token.
#define CLEW_CAUSE_HTTP "baggage"            // clew_cause_send_baggage(): its value is a list.
#define CLEW_CAUSE_GRPC "clew"               // Metadata.
#define CLEW_CAUSE_NATS "Clew-Baggage"       // A header.
#define CLEW_CAUSE_ENVIRONMENT "CLEW_CAUSE"  // A variable.

// One definition a program, however many files include it; a nop that is left alone, as others may
// set a breakpoint at the first instruction, and one of 8 bytes, room for a jump; and arguments
// that no compiler removes.
#define CLEW_CAUSE_FUNCTION __attribute__((weak, noinline, used, visibility("default")))
#define CLEW_CAUSE_ROOM ".byte 0x66, 0x90, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00"
#define CLEW_CAUSE_BODY(key) __asm__ volatile(CLEW_CAUSE_ROOM : : "r"(key) : "memory")

// What makes and reads tokens is a part of who uses it, or, with -DCLEW_CAUSE_LIBRARY, functions of
// a library for other languages:
//
//     echo '#include <clew/cause.h>' |
//       cc -shared -fPIC -O2 -DCLEW_CAUSE_LIBRARY -x c - -o libclew_cause.so
#ifdef CLEW_CAUSE_LIBRARY
#define CLEW_CAUSE_INLINE CLEW_CAUSE_FUNCTION
#else
#define CLEW_CAUSE_INLINE __attribute__((unused)) static inline
#endif
#define CLEW_CAUSE_OWN __attribute__((unused)) static inline

#ifdef __cplusplus
extern "C" {
#endif

// A request begins: what this thread does next belongs to it.
CLEW_CAUSE_FUNCTION void clew_cause_begin(void) {
  CLEW_CAUSE_BODY(0);
}

// What this thread does next belongs to no request.
CLEW_CAUSE_FUNCTION void clew_cause_end(void) {
  CLEW_CAUSE_BODY(0);
}

// Whoever takes the key goes on where this thread is now.
CLEW_CAUSE_FUNCTION void clew_cause_put(const void* key) {
  CLEW_CAUSE_BODY(key);
}

// This thread goes on where the key was put, and with nothing else.
CLEW_CAUSE_FUNCTION void clew_cause_take(const void* key) {
  CLEW_CAUSE_BODY(key);
}

// This thread goes on where the key was put, and where it was itself: it had waited for that.
CLEW_CAUSE_FUNCTION void clew_cause_join(const void* key) {
  CLEW_CAUSE_BODY(key);
}

// The same as put and take between processes of a machine: `message` is a number that one message
// has and no other.
CLEW_CAUSE_FUNCTION void clew_cause_send(uint64_t message) {
  CLEW_CAUSE_BODY(message);
}

CLEW_CAUSE_FUNCTION void clew_cause_receive(uint64_t message) {
  CLEW_CAUSE_BODY(message);
}

// --- tokens --------------------------------------------------------------------------------------

// The same by the 128 bits of a token. 0, 0 is none.
CLEW_CAUSE_FUNCTION void clew_cause_send_token(uint64_t high, uint64_t low) {
  __asm__ volatile(CLEW_CAUSE_ROOM : : "r"(high), "r"(low) : "memory");
}

CLEW_CAUSE_FUNCTION void clew_cause_receive_token(uint64_t high, uint64_t low) {
  __asm__ volatile(CLEW_CAUSE_ROOM : : "r"(high), "r"(low) : "memory");
}

// What the tokens of a process are made from. A child that is forked finds zeros here, and draws
// its own key.
struct clew_cause_maker {
  uint64_t key[2];
  uint64_t count;
};
__attribute__((weak, visibility("default"))) struct clew_cause_maker* clew_cause_maker_here;

// System calls by themselves: no errno, and no other header.
CLEW_CAUSE_OWN int clew_cause_draw(uint64_t words[2]) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(318L /* getrandom */), "D"(words), "S"(16L), "d"(0L)
                   : "rcx", "r11", "memory");
  return result == 16;
}

// Null: there is no page that a child does not inherit.
CLEW_CAUSE_OWN struct clew_cause_maker* clew_cause_map(void) {
  struct clew_cause_maker* page;
  struct clew_cause_maker* other = 0;
  long result;
  register long flags __asm__("r10") = 0x22;  // MAP_PRIVATE | MAP_ANONYMOUS
  register long file __asm__("r8") = -1;
  register long offset __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "=a"(page)
                   : "a"(9L /* mmap */), "D"(0L), "S"(4096L), "d"(3L /* read and write */),
                     "r"(flags), "r"(file), "r"(offset)
                   : "rcx", "r11", "memory");
  __builtin_memcpy(&result, &page, sizeof result);
  if (result < 0) return 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(28L /* madvise */), "D"(page), "S"(4096L), "d"(18L /* MADV_WIPEONFORK */)
                   : "rcx", "r11", "memory");
  if (result == 0 && __atomic_compare_exchange_n(&clew_cause_maker_here, &other, page, 0,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return page;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(11L /* munmap */), "D"(page), "S"(4096L)
                   : "rcx", "r11", "memory");
  return other;
}

// The key of this process. Whoever draws first has drawn for all threads.
CLEW_CAUSE_OWN int clew_cause_key(struct clew_cause_maker* maker, uint64_t key[2]) {
  uint64_t drawn[2];
  int i;
  key[0] = __atomic_load_n(&maker->key[0], __ATOMIC_RELAXED);
  key[1] = __atomic_load_n(&maker->key[1], __ATOMIC_RELAXED);
  if (__builtin_expect(key[0] != 0 && key[1] != 0, 1)) return 1;
  if (!clew_cause_draw(drawn)) return 0;
  for (i = 0; i < 2; ++i) {
    drawn[i] |= 1;
    key[i] = 0;
    if (__atomic_compare_exchange_n(&maker->key[i], &key[i], drawn[i], 0, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
      key[i] = drawn[i];
  }
  return 1;
}

CLEW_CAUSE_OWN uint64_t clew_cause_turned(uint64_t value, int bits) {
  return (value << bits) | (value >> (64 - bits));
}

CLEW_CAUSE_OWN void clew_cause_mix(uint64_t v[4], int rounds) {
  for (; rounds > 0; --rounds) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = clew_cause_turned(v[1], 13) ^ v[0];
    v[3] = clew_cause_turned(v[3], 16) ^ v[2];
    v[0] = clew_cause_turned(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = clew_cause_turned(v[1], 17) ^ v[2];
    v[3] = clew_cause_turned(v[3], 21) ^ v[0];
    v[2] = clew_cause_turned(v[2], 32);
  }
}

// SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012) of a number: who knows some tokens of a
// process does not know others.
CLEW_CAUSE_OWN void clew_cause_hash(const uint64_t key[2], uint64_t number, uint64_t token[2]) {
  const uint64_t length = 8ULL << 56;
  uint64_t v[4];
  v[0] = key[0] ^ 0x736f6d6570736575ULL;
  v[1] = key[1] ^ 0x646f72616e646f6dULL ^ 0xee;
  v[2] = key[0] ^ 0x6c7967656e657261ULL;
  v[3] = key[1] ^ 0x7465646279746573ULL ^ number;
  clew_cause_mix(v, 2);
  v[0] ^= number;
  v[3] ^= length;
  clew_cause_mix(v, 2);
  v[0] ^= length;
  v[2] ^= 0xee;
  clew_cause_mix(v, 4);
  token[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
  v[1] ^= 0xdd;
  clew_cause_mix(v, 4);
  token[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

// A new token; no other process or thread makes the same. 0, 0: the kernel has refused all.
CLEW_CAUSE_INLINE void clew_cause_make_token(uint64_t token[2]) {
  uint64_t key[2];
  struct clew_cause_maker* maker = __atomic_load_n(&clew_cause_maker_here, __ATOMIC_ACQUIRE);
  if (__builtin_expect(maker == 0, 0)) maker = clew_cause_map();
  if (maker != 0 && clew_cause_key(maker, key)) {
    clew_cause_hash(key, __atomic_fetch_add(&maker->count, 1, __ATOMIC_RELAXED), token);
  } else if (!clew_cause_draw(token)) {
    token[0] = token[1] = 0;
  }
}

// Eight digits, as they stand in memory.
CLEW_CAUSE_OWN uint64_t clew_cause_digits(uint64_t word) {
  uint64_t letters;
  word = (word | word << 16) & 0x0000ffff0000ffffULL;
  word = (word | word << 8) & 0x00ff00ff00ff00ffULL;
  word = (word | word << 4) & 0x0f0f0f0f0f0f0f0fULL;
  letters = ((word + 0x0606060606060606ULL) >> 4) & 0x0101010101010101ULL;
  return __builtin_bswap64(word + 0x3030303030303030ULL + letters * ('a' - '0' - 10));
}

// Makes the token of one message, 32 digits and a 0, and hands the request over with it.
CLEW_CAUSE_INLINE void clew_cause_send_text(char text[CLEW_CAUSE_TEXT]) {
  uint64_t token[2];
  int i;
  clew_cause_make_token(token);
  for (i = 0; i < 4; ++i) {
    const uint64_t digits = clew_cause_digits((token[i / 2] >> (i % 2 == 0 ? 32 : 0)) & UINT32_MAX);
    __builtin_memcpy(text + 8 * i, &digits, 8);
  }
  text[32] = 0;
  clew_cause_send_token(token[0], token[1]);
}

// What they say; `is_token` becomes 0 where they are others than those above.
CLEW_CAUSE_OWN uint64_t clew_cause_read(const char text[8], int* is_token) {
  uint64_t digits, word, letters;
  __builtin_memcpy(&digits, text, 8);
  word = __builtin_bswap64(digits);
  letters = (word >> 6) & 0x0101010101010101ULL;
  word = ((word & 0x0f0f0f0f0f0f0f0fULL) + letters * 9) & 0x0f0f0f0f0f0f0f0fULL;
  word = (word | word >> 4) & 0x00ff00ff00ff00ffULL;
  word = (word | word >> 8) & 0x0000ffff0000ffffULL;
  word = (word | word >> 16) & UINT32_MAX;
  *is_token &= clew_cause_digits(word) == digits;
  return word;
}

// This thread goes on where the token was sent, and with nothing else. What is no token, or one
// that nobody has sent, leaves it in no request, and is counted. Never reads more than 32 bytes.
// Whether it has the form of a token: where not, a request may begin here.
CLEW_CAUSE_INLINE int clew_cause_receive_text(const char* text, size_t length) {
  uint64_t high = 0, low = 0;
  int is_token = length == 32;
  if (text == 0 || length == 0) {  // No header.
    clew_cause_end();
    return 0;
  }
  if (is_token) {
    high = clew_cause_read(text, &is_token) << 32;
    high |= clew_cause_read(text + 8, &is_token);
    low = clew_cause_read(text + 16, &is_token) << 32;
    low |= clew_cause_read(text + 24, &is_token);
  }
  if (!is_token) high = low = 0;
  clew_cause_receive_token(high, low);
  return (high | low) != 0;
}

// The same of a text that ends with a 0, of which 33 bytes are looked at; of none, if it is null:
//
//     clew_cause_receive_string(getenv(CLEW_CAUSE_ENVIRONMENT));
CLEW_CAUSE_INLINE int clew_cause_receive_string(const char* text) {
  size_t length = 0;
  while (text != 0 && length <= 32 && text[length] != 0)
    ++length;
  return clew_cause_receive_text(text, length);
}

// --- the token in the header `baggage` of HTTP: "a=1, clew=TOKEN;x=y, b=2" --------------------

// Where a member of our own has its value; length 0: it is another's.
struct clew_cause_value {
  const char* text;
  size_t length;
  int is_own;
};

CLEW_CAUSE_OWN int clew_cause_is_space(char c) {
  return c == ' ' || c == '\t';
}

CLEW_CAUSE_OWN struct clew_cause_value clew_cause_value_of(const char* member, size_t length) {
  struct clew_cause_value value = {member, 0, 0};
  size_t at = 0, end;
  while (at < length && clew_cause_is_space(member[at]))
    ++at;
  if (length - at < 4 || member[at] != 'c' || member[at + 1] != 'l' || member[at + 2] != 'e' ||
      member[at + 3] != 'w')
    return value;
  at += 4;
  while (at < length && clew_cause_is_space(member[at]))
    ++at;
  if (at == length || member[at] != '=') return value;
  ++at;
  while (at < length && clew_cause_is_space(member[at]))
    ++at;
  for (end = at; end < length && member[end] != ';';)
    ++end;
  while (end > at && clew_cause_is_space(member[end - 1]))
    --end;
  value.text = member + at;
  value.length = end - at;
  value.is_own = 1;
  return value;
}

CLEW_CAUSE_OWN size_t clew_cause_member_end(const char* baggage, size_t at, size_t length) {
  while (at < length && baggage[at] != ',')
    ++at;
  return at;
}

// As clew_cause_receive_text(), of the value of such a header. Two tokens in it are none.
CLEW_CAUSE_INLINE int clew_cause_receive_baggage(const char* baggage, size_t length) {
  struct clew_cause_value found = {0, 0, 0};
  size_t at = 0;
  if (baggage == 0) length = 0;
  if (length > CLEW_CAUSE_BAGGAGE_MAX) {
    clew_cause_receive_token(0, 0);
    return 0;
  }
  while (at < length) {
    const size_t end = clew_cause_member_end(baggage, at, length);
    const struct clew_cause_value value = clew_cause_value_of(baggage + at, end - at);
    if (value.is_own && (found.is_own || value.length != 32)) {
      clew_cause_receive_token(0, 0);
      return 0;
    }
    if (value.is_own) found = value;
    at = end + 1;
  }
  return clew_cause_receive_text(found.text, found.length);
}

// Hands the request over with a new member of this value, `length` bytes in a buffer of `capacity`;
// members `clew` that were there before go. Returns the new length, behind which it puts a 0.
// Without CLEW_CAUSE_MEMBER + 1 bytes of room, or where the value gets too long, nothing is changed
// nor handed over.
CLEW_CAUSE_INLINE size_t clew_cause_send_baggage(char* baggage, size_t length, size_t capacity) {
  size_t at = 0, kept = 0, i;
  if (length > CLEW_CAUSE_BAGGAGE_MAX - CLEW_CAUSE_MEMBER || capacity < length ||
      capacity - length < CLEW_CAUSE_MEMBER + 1)
    return length;
  while (at < length) {
    const size_t end = clew_cause_member_end(baggage, at, length);
    if (!clew_cause_value_of(baggage + at, end - at).is_own) {
      if (kept != 0) baggage[kept++] = ',';
      for (i = at; i < end; ++i)
        baggage[kept++] = baggage[i];
    }
    at = end + 1;
  }
  if (kept != 0) baggage[kept++] = ',';
  for (i = 0; i < 5; ++i)
    baggage[kept++] = "clew="[i];
  clew_cause_send_text(baggage + kept);
  return kept + 32;
}

#ifdef __cplusplus
}

namespace clew {

// A request, as long as it lives in this scope.
class RequestScope {
 public:
  RequestScope() { clew_cause_begin(); }
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;
  ~RequestScope() { clew_cause_end(); }
};

}  // namespace clew
#endif

#undef CLEW_CAUSE_BODY
#undef CLEW_CAUSE_FUNCTION
#undef CLEW_CAUSE_INLINE
#undef CLEW_CAUSE_OWN
#undef CLEW_CAUSE_ROOM
