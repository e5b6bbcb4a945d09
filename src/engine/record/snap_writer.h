// SPDX-License-Identifier: Apache-2.0
// Snaps of crashes -> files, as far as the limits allow; and what is told of them.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engine/run.h"
#include "recorder/snap.h"
#include "recorder/snap_limits.h"

namespace clew::engine {

class SnapWriter {
 public:
  SnapWriter(const std::string& folder, const recorder::SnapLimits& limits, Notices& notices)
      : path_(folder),
        has_files_max_(limits.files_max.has_value()),
        folder_(folder, limits),
        notices_(notices) {}

  // Whether there is a file of it now.
  bool write(const recorder::Snap& snap);
  // Whether one of a query may be written, of which only the reason, the query and the command are
  // known yet; so nobody stands for one that may not. `rows`: how many there would be.
  bool wants(const recorder::Snap& head, unsigned rows);
  // Rows that came with one that was written.
  void count_same_query(unsigned rows);
  // How many were suppressed, and by what.
  void tell_suppressed() const;

 private:
  [[nodiscard]] bool is_full() const;
  void suppress(const recorder::Snap& snap, const recorder::Suppression& by, unsigned count = 1);
  void be_quiet(const recorder::Snap& snap, std::optional<recorder::SuppressedBy> cause,
                std::chrono::milliseconds time);

  const std::string& path_;
  bool has_files_max_;
  recorder::SnapFolder folder_;
  Notices& notices_;
  unsigned written_ = 0;  // Or tried.
  std::map<recorder::SuppressedBy, unsigned> suppressed_;
  std::set<recorder::SuppressedBy> told_;
  struct Quiet {
    std::optional<recorder::SuppressedBy> cause;  // Nothing: it could not be written.
    std::chrono::steady_clock::time_point until;
  };
  // Rows may come by the thousand: the folder is looked at from time to time, and who has no room
  // for a snap is not stopped for it again at once.
  std::map<recorder::CrashPlace, Quiet> quiet_;
};

}  // namespace clew::engine
