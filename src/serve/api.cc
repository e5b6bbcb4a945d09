// SPDX-License-Identifier: Apache-2.0
#include "serve/api.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/clock_ns.h"
#include "serve/session_request.h"

namespace clew::serve {
namespace {

constexpr size_t kLivingMax = 16;

template <typename Number>
std::optional<Number> whole_number_of(std::string_view text) {
  Number number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// What is in front of the next slash, which is taken with it.
std::string_view take_part(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view part = path.substr(0, end);
  path.remove_prefix(std::min(end + 1, path.size()));
  return part;
}

Answer stream_answer(const HttpRequest& request) {
  const auto after = request.query.find("after");
  if (after == request.query.end()) return StreamFrom{0};
  const auto number = whole_number_of<uint64_t>(after->second);
  // One more is the next line's number.
  if (!number || *number == UINT64_MAX)
    return problem(Status::BadRequest, "'after' is the number of a line");
  return StreamFrom{*number};
}

}  // namespace

Answer Api::answer(const HttpRequest& request) {
  std::string_view path = request.path;
  constexpr std::string_view kRoot = "/api/v1/";
  if (!path.starts_with(kRoot)) return problem(Status::NotFound, "this server speaks /api/v1");
  path.remove_prefix(kRoot.size());
  const std::string_view what = take_part(path);
  if (what == "stream" && path.empty())
    return request.method == "GET" ? stream_answer(request) : wrong_method("GET");
  if (path.empty()) {
    if (const auto asked = question_of(what, request, facts_)) return ask(*asked);
  }
  if (what != "sessions") return problem(Status::NotFound, fmt::format("there is no '{}'", what));
  if (path.empty()) {
    if (request.method == "GET") return json_reply({{"sessions", sessions_.json()}});
    return request.method == "POST" ? start_session(request) : wrong_method("GET, POST");
  }
  const std::string_view id = take_part(path);
  const auto number = whole_number_of<uint32_t>(id.substr(std::min<size_t>(1, id.size())));
  if (!id.starts_with('s') || !number || !sessions_.has(*number))
    return problem(Status::NotFound, fmt::format("there is no session '{}'", id));
  if (path.empty()) return one_session(request, *number);
  return problem(Status::NotFound, fmt::format("a session has no '{}'", path));
}

Answer Api::start_session(const HttpRequest& request) {
  const Expected<SessionRequest> wanted = session_request(request.body);
  if (!wanted) return problem(Status::BadRequest, wanted.error().message);
  if (wanted->has_command && !facts_.commands_allowed)
    return problem(Status::Forbidden, "commands are started only with --allow-commands");
  if (sessions_.living() >= kLivingMax) {
    return problem(Status::TooManyRequests,
                   fmt::format("{} sessions run; stop one first", kLivingMax));
  }
  const uint32_t number = ++last_child_;
  Frame frame{FrameKind::Start, number, {wanted->language}};
  frame.fields.insert(frame.fields.end(), wanted->words.begin(), wanted->words.end());
  channel_.tell(frame);
  sessions_.begin(number, *wanted->asked);
  return json_reply(sessions_.json(number), Status::Created);
}

Answer Api::one_session(const HttpRequest& request, uint32_t number) {
  if (request.method == "GET") return json_reply(sessions_.json(number));
  if (request.method != "DELETE") return wrong_method("GET, DELETE");
  const SessionState state = sessions_.state(number);
  if (state == SessionState::Starting || state == SessionState::Running) {
    channel_.tell({FrameKind::Stop, number, {}});
    sessions_.stopping(number);
  }
  Reply reply = json_reply(sessions_.json(number));
  if (state == SessionState::Ended) sessions_.forget(number);
  return reply;
}

Answer Api::ask(const Asked& asked) {
  if (const auto* const reply = std::get_if<Reply>(&asked)) return *reply;
  constexpr size_t kAtOnceMax = 16;
  if (running_.size() >= kAtOnceMax)
    return problem(Status::Unavailable, "too much is asked at the same time");
  const auto& question = std::get<Question>(asked);
  const uint32_t child = ++last_child_;
  channel_.tell({FrameKind::Start, child, question.task});
  running_.emplace(child, Running{.reply = question.reply, .begun_ns = clock_ns(CLOCK_MONOTONIC)});
  return ReplyLater{child};
}

void Api::cancel(uint32_t child) {
  if (running_.contains(child)) channel_.tell({FrameKind::Stop, child, {}});
}

void Api::beat() {
  constexpr int64_t kLongestNs = 60'000'000'000;
  const int64_t now = clock_ns(CLOCK_MONOTONIC);
  for (const auto& [child, running] : running_)
    if (now - running.begun_ns > kLongestNs) cancel(child);
}

void Api::take(const Frame& frame) {
  const auto running = running_.find(frame.child);
  if (running != running_.end()) return take_of_running(frame, running->second);
  if (sessions_.has(frame.child) && !frame.fields.empty()) take_of_session(frame);
}

void Api::take_of_session(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::Output:
      return sessions_.take_output(frame.child, frame.fields[0]);
    case FrameKind::Messages:
      return sessions_.take_messages(frame.child, frame.fields[0]);
    case FrameKind::Ended:
      return sessions_.end(frame.child, frame.fields[0],
                           frame.fields.size() > 1 ? frame.fields[1] : std::string());
    case FrameKind::Start:
    case FrameKind::Stop:
      return;  // Those are ours to say.
  }
}

void Api::take_of_running(const Frame& frame, Running& running) {
  constexpr size_t kKeptBytesMax = 4 << 20;
  CommandResult& result = running.result;
  const std::string text = frame.fields.empty() ? std::string() : frame.fields[0];
  const bool is_output = frame.kind == FrameKind::Output;
  std::string& kept = is_output ? result.output : result.messages;
  if (is_output || frame.kind == FrameKind::Messages) {
    const size_t room = kKeptBytesMax - kept.size();
    result.is_cut |= is_output && text.size() > room;
    kept += text.substr(0, room);
  }
  if (frame.kind != FrameKind::Ended) return;
  result.status = text;
  const Reply reply = running.reply(result);
  running_.erase(frame.child);
  if (tell_) tell_(frame.child, reply);
}

}  // namespace clew::serve
