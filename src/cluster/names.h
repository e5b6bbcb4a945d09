// SPDX-License-Identifier: Apache-2.0
// The log and the keys of a tenant's cluster. subjects.h has the subjects.
#pragma once

#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace clew::cluster {

// A word that nobody else has, and that says what it is of.
inline std::string new_name(std::string_view kind) {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kind, random(), random());
}

// Of all partials.
inline std::string partials_log(std::string_view tenant) {
  return fmt::format("clew_{}_part", tenant);
}

// With the keys below.
inline std::string bucket_of(std::string_view tenant) {
  return fmt::format("clew_{}", tenant);
}

// Which queries are wanted (Want), and each of them (Control).
inline constexpr std::string_view kWantKey = "want";
inline std::string want_key(std::string_view query) {
  return fmt::format("want.{}", query);
}

// What a root without a store has given of it (Marks).
inline std::string mark_key(std::string_view query) {
  return fmt::format("mark.{}", query);
}

// Who leads (Leader).
inline constexpr std::string_view kRootKey = "root";

}  // namespace clew::cluster
