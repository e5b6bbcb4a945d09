// SPDX-License-Identifier: Apache-2.0
// A node: one machine's agent. It hears what is wanted, runs a session for each query, and sends
// what these count, pane by pane, to the log of partials, from which a root merges it. Nothing that
// it has counted is given up before a root says that it is safe, but for what the losses name.
//
//     offered -> armed -> draining -> closed          a query that is wanted, and then no more
//             -> refused                              with the reason, which the root shows
//                armed -> expired                     no root has answered for the lease
//                armed -> lost                        its session has gone
//
// What has expired or was lost is begun again; which panes nobody counted meanwhile is named.
//
// One thread calls all functions. It waits for the descriptors and for next_ns().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "base/error.h"
#include "cluster/bus.h"
#include "cluster/clock.h"
#include "cluster/message.h"
#include "cluster/node_session.h"
#include "cluster/outbox.h"
#include "cluster/roles.h"
#include "cluster/signing.h"
#include "cluster/spill_folder.h"
#include "cluster/subjects.h"

namespace clew::cluster {

inline constexpr size_t kQueriesMax = 64;

struct NodeOptions {
  std::string name;  // A word of subjects.
  std::string tenant = "default";
  std::map<std::string, std::string> labels{};
  std::string version{};  // Of clew.
  Incarnation incarnation{};
  size_t spill_bytes_max = size_t{16} << 20;  // Of each query.
  const Roles* roles = nullptr;  // Borrowed. Null: whoever may speak to it may ask all.
};

class Node {
 public:
  // All are borrowed. `spill`: where what does not fit into memory goes; null: it is dropped.
  Node(Bus& bus, NodeSessions& sessions, const Clock& clock, NodeOptions options,
       SpillFolder* spill = nullptr);

  // Listens, and says that it is there. Errors: the bus refuses it.
  Expected<void> begin();
  // Does what there is to do by now.
  void turn();
  // The next turn is due then (CLOCK_MONOTONIC), or when a descriptor is readable.
  [[nodiscard]] int64_t next_ns() const;
  void add_descriptors(std::vector<pollfd>& descriptors) const;

  // All sessions end, and what they counted goes out.
  void stop();
  // No session runs, and all that was counted was sent.
  [[nodiscard]] bool is_done() const;

  // Why it cannot go on: it is to be stopped.
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

  // Behind the last turn: what could not be sent is left for the next node with this folder.
  void leave();
  // What happened, in words, since the last time: for people.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  struct Task {
    Control want;                          // With the newest signature.
    std::unique_ptr<NodeSession> session;  // Null: none runs.
    std::optional<Role> role{};            // As it was when this was begun.
    NodeQuery said{};
    std::string answered{};        // NodeQuery::answered,
    bool is_answered_new = false;  // which the root has not heard.
    Outbox outbox;
    Pane taken = std::numeric_limits<Pane>::min();  // The last pane that the session gave.
    bool is_wanted = true;
    bool is_wanted_again = false;    // It was ended, and was meant to go on.
    std::optional<Pane> ended_in{};  // Until the next session has begun: of the one before.
    int64_t armed_ns = 0;
    int64_t ended_ns = 0;
    int64_t pause_ns = 0;  // Before a session that was lost is begun again.
  };
  // Of a query and a revision whose task is forgotten.
  struct Counted {
    Pane taken = kNoPane;  // Task::taken,
    Pane safe = kNoPane;   // and Spill::safe().
  };
  // What a node with our name and our folder had counted before us.
  struct Heritage {
    Outbox outbox;
    int64_t sent_ns = 0;   // When all of it was; 0: it was not.
    int64_t again_ns = 0;  // When that was done last.
  };

  Expected<void> inherit();
  void look_at_bus();
  void look_for_root();
  void hear(const Message& message);
  void hear(const Again& again);
  void forget(const SafePanes& safe);
  void control(const Control& heard);
  void note_namesake(const Incarnation& other);
  void greet(const Control& heard);
  void read_want();
  void send_all_again();
  void send_again(const std::vector<PaneRange>& panes, const Again* of);
  void apply(const Control& want);
  void resume(Task& task);
  void arm(Task& task);
  [[nodiscard]] Expected<std::optional<Role>> role_of(const Control& want);
  void renew(Task& task, const Control& want);
  [[nodiscard]] std::string why_over(const Task& task) const;
  void end(Task& task);
  void take(Task& task);
  void take(Task& task, Frame& frame);
  void close(Task& task, const std::string& why);
  void send_all();
  void send(Task& task, int64_t until_ns);
  void send(Heritage& one, int64_t until_ns);
  void add_heritage(Beat& said) const;
  void tell_refusal(const Error& error);
  void beat();
  void tell_problem(const std::string& about, const Error& error);
  void complain(const std::string& about, const std::string& problem);
  void expire();
  void rearm();
  [[nodiscard]] bool may_begin_again(const Task& task) const;
  void forget_closed();

  Bus& bus_;
  NodeSessions& sessions_;
  const Clock& clock_;
  NodeOptions options_;
  SpillFolder* spill_;
  Subjects subjects_;
  int64_t offset_ns_;  // Of the panes' clock, for the node's life.
  uint64_t want_revision_ = 0;
  uint64_t log_ = 0;
  bool is_want_known_ = false;
  std::map<std::string, Task> tasks_;  // By query.
  std::map<std::pair<std::string, uint64_t>, Counted> counted_;
  std::vector<Heritage> heritage_;
  size_t next_sender_ = 0;  // Of tasks, and behind these of heritage.
  int64_t next_beat_ns_ = 0;
  int64_t next_read_ns_ = 0;  // Of what is wanted, where that is not known.
  int64_t heard_ns_;          // When a root answered last.
  int64_t reached_ns_ = 0;    // When the bus was reached again.
  bool has_root_ = true;      // As it was told last; at first nobody is told.
  int64_t root_offset_ns_ = 0;
  bool was_connected_ = false;
  bool wants_beat_ = true;
  Ended ended_;
  Incarnation namesake_{};   // Of another node of our name,
  int64_t namesake_ns_ = 0;  // and since when it is heard of.
  std::optional<Error> problem_;
  std::string refusal_;  // By the server, as it was told last.
  std::vector<std::string> notes_;
  std::map<std::string, std::string> complaints_;  // What goes wrong at present, as it was told.
};

}  // namespace clew::cluster
