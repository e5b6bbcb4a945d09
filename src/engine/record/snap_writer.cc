// SPDX-License-Identifier: Apache-2.0
#include "engine/record/snap_writer.h"

#include <fmt/format.h>

#include "base/log.h"
#include "recorder/save_snap.h"

namespace clew::engine {

namespace {

constexpr unsigned kSnapsMax = 100;  // Where no policy says how many.
constexpr std::chrono::seconds kNotWritten{10};

std::string what_happened(const recorder::Snap& snap) {
  if (!snap.condition.empty()) return "met a query";
  switch (snap.reason.trigger) {
    case recorder::SnapTrigger::Event:
      break;
    case recorder::SnapTrigger::Exit:
      return fmt::format("exits with status {}", snap.reason.code);
    case recorder::SnapTrigger::Heartbeat:
      return fmt::format("has recorded nothing for {} ms", snap.reason.code);
  }
  return fmt::format("got signal {}", snap.reason.signal);
}

}  // namespace

bool SnapWriter::is_full() const {
  return !has_files_max_ && written_ == kSnapsMax;
}

bool SnapWriter::write(const recorder::Snap& snap) {
  if (is_full()) return false;
  if (const auto by = folder_.suppression_of(snap)) {
    suppress(snap, *by);
    be_quiet(snap, by->cause, kNotWritten);
    return false;
  }
  if (++written_ == kSnapsMax && !has_files_max_)
    notices_.warning(fmt::format("this is snap number {}: no others are written", kSnapsMax));
  const auto path = recorder::save_snap(path_, snap);
  if (!path) {
    notices_.warning(fmt::format("no snap: {}", path.error().message));
    be_quiet(snap, std::nullopt, kNotWritten);
    return false;
  }
  notices_.made(fmt::format("recorded: {} (clew show {})", *path, *path));
  return true;
}

void SnapWriter::be_quiet(const recorder::Snap& snap, std::optional<recorder::SuppressedBy> cause,
                          std::chrono::milliseconds time) {
  if (!recorder::runs_on(snap)) return;
  if (const auto place = recorder::crash_place(snap))
    quiet_.insert_or_assign(*place, Quiet{cause, std::chrono::steady_clock::now() + time});
}

bool SnapWriter::wants(const recorder::Snap& head, unsigned rows) {
  constexpr std::chrono::milliseconds kQuiet{100};
  if (is_full()) return false;
  const auto now = std::chrono::steady_clock::now();
  const auto place = recorder::crash_place(head);
  const auto quiet = place ? quiet_.find(*place) : quiet_.end();
  if (quiet != quiet_.end() && now < quiet->second.until) {
    if (quiet->second.cause) suppressed_[*quiet->second.cause] += rows;
    return false;
  }
  const auto by = folder_.suppression_of(head);
  if (!by) return true;
  suppress(head, *by, rows);
  be_quiet(head, by->cause, kQuiet);
  return false;
}

void SnapWriter::count_same_query(unsigned rows) {
  if (rows != 0) suppressed_[recorder::SuppressedBy::SameQuery] += rows;
}

// The first of each cause is told at once: a service may run for weeks.
void SnapWriter::suppress(const recorder::Snap& snap, const recorder::Suppression& by,
                          unsigned count) {
  std::string why(recorder::name_of(by.cause));
  if (!by.like.empty()) why += fmt::format(" as in {}", by.like);
  log_step(snap.pid, "{}, and its snap is suppressed: {}", what_happened(snap), why);
  suppressed_[by.cause] += count;
  if (!told_.insert(by.cause).second) return;
  notices_.made(
      fmt::format("the snap of process {} is suppressed: {}; others are counted", snap.pid, why));
}

void SnapWriter::tell_suppressed() const {
  for (const auto& [cause, count] : suppressed_) {
    notices_.made(fmt::format("{} snap{} suppressed: {}", count, count == 1 ? "" : "s",
                              recorder::name_of(cause)));
  }
}

}  // namespace clew::engine
