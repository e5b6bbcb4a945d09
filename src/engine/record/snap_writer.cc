// SPDX-License-Identifier: Apache-2.0
#include "engine/record/snap_writer.h"

#include <fmt/format.h>

#include "base/log.h"
#include "recorder/save_snap.h"

namespace clew::engine {

namespace {

constexpr unsigned kSnapsMax = 100;  // Where no policy says how many.

}  // namespace

bool SnapWriter::is_full() const {
  return !has_files_max_ && written_ == kSnapsMax;
}

void SnapWriter::write(const recorder::Snap& snap) {
  if (is_full()) return;
  if (const auto by = folder_.suppression_of(snap)) return suppress(snap, *by);
  if (++written_ == kSnapsMax && !has_files_max_)
    notices_.warning(fmt::format("this is snap number {}: no others are written", kSnapsMax));
  const auto path = recorder::save_snap(path_, snap);
  if (!path) return notices_.warning(fmt::format("no snap: {}", path.error().message));
  notices_.made(fmt::format("recorded: {} (clew show {})", *path, *path));
}

bool SnapWriter::wants(const recorder::Snap& head, unsigned rows) {
  constexpr std::chrono::milliseconds kQuiet{100};
  if (is_full()) return false;
  const auto now = std::chrono::steady_clock::now();
  const auto place = recorder::crash_place(head);
  const auto quiet = place ? quiet_.find(*place) : quiet_.end();
  if (quiet != quiet_.end() && now < quiet->second.until) {
    suppressed_[quiet->second.cause] += rows;
    return false;
  }
  const auto by = folder_.suppression_of(head);
  if (!by) return true;
  suppress(head, *by, rows);
  if (place) quiet_.insert_or_assign(*place, Quiet{by->cause, now + kQuiet});
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
  const std::string what = snap.condition.empty() ? fmt::format("got signal {}", snap.reason.signal)
                                                  : std::string("met a query");
  log_step(snap.pid, "{}, and its snap is suppressed: {}", what, why);
  unsigned& counted = suppressed_[by.cause];
  counted += count;
  if (counted != count) return;
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
