// SPDX-License-Identifier: Apache-2.0
// The kernel's trace events, as tracefs describes them: which there are, and where the fields of
// their records lie. Read when first asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/tracefs.h"

namespace clew::kernel {

struct TraceField {
  std::string name;
  std::string type;  // As C writes it, without qualifiers: "pid_t", "char *", "struct stat *".
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  uint32_t count = 0;  // Elements of an array; 0 = no array.
  bool is_signed = false;
  // A word with the place of the field itself: its offset from the record in the low half, its size
  // in the high one. Relative: from the end of the word.
  bool is_elsewhere = false;
  bool is_relative = false;

  bool operator==(const TraceField&) const = default;
};

struct TraceFormat {
  uint32_t id = 0;
  std::vector<TraceField> fields;  // Without those that all events have (common_…).
};

// Errors: Io for a file that is none of the kernel's.
Expected<TraceFormat> parse_trace_format(std::string_view text);

class TraceEvents {
 public:
  // "group:name", in the order of tracefs, those of system calls included. Errors: Refused, Io.
  Expected<const std::vector<std::string>*> names();
  // Those that match a pattern of that form.
  Expected<std::vector<std::string>> match(std::string_view pattern);
  // Of one name. NotFound when there is none.
  Expected<TraceFormat> format(std::string_view name);

 private:
  Expected<const Tracefs*> files();

  std::optional<Expected<Tracefs>> files_;
  std::optional<std::vector<std::string>> names_;
};

}  // namespace clew::kernel
