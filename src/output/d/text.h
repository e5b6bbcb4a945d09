// SPDX-License-Identifier: Apache-2.0
// Texts of single values: times, escaped strings, characters, bytes as a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace clew::output::d {

// Seconds since 1970 in the local zone: "1969 Dec 31 16:00:00", or as RFC 822 has it (with the year
// of the ISO week, which is DTrace's own way): "Wed, 31 Dec 1970 16:00:00 PST".
std::string time_text(int64_t seconds, bool is_rfc_822);

// As in a C literal: \n, \", \\, \0, \x1b.
std::string escaped(std::string_view text);

void append_utf8(std::string& out, uint32_t character);

// Sixteen bytes a line, in hexadecimal and as characters, under a line of column numbers; an empty
// line comes first. Nothing when there are no bytes.
void append_byte_table(std::span<const uint8_t> bytes, std::string& out);

}  // namespace clew::output::d
