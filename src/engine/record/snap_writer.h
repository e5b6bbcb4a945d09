// SPDX-License-Identifier: Apache-2.0
// Snaps of crashes -> files, as far as the limits allow; and what is told of them.
#pragma once

#include <map>
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

  void write(const recorder::Snap& snap);
  // How many were suppressed, and by what.
  void tell_suppressed() const;

 private:
  void suppress(const recorder::Snap& snap, const recorder::Suppression& by);

  const std::string& path_;
  bool has_files_max_;
  recorder::SnapFolder folder_;
  Notices& notices_;
  unsigned written_ = 0;  // Or tried.
  std::map<recorder::SuppressedBy, unsigned> suppressed_;
};

}  // namespace clew::engine
