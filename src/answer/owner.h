// SPDX-License-Identifier: Apache-2.0
// To whom a process belongs, in the words that people have for it.
#pragma once

#include <cstdint>
#include <string>

namespace clew::answer {

// What could not be looked up: the process, or its control group, has gone.
inline constexpr const char* kUnknownOwner = "?";
inline constexpr uint32_t kNoUser = UINT32_MAX;  // No user has this number (chown(2)).

struct Owner {
  std::string container = kUnknownOwner;  // Empty: it is in none.
  std::string unit = kUnknownOwner;       // Empty: none of systemd.
  std::string cgroup = kUnknownOwner;     // The path of the control group.
  std::string user = kUnknownOwner;       // The name on this machine, else the number.
  uint32_t uid = kNoUser;                 // Effective.

  bool operator==(const Owner&) const = default;
};

}  // namespace clew::answer
