// SPDX-License-Identifier: Apache-2.0
// Whoever asks a cluster: says to the root what is wanted, again and again, and takes the rows.
// Panes come in any order and may come again, with a higher version.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregate/table.h"
#include "base/error.h"
#include "cluster/bus.h"
#include "cluster/chunks.h"
#include "cluster/clock.h"
#include "cluster/message.h"
#include "cluster/signing.h"
#include "cluster/subjects.h"

namespace clew::cluster {

struct AnsweredPane {
  Pane pane = 0;
  uint64_t version = 1;
  bool is_final = false;  // Of all panes, where those are not given.
  bool lacks_nodes = false;
  aggregate::Table table;
};

class Asker {
 public:
  // All are borrowed. `question`: its query is a word that nobody else has. `key`: null, or to sign
  // with.
  Asker(Bus& bus, const Clock& clock, const std::string& tenant, Ask question,
        const SigningKey* key = nullptr);

  Expected<void> begin();
  void turn();
  [[nodiscard]] int64_t next_ns() const { return next_ask_ns_; }
  [[nodiscard]] int descriptor() const { return bus_.descriptor(); }
  // No more is wanted; what was counted so far still comes.
  void end();

  [[nodiscard]] const std::string& query() const { return question_.query; }
  [[nodiscard]] const std::string& name() const { return question_.asker; }
  // What the root has said last; none: no root was heard.
  [[nodiscard]] const std::optional<Status>& status() const { return status_; }
  // What is missing of whom, as far as a root has said so.
  [[nodiscard]] std::vector<NodeGap> gaps() const;
  // What may be missing, behind a root whose store is away. Without a name: of some node.
  [[nodiscard]] std::vector<NodeGap> unsure() const;
  // For how long the root was not heard, at least.
  [[nodiscard]] int64_t silent_ns() const { return clock_.monotonic_ns() - heard_ns_; }
  // Panes that have come since, in the order in which they were sent.
  std::vector<AnsweredPane> take() { return std::exchange(panes_, {}); }
  // The root has said that all is done, and all of it has come.
  [[nodiscard]] bool is_done() const;
  // Why what a root says cannot be understood; empty: it can be.
  [[nodiscard]] const std::string& stranger() const { return stranger_; }
  // Messages with rows that will not come.
  [[nodiscard]] uint64_t lost() const { return lost_; }

 private:
  void hear(const Message& message);
  void take(RowUpdate row);
  void take_early();
  void take_in_order(const RowUpdate& row);
  void give_up_before(uint64_t first);
  void begin_anew(const Status& said);
  void ask();
  void note_whole(const RowUpdate& row);
  void take_back(const std::vector<NodeGap>& gaps);
  [[nodiscard]] std::vector<NodeGap> without_whole(const std::vector<NodeGap>& gaps) const;

  Bus& bus_;
  const Clock& clock_;
  std::string tenant_;
  Subjects subjects_;
  Ask question_;
  const SigningKey* key_;
  std::optional<Status> status_;
  std::vector<NodeGap> earlier_gaps_;  // Of roots before, once one of them had no store.
  std::vector<NodeGap> unsure_;        // As roots before have said, and of what came from several.
  std::string stranger_;
  int64_t heard_ns_;
  std::string root_before_;  // The one that led before,
  int64_t root_ns_ = 0;      // and since when it does not.
  int64_t next_ask_ns_ = 0;
  std::map<uint64_t, RowUpdate> early_;  // By number: behind some that have not come.
  Joiner parts_;
  uint64_t lost_ = 0;
  struct Come {
    uint64_t version = 0;
    size_t hash = 0;  // Of its table.
  };
  std::map<Pane, Come> versions_;  // Of panes that have come.
  std::set<Pane> whole_;           // Those of them that lack nobody,
  std::set<Pane> whole_here_;      // and that the root that leads has given.
  bool had_no_store_ = false;      // Some root before.
  std::optional<Pane> last_come_;  // Up to here the root may have less than what has come.
  std::vector<AnsweredPane> panes_;
};

}  // namespace clew::cluster
