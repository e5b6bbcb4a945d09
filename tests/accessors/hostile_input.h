// SPDX-License-Identifier: Apache-2.0
// Test support: bytes, from a fuzzer or a random generator, as writes to a session's memory and
// calls of its accessors. The first byte is the session's shape, and is not read here.
#pragma once

#include <cstdint>
#include <span>

#include "hostile_session.h"

namespace clew::accessors {

inline constexpr uint32_t kStepsMax = 400;

// Does what the input says until it is at its end.
void run(const HostileSession& session, std::span<const uint8_t> input);

// The same without calls: what somebody else writes meanwhile.
void write_only(const HostileSession& session, std::span<const uint8_t> input);

}  // namespace clew::accessors
