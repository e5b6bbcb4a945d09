// SPDX-License-Identifier: Apache-2.0
#include "serve/api.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

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

Reply wrong_method(std::string_view methods) {
  Reply reply = problem(Status::MethodNotAllowed, fmt::format("this takes {}", methods));
  reply.headers.emplace_back("Allow", methods);
  return reply;
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
  if (sessions_.living() >= kLivingMax) {
    return problem(Status::TooManyRequests,
                   fmt::format("{} sessions run; stop one first", kLivingMax));
  }
  const uint32_t number = ++last_child_;
  Frame frame{FrameKind::Start, number, {wanted->language}};
  frame.fields.insert(frame.fields.end(), wanted->words.begin(), wanted->words.end());
  channel_.tell(frame);
  sessions_.begin(number, wanted->asked);
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

void Api::cancel(uint32_t child) {
  if (asked_.contains(child)) channel_.tell({FrameKind::Stop, child, {}});
}

void Api::take(const Frame& frame) {
  const auto asked = asked_.find(frame.child);
  if (asked != asked_.end()) return take_of_asked(frame, asked->second);
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

void Api::take_of_asked(const Frame& frame, Asked& asked) {
  constexpr size_t kAnswerBytesMax = 4 << 20;
  const std::string& text = frame.fields.empty() ? asked.why : frame.fields[0];
  if (frame.kind == FrameKind::Output && asked.output.size() < kAnswerBytesMax)
    asked.output += text;
  if (frame.kind == FrameKind::Messages && asked.messages.size() < kAnswerBytesMax)
    asked.messages += text;
  if (frame.kind != FrameKind::Ended) return;
  asked.status = text;
  if (frame.fields.size() > 1) asked.why = frame.fields[1];
  const Reply reply = asked.make(asked);
  asked_.erase(frame.child);
  if (tell_) tell_(frame.child, reply);
}

}  // namespace clew::serve
