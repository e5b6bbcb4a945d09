// SPDX-License-Identifier: Apache-2.0
// How many snaps a folder may get. The folder itself is the memory: its snaps say what has crashed,
// where and when. So a service that is started again after each crash has the same limits, several
// recorders with one folder share them, and who takes a snap away makes room for one. Of what comes
// at the same moment in two recorders one may be too many.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "recorder/snap.h"

namespace clew::recorder {

struct SnapLimits {
  // Within `interval_ns`. Of those that runs_on() there is one where this is not said.
  std::optional<uint32_t> same_crash_max = {};
  uint64_t interval_ns = 3600 * uint64_t{1'000'000'000};
  std::optional<uint32_t> files_max = {};
  std::optional<uint64_t> bytes_max = {};  // Of all files.
};

// What makes two crashes the same one. Of a query, or of a heartbeat: the program's name and the
// query, and no place, since the process has run on.
struct CrashPlace {
  int32_t signal = 0;   // Of an exit its status.
  std::string module;   // Its build-id, or its path if it has none; empty: no module is known.
  uint64_t offset = 0;  // In its copy, or else from its load bias.
  SnapTrigger trigger = SnapTrigger::Event;

  auto operator<=>(const CrashPlace&) const = default;
};

// It was taken by what may happen again and again in a process: there is one within the interval
// where the limits say nothing.
bool runs_on(const Snap& snap);

// Where the thread was that got the signal; of one that was in a module without a copy, such as the
// C library's abort(), the call that led there, if that is known. Nothing of a snap that was asked
// for.
std::optional<CrashPlace> crash_place(const Snap& snap);

enum class SuppressedBy : uint8_t { SameCrash, SameQuery, SameExit, SameHeartbeat, Files, Bytes };

// "same crash"
std::string_view name_of(SuppressedBy cause);

struct Suppression {
  SuppressedBy cause = SuppressedBy::SameCrash;
  std::string like;  // The newest snap of the same crash or query.
};

class SnapFolder {
 public:
  SnapFolder(std::string path, const SnapLimits& limits)
      : path_(std::move(path)), limits_(limits) {}
  // Why this one may not come into the folder; nothing: it may. "Now" is the snap's time. Of a
  // query's snap the reason, the query and the command are enough, unless `bytes_max` is there.
  std::optional<Suppression> suppression_of(const Snap& snap);

 private:
  struct File {
    ino_t inode = 0;
    uint64_t bytes = 0;
    uint64_t written_ns = 0;  // Since 1970.
    bool is_read = false;
    std::optional<CrashPlace> place = {};
    uint64_t time_ns = 0;  // Of the snap.
  };
  void look();
  void read(const std::string& name, File& file);
  std::optional<Suppression> same_crash(const Snap& snap);

  std::string path_;
  SnapLimits limits_;
  std::map<std::string, File> files_;  // By name. What was read once is not read again.
};

}  // namespace clew::recorder
