// SPDX-License-Identifier: Apache-2.0
#include "cluster/ask_cluster.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "cluster/answered_rows.h"
#include "cluster/asker.h"
#include "cluster/clock.h"
#include "cluster/gap_texts.h"
#include "cluster/names.h"
#include "cluster/no_rows.h"
#include "cluster/remote_answers.h"
#include "cluster/root.h"
#include "cluster/shown_query.h"
#include "cluster/subjects.h"
#include "cluster/wait.h"
#include "engine/query_ends.h"
#include "engine/stop_signal.h"
#include "plan/spread.h"
#include "query/parse.h"
#include "stream/pane.h"

namespace clew::cluster {
namespace {

constexpr int64_t kRootWait = 7 * kSecond / 10;     // For one that leads, before we bring one.
constexpr int64_t kNodesWait = 3 * kSecond / 2;     // For the first node.
constexpr int64_t kArmWait = 30 * kSecond;          // For a node that works out what it is asked.
constexpr int64_t kRootSilent = 10 * kSecond;       // For one that has a store and is begun anew.
constexpr int64_t kStoreSilent = 20 * kSecond;      // The same, where it has some of our answer.
constexpr int64_t kEndWait = 12 * kSecond;          // For nodes that are slow to end, and the root.
constexpr int64_t kStandWait = 8 * kSecond;         // For a root that may just take over.
constexpr uint64_t kLease = 15 * kSecond;           // Of nodes, where the root is ours.
constexpr int64_t kRootRetry = kSecond;             // To bring one.
constexpr int64_t kRootGone = 30 * kSecond;         // No root is heard.
constexpr int64_t kSilenceTold = 3 * kSecond;       // The same, for a while.
constexpr int64_t kRestWait = 10 * kSecond;         // For the rest of an answer that was ended.
constexpr uint64_t kUsualWidth = kSecond;           // Of panes that only their sum is wanted of.
constexpr int64_t kEventsWidth = kSecond / 2;       // Of panes of single events.
constexpr int64_t kWindowsWidthMin = kSecond / 10;  // Of panes that windows are made from.

constexpr const char* kStandsForGroups =
    "a query that stands gives groups: single events, and what is joined between machines, have to "
    "be taken as they come";

// As far as the text says so without the types of a program: before anything is armed, so that its
// name is free for another one.
Expected<void> check_stands(const query::Text& text) {
  const query::SourcePlaces places = CLEW_TRY(query::places_of_sources(text));
  const auto parsed = query::parse(text, {});
  const bool gives_events = parsed ? plan::sends_events(*parsed) : !places.groups;
  if (gives_events) return fail(ErrorCode::InvalidQuery, kStandsForGroups);
  return {};
}

std::string is_there_already(const std::string& name) {
  return fmt::format("a query '{}' is there already, or was: a name is for once", name);
}

std::string silent_text(const Status& status) {
  const std::string names = fmt::format("{}", fmt::join(status.silent_nodes, ", "));
  if (status.silent == 1) {
    return fmt::format("node {} is not heard any more: what it counts is missing from now on",
                       names);
  }
  const uint64_t more = status.silent - status.silent_nodes.size();
  return fmt::format("nodes {}{} are not heard any more: what they count is missing from now on",
                     names, more == 0 ? std::string() : fmt::format(" and {} more", more));
}

class ClusterRun {
 public:
  ClusterRun(const ClusterRequest& request, output::RowSink& sink, engine::Notices& notices)
      : request_(request), sink_(sink), notices_(notices) {}

  ClusterRun(const ClusterRun&) = delete;
  ClusterRun& operator=(const ClusterRun&) = delete;
  // Nothing of it goes on, however it ended, and another root may lead.
  ~ClusterRun();

  Expected<void> begin();
  Expected<void> run(int stop_descriptor);
  Expected<void> stand(int stop_descriptor);

 private:
  [[nodiscard]] Expected<Ask> question();
  void wait(int stop_descriptor) const;
  Expected<void> bring_root();
  Expected<void> look_at_status();
  Expected<void> wait_for_root();
  void tell_silence();
  Expected<void> stop_now(const std::string& why);
  void finish();
  Expected<void> take_complaints();
  Expected<void> begin_answer(const Status& status);
  [[nodiscard]] Expected<void> check_nodes(const Status& status) const;
  void tell_refusals(const Status& status);
  void give(const AnsweredPane& pane);
  [[nodiscard]] output::Interval interval_of(const AnsweredPane& given);
  [[nodiscard]] int64_t now() const { return clock_.monotonic_ns(); }

  const ClusterRequest& request_;
  output::RowSink& sink_;
  engine::Notices& notices_;
  MachineClock clock_;
  std::unique_ptr<Bus> bus_;
  std::unique_ptr<Bus> roots_bus_;
  std::optional<Root> root_;      // Where we brought one.
  std::optional<Error> no_root_;  // Why we may not.
  int64_t next_root_ns_ = 0;
  std::optional<Asker> asker_;
  std::optional<uint64_t> every_ns_;
  std::optional<uint64_t> for_ns_;
  stream::Panes panes_;
  std::unique_ptr<AnsweredRows> answer_;  // Once it is known what is answered.
  int64_t begun_ns_ = 0;
  int64_t heard_ns_ = 0;  // When a root answered first.
  std::optional<int64_t> end_ns_;
  bool is_ending_ = false;
  bool is_silence_told_ = false;
  bool has_told_wait_ = false;
  bool stands_ = false;
  int64_t ended_ns_ = INT64_MAX;  // Of the time of day.
  int64_t ending_since_ns_ = 0;
  uint64_t silent_ = 0;  // Nodes that were said not to be heard any more.
  std::optional<Pane> first_;
  collect::Losses losses_;
  std::vector<std::string> told_;
};

ClusterRun::~ClusterRun() {
  if (asker_ && !asker_->is_done() && !stands_) asker_->end();
  if (!root_) return;
  root_->end(asker_->query());
  (void)root_->leave();
}

// What can be known of the text without any program.
Expected<Ask> ClusterRun::question() {
  const engine::Request& query = request_.query;
  const query::SourcePlaces places = CLEW_TRY(query::places_of_sources(query.text));
  every_ns_ = query.every_ns ? query.every_ns : places.every_ns;
  for_ns_ = query.for_ns ? query.for_ns : places.for_ns;
  if (places.clusters && every_ns_) return fail(ErrorCode::InvalidQuery, engine::kClustersOfAll);
  // A bound of the events' time is one, too, where the text can be understood alone.
  const auto parsed = query::parse(query.text, {});
  if (parsed && parsed->for_ns && !for_ns_) for_ns_ = parsed->for_ns;
  panes_ = {.epoch_ns = 0, .width_ns = static_cast<int64_t>(every_ns_.value_or(kUsualWidth))};
  Gives gives = every_ns_ ? Gives::Panes : Gives::AtEnd;
  if (places.pane_ns) {
    gives = Gives::Windows;
    panes_.width_ns = std::clamp(static_cast<int64_t>(*places.pane_ns), kWindowsWidthMin, kSecond);
  }
  // As it seems: nodes know it, and the root believes them.
  if (gives != Gives::Windows && !places.groups) {
    gives = Gives::Events;
    panes_.width_ns = kEventsWidth;
  }
  const bool is_standing = !request_.name.empty();
  return Ask{.query = is_standing ? request_.name : new_name("q"),
             .is_standing = is_standing,
             .asker = new_name("a"),
             .text = query.text.text,
             .name_patterns = query.processes.name_patterns,
             .labels = request_.labels,
             .width_ns = panes_.width_ns,
             .gives = gives,
             .install_ns = request_.install_ns};
}

Expected<void> ClusterRun::begin() {
  Ask asked = CLEW_TRY(question());
  bus_ = CLEW_TRY(request_.connect());
  asker_.emplace(*bus_, clock_, request_.tenant, std::move(asked), request_.key);
  begun_ns_ = now();
  notices_.progress("asking the cluster");
  return asker_->begin();
}

void ClusterRun::wait(int stop_descriptor) const {
  std::vector<pollfd> descriptors{{.fd = asker_->descriptor(), .events = POLLIN, .revents = 0}};
  descriptors.push_back({.fd = stop_descriptor, .events = POLLIN, .revents = 0});
  int64_t until = asker_->next_ns();
  if (root_) {
    descriptors.push_back({.fd = root_->descriptor(), .events = POLLIN, .revents = 0});
    until = std::min(until, root_->next_ns());
  }
  wait_for(std::move(descriptors), end_ns_ ? std::min(until, *end_ns_) : until);
}

Expected<void> ClusterRun::run(int stop_descriptor) {
  while (!asker_->is_done()) {
    wait(stop_descriptor);
    const bool is_full = answer_ && answer_->is_full();
    const bool is_stopped = is_readable(stop_descriptor);
    if (is_stopped) {
      (void)engine::pass_on_signal(stop_descriptor, {});
      if (is_ending_) return stop_now("it was ended a second time");
    }
    const bool is_over = is_full || (end_ns_ && now() >= *end_ns_) || is_stopped;
    if (is_over && !std::exchange(is_ending_, true)) {
      end_ns_.reset();
      ended_ns_ = clock_.realtime_ns();
      ending_since_ns_ = now();
      asker_->end();
    }
    if (root_) root_->turn();
    asker_->turn();
    CLEW_TRY(bring_root());
    CLEW_TRY(look_at_status());
    for (const AnsweredPane& pane : asker_->take())
      give(pane);
    CLEW_TRY(take_complaints());
    // Nobody counts, and nobody ever did.
    if (is_ending_ && !answer_) break;
    tell_silence();
    const bool is_late = is_ending_ && now() - ending_since_ns_ > kRestWait;
    if (is_late && asker_->silent_ns() > kRestWait) return stop_now("no root is heard");
  }
  finish();
  return {};
}

// The root may be heard again, or another one leads.
void ClusterRun::tell_silence() {
  const bool is_silent = asker_->status() && asker_->silent_ns() > kSilenceTold;
  if (is_silent && !std::exchange(is_silence_told_, true)) {
    notices_.warning(fmt::format("the root of {} is not heard; it is waited for{}", request_.url,
                                 is_ending_ ? ", and another Ctrl-C ends at once" : ""));
  }
  if (!is_silent) is_silence_told_ = false;
}

// Nodes take their probes out by themselves.
Expected<void> ClusterRun::stop_now(const std::string& why) {
  losses_.lost.push_back("what nodes had counted and not given yet: " + why);
  if (!answer_) return fail(ErrorCode::Io, fmt::format("stopped without an answer: {}", why));
  finish();
  return {};
}

void ClusterRun::finish() {
  if (answer_) {
    for (const std::string& lost : asker_->status()->lost)
      losses_.lost.push_back(lost);
    for (std::string& lost : texts_of(asker_->gaps(), panes_, first_))
      losses_.lost.push_back(std::move(lost));
    for (std::string& lost : texts_of_unsure(asker_->unsure(), panes_, first_))
      losses_.lost.push_back(std::move(lost));
    if (asker_->lost() != 0)
      losses_.lost.push_back(fmt::format("{} late or large parts of the answer", asker_->lost()));
    answer_->finish(losses_);
    sink_.finish(losses_);
    sink_.flush();
  }
}

// Who may not ask is never answered.
Expected<void> ClusterRun::take_complaints() {
  const std::string ask = fmt::format("'{}'", Subjects(request_.tenant).ask());
  for (const std::string& complaint : bus_->take_complaints()) {
    const bool is_of_asking = complaint.find(ask) != std::string::npos;
    if (is_of_asking && !asker_->status()) return fail(ErrorCode::Refused, complaint);
    notices_.warning(complaint);
  }
  return {};
}

// Until nodes count, or there are none, who can still come.
Expected<void> ClusterRun::stand(int stop_descriptor) {
  while (!is_readable(stop_descriptor)) {
    wait(stop_descriptor);
    asker_->turn();
    CLEW_TRY(take_complaints());
    const std::optional<Status>& status = asker_->status();
    if (!asker_->stranger().empty())
      return fail(ErrorCode::Refused, not_understood(request_.url, asker_->stranger()));
    if (!status && now() - begun_ns_ > kStandWait) {
      return fail(ErrorCode::NotFound,
                  fmt::format("no root answers at {}; 'clew root --cluster {}' "
                              "on a machine is one",
                              request_.url, request_.url));
    }
    if (!status) continue;
    if (heard_ns_ == 0) heard_ns_ = now();
    if (status->asker != asker_->name())
      return fail(ErrorCode::Refused, is_there_already(request_.name));
    if (status->phase == Phase::Failed || status->phase == Phase::Done)
      return fail(ErrorCode::Io, status->reason.empty() ? "it was ended" : status->reason);
    if (asker_->silent_ns() > kRootGone)
      return fail(ErrorCode::Io, fmt::format("the root of {} is not heard any more", request_.url));
    if (answers_events(status->answered)) return fail(ErrorCode::InvalidQuery, kStandsForGroups);
    const bool may_come = status->meant == 0 && now() - heard_ns_ > kNodesWait;
    stands_ = status->phase == Phase::Running && (status->armed != 0 || may_come);
    if (status->meant != 0) CLEW_TRY(check_nodes(*status));
    if (!stands_) continue;
    tell_refusals(*status);
    notices_.progress("");
    notices_.armed(fmt::format("query {} stands on {} of {} node{}", status->query, status->armed,
                               status->meant, status->meant == 1 ? "" : "s"));
    return {};
  }
  return fail(ErrorCode::Io, "stopped before it stood");
}

// Where another one leads, ours stands by: it may be that of a command like this, which ends.
Expected<void> ClusterRun::bring_root() {
  const bool is_known = asker_->status().has_value();
  if (is_known && asker_->silent_ns() > kRootGone)
    return fail(ErrorCode::Io, fmt::format("the root of {} is not heard any more", request_.url));
  if (root_ && is_known && asker_->status()->has_store) root_->wait_for_store(kStoreSilent);
  const bool is_wanted = !root_ && !no_root_ && now() >= next_root_ns_ &&
                         (is_known || asker_->silent_ns() >= kRootWait);
  if (!is_wanted) return {};
  next_root_ns_ = now() + kRootRetry;
  auto bus = request_.connect();
  if (!bus && is_known && bus.error().code == ErrorCode::Io) return {};
  roots_bus_ = CLEW_TRY(std::move(bus));
  root_.emplace(*roots_bus_, clock_,
                RootOptions{.name = new_name("root"),
                            .tenant = request_.tenant,
                            .takeover_ns = kRootSilent,
                            .lease_ns = kLease});
  const int64_t begin_ns = now();
  auto begun = root_->begin();
  if (begun) return {};
  // Servers that elect are silent.
  const ErrorCode why = begun.error().code;
  const bool is_later = why == ErrorCode::Io && (is_known || now() - begin_ns > kRootRetry);
  if (!is_later && !is_known && why != ErrorCode::Refused) return begun;
  // Another one leads; or the server lets this user ask, and not be a root: one of others is waited
  // for.
  if (!is_later) no_root_ = begun.error();
  root_.reset();
  roots_bus_.reset();
  return {};
}

Expected<void> ClusterRun::look_at_status() {
  const std::optional<Status>& status = asker_->status();
  if (!status && !asker_->stranger().empty()) {
    return fail(ErrorCode::Refused, not_understood(request_.url, asker_->stranger()));
  }
  if (!status) return wait_for_root();
  if (heard_ns_ == 0) heard_ns_ = now();
  if (status->phase == Phase::Failed) return fail(ErrorCode::Io, status->reason);
  const bool is_known = !status->answered.empty() && status->phase != Phase::Installing;
  if (!answer_ && is_known) CLEW_TRY(begin_answer(*status));
  if (!answer_) CLEW_TRY(check_nodes(*status));
  tell_refusals(*status);
  if (answer_ && !end_ns_ && !is_ending_ && for_ns_ && status->phase == Phase::Running)
    end_ns_ = now() + static_cast<int64_t>(std::exchange(for_ns_, std::nullopt).value());
  return {};
}

// Behind a root that has gone without a word another one waits before it leads.
Expected<void> ClusterRun::wait_for_root() {
  constexpr int64_t kMost = 12 * kSecond;
  constexpr int64_t kTold = 2 * kSecond;
  constexpr int64_t kProblem = 4 * kSecond;  // What goes over by itself has gone by then.
  const int64_t waited = now() - begun_ns_;
  if (root_ && !root_->problem().empty() && waited > kProblem) {
    return fail(ErrorCode::Io, fmt::format("no root answers at {}, and none can: {}", request_.url,
                                           root_->problem()));
  }
  if (waited > kTold && !std::exchange(has_told_wait_, true)) {
    notices_.made(
        no_root_
            ? fmt::format("no root answers at {} so far; 'clew root' is to run there", request_.url)
            : fmt::format("the root of {} has gone without a word: it is waited for, "
                          "and then this command's own takes over, {} s at most",
                          request_.url, kMost / kSecond));
  }
  if (waited < kMost) return {};
  if (!no_root_) return fail(ErrorCode::Io, fmt::format("no root answers at {}", request_.url));
  return fail(ErrorCode::Refused,
              fmt::format("no root answers at {}, where 'clew root' is to run: {}", request_.url,
                          no_root_->message));
}

Expected<void> ClusterRun::check_nodes(const Status& status) const {
  const int64_t waited = now() - heard_ns_;
  if (status.nodes == 0 && waited > kNodesWait) {
    return fail(ErrorCode::NotFound,
                fmt::format("no node answers at {}; 'clew node --cluster {}' on a machine is one",
                            request_.url, request_.url));
  }
  if (status.nodes != 0 && status.meant == 0 && waited > kNodesWait) {
    std::vector<std::string> labels;
    labels.reserve(request_.labels.size());
    for (const auto& [name, value] : request_.labels)
      labels.push_back(fmt::format("{}={}", name, value));
    const std::string there = status.labels.empty()
                                  ? std::string("no node has any (clew node --label)")
                                  : fmt::format("there are {}", fmt::join(status.labels, ", "));
    return fail(ErrorCode::NotFound,
                fmt::format("no node has the label{} {}; {}", labels.size() == 1 ? "" : "s",
                            fmt::join(labels, ", "), there));
  }
  uint64_t refused = 0;
  for (const Refusal& one : status.refusals)
    refused += one.nodes;
  const bool is_refused =
      status.phase != Phase::Installing && status.meant != 0 && refused >= status.meant;
  if (is_refused) {
    const Refusal& first = status.refusals[0];
    return fail(ErrorCode::Refused,
                first.nodes == 1
                    ? fmt::format("node {}: {}", first.node, first.reason)
                    : fmt::format("{} nodes, as {}: {}", first.nodes, first.node, first.reason));
  }
  if (waited < std::max(kArmWait, request_.install_ns)) return {};
  return fail(ErrorCode::NotFound, fmt::format("none of {} nodes has answered", status.meant));
}

// What is answered says what becomes of the tables: columns, order, conditions on groups.
Expected<void> ClusterRun::begin_answer(const Status& status) {
  answer_ = CLEW_TRY(AnsweredRows::of(status.answered, sink_, every_ns_.has_value()));
  if (request_.query.accept) CLEW_TRY(request_.query.accept(answer_->columns()));
  sink_.begin(answer_->columns(), answer_->mode());
  notices_.progress("");
  notices_.armed(fmt::format("tracing on {} of {} node{} (query {})", status.armed, status.meant,
                             status.meant == 1 ? "" : "s", status.query));
  return {};
}

void ClusterRun::tell_refusals(const Status& status) {
  if (status.phase == Phase::Installing) return;
  if (status.silent > std::exchange(silent_, status.silent) && !is_ending_) {
    notices_.warning(silent_text(status));
  }
  for (const Refusal& one : status.refusals) {
    std::string text = one.nodes == 1 ? fmt::format("node {} is left out: {}", one.node, one.reason)
                                      : fmt::format("{} nodes are left out, as {}: {}", one.nodes,
                                                    one.node, one.reason);
    if (std::find(told_.begin(), told_.end(), text) != told_.end()) continue;
    notices_.warning(text);
    told_.push_back(std::move(text));
  }
}

void ClusterRun::give(const AnsweredPane& pane) {
  if (!answer_) return;
  losses_ = pane.table.losses;
  const auto taken =
      pane.is_final ? answer_->take_all(pane.table) : answer_->take(pane.table, interval_of(pane));
  if (!taken) notices_.warning("an interval is left out: " + taken.error().message);
  if (!pane.is_final) sink_.flush();
}

// Nodes were armed within the first, and are stopped within the last; of others one may be missing.
output::Interval ClusterRun::interval_of(const AnsweredPane& given) {
  const Pane pane = given.pane;
  if (!first_) first_ = pane;
  return {.number = static_cast<uint64_t>(pane - *first_) + 1,
          .partial = pane == *first_ || panes_.end(pane) > ended_ns_ || given.lacks_nodes ||
                     has_gap(asker_->gaps(), pane) || has_gap(asker_->unsure(), pane),
          .begin_ns = panes_.begin(pane),
          .end_ns = panes_.end(pane)};
}

}  // namespace

Expected<void> ask_cluster(const ClusterRequest& request, int stop_descriptor,
                           output::RowSink& sink, engine::Notices& notices) {
  ClusterRun run(request, sink, notices);
  CLEW_TRY(run.begin());
  return run.run(stop_descriptor);
}

Expected<void> stand(const ClusterRequest& request, int stop_descriptor, engine::Notices& notices) {
  CLEW_TRY(check_stands(request.query.text));
  const auto bus = CLEW_TRY(request.connect());
  const MachineClock clock;
  RemoteAnswers answers(*bus, clock, request.tenant, request.url);
  answers.on_wait([&notices](const std::string& text) { notices.made(text); });
  CLEW_TRY(answers.begin());
  for (const AnswerSummary& one : CLEW_TRY(answers.list())) {
    if (one.query == request.name) return fail(ErrorCode::Refused, is_there_already(request.name));
  }
  NoRows nobody;
  ClusterRun run(request, nobody, notices);
  CLEW_TRY(run.begin());
  return run.stand(stop_descriptor);
}

namespace {

std::string ended_text(const AnswerPart& part, const std::string& name, bool is_new) {
  std::string what = is_new ? "has ended" : "had ended before";
  if (part.want.gives == Gives::Panes && part.given != PaneRange{}) {
    const Pane count = part.given.last - part.begun + 1;
    what += fmt::format(" with {} interval{}", count, count == 1 ? "" : "s");
  }
  return fmt::format("query {} {}: {}", name, what, shown_query(part.want.text));
}

}  // namespace

Expected<std::string> end_query(Bus& bus, const ClusterRequest& request) {
  const MachineClock clock;
  const std::string& name = request.name;
  RemoteAnswers answers(bus, clock, request.tenant, request.url);
  CLEW_TRY(answers.begin());
  const int64_t until_ns = clock.monotonic_ns() + kEndWait;
  // Known, and then over.
  Asker asker(bus, clock, request.tenant, Ask{.query = name}, request.key);
  bool has_asked = false;
  while (true) {
    const AnswerPart part = CLEW_TRY(answers.read(name, 1, 1));
    if (part.phase == Phase::Done || part.phase == Phase::Failed)
      return ended_text(part, name, has_asked);
    if (!std::exchange(has_asked, true)) CLEW_TRY(asker.begin());
    asker.end();
    if (clock.monotonic_ns() > until_ns) {
      return fail(
          ErrorCode::Refused,
          fmt::format("query '{}' goes on: where roles say who may ask, only the key that it "
                      "was asked with ends it (--sign)",
                      name));
    }
    wait_for({}, clock.monotonic_ns() + kSecond / 4);
  }
}

}  // namespace clew::cluster
