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
constexpr int kTries = 8;  // Between two roots nobody answers for some seconds.

}  // namespace

RemoteAnswers::RemoteAnswers(Bus& bus, const Clock& clock, std::string tenant, std::string url)
    : bus_(bus),
      clock_(clock),
      tenant_(std::move(tenant)),
      url_(std::move(url)),
      subjects_(tenant_),
      reader_(new_name("r")) {}

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
    if (!may_have_root()) break;
  }
  return fail(ErrorCode::Io,
              fmt::format("no root answers at {}; 'clew root --cluster {}' on a machine is one",
                          url_, url_));
}

// One that was killed is there until the next one takes over.
bool RemoteAnswers::may_have_root() {
  const auto leader = bus_.get(bucket_of(tenant_), kRootKey);
  return !leader || (*leader && !(*leader)->bytes.empty());
}

std::optional<Bytes> RemoteAnswers::wait_for_answer(uint64_t request) {
  const int64_t end_ns = clock_.monotonic_ns() + kAnswerWait;
  Joiner parts;
  while (clock_.monotonic_ns() < end_ns) {
    wait_for({{.fd = bus_.descriptor(), .events = POLLIN, .revents = 0}}, end_ns);
    while (const std::optional<Message> message = bus_.next()) {
      const auto found = read_as<Found>(message->bytes);
      if (!found || found->request != request) continue;
      auto whole = parts.add(found->answer);
      if (whole && *whole) return std::move(**whole);
    }
  }
  return std::nullopt;
}

}  // namespace clew::cluster
