// SPDX-License-Identifier: Apache-2.0
// For tests of joins by cause: events that are written down, in threads that are invented.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregate/value.h"
#include "answer/join_tally.h"
#include "answer/joins.h"
#include "answer/row_batch.h"
#include "plan/joined.h"
#include "plan/plan.h"

namespace clew::answer {

// What an event exports.
using Exports = std::map<std::string, aggregate::Value>;
using Strings = std::vector<std::string>;

class Scene {
 public:
  using Rewrite = std::function<query::Query(query::Query)>;
  explicit Scene(const std::string& text, JoinLimits limits = {}, const Rewrite& rewrite = {});
  // Counts what it carries, from now on: before the first event.
  JoinTally& count();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void begin(int64_t tid) { carry(tid, "begin", 0); }
  void end(int64_t tid) { carry(tid, "end", 0); }
  void put(int64_t tid, int64_t key) { carry(tid, "put", key); }
  void take(int64_t tid, int64_t key) { carry(tid, "take", key); }
  void join(int64_t tid, int64_t key) { carry(tid, "join", key); }
  // A take that is known by a heuristic.
  void guess(int64_t tid, int64_t key) { carry(tid, "guess", key); }
  // `from` hands over to `to`, which goes on beside it.
  void branch(int64_t from, int64_t to);
  // An event of a tracepoint or function in this thread, if the query asks for it.
  void hit(int64_t tid, const std::string& name, const Exports& exports = {});
  // So many events of a source in one batch, whose joined rows are taken away as they come.
  void hit_at_once(int64_t tid, const std::string& name, size_t count);
  // Some events are lost beside so many.
  void lose(size_t events);

  // The answer.
  Strings lines();
  // From here on; what has happened before stays.
  void forget();
  [[nodiscard]] JoinCounts counts() const { return joins_->counts(); }
  [[nodiscard]] const plan::Joined& joined() const { return joined_; }
  // The query, as it prints.
  [[nodiscard]] const std::string& printed() const { return printed_; }

 private:
  [[nodiscard]] std::optional<size_t> source_of(const std::string& name) const;
  [[nodiscard]] std::vector<aggregate::Value> empty_row(size_t source, int64_t tid) const;
  void carry(int64_t tid, const std::string& function, int64_t key);
  void give(const std::vector<aggregate::Value>& row);

  std::string printed_;
  plan::Joined joined_;
  std::optional<JoinTally> tally_;
  std::unique_ptr<Joins> joins_;
  plan::Plan plan_;
  std::optional<RowBatch> rows_;
};

}  // namespace clew::answer
