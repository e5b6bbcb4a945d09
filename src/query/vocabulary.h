// SPDX-License-Identifier: Apache-2.0
// Vocabulary: tracepoints by name, as files in TOML define them (Pivot Tracing, figure 5).
//
//     [[tracepoint]]
//     name = "libc.malloc"                  # dotted, unique; a repeated name is one more place
//     doc = "Memory is asked for"
//     function = "libc.so.6!malloc"         # or a list; with at = "line": file:line
//     syscall = "read"                      # instead of a function, by the kernel's name
//     at = "entry"                          # entry (default), return, exception, line
//     exports = { size = "arg0" }           # names, and expressions over the event's fields
//     cause = "begin"                       # what it says of requests: query/cause.h
//
// What can be outstanding:
//
//     [[outstanding]]
//     name = "libc.live"                    # as outstanding(…) in a query
//     doc = "Memory that is not given back"
//     opened = "libc.allocated"             # a tracepoint, or a list
//     until = "libc.freed"
//     on = "address"                        # an export of both, or a list
//
// What values are by other names, as [[value]]:
//
//     [[value]]
//     name = "sds"                          # called as sds(p)
//     doc = "a string of Redis"
//     of = ["p"]                            # its parameters; one, x, where they are not said
//     is = "str(p, u8(p - 3))"              # an expression over them alone
//     members = ["_M_str", "_M_len"]        # instead of being called: the text of each record x
//                                           # that has these members
//
// And how programs hand their requests on, as [[program]] (query/socket_carriers.h).
//
// A Vocabulary is read once and may then be used from any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/cause.h"
#include "query/query.h"
#include "query/socket_carriers.h"
#include "query/syntax.h"

namespace clew::query {

inline constexpr size_t kVocabularyFileMaxBytes = 1024UL * 1024;

struct TracepointExport {
  std::string name;
  std::string text;  // As the file writes it.
  SyntaxExpression expression;
};

// One place of a tracepoint.
struct TracepointPlace {
  Source source;
  std::vector<TracepointExport> exports;
};

struct TracepointDefinition {
  std::string name;
  std::string doc;
  std::string file;                     // That defined it first, for messages and lists.
  std::vector<TracepointPlace> places;  // A union; all export the same names.
  std::optional<Cause> cause;           // What it says of requests.
};

struct OutstandingDefinition {
  std::string name;
  std::string doc;
  std::string file;  // That defined it.
  SyntaxOutstanding what;
};

// What is written in place of an expression over its parameters.
struct ValueDefinition {
  std::string name;
  std::string doc;
  std::string file;
  std::vector<std::string> parameters;  // At least one.
  std::vector<std::string> members;     // Paths of names: "vec.len". Empty: it is called.
  std::string text;                     // As the file writes it.
  SyntaxExpression expression;
};

class Vocabulary {
 public:
  // Adds the tracepoints of a file, or of all *.toml files of a directory in order of name. Errors
  // are InvalidQuery with the place, or Io. A definition that is there already and means the same
  // is no error: a file may be loaded twice.
  Expected<void> load(const std::filesystem::path& path);
  // The same from a text; `name` is what messages call it.
  Expected<void> load_text(const std::string& name, const std::string& text);

  // Exact, else not counting case; null when there is none.
  [[nodiscard]] const TracepointDefinition* find(std::string_view name) const;
  [[nodiscard]] std::span<const TracepointDefinition> tracepoints() const { return tracepoints_; }
  [[nodiscard]] const OutstandingDefinition* outstanding(std::string_view name) const;
  [[nodiscard]] std::span<const OutstandingDefinition> outstandings() const {
    return outstandings_;
  }
  // Null: none is said to be that of a program of this name.
  [[nodiscard]] const Program* find_program(std::string_view name) const;
  [[nodiscard]] std::span<const Program> programs() const { return programs_; }
  // One that is called: of so many parameters, else of any number.
  [[nodiscard]] const ValueDefinition* find_value(std::string_view name, size_t parameters) const;
  // In order of definition.
  [[nodiscard]] std::span<const ValueDefinition> values() const { return values_; }

 private:
  Expected<void> add(const std::string& file, TracepointDefinition definition);
  Expected<void> add(const std::string& file, Program program);
  Expected<void> add(OutstandingDefinition definition);
  Expected<void> add(const std::string& file, ValueDefinition value);

  std::vector<TracepointDefinition> tracepoints_;  // In order of definition.
  std::vector<Program> programs_;
  std::vector<OutstandingDefinition> outstandings_;
  std::vector<ValueDefinition> values_;
};

}  // namespace clew::query
