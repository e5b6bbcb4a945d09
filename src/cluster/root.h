// SPDX-License-Identifier: Apache-2.0
// The root: owns the answers of a tenant's queries. It hears who asks, tells the nodes what is
// wanted, merges their partials pane by pane (merge.h), and tells the rows to whoever listens. One
// leads at a time: by a key, which it renews; the next takes over when it is not renewed.
//
// One thread calls all functions. It waits for the bus's descriptor and for next_ns().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/bus.h"
#include "cluster/clock.h"
#include "cluster/given_panes.h"
#include "cluster/merge.h"
#include "cluster/message.h"
#include "cluster/node_gaps.h"
#include "cluster/roles.h"
#include "cluster/row_queue.h"
#include "cluster/signing.h"
#include "cluster/store.h"
#include "cluster/subjects.h"
#include "stream/pane.h"

namespace clew::cluster {

struct RootOptions {
  std::string name{};  // Of this root, among those that may lead.
  std::string tenant = "default";
  int64_t late_ns = 5 * kSecond;      // A pane waits no longer for a node.
  int64_t silent_ns = 3 * kSecond;    // A node that has not beaten for so long is not waited for,
  int64_t asker_ns = 10 * kSecond;    // a query whose asker was not heard for so long ends,
  int64_t takeover_ns = 5 * kSecond;  // and a root that has not renewed its key has gone.
  uint64_t lease_ns = 30 * kSecond;   // Nodes take probes out when no root answers for so long.
  uint64_t log_bytes_max = uint64_t{1} << 30;
  int64_t keep_ns = 0;            // What ended so long ago goes from the store; 0: nothing does.
  uint64_t keep_bytes = 0;        // The store is to have no more; 0: it may.
  const Roles* roles = nullptr;   // Borrowed. Null: whoever may speak to it may ask all.
  GivenPanes* exports = nullptr;  // Borrowed. Null: only those who ask get rows.
};

inline constexpr size_t kPanesKept = 256;  // So many given ones may be corrected.

// Whether a node in this state may count on.
inline bool counts(NodeState state) {
  return state == NodeState::Armed || state == NodeState::Draining;
}

// For people, on one line.
[[nodiscard]] std::string refused_text(const std::vector<Refusal>& refusals);

inline stream::Panes panes_of(const Control& want) {
  return {.epoch_ns = want.epoch_ns, .width_ns = want.width_ns};
}

class Root {
 public:
  // All are borrowed. Without a store what it has merged ends with it.
  Root(Bus& bus, const Clock& clock, RootOptions options, Store* store = nullptr);

  Expected<void> begin();
  void turn();
  [[nodiscard]] int64_t next_ns() const;
  [[nodiscard]] int descriptor() const { return bus_.descriptor(); }
  [[nodiscard]] bool leads() const { return leads_; }
  // As its asker would end it, if that could be heard.
  void end(const std::string& query);
  // Another root may lead at once.
  Expected<void> leave();
  // Why it cannot lead, as it was told last; empty: it can, or another one does.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // One that has a store is waited for, for longer than for others.
  void wait_for_store(int64_t patience_ns) { patience_ns_ = patience_ns; }
  // For Prometheus.
  [[nodiscard]] std::string metrics() const;
  // What happened, in words, since the last time: for people.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  struct Member {
    Beat last;
    Incarnation before{};  // The life that was heard before this one.
    int64_t heard_ns = 0;
  };
  // What is with whoever asked, where there is no store.
  struct Had {
    uint64_t row = 0;  // Up to this one of ours.
    Pane given = kNoPane;
    std::vector<MemberMark> members{};
    uint64_t read = 0;  // The log, up to here.
  };
  struct Asked {
    Control want;
    std::string as{};  // Our name for who asks: each time we take it up its rows are from 1.
    bool is_announced = true;  // Nodes can know it.
    Phase phase = Phase::Installing;
    std::string reason{};          // Of its failure.
    int64_t install_ns = kSecond;  // A query waits no longer for a node.
    int64_t begun_ns = 0;
    int64_t asker_heard_ns = 0;
    int64_t said_ns = 0;     // When the last that was heard of who asked was signed.
    int64_t drained_ns = 0;  // No node is waited for any longer.
    int64_t ended_ns = 0;
    std::string answered{};                          // NodeQuery::answered, of who was armed first,
    Digest schema{};                                 // and of its table.
    std::map<std::string, NodeQuery> nodes{};        // As they have said last.
    std::map<std::string, Incarnation> lives{};      // Who said that.
    std::map<std::string, std::string> strangers{};  // Nodes whose tables are others, and why.
    Merge merge{};
    std::optional<Pane> begun{};  // The first that was given.
    std::optional<Pane> given{};
    std::deque<Had> unheard{};   // Was sent,
    std::optional<Had> heard{};  // has come, which the next root is to know,
    std::optional<Had> told{};   // and can know.
    uint64_t told_lives = 0;     // Merge::lives(), as the key has them.
    bool is_unreadable = false;  // What the store has of it, which stays there as it is.
    bool lacks_store = false;    // What a root before has merged is in its store, which is away.
    std::optional<Phase> stored_phase{};
    bool is_answered_stored = false;
    bool has_merged = false;       // Since the last commit.
    std::vector<RowUpdate> out{};  // Rows to be told behind it.
    std::map<Pane, bool> fresh{};  // The same panes to be exported: whether they were.
    std::optional<Pane> exported{};
    RowQueue rows{};
    std::vector<std::string> lost{};
    // By lives of nodes that have ended, as a store has it, and what the merge had no room for.
    std::vector<NodeGap> dropped{};
    GapsCut cut{};         // Of these, what were too many.
    bool has_news = true;  // For the asker.
  };

  // Leading.
  void lead();
  Expected<void> take_over();
  Expected<void> find_wanted();
  void give_back(const Error& why);
  void look_at_want();
  [[nodiscard]] bool has_stored_queries();
  Asked& add(const Control& want);
  Expected<void> go_on(Asked& asked);
  [[nodiscard]] bool needs_open(const Asked& asked) const;
  [[nodiscard]] bool are_lives_told(const Asked& asked) const;
  [[nodiscard]] std::optional<uint64_t> first_needed(const Asked& asked) const;
  [[nodiscard]] Had had_now(const Asked& asked) const;
  void note_sent(Asked& asked, bool has_rows) const;
  static void note_heard(Asked& asked, uint64_t row);
  void forget_read_behind(uint64_t last);
  void put_marks();
  [[nodiscard]] Marks marks_to_tell(const Asked& asked) const;
  void note_put(const Expected<uint64_t>& revision);
  [[nodiscard]] Expected<std::optional<Marks>> marks_of(const Control& want);
  static void name_what_another_took(Asked& asked, const std::optional<Marks>& marks);
  Expected<void> restore(const StoredAnswer& stored, const std::optional<Marks>& marks);
  Expected<void> restore_all();
  void give_up(const std::string& query, const std::string& why);
  void commit();
  Expected<void> write();
  [[nodiscard]] bool is_listened_to(const Asked& asked) const;
  void send_rows(Asked& asked);
  void hand_over(Asked& asked);
  bool store_exported(Asked& asked);
  void end_exports();
  void forget();
  Expected<void> forget_old();
  Expected<void> forget_members();
  Expected<void> forget_most();
  // Messages.
  void hear(const Message& message);
  void ask(const Ask& said);
  bool recall(const Ask& said);
  Expected<uint64_t> revision_for(const Ask& said);
  void reply(const Read& read);
  void add_safe(const Asked& asked, const std::string& node, std::vector<SafePanes>& safe) const;
  [[nodiscard]] Expected<AnswerList> list_answers() const;
  [[nodiscard]] Expected<AnswerPart> part_of_answer(const Read& read) const;
  [[nodiscard]] Expected<void> check_who(const Ask& said);
  void renew(Asked& asked, const Ask& said);
  [[nodiscard]] std::string shown_asker(const Ask& said) const;
  void refuse(const Ask& said, const std::string& reason);
  void beat(const Message& message, const Beat& said);
  void note_unread(const Message& message, const Error& why);
  void note_life(Member& member, const Beat& said);
  void begin_life(const Beat& said);
  void report(Asked& asked, const Beat& said, const NodeQuery& one);
  static void give_events(Asked& asked);
  static void keep_missing(Asked& asked);
  bool read_partials();
  void follow_log();
  Expected<LogEnds> look_at_log();
  void read_anew();
  void ask_again(const std::string& node, const std::string& query, const PaneRange& panes);
  void take_beats();
  [[nodiscard]] bool is_ahead(const Beat& said) const;
  void keep_lost(const std::string& node);
  void tell_unreadable(Asked& asked);
  void take(const Entry& entry);
  [[nodiscard]] bool is_near(const Asked& asked, Pane pane) const;
  [[nodiscard]] bool is_far_ahead(const Asked& asked, Pane pane) const;
  // Queries.
  Expected<void> announce();
  Expected<void> put(std::string_view key, const Bytes& bytes);
  void install(Asked& asked);
  void end(Asked& asked);
  void give(Asked& asked);
  void give(Asked& asked, Pane up_to);
  struct Given {
    Pane pane = 0;
    uint64_t version = 1;
    bool is_final = false;
    bool lacks_nodes = false;
  };
  void give(Asked& asked, const aggregate::Table& table, const Given& what);
  void finish(Asked& asked);
  void name_unsent(Asked& asked) const;
  void tell(Asked& asked);
  [[nodiscard]] Status status_of(const Asked& asked) const;
  [[nodiscard]] std::vector<std::string> labels_there() const;
  [[nodiscard]] std::vector<std::string> skewed(const Asked& asked) const;
  std::vector<NodeGap> gaps_of(const Asked& asked, GapsCut& cut) const;
  std::vector<NodeGap> lasting_gaps_of(const Asked& asked, GapsCut& cut) const;
  [[nodiscard]] Pane known_behind(const Asked& asked) const;
  [[nodiscard]] Pane last_unheard(const Asked& asked) const;
  static std::vector<NodeGap> dropped_of(const Asked& asked, GapsCut& cut);
  [[nodiscard]] Pane closed_by_all(const Asked& asked) const;
  [[nodiscard]] bool is_alive(const Member& member) const;
  [[nodiscard]] Control greeting() const;
  void tell_problem(const Error& error);
  void stand_by(const Expected<Leader>& leader);
  void tell_forger(const std::string& subject, const std::string& node);

  Bus& bus_;
  const Clock& clock_;
  RootOptions options_;
  Store* store_;
  Subjects subjects_;
  int64_t offset_ns_;
  bool leads_ = false;
  int64_t leads_since_ns_ = 0;    // As the time of day.
  uint64_t put_revision_ = 0;     // Of the last key that was put.
  uint64_t led_revision_ = 0;     // Of the key of who leads, as we put it last.
  uint64_t leader_revision_ = 0;  // As it was seen last,
  int64_t patience_ns_ = 0;
  int64_t leader_seen_ns_ = 0;  // and when it was seen to change.
  int64_t renewed_ns_ = 0;      // By us.
  int64_t next_lead_ns_ = 0;
  // Behind a root that has gone: who is there has said so by then.
  int64_t settled_ns_ = 0;
  uint64_t want_revision_ = 0;
  int64_t next_announce_ns_ = 0;
  std::map<std::string, Asked> asked_;     // By query.
  std::map<std::string, Member> members_;  // By node.
  std::map<std::string, Beat> beats_;      // By node: to be looked at behind the log.
  uint64_t log_ = 0;                       // Which one it is,
  uint64_t told_log_ = 0;                  // and as which nodes know it.
  std::set<std::string> passed_by_;        // Queries with entries there that were not known.
  uint64_t read_ = 0;                      // Up to here the log was read.
  bool has_partials_ = true;
  int64_t next_read_ns_ = 0;  // Where what was sent is not there yet.
  uint64_t forgotten_ = 0;    // Up to here the log is forgotten.
  int64_t next_commit_ns_ = 0;
  int64_t next_forget_ns_ = 0;
  bool is_unsafe_ = false;  // The store fails.
  std::string keeps_all_;   // Why it forgets nothing, as it was told last.
  std::string forger_;      // The same,
  std::string refused_;     // and who was refused what.
  std::string problem_;
  std::string stands_by_;  // Which root leads.
  Ended ended_;
  int64_t next_tell_ns_ = 0;
  std::vector<std::string> notes_;
  std::map<std::string, std::string> unread_;  // By node, whose beats cannot be read: why.
};

}  // namespace clew::cluster
