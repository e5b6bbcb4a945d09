// SPDX-License-Identifier: Apache-2.0
#include "serve/sessions.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/clock_ns.h"

namespace clew::serve {
namespace {

constexpr size_t kMessagesBytesMax = 16 << 10;
// Those that ended and were not forgotten; the oldest goes.
constexpr size_t kSessionsMax = 64;

constexpr std::array<std::string_view, 4> kStateNames = {"starting", "running", "stopping",
                                                         "ended"};

std::string_view name_of(SessionState state) {
  return kStateNames.at(static_cast<size_t>(state));
}

// The member `name` of the object that a line's second member is.
Json member_of(std::string_view line, const char* word, const char* name) {
  const Json json = Json::parse(line, nullptr, false);
  const bool has = json.is_object() && json.contains(word) && json[word].is_object() &&
                   json[word].contains(name);
  return has ? json[word][name] : Json();
}

std::string content_of(uint32_t number, std::string_view line) {
  return fmt::format("\"id\":\"{}\",\"line\":{}", session_id(number), line);
}

std::string message_of(const Json& error) {
  const bool has = error.is_object() && error.contains("message") && error["message"].is_string();
  return has ? error["message"].get<std::string>() : std::string();
}

}  // namespace

void Sessions::begin(uint32_t number, const Json& asked) {
  forget_oldest();
  Session& session = all_[number];
  session.asked = std::make_shared<const Json>(asked);
  session.started = fmt::to_string(clock_ns(CLOCK_REALTIME));
  set_state(number, session, SessionState::Starting);
}

void Sessions::forget_oldest() {
  if (all_.size() < kSessionsMax) return;
  const auto oldest = std::find_if(all_.begin(), all_.end(), [](const auto& one) {
    return one.second.state == SessionState::Ended;
  });
  if (oldest != all_.end()) forget(oldest->first);
}

void Sessions::take_output(uint32_t number, std::string_view bytes) {
  Session& session = all_.at(number);
  session.reader.add(bytes, [&](const StreamLine& line) { take_line(number, session, line); });
}

void Sessions::take_messages(uint32_t number, std::string_view bytes) {
  std::string& messages = all_.at(number).messages;
  messages += bytes.substr(0, kMessagesBytesMax - messages.size());
}

void Sessions::take_line(uint32_t number, Session& session, const StreamLine& line) {
  ++session.lines;
  if (line.word == LineWord::Broken) {
    return lines_.add(number, LineKind::Plain,
                      fmt::format("\"gap\":{{\"id\":\"{}\",\"lines\":1}}", session_id(number)));
  }
  const bool is_pinned = line.word == LineWord::Session || line.word == LineWord::Columns ||
                         line.word == LineWord::End;
  lines_.add(number, is_pinned ? LineKind::Pinned : LineKind::Plain, content_of(number, line.text));
  if (line.word == LineWord::Columns && session.state == SessionState::Starting)
    set_state(number, session, SessionState::Running);
  if (line.word == LineWord::Losses)
    session.losses = std::make_shared<const Json>(Json::parse(line.text, nullptr, false)["losses"]);
  if (line.word != LineWord::End) return;
  session.has_end = true;
  session.losses = std::make_shared<const Json>(member_of(line.text, "end", "losses"));
  session.error = message_of(member_of(line.text, "end", "error"));
}

void Sessions::end(uint32_t number, const std::string& status, const std::string& why) {
  Session& session = all_.at(number);
  session.reader.finish([&](const StreamLine& line) { take_line(number, session, line); });
  if (!session.has_end) {
    session.error = !why.empty()                ? why
                    : !session.messages.empty() ? session.messages
                    : status == "0"             ? ""
                                                : "the session ended by " + status;
    const Json error = session.error.empty() ? Json() : Json{{"message", session.error}};
    const Json end = {{"end",
                       {{"why", status},
                        {"losses", session.losses ? *session.losses : Json()},
                        {"error", error}}}};
    lines_.add(number, LineKind::Pinned, content_of(number, output::json_text(end)));
  }
  set_state(number, session, SessionState::Ended);
}

void Sessions::stopping(uint32_t number) {
  set_state(number, all_.at(number), SessionState::Stopping);
}

void Sessions::forget(uint32_t number) {
  all_.erase(number);
  lines_.forget(number);
}

void Sessions::set_state(uint32_t number, Session& session, SessionState state) {
  session.state = state;
  lines_.add(number, LineKind::State,
             fmt::format("\"id\":\"{}\",\"state\":\"{}\"", session_id(number), name_of(state)));
}

size_t Sessions::living() const {
  return static_cast<size_t>(std::count_if(all_.begin(), all_.end(), [](const auto& one) {
    return one.second.state != SessionState::Ended;
  }));
}

Json Sessions::json(uint32_t number) const {
  const Session& session = all_.at(number);
  Json json = {{"id", session_id(number)}};
  json.update(*session.asked);
  json["state"] = name_of(session.state);
  json["started"] = session.started;
  json["lines"] = session.lines;
  if (session.losses && !session.losses->is_null()) json["losses"] = *session.losses;
  if (!session.error.empty()) json["error"] = session.error;
  return json;
}

Json Sessions::json() const {
  Json list = Json::array();
  for (const auto& [number, session] : all_)
    list.push_back(json(number));
  return list;
}

}  // namespace clew::serve
