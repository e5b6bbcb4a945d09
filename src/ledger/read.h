// SPDX-License-Identifier: Apache-2.0
// The ledger's file, read back: sessions, and how they ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ledger/entry.h"

namespace clew::ledger {

enum class State : uint8_t {
  Running,
  Over,     // `ending` says how.
  Gone,     // Its process is, and nobody has noted it yet: it was killed.
  Unknown,  // Nothing says how it ended: the lines were lost, or the disk had no room.
};

struct ToldSession {
  Beginning beginning;
  std::optional<Ending> ending{};
  State state = State::Unknown;
};

// "running", "unknown", or how it ended.
[[nodiscard]] std::string_view status_of(const ToldSession& session);

struct Told {
  std::vector<ToldSession> sessions;  // As they began.
  uint64_t damaged_lines = 0;
};

// Of the folder: none where it is not there. Errors: Io.
Expected<Told> read_sessions(const std::string& folder);

}  // namespace clew::ledger
