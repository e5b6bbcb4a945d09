// SPDX-License-Identifier: Apache-2.0
// How often joins by cause are right in a process whose messages have an id in their text: what
// the process writes is joined with the question that it was written for, by what vocabularies say
// of it, guesses included; equal ids say that this was right.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "doctor/findings.h"
#include "engine/run.h"

namespace clew::doctor {

// An extended regular expression of POSIX, whose first match in a text is its id.
class IdPattern {
 public:
  static Expected<IdPattern> compile(const std::string& text);
  [[nodiscard]] std::optional<std::string> find(std::string_view text) const;

 private:
  struct Compiled;
  explicit IdPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;  // Copies of a pattern have one: it never changes.
};

struct Measured {
  uint64_t messages = 0;  // That were written with an id.
  uint64_t right = 0;
  uint64_t wrong = 0;
  uint64_t unknown = 0;  // Joined with no question, or with one that has no id in what is read.
  bool is_whole = true;  // No event was lost.
};
// `question`: what was read, or nothing.
void note(Measured& sum, const IdPattern& pattern, const std::string& message,
          const std::optional<std::string>& question);

struct MeasureRequest {
  std::string id;  // An IdPattern.
  uint64_t for_ns = 0;
  int stop_descriptor = -1;            // Ends it earlier when it is readable.
  engine::Notices* notices = nullptr;  // Not null; borrowed.
};
// Traces the process, as a query does.
Expected<Measured> measure(pid_t pid, const MeasureRequest& request,
                           const std::vector<std::string>& vocabulary_paths);
void judge(const Measured& measured, Findings& findings);

}  // namespace clew::doctor
