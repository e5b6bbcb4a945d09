// SPDX-License-Identifier: Apache-2.0
#include "cluster/remote_answers.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <poll.h>

#include "cluster/names.h"
#include "cluster/wait.h"

namespace clew::cluster {
namespace {

constexpr int64_t kAnswerWait = kSecond;
constexpr int kTriesOfNoBus = 2;
constexpr int kTries = 8;  // Between two roots nobody answers for some seconds.

}  // namespace

RemoteAnswers::RemoteAnswers(Bus& bus, const Clock& clock, std::string tenant, std::string url)
    : bus_(bus),
      clock_(clock),
      tenant_(std::move(tenant)),
      url_(std::move(url)),
      subjects_(tenant_),
      reader_(new_name("r")) {}

Expected<void> RemoteAnswers::begin() {
  CLEW_TRY(bus_.subscribe(subjects_.found(reader_)));
  return bus_.subscribe(subjects_.found(kOfStrangers));
}

Expected<std::vector<AnswerSummary>> RemoteAnswers::list() {
  const Bytes answer = CLEW_TRY(ask({}));
  return CLEW_TRY(read_as<AnswerList>(answer)).answers;
}

Expected<AnswerPart> RemoteAnswers::read(const std::string& query, uint64_t first, uint64_t last) {
  const Bytes answer = CLEW_TRY(ask({.query = query, .first = first, .last = last}));
  AnswerPart part = CLEW_TRY(read_as<AnswerPart>(answer));
  if (!part.is_known) return fail(ErrorCode::NotFound, "no query '" + query + "'");
  return part;
}

// Questions and answers can be lost.
Expected<Bytes> RemoteAnswers::ask(Read question) {
  question.reader = reader_;
  for (int i = 0; i < kTries; ++i) {
    question.request = ++requests_;
    CLEW_TRY(bus_.publish(subjects_.read(), to_bytes(question)));
    if (auto answer = wait_for_answer(question.request)) return std::move(*answer);
    for (const std::string& complaint : bus_.take_complaints())
      return fail(ErrorCode::Refused, complaint);
    if (!stranger_.empty()) return fail(ErrorCode::Refused, not_understood(url_, stranger_));
    const auto may_have = may_have_root();
    if (!may_have && i + 1 >= kTriesOfNoBus) {
      return fail(may_have.error().code,
                  fmt::format("no root answers at {}: {}", url_, may_have.error().message));
    }
    if (may_have && !*may_have) break;
    if (i + 1 == kTriesOfNoBus) tell_wait();
  }
  return fail(ErrorCode::Io,
              fmt::format("no root answers at {}; 'clew root --cluster {}' on a machine is one",
                          url_, url_));
}

// One that was killed is there until the next one takes over.
Expected<bool> RemoteAnswers::may_have_root() {
  const auto leader = bus_.get(bucket_of(tenant_), kRootKey);
  // Not to be known by this end.
  if (!leader && leader.error().code == ErrorCode::Refused) return true;
  if (!leader) return tl::unexpected(leader.error());
  return *leader && !(*leader)->bytes.empty();
}

void RemoteAnswers::tell_wait() {
  if (!tell_) return;
  tell_(
      fmt::format("the root of {} does not answer; another one that takes over is waited for, {} s "
                  "at most",
                  url_, kTries * kAnswerWait / kSecond));
}

std::optional<Bytes> RemoteAnswers::wait_for_answer(uint64_t request) {
  const int64_t end_ns = clock_.monotonic_ns() + kAnswerWait;
  Joiner parts;
  while (clock_.monotonic_ns() < end_ns) {
    wait_for({{.fd = bus_.descriptor(), .events = POLLIN, .revents = 0}}, end_ns);
    while (const std::optional<Message> message = bus_.next()) {
      const auto found = read_as<Found>(message->bytes);
      if (!found && found.error().code == ErrorCode::Refused) stranger_ = found.error().message;
      if (!found || found->request != request) continue;
      auto whole = parts.add(found->answer);
      if (whole && *whole) return std::move(**whole);
    }
  }
  return std::nullopt;
}

}  // namespace clew::cluster
