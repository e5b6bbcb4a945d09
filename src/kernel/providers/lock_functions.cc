// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/lock_functions.h"

#include <array>
#include <cerrno>
#include <optional>

#include "kernel/providers/process_functions.h"

namespace clew::kernel {

namespace {

using abi::MachineLockKind;

enum class Verb : uint8_t { Lock, Try, Unlock };

struct LockFunction {
  std::string_view function;
  MachineLockKind kind;
  Verb verb;
};

constexpr std::array kFunctions = {
    LockFunction{"pthread_mutex_lock", MachineLockKind::Mutex, Verb::Lock},
    LockFunction{"pthread_mutex_timedlock", MachineLockKind::Mutex, Verb::Lock},
    LockFunction{"pthread_mutex_clocklock", MachineLockKind::Mutex, Verb::Lock},
    LockFunction{"pthread_mutex_trylock", MachineLockKind::Mutex, Verb::Try},
    LockFunction{"pthread_mutex_unlock", MachineLockKind::Mutex, Verb::Unlock},
    LockFunction{"pthread_rwlock_rdlock", MachineLockKind::Read, Verb::Lock},
    LockFunction{"pthread_rwlock_timedrdlock", MachineLockKind::Read, Verb::Lock},
    LockFunction{"pthread_rwlock_clockrdlock", MachineLockKind::Read, Verb::Lock},
    LockFunction{"pthread_rwlock_tryrdlock", MachineLockKind::Read, Verb::Try},
    LockFunction{"pthread_rwlock_wrlock", MachineLockKind::Write, Verb::Lock},
    LockFunction{"pthread_rwlock_timedwrlock", MachineLockKind::Write, Verb::Lock},
    LockFunction{"pthread_rwlock_clockwrlock", MachineLockKind::Write, Verb::Lock},
    LockFunction{"pthread_rwlock_trywrlock", MachineLockKind::Write, Verb::Try},
    // Unlocks what is held, of either kind.
    LockFunction{"pthread_rwlock_unlock", MachineLockKind::Read, Verb::Unlock},
};

// Arguments of LockReturn and LockWait: kernel/probe.h.
constexpr uint8_t kLock = 0;
constexpr uint8_t kResult = 1;
constexpr uint8_t kHasWaited = 2;
constexpr uint8_t kIsWriter = 3;
constexpr uint8_t kHasLock = 4;
constexpr uint8_t kZero = kArgumentNumber;

// When a LockReturn fires: the argument has the value, or (`is_inverted`) has not.
struct Condition {
  uint8_t argument = 0;
  uint64_t value = 0;
  bool is_inverted = false;
};
using Conditions = std::array<std::optional<Condition>, 2>;

constexpr Condition kIsTaken = {.argument = kHasLock, .value = 1};
constexpr Condition kWaited = {.argument = kHasWaited, .value = 1};
constexpr Condition kFailed = {.argument = kResult, .value = 0, .is_inverted = true};
constexpr Condition kNotBusy = {.argument = kResult, .value = EBUSY, .is_inverted = true};

// A probe that a function of some verb gives.
struct LockProbe {
  std::string_view name;  // Behind "mutex-" or "rw-".
  Verb verb;
  AttachKind kind;
  std::array<uint8_t, 3> mutex_arguments;
  std::array<uint8_t, 3> rw_arguments;
  Conditions conditions = {};
};

// `argument`: the one behind the lock and, of a read-write lock, behind what it is for.
constexpr LockProbe at_return(std::string_view name, Verb verb, uint8_t argument,
                              Conditions conditions) {
  return {.name = name,
          .verb = verb,
          .kind = AttachKind::LockReturn,
          .mutex_arguments = {kLock, argument, kZero},
          .rw_arguments = {kLock, kIsWriter, argument},
          .conditions = conditions};
}

// How often a thread took a lock that it had (arg1 of mutex-acquire), and how often it spun, is not
// to be seen.
constexpr std::array kProbes = {
    at_return("acquire", Verb::Lock, kZero, {kIsTaken}),
    at_return("acquire", Verb::Try, kZero, {kIsTaken}),
    at_return("blocked", Verb::Lock, kHasLock, {kWaited}),
    at_return("error", Verb::Lock, kResult, {kFailed}),
    at_return("error", Verb::Try, kResult, {kFailed, kNotBusy}),
    at_return("error", Verb::Unlock, kResult, {kFailed}),
    LockProbe{.name = "block",
              .verb = Verb::Lock,
              .kind = AttachKind::LockWait,
              .mutex_arguments = {0, kZero, kZero},
              .rw_arguments = {0, 1, kZero}},
    LockProbe{.name = "release",
              .verb = Verb::Unlock,
              .kind = AttachKind::UserEntry,
              .mutex_arguments = {0, kZero, kZero},
              .rw_arguments = {0, kZero, kZero}},
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
    const bool is_mutex = function.kind == MachineLockKind::Mutex;
    const std::string name = (is_mutex ? "mutex-" : "rw-") + std::string(lock.name);
    if (!globs_.name.matches(name) || !globs_.function.matches(function.function)) return {};
    for (Probe& probe : CLEW_TRY(places_of(function))) {
      probe.name = name;
      probe.kind = lock.kind;
      const auto& arguments = is_mutex ? lock.mutex_arguments : lock.rw_arguments;
      probe.argument_map.assign(arguments.begin(), arguments.end());
      probe.lock_kind = function.kind;
      for (const std::optional<Condition>& condition : lock.conditions) {
        if (!condition) continue;
        ProbeFilter filter;
        filter.argument = condition->argument;
        filter.value = condition->value;
        filter.is_inverted = condition->is_inverted;
        probe.more_filters.push_back(filter);
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
