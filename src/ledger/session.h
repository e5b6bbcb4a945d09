// SPDX-License-Identifier: Apache-2.0
// The ledger: what says afterwards who traced what. Whatever touches a process or the kernel is a
// Session, from before it does so until nothing of it is left:
//
//     open(wish)      who wants what
//     begin(scope)    in front of the first change anywhere
//     end(…)          behind the last; of one that did not begin: why not
//
// Each is told in the folder's file (folder.h) and the system's log (system_log.h). A session that
// is killed tells no end: the next one does that for it. A log that cannot be written keeps nobody
// from tracing, unless the site's rules want it, and is told once.
//
// Costs some hundred microseconds for a session, and nothing for a hit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "ledger/entry.h"
#include "ledger/folder.h"
#include "ledger/places.h"

namespace clew::ledger {

// Where nobody else takes warnings.
void warn_on_standard_error(std::string_view text);

struct Wish {
  std::string text;                // The query or script.
  std::string text_name;           // Its file, or "query".
  std::vector<pid_t> processes{};  // That are asked for; of a session that is refused.
  // It takes out what others have left: that is told, and never refused.
  bool is_removal = false;
  std::function<void(std::string_view)> warn = [](std::string_view) {};
  Places places = places_here();
};

// What is going to be touched.
struct Scope {
  std::vector<pid_t> processes{};
  bool is_kernel = false;
  bool is_new = false;  // Also processes that come later.
  // Each is asked about once more when it is attached to, and left out where nobody traces it.
  bool is_judged_one_by_one = false;
};

struct Counts {
  bool is_stopped = false;  // Somebody has ended it by a signal.
  std::optional<uint64_t> rows{};
  uint64_t missed = 0;
  uint64_t dropped = 0;
};

class Session {
 public:
  // Errors: Refused, and those of read_site_rules(); they are told in the log.
  static Expected<Session> open(Wish wish);
  Session(Session&&) noexcept = default;
  Session& operator=(Session&&) = delete;
  // One that has begun, and was not ended, has failed.
  ~Session();

  // What is run, where that is known better than from the wish. Before begin().
  void set_text(std::string text, std::string name);
  // Errors: Refused, by the site's rules (site_rules.h); nothing may be touched then.
  Expected<void> begin(const Scope& scope);
  // All is armed: from now on it cannot be refused, only fail.
  void set_tracing() { is_tracing_ = true; }
  void count(const Counts& counts) { counts_ = counts; }
  // `problem`: why it failed or was refused, or null. One that has not begun and has no problem
  // was none: a script that was compiled alone.
  void end(const Error* problem);
  template <typename T>
  void end(const Expected<T>& outcome) {
    end(outcome ? nullptr : &outcome.error());
  }

 private:
  explicit Session(Wish wish);
  void set_processes(const std::vector<pid_t>& processes);
  void write(std::string_view line);
  void note_killed();
  void tell_once(const Error& problem);

  Wish wish_;
  Beginning beginning_;
  Counts counts_;
  std::optional<Folder> folder_;
  bool is_told_ = false;  // That the log cannot be written.
  bool has_begun_ = false;
  bool is_tracing_ = false;
  // Whether there is nothing to tell any more. A session that was moved from has no texts.
  struct Open {
    Open() = default;
    Open(Open&& other) noexcept : is(std::exchange(other.is, false)) {}
    bool is = true;
  } open_;
  RunningMark mark_;
};

}  // namespace clew::ledger
