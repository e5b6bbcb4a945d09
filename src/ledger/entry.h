// SPDX-License-Identifier: Apache-2.0
// What the ledger says of a session, as values and as lines of its file. A session has two lines,
// one as it begins and one as it ends, or one alone, if it was refused.
//
// Names of programs and texts of queries are chosen by others: in a line, which is JSON in ASCII,
// nothing of them can end it or drive a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace clew::ledger {

// Of a text that is longer, its beginning is kept.
inline constexpr size_t kTextBytesMax = 8 << 10;
inline constexpr size_t kReasonBytesMax = 1 << 10;
inline constexpr size_t kNameBytesMax = 128;
inline constexpr size_t kProcessesMax = 256;

struct Who {
  uid_t uid = 0;                   // Real.
  std::string user{};              // Its name; empty where it has none.
  std::optional<uid_t> login_uid;  // With which somebody logged in, whoever they became since.
  std::string login_user{};
  std::string sudo_user{};  // What sudo(8) says, of root alone: others could say anything.
  bool operator==(const Who&) const = default;
};

struct TouchedProcess {
  pid_t pid = 0;
  std::string name{};
  int64_t started_ns = 0;  // CLOCK_REALTIME; 0: not known.
  bool operator==(const TouchedProcess&) const = default;
};

struct Beginning {
  std::string session{};  // No other session of this machine has it.
  int64_t time_ns = 0;    // CLOCK_REALTIME.
  std::string verb{};
  pid_t clew_pid = 0;
  Who who{};
  std::vector<TouchedProcess> processes{};
  uint64_t process_count = 0;  // Of which the first kProcessesMax are there.
  bool is_kernel = false;      // The kernel, perhaps on behalf of these processes alone.
  bool is_new = false;         // Also processes that come later.
  std::string text{};          // The query or script, or what else was asked for.
  uint64_t text_bytes = 0;     // Of all of it.
  std::string text_name{};     // Its file, or "query".
  bool operator==(const Beginning&) const = default;
};

enum class Status : uint8_t {
  Ended,    // By itself: the query's end, or that of what it traced.
  Stopped,  // By a signal.
  Failed,
  Refused,  // It did not begin.
  Killed,   // It said nothing of its end: another session has noted that its process is gone.
};
[[nodiscard]] std::string_view name_of(Status status);

struct Ending {
  std::string session{};
  int64_t time_ns = 0;
  Status status = Status::Ended;
  std::string reason{};
  std::optional<int64_t> lasted_ns{};
  std::optional<uint64_t> rows{};
  uint64_t missed = 0;   // Hits.
  uint64_t dropped = 0;  // Records.
  bool operator==(const Ending&) const = default;
};

// With a newline at their ends.
[[nodiscard]] std::string line_of(const Beginning& beginning);
[[nodiscard]] std::string line_of(const Ending& ending);
[[nodiscard]] std::string line_of_refused(const Beginning& beginning, const Ending& ending);

// Both in one object; `status`: also of one that runs. For those who ask.
[[nodiscard]] std::string line_of(const Beginning& beginning, const Ending* ending,
                                  std::string_view status);

// Of one line: nothing where it is none of ours. A line of a refused session has both.
struct Line {
  std::optional<Beginning> beginning;
  std::optional<Ending> ending;
};
[[nodiscard]] std::optional<Line> parse_line(std::string_view line);

// "2026-11-30T17:54:18.123456Z", and back; 0 where it is no such time.
[[nodiscard]] std::string time_text(int64_t time_ns);
[[nodiscard]] int64_t time_of(const std::string& text);

}  // namespace clew::ledger
