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
#pragma once

#include <stdint.h>

// One definition a program, however many files include it; a nop of 8 bytes, room for a jump; and
// arguments that no compiler removes.
#define CLEW_CAUSE_FUNCTION __attribute__((weak, noinline, used, visibility("default")))
#define CLEW_CAUSE_BODY(key) \
  __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00" : : "r"(key) : "memory")

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
