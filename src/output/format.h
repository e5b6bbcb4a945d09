// SPDX-License-Identifier: Apache-2.0
// Values as text for people. A time is scaled to three significant digits (1.23 us); counts are
// exact. Values of sketches are marked with ~.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregate/value.h"
#include "collect/losses.h"

namespace clew::output {

[[nodiscard]] std::string format_value(const aggregate::Value& value,
                                       const aggregate::Column& column);

// "1024", "< 0", ">= 100".
[[nodiscard]] std::string bucket_label(const aggregate::Bucket& bucket);

// What D's options and its normalize() change.
struct HistogramStyle {
  bool has_weights = false;  // Counts are signed; the bars of negative ones grow to the left.
  bool zooms = false;        // The longest bar fills 95 %, instead of all bars one.
  int64_t divisor = 1;       // Of weights as they are printed.
};

// Exactly as DTrace prints quantize, lquantize and llquantize: an empty line, the header line, one
// row per bucket from one before the first to one after the last that is not empty.
[[nodiscard]] std::string format_histogram(const aggregate::Histogram& histogram,
                                           const HistogramStyle& style = {});

// A bar of `width` columns for part/whole, in eighths of a column (U+2588 and its kin).
[[nodiscard]] std::string format_bar(double part, double whole, uint32_t width);

// "shop!main+0x10;shop!serve+0x40 (serve.c:120)": the outermost call first, all that is known of
// each, so that two stacks are one text only if they are equal.
[[nodiscard]] std::string format_calls(const aggregate::Stack& stack);

// The name of a call where only names count, and any text in the place of one: a `;`, control
// characters and what is no UTF-8 as \xNN.
[[nodiscard]] std::string folded_name(const aggregate::Frame& frame);
[[nodiscard]] std::string folded_text(std::string_view text);

// "approximate: p99, users": the columns whose values are those of sketches, for formats that do
// not mark each value; empty without any.
[[nodiscard]] std::string format_approximate(std::span<const aggregate::Column> columns);

// What is missing, one line per cause with its count; empty when nothing is. Refused sites are
// summed up by reason.
[[nodiscard]] std::string format_losses(const collect::Losses& losses);

// No text that a program traced has to be.
[[nodiscard]] bool is_utf8(std::string_view text);
// Control characters as \n, \t, \xNN; invalid UTF-8 bytes as \xNN: traced data must not drive the
// terminal.
[[nodiscard]] std::string printable(std::string_view text);
// Without their ends. They lie in the text.
[[nodiscard]] std::vector<std::string_view> lines_in(std::string_view text);
// Columns that a terminal needs for valid UTF-8.
[[nodiscard]] size_t display_width(std::string_view text);

}  // namespace clew::output
