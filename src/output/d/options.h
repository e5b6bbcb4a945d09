// SPDX-License-Identifier: Apache-2.0
// The options of a D script that change how its output looks: of the command, of `#pragma D
// option`, and of setopt() while it runs.
#pragma once

#include <cstdint>
#include <string_view>

#include "output/sinks.h"
#include "query/d/script.h"

namespace clew::output::d {

struct PrintOptions {
  bool is_quiet = false;
  // Not DTrace's. Json: records and aggregations are lines (json.h). Others: aggregations without a
  // format of their own are tables (table.h).
  Format format = Format::Text;
  bool has_flow_indent = false;
  bool has_raw_bytes = false;  // trace() never shows bytes as a string.
  uint32_t stack_indent = 14;
  bool has_drop_tags = false;
  bool sorts_by_key = false;
  uint32_t sort_key_position = 0;
  uint32_t sort_position = 0;  // Of several aggregations, whose values decide.
  bool sorts_reversed = false;
  bool zooms = false;  // The longest bar of a table takes 95 % of the room.

  static PrintOptions from(const query::d::Options& options);
  [[nodiscard]] bool is_json() const { return format == Format::Json; }
  // Records, too: the output is an answer of several tables (script_tables.h).
  [[nodiscard]] bool records_are_rows() const { return row_of(format).has_several_tables; }
  [[nodiscard]] bool draws_aggregations() const { return format != Format::Text && !is_json(); }
  // The output is for programs, and has no room for what the script prints by itself.
  [[nodiscard]] bool keeps_text_apart() const {
    return draws_aggregations() && format != Format::Chart;
  }
  // One table, of the whole session.
  [[nodiscard]] bool draws_at_end() const { return row_of(format).needs_stacks; }

  // False when the option is none of these, or the value none of its. An empty value sets a switch.
  bool set(std::string_view name, std::string_view value);
};

}  // namespace clew::output::d
