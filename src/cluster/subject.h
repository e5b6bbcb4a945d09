// SPDX-License-Identifier: Apache-2.0
// The rules for what a bus is given: names of subjects and logs, patterns, sizes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"

namespace clew::cluster {

// InvalidQuery, with what it is.
Expected<void> check_subject(std::string_view subject);
Expected<void> check_pattern(std::string_view pattern);
Expected<void> check_name(std::string_view name);  // Of a log or bucket: one word.
Expected<void> check_id(std::string_view id);      // Printable ASCII, at most kSubjectMax.
// Limit.
Expected<void> check_size(std::span<const std::byte> bytes);

// All as the checks above want them. Of a pattern in place of the subject: all of its subjects.
bool is_match(std::string_view pattern, std::string_view subject);
// Whether a subject could match both.
bool do_overlap(std::string_view pattern, std::string_view other);
bool has_wildcards(std::string_view pattern);

}  // namespace clew::cluster
