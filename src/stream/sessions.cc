// SPDX-License-Identifier: Apache-2.0
#include "stream/sessions.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "stream/key.h"
#include "stream/time.h"

namespace clew::stream {
namespace {

// Cells of min and max: the value, and whether there is one.
constexpr size_t kFirstWord = 0;
constexpr size_t kLastWord = 2;

std::vector<Given> in_order(std::map<uint64_t, Given>&& by_version) {
  std::vector<Given> all;
  all.reserve(by_version.size());
  for (auto& [version, given] : by_version)
    all.push_back(std::move(given));
  return all;
}

}  // namespace

Sessions::Sessions(const WindowShape& shape, aggregate::TableSchema schema)
    : Windows(shape, std::move(schema)) {
  CLEW_ASSERT(shape.panes.width_ns <= shape.size_ns);
  CLEW_ASSERT(schema_.aggregates.size() >= 2);
  CLEW_ASSERT(schema_.aggregates[0].spec.function == aggregate::AggregateFunction::Min);
  CLEW_ASSERT(schema_.aggregates[1].spec.function == aggregate::AggregateFunction::Max);
  for (const aggregate::AggregateColumn& column : schema_.aggregates)
    group_.cells.push_back(column.spec);
}

bool Sessions::is_over(const Session& session) const {
  return plus(session.last_ns, shape_.size_ns) < watermark_ns_;
}

// No cell that is still wanted is near enough to join it: its last event is further than two gaps
// away, and its first one less than a gap, which no pane exceeds, before that.
bool Sessions::is_done(const Session& session) const {
  return !session.has_changed && is_closed(plus(session.last_ns, 3 * shape_.size_ns));
}

void Sessions::add(const aggregate::Table& partial) {
  CLEW_ASSERT(partial.schema() == schema_);
  for (const auto& [key, cells] : partial.cells()) {
    const bool has_times = cells[kFirstWord + 1] != 0 && cells[kLastWord + 1] != 0;
    Session session{.first_ns = static_cast<int64_t>(cells[kFirstWord]),
                    .last_ns = static_cast<int64_t>(cells[kLastWord]),
                    .cells = cells};
    if (!has_times || is_closed(plus(session.last_ns, shape_.size_ns))) {
      ++late_;
      continue;
    }
    join(sessions_[with_number(key, 0)], std::move(session));
  }
}

// With those that are near enough, which become one.
void Sessions::join(OfKey& sessions, Session session) {
  const auto is_before = [this](const Session& each, const Session& other) {
    return plus(each.last_ns, shape_.size_ns) < other.first_ns;
  };
  const auto begin = std::partition_point(
      sessions.begin(), sessions.end(), [&](const auto& each) { return is_before(each, session); });
  auto end = begin;
  while (end != sessions.end() && !is_before(session, *end)) {
    group_.merge(session.cells, end->cells);
    session.first_ns = std::min(session.first_ns, end->first_ns);
    session.last_ns = std::max(session.last_ns, end->last_ns);
    session.version = std::max(session.version, end->version);
    ++end;
  }
  if (begin == end && rows_ == shape_.rows_max) {
    ++dropped_;
    return;
  }
  rows_ = rows_ + 1 - static_cast<size_t>(end - begin);
  if (begin == end) {
    sessions.insert(begin, std::move(session));
    return;
  }
  *begin = std::move(session);
  sessions.erase(begin + 1, end);
}

void Sessions::give_one(const aggregate::Key& key, Session& session, ByVersion& given) const {
  session.has_changed = false;
  ++session.version;
  const auto found = given.try_emplace(session.version, Given{.begin_ns = session.first_ns,
                                                              .end_ns = session.last_ns,
                                                              .version = session.version,
                                                              .is_over = true,
                                                              .table = aggregate::Table(schema_)});
  Given& all = found.first->second;
  all.begin_ns = std::min(all.begin_ns, session.first_ns);
  all.end_ns = std::max(all.end_ns, session.last_ns);
  all.is_over = all.is_over && is_over(session);
  all.table.add(with_number(key, session.first_ns), session.cells);
}

void Sessions::give_some(const aggregate::Key& key, OfKey& sessions, bool all,
                         ByVersion& given) const {
  for (Session& session : sessions) {
    const bool is_wanted = session.has_changed && (all || is_over(session));
    if (is_wanted) give_one(key, session, given);
  }
}

std::vector<Given> Sessions::give() {
  ByVersion given;
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    give_some(at->first, at->second, false, given);
    rows_ -= std::erase_if(at->second, [this](const Session& each) { return is_done(each); });
    at = at->second.empty() ? sessions_.erase(at) : std::next(at);
  }
  return in_order(std::move(given));
}

std::vector<Given> Sessions::finish() {
  ByVersion given;
  for (auto& [key, sessions] : sessions_)
    give_some(key, sessions, true, given);
  return in_order(std::move(given));
}

}  // namespace clew::stream
