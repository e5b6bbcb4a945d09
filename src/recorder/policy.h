// SPDX-License-Identifier: Apache-2.0
// A policy: what a recorder does that nobody watches, as a service for weeks. It is a file in TOML,
// read strictly: a key that is none, or a value that is out of range, is an error with its place.
// examples/record/policy.toml has all keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "recorder/snap_limits.h"

namespace clew::recorder {

// A set of signals: signal s is bit s - 1.
using SignalSet = uint64_t;

constexpr SignalSet signal_bit(int signal) {
  return SignalSet{1} << static_cast<unsigned>(signal - 1);
}

// Those whose default action it is to dump core: signal(7).
SignalSet core_signals();

// A query beside the recording: each of its rows takes a snap of the process that it is about.
struct Condition {
  std::string query;
  std::string place;  // Of the text: FILE:LINE:COLUMN.
};

// Of processes that end by themselves.
enum class Exits : uint8_t { None, Failures, All };

struct Policy {
  std::string group;         // Of recorders that are asked together; empty: none.
  std::string folder = ".";  // Where snaps go.
  bool follows = true;
  bool each_iteration = false;
  bool caches = true;
  SignalSet signals = core_signals();  // In front of which there is a snap, if they kill.
  Exits exits = Exits::None;
  uint64_t heartbeat_ns = 0;  // Nothing was recorded for so long; 0: that takes no snap.
  SnapLimits limits;
  std::vector<Condition> conditions;  // kConditionsMax at most.
};

inline constexpr size_t kConditionsMax = 8;

// Letters, digits, '.', '_' and '-', 32 bytes at most: it is a part of the name of a socket.
// Errors: InvalidQuery.
Expected<void> check_group(std::string_view name);

// Errors: Io; Limit when it is too large; InvalidQuery with FILE:LINE:COLUMN.
Expected<Policy> read_policy(const std::string& path);
// The same of a text; `name` is the file's.
Expected<Policy> parse_policy(std::string_view text, const std::string& name);

}  // namespace clew::recorder
