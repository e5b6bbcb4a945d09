// SPDX-License-Identifier: Apache-2.0
#include "inline/copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "code/relocate.h"
#include "code/windows.h"
#include "inline/arena.h"
#include "inline/arena_layout.h"

namespace clew::inline_ {

namespace {

CodeRange range_of(const target::ProcessModule& module, std::span<const target::Mapping> maps) {
  CodeRange range = {.low = module.executable_ranges.front().start,
                     .high = module.executable_ranges.back().end};
  for (const target::Mapping& map : maps) {
    if (map.inode != module.inode || map.device_major != module.device_major ||
        map.device_minor != module.device_minor) {
      continue;
    }
    range.low = std::min(range.low, map.start);
    range.high = std::max(range.high, map.end);
  }
  return range;
}

// Programs that are loaded where they were linked name tables by 31 bits; those lie low themselves,
// and what is as far above them as can be leaves the heap its room.
Expected<uint64_t> place_for(const StoppedTarget& target, const target::ProcessModule& module,
                             bool is_position_independent, uint64_t size) {
  const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
  const CodeRange range = range_of(module, maps);
  const GapRequest low = {
      .low = range.high, .high = uint64_t{1} << 31, .size = size, .from_top = true};
  const auto near = is_position_independent ? find_near(maps, range, size) : find_gap(maps, low);
  if (near) return *near;
  return fail(ErrorCode::Refused,
              fmt::format("no free memory within 2 GiB of {:#x} in process {} [no-near-memory]",
                          range.low, target.pid()));
}

Expected<void> map_copy(StoppedTarget& target, const copy::ModuleCopy& copy) {
  const uint64_t size = round_to_pages(copy.bytes.size());
  const uint64_t at = CLEW_TRY(target.checked_call(
      "mapping copies of functions",
      {.number = SYS_mmap,
       .arguments = {copy.address, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~uint64_t{0}, 0}}));
  if (at != copy.address) {
    return fail(ErrorCode::Io, "mapping copies of functions: the kernel chose another address");
  }
  CLEW_TRY(target.write(at, copy.bytes));
  CLEW_TRY(target.checked_call(
      "making copies of functions executable",
      {.number = SYS_mprotect, .arguments = {at, size, PROT_READ | PROT_EXEC}}));
  return {};
}

// Nobody stands in the windows: their jumps are written at once.
Expected<uint32_t> lead_entries(const StoppedTarget& target, uint64_t load_bias,
                                const copy::Facts& facts, const copy::ModuleCopy& copy) {
  std::vector<code::Request> requests;
  for (const copy::CopiedFunction& function : copy.functions) {
    requests.push_back({.kind = code::RequestKind::Entry,
                        .address = function.original,
                        .reads = code::kReadsNothing,
                        .may_serve_both = false});
  }
  const code::Plan plan = code::plan_windows(facts.code, requests);
  const copy::CopyMap places(copy);
  uint32_t entries = 0;
  for (const code::Window& window : plan.windows) {
    const auto behind = places.copy_of(window.address + window.kept_bytes);
    if (!behind) continue;
    const code::Placement placement = {.destination = *behind, .load_bias = load_bias};
    const auto written = code::relocate(window, {}, placement, {});
    if (!written) continue;
    for (const code::Patch& patch : written->patches) {
      CLEW_TRY(target.write(patch.address, std::span(patch.replacement).first(patch.size_bytes)));
    }
    ++entries;
  }
  return entries;
}

}  // namespace

Expected<InstalledCopy> install_copy(StoppedTarget& target, const target::ProcessModule& module,
                                     const copy::Facts& facts, copy::CheckedCopy& copy) {
  const uint64_t size = copy.copy().bytes.size();
  const uint64_t place = CLEW_TRY(place_for(target, module, facts.is_position_independent, size));
  CLEW_TRY(copy.move_to(module.load_bias, place - copy.copy().address));
  CLEW_TRY(map_copy(target, copy.copy()));
  const uint32_t entries = CLEW_TRY(lead_entries(target, module.load_bias, facts, copy.copy()));
  return InstalledCopy{.address = place,
                       .size_bytes = size,
                       .functions = static_cast<uint32_t>(copy.copy().functions.size()),
                       .entries = entries};
}

}  // namespace clew::inline_
