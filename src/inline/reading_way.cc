// SPDX-License-Identifier: Apache-2.0
#include "inline/reading_way.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/log.h"
#include "inline/forked_children.h"
#include "target/odd_mappings.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

struct StackRange {
  uint64_t low = 0;
  uint64_t high = 0;
};

// The first thread's, with all that it can grow into: up to the mapping below it.
StackRange find_stack(std::span<const target::Mapping> maps) {
  const auto stack = std::find_if(maps.begin(), maps.end(),
                                  [](const target::Mapping& map) { return map.path == "[stack]"; });
  if (stack == maps.end()) return {};
  // Parts of it may have other rights, and no name.
  auto first = stack;
  while (first != maps.begin() && (first - 1)->end == first->start)
    --first;
  const uint64_t below = first == maps.begin() ? 0 : (first - 1)->end;
  return {.low = below, .high = stack->end};
}

Expected<void> write_all(StoppedTarget& target, const Arena& arena, const abi::LoadRecord& record) {
  const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
  if (!is_in_vdso(record, maps)) return fail(ErrorCode::Refused, "its vDSO is another one by now");
  arena.journal().load = record;  // First: we may be killed.
  CLEW_TRY(write_load(target, record));
  const StackRange stack = find_stack(maps);
  abi::ArenaHeader& header = arena.header();
  header.stack_low = stack.low;
  header.stack_high = stack.high;
  __atomic_store_n(&header.load_address, record.load, __ATOMIC_RELEASE);
  return {};
}

// False when the process does not have the arena, or not any more. One that hides its mappings (it
// has changed its user, say) may have it.
bool look_at(pid_t pid, const Arena& arena) {
  const auto maps = target::read_memory_map(pid);
  if (!maps && maps.error().code == ErrorCode::NotFound) return false;
  if (maps && !has_arena(*maps, arena)) return false;
  const auto reason =
      maps ? target::find_odd_mapping(pid, *maps) : std::optional(maps.error().message);
  if (!reason || arena.header().load_address == 0) return true;
  stop_loads(arena);
  log_step(pid, "its memory is read by the kernel from now on: {}", *reason);
  return true;
}

}  // namespace

void begin_loads(StoppedTarget& target, const Arena& arena, const abi::LoadRecord& record) {
  const auto written = write_all(target, arena, record);
  if (written) {
    log_step(target.pid(), "its memory is read by loads ({:#x})", record.load);
  } else {
    log_step(target.pid(), "its memory is read by the kernel: {}", written.error().message);
  }
}

void stop_loads(const Arena& arena) {
  __atomic_store_n(&arena.header().load_address, uint64_t{0}, __ATOMIC_RELEASE);
}

void MappingsWatch::look(pid_t first, const Arena& arena) {
  constexpr auto kPeriod = std::chrono::seconds(1);
  const auto now = std::chrono::steady_clock::now();
  if (arena.header().load_address == 0 || now - looked_ < kPeriod) return;
  looked_ = now;
  (void)look_at(first, arena);
  meet_children(arena);
  std::erase_if(children_, [&arena](uint32_t child) {
    // The process writes it, so that it may be anything; 0: it is about to.
    const uint32_t pid =
        __atomic_load_n(&arena.target_page().processes[child].pid, __ATOMIC_ACQUIRE);
    return pid != 0 && !look_at(static_cast<pid_t>(pid), arena);
  });
}

void MappingsWatch::meet_children(const Arena& arena) {
  if (!arena.shared()) return;
  const uint32_t count = std::min(
      __atomic_load_n(&arena.target_page().process_count, __ATOMIC_RELAXED), abi::kProcessesMax);
  for (; met_ < count; ++met_)
    children_.insert(met_);
}

}  // namespace clew::inline_
