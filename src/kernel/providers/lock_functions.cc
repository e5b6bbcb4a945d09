// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/lock_functions.h"

#include <array>

#include "kernel/providers/process_functions.h"

namespace clew::kernel {

namespace {

using abi::DLockKind;

enum class Verb : uint8_t { Lock, Try, Unlock };

struct LockFunction {
  std::string_view function;
  DLockKind kind;
  Verb verb;
};

constexpr std::array kFunctions = {
    LockFunction{"pthread_mutex_lock", DLockKind::Mutex, Verb::Lock},
    LockFunction{"pthread_mutex_timedlock", DLockKind::Mutex, Verb::Lock},
    LockFunction{"pthread_mutex_clocklock", DLockKind::Mutex, Verb::Lock},
    LockFunction{"pthread_mutex_trylock", DLockKind::Mutex, Verb::Try},
    LockFunction{"pthread_mutex_unlock", DLockKind::Mutex, Verb::Unlock},
    LockFunction{"pthread_rwlock_rdlock", DLockKind::Read, Verb::Lock},
    LockFunction{"pthread_rwlock_timedrdlock", DLockKind::Read, Verb::Lock},
    LockFunction{"pthread_rwlock_clockrdlock", DLockKind::Read, Verb::Lock},
    LockFunction{"pthread_rwlock_tryrdlock", DLockKind::Read, Verb::Try},
    LockFunction{"pthread_rwlock_wrlock", DLockKind::Write, Verb::Lock},
    LockFunction{"pthread_rwlock_timedwrlock", DLockKind::Write, Verb::Lock},
    LockFunction{"pthread_rwlock_clockwrlock", DLockKind::Write, Verb::Lock},
    LockFunction{"pthread_rwlock_trywrlock", DLockKind::Write, Verb::Try},
    // Unlocks what is held, of either kind.
    LockFunction{"pthread_rwlock_unlock", DLockKind::Read, Verb::Unlock},
};

// Arguments of LockReturn and LockWait: kernel/probe.h.
constexpr uint8_t kLock = 0;
constexpr uint8_t kResult = 1;
constexpr uint8_t kHasWaited = 2;
constexpr uint8_t kIsWriter = 3;
constexpr uint8_t kHasLock = 4;
constexpr uint8_t kZero = kArgumentNumber;

// A probe that a function of some verb gives.
struct LockProbe {
  std::string_view name;  // Behind "mutex-" or "rw-".
  Verb verb;
  AttachKind kind;
  uint8_t filter_argument;  // LockReturn: it must be as `filter_value`, unless `is_inverted`.
  uint64_t filter_value;
  bool is_inverted;
  std::array<uint8_t, 3> mutex_arguments;
  std::array<uint8_t, 3> rw_arguments;
};

constexpr std::array kProbes = {
    // How often a thread took a lock that it had, and how often it spun, is not to be seen.
    LockProbe{"acquire",
              Verb::Lock,
              AttachKind::LockReturn,
              kHasLock,
              1,
              false,
              {kLock, kZero, kZero},
              {kLock, kIsWriter, kZero}},
    LockProbe{"acquire",
              Verb::Try,
              AttachKind::LockReturn,
              kHasLock,
              1,
              false,
              {kLock, kZero, kZero},
              {kLock, kIsWriter, kZero}},
    LockProbe{
        "block", Verb::Lock, AttachKind::LockWait, 0, 0, false, {0, kZero, kZero}, {0, 1, kZero}},
    LockProbe{"blocked",
              Verb::Lock,
              AttachKind::LockReturn,
              kHasWaited,
              1,
              false,
              {kLock, kHasLock, kZero},
              {kLock, kIsWriter, kHasLock}},
    LockProbe{"error",
              Verb::Lock,
              AttachKind::LockReturn,
              kResult,
              0,
              true,
              {kLock, kResult, kZero},
              {kLock, kIsWriter, kResult}},
    LockProbe{"release",
              Verb::Unlock,
              AttachKind::UserEntry,
              0,
              0,
              false,
              {0, kZero, kZero},
              {0, kZero, kZero}},
};

class LockMatcher {
 public:
  LockMatcher(target::Catalog& catalog, const ProbeGlobs& globs, std::string_view provider,
              std::vector<Probe>& found)
      : catalog_(catalog), globs_(globs), provider_(provider), found_(found) {}

  Expected<void> match() {
    for (const LockFunction& function : kFunctions) {
      for (const LockProbe& probe : kProbes) {
        if (probe.verb == function.verb) CLEW_TRY(match_probe(function, probe));
      }
    }
    return {};
  }

 private:
  Expected<void> match_probe(const LockFunction& function, const LockProbe& lock) {
    const bool is_mutex = function.kind == DLockKind::Mutex;
    const std::string name = (is_mutex ? "mutex-" : "rw-") + std::string(lock.name);
    if (!globs_.name.matches(name) || !globs_.function.matches(function.function)) return {};
    for (Probe& probe : CLEW_TRY(places_of(function))) {
      probe.name = name;
      probe.kind = lock.kind;
      const auto& arguments = is_mutex ? lock.mutex_arguments : lock.rw_arguments;
      probe.argument_map.assign(arguments.begin(), arguments.end());
      probe.lock_kind = function.kind;
      if (lock.kind == AttachKind::LockReturn) {
        ProbeFilter filter;
        filter.argument = lock.filter_argument;
        filter.value = lock.filter_value;
        filter.is_inverted = lock.is_inverted;
        probe.more_filters = {filter};
      }
      if (globs_.matches(probe)) found_.push_back(std::move(probe));
    }
    return {};
  }

  // Where the function begins: in the C library, or in a program that was linked with it.
  Expected<std::vector<Probe>> places_of(const LockFunction& function) {
    const ProbePattern place = {.provider = std::string(provider_),
                                .module = globs_.module.text(),
                                .function = std::string(function.function),
                                .name = "entry"};
    std::vector<Probe> probes;
    CLEW_TRY(match_functions(catalog_, ProbeGlobs(place), provider_, probes));
    return probes;
  }

  target::Catalog& catalog_;
  const ProbeGlobs& globs_;
  std::string_view provider_;
  std::vector<Probe>& found_;
};

}  // namespace

Expected<void> match_lock_functions(target::Catalog& catalog, const ProbeGlobs& globs,
                                    std::string_view provider, std::vector<Probe>& found) {
  return LockMatcher(catalog, globs, provider, found).match();
}

}  // namespace clew::kernel
