// SPDX-License-Identifier: Apache-2.0
#include "engine/record/conditions.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include "base/error_text.h"
#include "engine/record/leaving.h"

namespace clew::engine {

namespace {

// Of one query at a time: threads that stop meanwhile wait.
constexpr unsigned kNewsMax = 128;

// Its own places come behind the policy's: "p.toml:3:9: query:1:11".
std::string name_of(const recorder::Condition& condition) {
  return condition.place + ": query";
}

std::string with_place(const recorder::Condition& condition, const std::string& message) {
  if (message.starts_with(condition.place)) return message;
  return fmt::format("{}: error: {}", condition.place, message);
}

// Of the policy, and not of what this machine can do now: that has no place in the query.
bool is_of_text(const recorder::Condition& condition, const Error& error) {
  return error.code == ErrorCode::InvalidQuery ||
         error.message.starts_with(name_of(condition) + ":");
}

}  // namespace

Expected<void> Conditions::check() const {
  for (const recorder::Condition& one : wanted_)
    CLEW_TRY(QueryBeside::check({.name = name_of(one), .text = one.query}));
  return {};
}

Expected<void> Conditions::start(pid_t process) {
  if (wanted_.empty()) return {};
  process_ = process;
  waits_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!waits_.valid()) return fail(ErrorCode::Io, fmt::format("epoll: {}", error_text(errno)));
  for (const recorder::Condition& one : wanted_) {
    QueryBeside query =
        CLEW_TRY(QueryBeside::start({.name = name_of(one), .text = one.query}, process));
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(waits_.get(), EPOLL_CTL_ADD, query.descriptor(), &event) != 0)
      return fail(ErrorCode::Io, fmt::format("epoll: {}", error_text(errno)));
    running_.push_back({.condition = &one, .query = std::move(query)});
  }
  return {};
}

Expected<void> Conditions::wait(const std::function<bool()>& is_over) {
  constexpr std::chrono::seconds kArmTimeMax{120};
  constexpr int kLookMs = 50;
  const auto deadline = std::chrono::steady_clock::now() + kArmTimeMax;
  const auto is_settled = [](const Running& one) { return one.is_settled; };
  while (!std::all_of(running_.begin(), running_.end(), is_settled) && !is_over()) {
    if (std::chrono::steady_clock::now() > deadline) {
      notices_.warning("not all queries of the policy see what happens yet");
      return {};
    }
    notices_.progress("queries of the policy");
    pollfd readable{waits_.get(), POLLIN, 0};
    (void)poll(&readable, 1, kLookMs);
    (void)met();
  }
  notices_.progress("");
  if (!wrong_.empty()) return tl::unexpected(wrong_.front());
  return {};
}

std::vector<Conditions::Met> Conditions::met() {
  std::vector<Met> all;
  for (Running& one : running_)
    take_news(one, all);
  return all;
}

void Conditions::take_news(Running& running, std::vector<Met>& all) {
  for (unsigned taken = 0; taken < kNewsMax; ++taken) {
    const auto news = running.query.next();
    if (!news) return;
    note(running, *news, all);
  }
}

void Conditions::note(Running& running, const QueryBeside::News& news, std::vector<Met>& all) {
  const recorder::Condition* const condition = running.condition;
  switch (news.kind) {
    case QueryBeside::Kind::Row: {
      const auto known = std::find_if(all.begin(), all.end(), [&](const Met& one) {
        return one.condition == condition && one.process == news.process;
      });
      if (known != all.end()) {
        ++known->rows;
      } else {
        all.push_back({condition, news.process, news.thread, 1});
      }
      return;
    }
    case QueryBeside::Kind::Warning:
      return notices_.warning(fmt::format("{}: {}", condition->place, news.text));
    case QueryBeside::Kind::Ended:
      if (lives(process_)) {
        notices_.warning(fmt::format("{}: there are no snaps of this query any more: it has ended",
                                     condition->place));
      }
      running.is_settled = true;
      return;
    case QueryBeside::Kind::Armed:
      running.is_settled = true;
      return;
    case QueryBeside::Kind::Failed:
      break;
  }
  if (!running.is_settled && is_of_text(*condition, *news.error)) {
    wrong_.push_back({news.error->code, with_place(*condition, news.error->message)});
  } else {
    notices_.warning(fmt::format("{}: there are no snaps of this query{}: {}", condition->place,
                                 running.is_settled ? " any more" : "", news.error->message));
  }
  running.is_settled = true;
}

}  // namespace clew::engine
