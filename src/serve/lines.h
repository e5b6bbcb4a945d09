// SPDX-License-Identifier: Apache-2.0
// The lines of all sessions in one numbering, as readers of `stream` get them. What is kept is
// bounded: a reader that is too slow, or comes late, misses the oldest lines, and is told how many
// of which session. What a page cannot do without (pinned lines) it gets all the same.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace clew::serve {

// Shared by what is kept and the readers that are in the middle of writing it.
using SharedLine = std::shared_ptr<const std::string>;

// Where a reader is.
class LineCursor {
 public:
  // Behind the line number `after`.
  explicit LineCursor(uint64_t after) : next_(after + 1) {}
  // Of the line that it was given last.
  [[nodiscard]] uint64_t last() const { return last_; }

 private:
  friend class Lines;
  struct Given {
    uint64_t number;
    SharedLine text;
  };
  uint64_t next_;
  uint64_t last_ = next_ - 1;
  std::deque<Given> first_;  // What goes before `next_`.
};

enum class LineKind : uint8_t {
  Plain,
  Pinned,  // Kept for as long as its session is.
  State,   // The same, until the next one; no line of the session's.
};

class Lines {
 public:
  // `bytes_max`: of lines that are not pinned.
  explicit Lines(size_t bytes_max) : bytes_max_(bytes_max) {}

  // `content`: the members of the line's object behind its number, without the brace that ends it.
  void add(uint32_t session, LineKind kind, const std::string& content);
  // Nothing of it is pinned any more.
  void forget(uint32_t session) { pinned_.erase(session); }
  // The next line; null: there is none yet.
  [[nodiscard]] SharedLine next(LineCursor& cursor) const;
  [[nodiscard]] uint64_t last() const { return last_; }

 private:
  struct Entry {
    uint64_t number;
    uint32_t session;
    LineKind kind;
    SharedLine text;
  };
  struct Run {  // Of lines that are gone, of one session.
    uint64_t first;
    uint64_t count;
    uint32_t session;
  };

  void pin(const Entry& entry);
  void drop_oldest();
  void catch_up(LineCursor& cursor) const;
  [[nodiscard]] std::map<uint32_t, uint64_t> gone_since(uint64_t first) const;

  size_t bytes_max_;
  size_t bytes_ = 0;
  uint64_t last_ = 0;
  uint64_t gone_to_ = 0;            // Up to it lines are gone.
  uint64_t runs_forgotten_to_ = 0;  // Up to it nobody knows of which session they were.
  std::deque<Entry> kept_;          // Numbers gone_to_ + 1 to last_.
  std::deque<Run> runs_;
  std::map<uint32_t, std::vector<Entry>> pinned_;
};

// "s7"
[[nodiscard]] std::string session_id(uint32_t session);

}  // namespace clew::serve
