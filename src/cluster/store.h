// SPDX-License-Identifier: Apache-2.0
// What a root knows, in a file that outlives it: which partials are merged, and into what. All that
// one commit() writes is there, or none of it, whatever happens to the root or its machine; only
// behind it nodes may forget. Whichever function says an error, nothing is there of what was put
// since the last commit. One thread calls all functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/message.h"

namespace clew::cluster {

struct StoredQuery {
  Control want;
  Phase phase = Phase::Installing;
  std::string answered{};
  Digest schema{};
  std::vector<std::string> lost{};  // In words, without line ends.
  std::vector<NodeGap> dropped{};   // What nodes had no room to keep.
  std::string refused{};            // Why nodes do not answer, for people.
  std::optional<Pane> begun{};      // The first pane that was given,
  std::optional<Pane> given{};      // and the last one.
};

// What is needed to say what of a query may go.
struct StoredSpan {
  Control want;  // If its row cannot be read, only the query's name.
  bool is_readable = true;
  Phase phase = Phase::Installing;
  std::optional<Pane> given{};
  std::optional<Pane> first{};  // That is kept.
};

struct StoredPane {
  Pane pane = 0;
  uint64_t version = 1;  // As which it was given, or is to be given.
  Bytes table;           // aggregate/table_bytes.h
};

struct StoredMember {
  std::string node;
  Incarnation incarnation;
  Pane first = 0;  // That was merged.
  Pane mark = 0;
  uint64_t bits = 0;  // PaneSet
  Bytes losses;       // A table without rows.
};

struct StoredAnswer {
  StoredQuery query;
  std::vector<StoredPane> panes{};      // They ascend.
  std::optional<Pane> left_out{};       // This one, and those before it.
  std::optional<Bytes> total{};         // Of all panes, also of those that are not kept.
  std::vector<StoredMember> members{};  // By node and incarnation.
  std::optional<Pane> exported{};       // Up to here (given_panes.h).
  std::optional<Pane> forgotten{};      // Up to here panes have gone.
};

class Store {
  class Database;

 public:
  // The file is made, if there is none. Refused: it is another program's, or another root has it
  // open. Io: the system says no.
  static Expected<std::unique_ptr<Store>> open(const std::string& directory);
  // For who only reads, beside a root that writes. NotFound: there is none.
  static Expected<std::unique_ptr<Store>> open_to_read(const std::string& directory);
  explicit Store(std::unique_ptr<Database> database);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  // With so many of the last panes that were given, and all behind them. NotFound: there is no such
  // query. Here and below Refused: its row is damaged, or of another version.
  Expected<StoredAnswer> read_recent(const std::string& query, size_t panes);
  // All but the panes. NotFound: there is no such query.
  Expected<StoredAnswer> read_head(const std::string& query);
  // Those that were given; none: no pane was.
  Expected<std::optional<PaneRange>> given_panes(const StoredQuery& query);
  // Some of these, in order: until they have so many bytes, and at least one.
  Expected<std::vector<StoredPane>> read_panes(const std::string& query, const PaneRange& range,
                                               size_t bytes);
  // A query whose row cannot be read has failed, and says so in AnswerSummary::refused.
  Expected<std::vector<AnswerSummary>> list();
  // Also of those whose row cannot be read.
  Expected<std::vector<StoredSpan>> spans();
  // What is in use.
  Expected<uint64_t> bytes();

  // Takes part in the next commit. What goes wrong is said there.
  void put(const StoredQuery& query);
  void put(const std::string& query, const StoredPane& pane);
  void put_total(const std::string& query, const Bytes& table);
  void put(const std::string& query, const StoredMember& member);
  void put_exported(const std::string& query, Pane pane);
  // Of panes that were given those before this one, oldest first, but no more than `most`; how many
  // went.
  Expected<size_t> forget(const std::string& query, Pane before, size_t most);
  void forget(const std::string& query, const std::string& node, const Incarnation& life);
  void forget_query(const std::string& query);
  // Behind a commit: gives some of what is free back to the file system.
  Expected<void> shrink();
  // Errors: what was put since the last one can be put again.
  Expected<void> commit();

 private:
  std::unique_ptr<Database> database_;
};

}  // namespace clew::cluster
