// SPDX-License-Identifier: Apache-2.0
#include "engine/record/snap_writer.h"

#include <fmt/format.h>

#include "base/log.h"
#include "recorder/save_snap.h"

namespace clew::engine {

void SnapWriter::write(const recorder::Snap& snap) {
  constexpr unsigned kSnapsMax = 100;  // Where no policy says how many.
  if (!has_files_max_ && written_ == kSnapsMax) return;
  if (const auto by = folder_.suppression_of(snap)) return suppress(snap, *by);
  if (++written_ == kSnapsMax && !has_files_max_)
    notices_.warning(fmt::format("this is snap number {}: no others are written", kSnapsMax));
  const auto path = recorder::save_snap(path_, snap);
  if (!path) return notices_.warning(fmt::format("no snap: {}", path.error().message));
  notices_.made(fmt::format("recorded: {} (clew show {})", *path, *path));
}

// The first of each cause is told at once: a service may run for weeks.
void SnapWriter::suppress(const recorder::Snap& snap, const recorder::Suppression& by) {
  std::string why(recorder::name_of(by.cause));
  if (!by.like.empty()) why += fmt::format(" as in {}", by.like);
  log_step(snap.pid, "got signal {}, and its snap is suppressed: {}", snap.reason.signal, why);
  if (suppressed_[by.cause]++ != 0) return;
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
