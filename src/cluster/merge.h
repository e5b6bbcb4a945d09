// SPDX-License-Identifier: Apache-2.0
// What the root makes of the partials of one query: the tables of panes, each counted once. It
// knows no bus and no clock.
//
// A pane is due when every node that counts it has closed it, or when it is late. What comes for a
// pane that was given already gives it again, whole, with a higher version; where panes are given
// once (Gives::Windows, Gives::Events), it goes with the next one.
//
// Of single events a pane has so many bytes; what a node has sent beyond that is left out, as if it
// had not been counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregate/table.h"
#include "base/error.h"
#include "cluster/chunks.h"
#include "cluster/message.h"
#include "cluster/pane_set.h"
#include "cluster/store.h"
#include "collect/losses.h"

namespace clew::cluster {

struct PaneTable {
  Pane pane = 0;
  uint64_t version = 1;
  const aggregate::Table* table = nullptr;  // Of the merge, until it is asked for more.
};

class Merge {
 public:
  static constexpr size_t kMembersMax = 100'000;
  static constexpr size_t kEventBytesMax = size_t{32} << 20;  // Of a pane.
  static constexpr size_t kEventBytesKept = size_t{8} << 20;  // Of all that were given.

  explicit Merge(Gives gives = Gives::Panes) : gives_(gives) {}
  // Nothing was given yet.
  void set_gives(Gives gives);

  // One chunk of a partial, which has that sequence in the log. True: something was merged.
  // InvalidQuery: its table is not like the others. Io: it makes no sense. Limit: too many nodes.
  // What was merged before is left out silently. A node's partials come in the order of their
  // panes; where some are missing between, what is too far behind these is left out, too, and has
  // to come again with them.
  Expected<bool> add(const Partial& partial, uint64_t sequence);
  // The first entry of the log that is a part of what is not whole yet.
  [[nodiscard]] std::optional<uint64_t> first_needed() const;
  // The same, or of a pane behind this one; none: of any.
  [[nodiscard]] std::optional<uint64_t> first_needed_behind(std::optional<Pane> pane) const;
  // What the node says, and we have all of it: this pane and those before it are over.
  void close(const std::string& node, const Incarnation& incarnation, Pane pane);
  // This one and all before it have come; none: nothing has.
  [[nodiscard]] Pane mark(const std::string& node, const Incarnation& incarnation) const;
  // The node says that this pane and those before it are safe with some root. Those of them that we
  // lack come no more, and are in take_elsewhere().
  void note_safe(const std::string& node, const Incarnation& incarnation, Pane safe);
  // It counts. False: that is known.
  bool begin(const std::string& node, const Incarnation& incarnation);
  // It counts no more, and all that it has counted was sent.
  void finish(const std::string& node, const Incarnation& incarnation);

  // The log was lost: nothing of it is known any more.
  void log_began_anew();

  // Panes with a table above the last one given; they ascend.
  [[nodiscard]] std::vector<Pane> open() const;
  // Those with a table that were given; they ascend.
  [[nodiscard]] std::vector<PaneTable> given() const;
  // Something came for one that was given.
  [[nodiscard]] bool has_corrections() const;
  // Gives what is due up to this one, and corrections, in the order of panes.
  std::vector<PaneTable> take_due(Pane up_to);
  // All panes, as one.
  [[nodiscard]] const std::optional<aggregate::Table>& total() const { return total_; }
  // Puts what has changed since saved() into the store's next commit.
  void save(Store& store, const std::string& query) const;
  void saved();
  // What a root before had merged. Panes that it gave are given again, as they were, but for those
  // whose tables cannot be read. Once, at first. Errors: what has no pane cannot be read.
  Expected<void> restore(const StoredAnswer& stored);
  [[nodiscard]] const std::vector<Pane>& unreadable() const { return unreadable_; }

  // What a root without a store leaves to the next one, of what was given up to this pane.
  [[nodiscard]] std::vector<MemberMark> marks(Pane given) const;
  // The same, of a root before. Once, at first.
  void go_on(const Marks& marks);
  // One of these: what it has of this life is not merged here, and comes no more.
  void adopt(const MemberMark& mark);
  // What a root before has merged is in its store, which is not here. `marks`: the lives of nodes
  // that it knew; null: nobody knows them. Once, at first.
  void go_on_without_store(const Marks* marks);
  // The same, where not even the query's keys are here: nodes begin anew.
  void begin_without_store(const Marks* marks);

  // Whether a node that comes now may have had lives that a root before us knew and we do not: its
  // keys may be older than it was.
  void expect_strangers(bool are_expected) { expects_strangers_ = are_expected; }

  // Forgets all tables of given panes but so many; corrections of them come no more.
  void keep(size_t panes);
  // Forgets lives whose panes are all far before this one, and which have gone; they are returned.
  // What comes of such a life all the same, or of one that nobody knew, is left out and counted.
  std::vector<std::pair<std::string, Incarnation>> forget_members(
      Pane before, const std::function<bool(const std::string&, const Incarnation&)>& is_gone);

  // Up to where the panes of each of a node's lives were merged when it was saved last.
  [[nodiscard]] std::vector<std::pair<Incarnation, Pane>> safe(const std::string& node) const;
  // What a node should have counted and nobody has: from where one life of it ends to where the
  // next one begins, and up to `given`, behind the last one of those of whom `is_gone`. Of the pane
  // in which a node was armed it has a part.
  [[nodiscard]] std::vector<NodeGap> gaps(
      Pane given, const std::function<bool(const std::string&, const Incarnation&)>& is_gone) const;
  // What may be in the store of a root before (go_on_without_store()), or lost with lives that
  // nobody knows any more: from kNoPane to where what we have of a node begins. Of some node, where
  // nobody knows whose lives there were: up to `known_behind`.
  [[nodiscard]] std::vector<NodeGap> unsure(Pane known_behind) const;
  // Which lives of nodes are known: another number whenever one begins or is forgotten.
  [[nodiscard]] uint64_t lives() const { return lives_; }
  // Of all nodes, as each has said last.
  [[nodiscard]] collect::Losses losses() const;
  // Partials of panes that were forgotten: they are in the total alone.
  [[nodiscard]] uint64_t late() const { return late_; }
  // Partials that were left out, since the last time.
  std::vector<NodeGap> take_left_out() { return std::exchange(left_out_, {}); }
  // What a root before has of nodes and we have not, since the last time; from kNoPane where it is
  // not known when the node began.
  std::vector<NodeGap> take_elsewhere() { return std::exchange(elsewhere_, {}); }
  // Partials that came once more.
  [[nodiscard]] uint64_t repeated() const { return repeated_; }

 private:
  using Who = std::pair<std::string, Incarnation>;
  struct Member {
    PaneSet merged;
    Pane first = PaneSet::kNone;  // That was merged.
    Pane safe = PaneSet::kNone;
    std::map<Pane, Pane> previous{};  // Of merged ones above the mark: Partial::previous.
    std::optional<Pane> open{};       // Of which some parts have come,
    Joiner parts{};                   // these,
    uint64_t first_part = 0;          // from this entry on.
    std::optional<collect::Losses> losses;
    bool is_changed = false;
    bool was_there = false;            // A root before has known it, whose store is not here,
    bool is_stranger = false;          // or may have known one before it.
    std::optional<PaneRange> taken{};  // By roots before that had no store, and given.
  };
  struct Open {
    aggregate::Table table;
    uint64_t first = 0;    // Entry of the log.
    uint64_t version = 0;  // That was given.
    bool has_news = true;
    bool is_changed = true;
    size_t bytes = 0;  // Of partials.
  };

  [[nodiscard]] static bool has_place(const Member& member, const Partial& partial);
  static void follow(Member& member, const Partial& partial);
  Expected<void> merge(Member& member, const Partial& partial, const Bytes& bytes);
  Expected<void> add_to_total(const aggregate::Table& table);
  Expected<void> add_to_pane(Pane pane, aggregate::Table table, uint64_t first, size_t bytes);
  [[nodiscard]] Pane pane_for(Pane pane) const;
  [[nodiscard]] bool has_room(Pane pane, size_t bytes) const;
  [[nodiscard]] size_t kept_bytes() const;
  static Expected<std::optional<Bytes>> join(Member& member, const Partial& partial,
                                             uint64_t sequence);

  Gives gives_;
  bool lacks_store_ = false;  // Of a root before,
  bool knows_lives_ = false;  // and which lives that has known.
  bool begins_anew_ = false;  // Of the first pane of each life a part is missing.
  bool expects_strangers_ = false;
  [[nodiscard]] Member& member_of(const Who& who);
  std::map<Who, Member> members_;
  uint64_t lives_ = 0;
  std::map<Pane, Open> panes_;
  std::optional<aggregate::Table> total_;  // Of single events without rows.
  bool is_total_changed_ = false;
  std::optional<Pane> given_;
  std::optional<Pane> forgotten_;
  std::optional<Pane> gone_;  // Up to here members may be forgotten.
  uint64_t late_ = 0;
  uint64_t repeated_ = 0;
  std::vector<NodeGap> left_out_;
  std::vector<NodeGap> elsewhere_;
  std::vector<Pane> unreadable_;  // Of the store. They ascend.
};

}  // namespace clew::cluster
