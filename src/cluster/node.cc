// SPDX-License-Identifier: Apache-2.0
#include "cluster/node.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cluster/digest.h"
#include "cluster/names.h"
#include "cluster/shown_query.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

constexpr int64_t kBeatPeriod = kSecond;
constexpr int64_t kRetry = kSecond / 4;
constexpr int64_t kSendTurn = kSecond / 5;
constexpr int64_t kNamesakeWait = 3 * kSecond;
constexpr int64_t kPauseMost = 60 * kSecond;

// Empty: there is none.
template <typename T>
std::string problem_of(const Expected<T>& result) {
  return result ? std::string() : result.error().message;
}

}  // namespace

Node::Node(Bus& bus, NodeSessions& sessions, const Clock& clock, NodeOptions options,
           SpillFolder* spill)
    : bus_(bus),
      sessions_(sessions),
      clock_(clock),
      options_(std::move(options)),
      spill_(spill),
      subjects_(options_.tenant),
      offset_ns_(clock.realtime_ns() - clock.monotonic_ns()),
      heard_ns_(clock.monotonic_ns()) {}

Expected<void> Node::begin() {
  for (const std::string& subject : {subjects_.control_of_all(), subjects_.control(options_.name),
                                     subjects_.again(options_.name)}) {
    CLEW_TRY(bus_.subscribe(subject));
  }
  was_connected_ = bus_.is_connected();
  CLEW_TRY(inherit());
  read_want();
  turn();
  return {};
}

void Node::turn() {
  look_at_bus();
  while (const std::optional<Message> message = bus_.next())
    hear(*message);
  look_for_root();
  if (!is_want_known_ && was_connected_ && clock_.monotonic_ns() >= next_read_ns_) read_want();
  expire();
  rearm();
  for (auto& [query, task] : tasks_)
    take(task);
  send_all();
  forget_closed();
  if (wants_beat_ || clock_.monotonic_ns() >= next_beat_ns_) beat();
}

int64_t Node::next_ns() const {
  int64_t next = next_beat_ns_;
  for (const auto& [query, task] : tasks_) {
    if (task.said.closed < task.taken) next = std::min(next, task.outbox.next_ns());
  }
  for (const Heritage& one : heritage_) {
    if (one.sent_ns == 0) next = std::min(next, one.outbox.next_ns());
  }
  return next;
}

void Node::add_descriptors(std::vector<pollfd>& descriptors) const {
  descriptors.push_back({.fd = bus_.descriptor(), .events = POLLIN, .revents = 0});
  for (const auto& [query, task] : tasks_) {
    const bool says_more = task.session != nullptr && task.session->descriptor() >= 0;
    if (says_more)
      descriptors.push_back({.fd = task.session->descriptor(), .events = POLLIN, .revents = 0});
  }
}

// --- what is wanted ------------------------------------------------------------------------------

void Node::hear(const Message& message) {
  const auto heard = read_as<Control>(message.bytes);
  const bool is_control = message.subject == subjects_.control_of_all() ||
                          message.subject == subjects_.control(options_.name);
  if (is_control) {
    complain("what a root says cannot be read; it needs the same version of clew",
             problem_of(heard));
  }
  if (heard) {
    const bool is_for_all = message.subject == subjects_.control_of_all();
    if (!is_for_all && message.subject != subjects_.control(options_.name)) return;
    return is_for_all && heard->query.empty() ? greet(*heard) : control(*heard);
  }
  if (const auto again = read_as<Again>(message.bytes)) hear(*again);
}

void Node::forget(const SafePanes& safe) {
  const auto forget = [&safe](Outbox& outbox) {
    const SpillOwner& owner = outbox.spill().owner();
    if (is_of(owner, safe.query, safe.revision) && owner.incarnation == safe.incarnation)
      outbox.spill().forget(safe.mark);
  };
  const auto task = tasks_.find(safe.query);
  if (task != tasks_.end()) forget(task->second.outbox);
  for (Heritage& one : heritage_)
    forget(one.outbox);
}

void Node::hear(const Again& again) {
  send_again(again.panes, &again);
}

// Answers to another life of this name: some to the one before us may be on their way, but not for
// long. Of two that go on the younger one ends.
void Node::note_namesake(const Incarnation& other) {
  if (other == Incarnation{} || other == options_.incarnation) return;
  const int64_t now = clock_.monotonic_ns();
  if (std::exchange(namesake_, other) != other) namesake_ns_ = now;
  if (now - namesake_ns_ < kNamesakeWait || problem_) return;
  const bool is_younger = std::tie(options_.incarnation.start_ns, options_.incarnation.boot_id) >
                          std::tie(other.start_ns, other.boot_id);
  if (!is_younger) {
    complain("another node is called so",
             fmt::format("{}, and is to have another --name", options_.name));
    return;
  }
  problem_ = Error{ErrorCode::Refused,
                   fmt::format("another node is called {}, and has been there longer: each needs a "
                               "--name of its own",
                               options_.name)};
}

void Node::control(const Control& heard) {
  note_namesake(heard.incarnation);
  if (problem_) return;
  heard_ns_ = clock_.monotonic_ns();
  if (heard.time_ns != 0) root_offset_ns_ = heard.time_ns - (heard_ns_ + offset_ns_);
  for (const SafePanes& safe : heard.safe)
    forget(safe);
  for (const std::string& query : heard.unknown) {
    const auto task = tasks_.find(query);
    if (task == tasks_.end() || task->second.answered.empty()) continue;
    task->second.is_answered_new = true;
  }
  if (heard.log != 0 && std::exchange(log_, heard.log) != heard.log) send_all_again();
  const bool is_next = is_want_known_ && heard.want_revision == want_revision_ + 1;
  const bool is_same = is_want_known_ && heard.want_revision == want_revision_;
  if (!heard.query.empty() && (is_next || is_same) && !heard.text.empty()) {
    want_revision_ = heard.want_revision;
    apply(heard);
    return;
  }
  if (!is_same) read_want();
}

// The log that had it is lost.
void Node::send_all_again() {
  wants_beat_ = true;
  send_again({kAllPanes}, nullptr);
}

// What was said of these holds no more. Null: of all queries.
void Node::send_again(const std::vector<PaneRange>& panes, const Again* of) {
  const auto is_meant = [of](const Outbox& outbox) {
    return of == nullptr || is_of(outbox.spill().owner(), of->query, of->revision);
  };
  for (auto& [query, task] : tasks_) {
    if (!is_meant(task.outbox)) continue;
    task.outbox.send_again(panes);
    if (const Spill::Kept* const first = task.outbox.spill().next())
      task.said.closed = std::min(task.said.closed, first->pane - 1);
  }
  for (Heritage& one : heritage_) {
    if (!is_meant(one.outbox)) continue;
    one.outbox.send_again(panes);
    one.sent_ns = 0;
  }
}

// A root has begun to lead, and knows nobody.
void Node::greet(const Control& heard) {
  wants_beat_ = true;
  for (auto& [query, task] : tasks_)
    task.is_answered_new = true;
  control(heard);
}

// All that is wanted, as the keys have it.
void Node::read_want() {
  is_want_known_ = false;
  next_read_ns_ = clock_.monotonic_ns() + kRetry;
  const auto found = bus_.get(bucket_of(options_.tenant), kWantKey);
  if (!found) return tell_problem("what is wanted cannot be read", found.error());
  complain("what is wanted cannot be read", "");
  // The keys are lost with a server's disk: a root puts them anew. At first there are none.
  if (!*found && want_revision_ != 0) return;
  Want want;
  if (*found) {
    const auto read = read_kept_as<Want>((*found)->bytes);
    if (!read) return;
    want = *read;
  }
  for (const WantedQuery& each : want.queries) {
    const auto known = tasks_.find(each.query);
    // A signature may be newer.
    const bool is_renewed = options_.roles != nullptr;
    if (!is_renewed && known != tasks_.end() && known->second.want.revision == each.revision)
      continue;
    const auto entry = bus_.get(bucket_of(options_.tenant), want_key(each.query));
    if (!entry) return;
    const auto control = *entry ? read_kept_as<Control>((*entry)->bytes) : fail(ErrorCode::Io, "");
    if (control) apply(*control);
  }
  for (auto& [query, task] : tasks_) {
    const bool is_wanted = std::any_of(want.queries.begin(), want.queries.end(),
                                       [&](const auto& each) { return each.query == query; });
    if (!is_wanted) end(task);
  }
  want_revision_ = want.revision;
  is_want_known_ = true;
}

void Node::apply(const Control& want) {
  wants_beat_ = true;
  const auto known = tasks_.find(want.query);
  if (!want.is_wanted) {
    if (known != tasks_.end()) end(known->second);
    return;
  }
  if (known != tasks_.end() && known->second.want.revision == want.revision) {
    // The same once more: its root has forgotten what we said.
    known->second.is_answered_new = true;
    renew(known->second, want);
    // The keys were those of before, for a while: servers lose what they had confirmed.
    if (!std::exchange(known->second.is_wanted, true)) known->second.is_wanted_again = true;
    return;
  }
  if (known != tasks_.end()) {
    // Another one of the same name, which whoever had asked has given up.
    heritage_.push_back({.outbox = std::move(known->second.outbox)});
    tasks_.erase(known);
  }
  if (!has_labels(options_.labels, want.labels)) return;
  const SpillOwner owner{.tenant = options_.tenant,
                         .node = options_.name,
                         .query = want.query,
                         .revision = want.revision,
                         .incarnation = options_.incarnation};
  Outbox outbox(Spill(owner, options_.spill_bytes_max, spill_));
  Task& task =
      tasks_
          .emplace(want.query, Task{.want = want, .session = nullptr, .outbox = std::move(outbox)})
          .first->second;
  task.said.query = want.query;
  task.said.revision = want.revision;
  resume(task);
  if (task.is_wanted_again) return;
  arm(task);
}

// The same query had ended here: what it has left to send goes on with it.
void Node::resume(Task& task) {
  const auto known = counted_.find({task.want.query, task.want.revision});
  if (known == counted_.end()) return;
  task.taken = known->second.taken;
  task.outbox.spill().go_on_behind(known->second.safe);
  task.ended_in = task.taken;
  task.said.state = NodeState::Closed;
  task.is_wanted_again = true;
  const auto left = std::find_if(heritage_.begin(), heritage_.end(), [&](const Heritage& each) {
    return each.outbox.spill().owner() == task.outbox.spill().owner();
  });
  if (left == heritage_.end()) return;
  task.outbox = std::move(left->outbox);
  heritage_.erase(left);
}

void Node::arm(Task& task) {
  const auto running = std::count_if(tasks_.begin(), tasks_.end(), [](const auto& each) {
    return each.second.session != nullptr;
  });
  if (static_cast<size_t>(running) >= kQueriesMax) {
    return close(task,
                 fmt::format("this node runs {} queries, and more are not possible", running));
  }
  if (digest_of(task.want.text) != task.want.digest)
    return close(task, "the query's text is not what was announced");
  auto role = role_of(task.want);
  if (!role) return close(task, role.error().message);
  task.role = *role;
  auto session = sessions_.begin({.text = task.want.text,
                                  .name_patterns = task.want.name_patterns,
                                  .epoch_ns = task.want.epoch_ns,
                                  .width_ns = task.want.width_ns,
                                  .offset_ns = offset_ns_,
                                  .role = std::move(*role)});
  if (!session) return close(task, session.error().message);
  task.session = std::move(*session);
  if (task.said.state != NodeState::Offered) return;
  const bool is_known = options_.roles != nullptr;
  notes_.push_back(
      fmt::format("query {} is wanted{}: {}", task.want.query,
                  is_known ? " by " + options_.roles->shown(task.want.signature.key) : "",
                  shown_query(task.want.text)));
}

// Of who signed it; nothing, where everybody may ask. The session's own check, which knows what the
// names mean here, is behind this one.
Expected<std::optional<Role>> Node::role_of(const Control& want) {
  if (options_.roles == nullptr) return std::optional<Role>();
  CLEW_TRY(check_signature(want, options_.tenant, clock_.realtime_ns()));
  if (ended_.has(want.query, want.signature))
    return fail(ErrorCode::Refused, "the query has ended: its signature is not for another time");
  const Role* const role = CLEW_TRY(options_.roles->role_of(want.signature.key));
  CLEW_TRY(check_text(*role, {.name = "query", .text = want.text}, want.name_patterns));
  const auto running = std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& each) {
    return each.second.session != nullptr && each.second.want.signature.key == want.signature.key;
  });
  CLEW_TRY(check_limits(*role, static_cast<size_t>(running), want.width_ns));
  return std::optional(*role);
}

// The same query, signed later by the same one: it may go on for longer.
void Node::renew(Task& task, const Control& want) {
  if (options_.roles == nullptr || want.signature == task.want.signature) return;
  Control renewed = task.want;
  renewed.signature = want.signature;
  const bool is_its = want.signature.key == task.want.signature.key &&
                      want.signature.issued_ns > task.want.signature.issued_ns &&
                      check_signature(renewed, options_.tenant, clock_.realtime_ns());
  if (is_its) task.want.signature = want.signature;
}

// No more is wanted of it.
void Node::end(Task& task) {
  if (std::exchange(task.is_wanted, false) && options_.roles != nullptr)
    ended_.add(task.want.query, clock_.realtime_ns());
  if (task.session == nullptr || task.said.state == NodeState::Draining) return;
  task.said.state = NodeState::Draining;
  task.session->stop();
  wants_beat_ = true;
}

void Node::stop() {
  for (auto& [query, task] : tasks_)
    end(task);
}

void Node::leave() {
  for (auto& [query, task] : tasks_)
    task.outbox.spill().write_all();
}

bool Node::is_done() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const auto& each) {
    return each.second.session == nullptr && each.second.said.closed == each.second.taken;
  });
}

// Why it may not go on; empty: it may.
std::string Node::why_over(const Task& task) const {
  if (options_.roles == nullptr) return "";
  if (clock_.realtime_ns() >= task.want.signature.expires_ns)
    return "its signature holds no more, and none that is newer has come";
  const auto role = options_.roles->role_of(task.want.signature.key);
  if (!role) return role.error().message + " any more";
  return **role == task.role ? "" : fmt::format("role '{}' has changed", (*role)->name);
}

// Whoever wanted it does not answer any more: it may be there for nobody.
void Node::expire() {
  const int64_t silent = clock_.monotonic_ns() - heard_ns_;
  for (auto& [query, task] : tasks_) {
    if (task.session == nullptr || task.said.state != NodeState::Armed) continue;
    const bool is_unheard = silent > static_cast<int64_t>(task.want.lease_ns);
    const std::string why = is_unheard
                                ? fmt::format("no root has answered for {} s", silent / kSecond)
                                : why_over(task);
    if (why.empty()) continue;
    notes_.push_back(fmt::format("query {}: {}, its probes are taken out", query, why));
    if (!is_unheard) task.said.reason = why;
    task.said.state = NodeState::Expired;
    task.session->stop();
    wants_beat_ = true;
  }
}

bool Node::may_begin_again(const Task& task) const {
  if (task.session != nullptr || !task.is_wanted) return false;
  const int64_t now = clock_.monotonic_ns();
  const bool has_failed =
      task.said.state == NodeState::Lost || task.said.state == NodeState::Refused;
  const bool is_meant = task.said.state == NodeState::Expired || task.is_wanted_again ||
                        (has_failed && now - task.ended_ns > task.pause_ns);
  if (!is_meant || now - heard_ns_ > kBeatPeriod * 2 || !why_over(task).empty()) return false;
  // A pane is one session's.
  const stream::Panes panes{.epoch_ns = task.want.epoch_ns, .width_ns = task.want.width_ns};
  return panes.number_of(now + offset_ns_) > task.taken;
}

// A root is there again, and wants what it wanted; or the session was lost, or refused what may be
// possible by now: what it traces may be there, and other sessions of it may have gone.
void Node::rearm() {
  for (auto& [query, task] : tasks_) {
    if (!may_begin_again(task)) continue;
    task.is_wanted_again = false;
    if (task.said.state != NodeState::Refused) {
      task.said.state = NodeState::Offered;
      task.said.reason.clear();
      wants_beat_ = true;
    }
    arm(task);
  }
}

// --- what sessions say ---------------------------------------------------------------------------

void Node::take(Task& task) {
  if (task.session == nullptr) return;
  for (Frame& frame : task.session->take()) {
    take(task, frame);
    if (task.session == nullptr) return;
  }
}

void Node::take(Task& task, Frame& frame) {
  switch (frame.kind) {
    case FrameKind::Armed:
      if (task.said.state == NodeState::Offered || task.said.state == NodeState::Refused)
        task.said.state = NodeState::Armed;
      task.said.reason.clear();
      task.armed_ns = clock_.monotonic_ns();
      task.said.schema = digest_of(frame.text);
      task.answered = std::move(frame.text);
      task.is_answered_new = true;
      wants_beat_ = true;
      return;
    case FrameKind::Pane:
      // In which it was begun it has counted a part.
      if (const auto before = std::exchange(task.ended_in, {}); before && *before < frame.pane)
        task.outbox.spill().name_lost({.first = *before + 1, .last = frame.pane});
      task.taken = frame.pane;
      task.outbox.spill().add(frame.pane, std::move(frame.bytes));
      if (std::string why = task.outbox.spill().take_problem(); !why.empty()) {
        notes_.push_back(fmt::format(
            "query {}: {}: what is too much for memory becomes one with its neighbours, or is "
            "dropped and named, until that goes",
            task.want.query, why));
      }
      return;
    case FrameKind::Warning:
      notes_.push_back(fmt::format("query {}: {}", task.want.query, frame.text));
      return;
    case FrameKind::Failed:
      return close(task, frame.text);
    case FrameKind::Ended:
      return close(task, "");
    case FrameKind::Want:
      return;
  }
}

// `why`: it was refused, or something went wrong; empty: it has ended as it should.
void Node::close(Task& task, const std::string& why) {
  task.session.reset();
  task.ended_ns = clock_.monotonic_ns();
  if (task.taken != kNoPane) task.ended_in = task.taken;
  const bool has_held = task.armed_ns != 0 && task.ended_ns - task.armed_ns > kPauseMost;
  task.armed_ns = 0;
  task.pause_ns = has_held ? kBeatPeriod : std::clamp(2 * task.pause_ns, kBeatPeriod, kPauseMost);
  const bool was_armed =
      task.said.state != NodeState::Offered && task.said.state != NodeState::Refused;
  const NodeState problem = was_armed ? NodeState::Lost : NodeState::Refused;
  const bool is_expired = task.said.state == NodeState::Expired;
  const bool is_known = task.said.state == NodeState::Refused && why == task.said.reason;
  if (!is_expired) task.said.state = why.empty() ? NodeState::Closed : problem;
  if (!is_expired || !why.empty()) task.said.reason = why;
  if (!why.empty() && !is_known)
    notes_.push_back(fmt::format("query {}: {}", task.want.query, why));
  wants_beat_ = true;
}

// --- what goes out -------------------------------------------------------------------------------

// By turns, and all within one while: a root believes that who does not beat has gone. A server
// that does not answer lets each that is sent wait.
void Node::send_all() {
  const int64_t until = clock_.monotonic_ns() + kSendTurn;
  std::vector<std::pair<Task*, Heritage*>> all;
  all.reserve(tasks_.size() + heritage_.size());
  for (auto& [query, task] : tasks_)
    all.emplace_back(&task, nullptr);
  for (Heritage& one : heritage_)
    all.emplace_back(nullptr, &one);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [task, left] = all[(next_sender_ + i) % all.size()];
    if (clock_.monotonic_ns() >= next_beat_ns_) beat();
    task != nullptr ? send(*task, until) : send(*left, until);
    if (clock_.monotonic_ns() <= until) continue;
    next_sender_ = (next_sender_ + i + 1) % all.size();
    break;
  }
  std::erase_if(heritage_, [](const Heritage& each) { return each.outbox.spill().empty(); });
}

void Node::send(Task& task, int64_t until_ns) {
  const bool has_sent = task.outbox.send(bus_, subjects_, clock_, log_, until_ns);
  const std::string about =
      fmt::format("query {}: what is counted cannot be sent, and is kept", task.want.query);
  if (has_sent) complain(about, "");
  if (const auto refusal = task.outbox.take_refusal()) tell_problem(about, *refusal);
  const Pane closed = task.outbox.spill().next() == nullptr ? task.taken : task.outbox.sent();
  if (closed > task.said.closed) task.said.closed = closed;
  if (has_sent) wants_beat_ = true;
}

void Node::beat() {
  wants_beat_ = false;
  next_beat_ns_ = clock_.monotonic_ns() + kBeatPeriod;
  Beat said{.node = options_.name,
            .incarnation = options_.incarnation,
            .version = options_.version,
            .labels = options_.labels,
            .want_revision = want_revision_,
            .log = log_,
            .clock_offset_ns = root_offset_ns_};
  for (auto& [query, task] : tasks_) {
    const Spill& spill = task.outbox.spill();
    said.spill_bytes += spill.bytes();
    task.said.lost = spill.lost();
    task.said.merged = spill.merged();
    task.said.sequence = task.outbox.sequence();
    task.said.last = spill.last_sent();
    task.said.safe = spill.safe();
    NodeQuery& one = said.queries.emplace_back(task.said);
    // Whoever waits for it waits for what was counted.
    const bool is_sent = task.said.closed == task.taken;
    if (task.session == nullptr && !is_sent) one.state = NodeState::Draining;
    if (std::exchange(task.is_answered_new, false)) one.answered = task.answered;
  }
  add_heritage(said);
  if (!bus_.publish(subjects_.beat(options_.name), to_bytes(said))) wants_beat_ = true;
}

}  // namespace clew::cluster
