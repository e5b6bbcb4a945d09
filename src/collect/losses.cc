// SPDX-License-Identifier: Apache-2.0
#include "collect/losses.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace clew::collect {

void Losses::merge(const Losses& other) {
  for (const auto& [cause, count] : other.missed)
    count_cause(missed, cause, count);
  for (const auto& [cause, count] : other.dropped)
    count_cause(dropped, cause, count);
  lost.insert(lost.end(), other.lost.begin(), other.lost.end());
  refused.insert(refused.end(), other.refused.begin(), other.refused.end());
  disarmed.insert(disarmed.end(), other.disarmed.begin(), other.disarmed.end());
  sites += other.sites;
  attach_ms = std::max(attach_ms, other.attach_ms);
  stopped_ms = std::max(stopped_ms, other.stopped_ms);
  processes += other.processes;
}

bool Losses::empty() const {
  return missed.empty() && dropped.empty() && lost.empty() && refused.empty() && disarmed.empty();
}

std::string describe(const DisarmedProbe& disarmed) {
  return fmt::format(
      "{} in process {} ran out of fuel {} times and is disarmed; give it more with "
      "--fuel, or shorten its loop",
      disarmed.probe, disarmed.process, disarmed.exhausted);
}

void count_cause(Causes& causes, std::string_view cause, uint64_t count) {
  if (count == 0) return;
  const auto found = causes.find(cause);
  if (found == causes.end()) {
    causes.emplace(cause, count);
  } else {
    found->second += count;
  }
}

namespace {

using Description = std::pair<std::string_view, std::string_view>;

constexpr std::array<Description, 15> kDescriptions = {{
    {kMissedReentry, "hits while a probe already ran on the thread"},
    {kMissedAbandoned, "probes left by a longjmp out of a signal handler"},
    {kMissedRecords, "calls not paired with their return: too many calls were open on a thread"},
    {kMissedUnpaired, "returns whose call began before the session"},
    {kMissedFuel, "hits out of fuel (a loop in an extension)"},
    {kMissedLeftAlone, "hits not looked at: their probe had been out of fuel 8 times"},
    {kMissedUnreadable, "hits left out: memory that the query needs could not be read"},
    {kMissedTailCall, "returns without a value: the function left by a jump to another"},
    {kMissedNoSlot, "hits in threads without a slot: too many threads"},
    {kMissedForks, "forked child processes not traced (use --follow)"},
    {kDroppedRing, "events not stored: a ring was full"},
    {kDroppedTable, "updates not stored: a table was full"},
    {kDroppedDamaged, "bytes of events not readable: the traced program wrote over them"},
    {kDroppedHeld, "events not kept: too many were waiting"},
    {kDroppedFrames, "frames of the file are damaged, each of many events"},
}};

}  // namespace

std::string_view describe_cause(std::string_view cause) {
  for (const auto& [name, description] : kDescriptions) {
    if (name == cause) return description;
  }
  return cause;
}

}  // namespace clew::collect
