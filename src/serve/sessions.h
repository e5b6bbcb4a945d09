// SPDX-License-Identifier: Apache-2.0
// The sessions of a server: what was asked, what state each is in, and its lines, which are those
// of the result stream of its child (docs/output-stream.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "output/json_value.h"
#include "serve/lines.h"
#include "serve/stream_lines.h"

namespace clew::serve {

using output::Json;

enum class SessionState : uint8_t { Starting, Running, Stopping, Ended };

class Sessions {
 public:
  explicit Sessions(Lines& lines) : lines_(lines) {}

  // `asked`: text, language, targets and options, as they were asked for.
  void begin(uint32_t number, const Json& asked);
  void take_output(uint32_t number, std::string_view bytes);
  void take_messages(uint32_t number, std::string_view bytes);
  // Its child is gone: see Frame::Ended.
  void end(uint32_t number, const std::string& status, const std::string& why);
  void stopping(uint32_t number);
  void forget(uint32_t number);

  [[nodiscard]] bool has(uint32_t number) const { return all_.contains(number); }
  [[nodiscard]] SessionState state(uint32_t number) const { return all_.at(number).state; }
  [[nodiscard]] size_t living() const;
  [[nodiscard]] Json json(uint32_t number) const;
  [[nodiscard]] Json json() const;

 private:
  struct Session {
    std::shared_ptr<const Json> asked{};
    SessionState state = SessionState::Starting;
    std::string started{};
    uint64_t lines = 0;
    StreamLines reader{};
    std::string messages{};  // The first of them.
    bool has_end = false;
    std::shared_ptr<const Json> losses{};
    std::string error{};
  };

  void set_state(uint32_t number, Session& session, SessionState state);
  void take_line(uint32_t number, Session& session, const StreamLine& line);
  void forget_oldest();

  Lines& lines_;
  std::map<uint32_t, Session> all_;
};

}  // namespace clew::serve
