// SPDX-License-Identifier: Apache-2.0
// What can be known of a certificate without a server: for the reason why one does not take it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clew::cluster {

struct Certificate {
  enum class Time : uint8_t { Holds, NotYet, Over };
  Time time = Time::Holds;
  std::string name{};  // Its URI, as a server's list of users has it, or its common name, or empty.
};

// Nothing: the file has none.
std::optional<Certificate> read_certificate(const std::string& path);

}  // namespace clew::cluster
