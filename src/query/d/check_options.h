// SPDX-License-Identifier: Apache-2.0
// The options of `-x name=value` and `#pragma D option name=value`: their names and the syntax of
// their values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace clew::query::d {

// Is this an option, and a value that it takes? Errors: NotFound ("Invalid option name") and
// InvalidQuery ("Invalid value for specified option").
Expected<void> check_option(std::string_view name, std::optional<std::string_view> value);

// "1.2" or "1.2.1", with three digits for each part: 1002000, 1002001.
[[nodiscard]] std::optional<uint32_t> version_number(std::string_view value);
// 4k, 16m, …: bytes.
[[nodiscard]] std::optional<uint64_t> option_bytes(std::string_view value);
// 10hz, 100ms, 1s, …; a number alone counts per second. The time between two, in ns.
[[nodiscard]] std::optional<uint64_t> option_period_ns(std::string_view value);

}  // namespace clew::query::d
