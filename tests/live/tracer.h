// SPDX-License-Identifier: Apache-2.0
// The real `clew` command as a test drives it: start, wait until it is armed, end, read the answer.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "live/child.h"
#include "live/victim.h"

namespace clew::live {

// What a run of `clew` gave: its rows, the object of its last line, and what it said.
struct Report {
  int status = -1;
  std::vector<nlohmann::json> rows;
  std::vector<nlohmann::json> disarmed;  // Probes that were, as told when that was seen.
  nlohmann::json summary;                // The value of "summary"; null when there was no answer.
  std::string error;                     // All of standard error.

  // Whether the summary lists this function as refused, for this kind of site, with a reason.
  [[nodiscard]] bool refused(const std::string& function, const std::string& kind) const;
  // The sum of all losses that the summary names. Children that were muted are not a loss: that is
  // what was asked for.
  [[nodiscard]] uint64_t lost() const;
  // Events of which something could not be read.
  [[nodiscard]] uint64_t unreadable() const;
  // Rows of select new { name = …, calls = count() } by name.
  [[nodiscard]] Numbers calls() const;
};

// Runs `clew` with these arguments to its end: as it ended, and the answer of a query.
Child::End clew(std::vector<std::string> arguments);
Report run_clew(const std::vector<std::string>& arguments, bool as_nobody = false);

class Tracer {
 public:
  // Attaches and returns when the sites are armed. `more` are further arguments of `clew run`.
  static Tracer attach(pid_t pid, const std::string& query,
                       const std::vector<std::string>& more = {}, bool as_nobody = false);
  // The same of a query that says by itself what it traces (machine.Function).
  static Tracer start(const std::string& query, const std::vector<std::string>& more = {});
  // The same of `clew explain --run --json`, whose lines are the rows.
  static Tracer explain(pid_t pid, const std::string& query,
                        const std::vector<std::string>& more = {});
  // Ctrl-C: detaches and returns the answer.
  Report finish();
  // Waits for an end that comes by itself.
  Report wait();
  [[nodiscard]] Child& child() { return child_; }

 private:
  explicit Tracer(Child child) : child_(std::move(child)) {}
  static Tracer armed(Child child);
  Child child_;
  std::string said_;
};

// Queries for tests. `sources` is one or more sources, such as entry("sites!*").
std::string count_by_function(const std::string& sources);
std::string entries_of(const std::string& pattern);
std::string returns_of(const std::string& pattern);
std::string entries_and_returns_of(const std::string& pattern);

// Traces `query` (count_by_function) while the victim runs `rounds` rounds. The victim's results
// before, while and after must be those of an untraced run, and text must equal the file
// afterwards.
struct Traced {
  Numbers counted;  // By Clew.
  Numbers truth;    // By the victim.
  Report report;
};
Traced trace_rounds(Victim& victim, const std::string& name, const std::string& query,
                    uint64_t rounds, const std::vector<std::string>& more = {});
// The same where hits may be lost: the caller looks at what is told.
Traced trace_lossy_rounds(Victim& victim, const std::string& name, const std::string& query,
                          uint64_t rounds, const std::vector<std::string>& more = {});

// Each function of `truth` was counted exactly, or was refused with a reason and is in
// `may_be_refused`.
void expect_exact(const Traced& traced, const std::string& kind,
                  const std::vector<std::string>& may_be_refused = {});

}  // namespace clew::live
