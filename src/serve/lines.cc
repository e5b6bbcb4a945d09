// SPDX-License-Identifier: Apache-2.0
#include "serve/lines.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace clew::serve {
namespace {

// 0.75 MB. With more, the oldest are counted without their session.
constexpr size_t kRunsMax = 32768;
// Of each session. D scripts may have many tables; what is beyond this is kept as other lines are.
constexpr size_t kPinnedMax = 512;

std::string numbered(uint64_t number, const std::string& content) {
  return fmt::format("{{\"n\":{},{}}}\n", number, content);
}

}  // namespace

std::string session_id(uint32_t session) {
  return fmt::format("s{}", session);
}

void Lines::add(uint32_t session, LineKind kind, const std::string& content) {
  ++last_;
  Entry entry{last_, session, kind, std::make_shared<const std::string>(numbered(last_, content))};
  if (kind != LineKind::Plain) pin(entry);
  bytes_ += entry.text->size();
  kept_.push_back(std::move(entry));
  while (bytes_ > bytes_max_ && kept_.size() > 1)
    drop_oldest();
}

void Lines::pin(const Entry& entry) {
  std::vector<Entry>& pinned = pinned_[entry.session];
  if (entry.kind == LineKind::State)
    std::erase_if(pinned, [](const Entry& other) { return other.kind == LineKind::State; });
  if (pinned.size() < kPinnedMax) pinned.push_back(entry);
}

void Lines::drop_oldest() {
  const Entry& oldest = kept_.front();
  bytes_ -= oldest.text->size();
  gone_to_ = oldest.number;
  if (oldest.kind != LineKind::State) {
    const bool goes_on = !runs_.empty() && runs_.back().session == oldest.session &&
                         runs_.back().first + runs_.back().count == oldest.number;
    if (!goes_on) runs_.push_back({oldest.number, 0, oldest.session});
    ++runs_.back().count;
  }
  if (runs_.size() > kRunsMax) {
    runs_forgotten_to_ = runs_.front().first + runs_.front().count - 1;
    runs_.pop_front();
  }
  kept_.pop_front();
}

// Lines from the number `first` on that are gone, of each session; 0: nobody knows of which.
std::map<uint32_t, uint64_t> Lines::gone_since(uint64_t first) const {
  std::map<uint32_t, uint64_t> counts;
  if (first <= runs_forgotten_to_) counts[0] = runs_forgotten_to_ - first + 1;
  for (const Run& run : runs_) {
    const uint64_t end = run.first + run.count;
    if (end > first) counts[run.session] += end - std::max(run.first, first);
  }
  return counts;
}

void Lines::catch_up(LineCursor& cursor) const {
  std::map<uint32_t, uint64_t> missed = gone_since(cursor.next_);
  for (const auto& [session, pinned] : pinned_) {
    for (const Entry& entry : pinned) {
      if (entry.number < cursor.next_ || entry.number > gone_to_) continue;
      cursor.first_.push_back({entry.number, entry.text});
      const bool is_counted =
          entry.kind != LineKind::State && entry.number > runs_forgotten_to_ && missed[session] > 0;
      if (is_counted) --missed[session];
    }
  }
  std::sort(cursor.first_.begin(), cursor.first_.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  for (const auto& [session, count] : missed) {
    if (count == 0) continue;
    const std::string id = session == 0 ? "null" : fmt::format("\"{}\"", session_id(session));
    const std::string gap = fmt::format("\"gap\":{{\"id\":{},\"lines\":{}}}", id, count);
    cursor.first_.push_back(
        {gone_to_, std::make_shared<const std::string>(numbered(gone_to_, gap))});
  }
  cursor.next_ = gone_to_ + 1;
}

SharedLine Lines::next(LineCursor& cursor) const {
  cursor.next_ = std::min(cursor.next_, last_ + 1);
  if (cursor.next_ <= gone_to_) catch_up(cursor);
  if (!cursor.first_.empty()) {
    LineCursor::Given given = std::move(cursor.first_.front());
    cursor.first_.pop_front();
    cursor.last_ = given.number;
    return given.text;
  }
  if (cursor.next_ > last_) return nullptr;
  cursor.last_ = cursor.next_;
  return kept_.at(cursor.next_++ - gone_to_ - 1).text;
}

}  // namespace clew::serve
