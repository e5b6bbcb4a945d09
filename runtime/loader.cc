// SPDX-License-Identifier: Apache-2.0
// The loader's hook: runs where the dynamic loader tells debuggers that its list of modules
// changed, before the constructors of new modules. Tells the tracer and waits, bounded, until it
// has armed what it wants there.
//
// Interrupted by: signals (the wait goes on) and the tracer, which stops the thread in the wait.
#include "runtime/state.h"

namespace clew::runtime {
namespace {

constexpr uint64_t kFutexWake = 1;
constexpr uint64_t kFutexWaitBitset = 9;  // Takes an absolute CLOCK_MONOTONIC time.
constexpr uint64_t kAnyBit = 0xFFFF'FFFF;
constexpr uint64_t kClockMonotonic = 1;
constexpr int64_t kTimedOut = -110;  // -ETIMEDOUT
constexpr uint32_t kSpinsMax = 1U << 22;
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

struct Time {
  int64_t seconds;
  int64_t nanoseconds;
};

Time deadline_after(uint32_t milliseconds) {
  Time now = {};
  call({kSysClockGettime, {kClockMonotonic, address_of(&now)}});
  now.seconds += milliseconds / 1000;
  now.nanoseconds += int64_t{milliseconds % 1000} * 1'000'000;
  if (now.nanoseconds >= kNanosecondsPerSecond) {
    now.nanoseconds -= kNanosecondsPerSecond;
    ++now.seconds;
  }
  return now;
}

bool is_answered(const uint32_t& answers, uint32_t request) {
  return static_cast<int32_t>(__atomic_load_n(&answers, __ATOMIC_ACQUIRE) - request) >= 0;
}

bool wait_spinning(const uint32_t& answers, uint32_t request) {
  for (uint32_t i = 0; i < kSpinsMax; ++i) {
    if (is_answered(answers, request)) return true;
    pause();
  }
  return false;
}

bool wait_asleep(const uint32_t& answers, uint32_t request, uint32_t milliseconds) {
  const Time deadline = deadline_after(milliseconds);
  while (!is_answered(answers, request)) {
    const uint32_t seen = __atomic_load_n(&answers, __ATOMIC_ACQUIRE);
    if (static_cast<int32_t>(seen - request) >= 0) return true;
    const int64_t result =
        call({kSysFutex,
              {address_of(&answers), kFutexWaitBitset, seen, address_of(&deadline), 0, kAnyBit}});
    if (result == kTimedOut) return is_answered(answers, request);
  }
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) void clew_loader_changed(uint32_t session) {
  const abi::ArenaHeader& arena = header();
  abi::TargetPage& page = target_page();
  const uint32_t index = session % abi::kSessionsMax;
  const uint32_t bit = 1U << index;
  // A forked child has no tracer that could answer for it.
  if (private_page().cookie != uint64_t{1} << 48) return;
  const bool may_sleep = arena.system_calls_allowed != 0;
  uint32_t* const requests = &page.loader_requests[index];
  const uint32_t request = __atomic_add_fetch(requests, 1U, __ATOMIC_ACQ_REL);
  if (may_sleep) call({kSysFutex, {address_of(requests), kFutexWake, 1}});
  // The tracer was late once: it hears of each change, but the program does not wait for it until
  // it has answered.
  if ((__atomic_load_n(&page.loader_sessions, __ATOMIC_ACQUIRE) & bit) == 0) return;
  const uint32_t& answers = arena.loader_answers[index];
  const bool answered = may_sleep ? wait_asleep(answers, request, arena.loader_wait_ms)
                                  : wait_spinning(answers, request);
  if (!answered) __atomic_fetch_and(&page.loader_sessions, ~bit, __ATOMIC_ACQ_REL);
}

}  // namespace clew::runtime
