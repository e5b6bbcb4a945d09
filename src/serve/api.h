// SPDX-License-Identifier: Apache-2.0
// /api/v1: what each request means (docs/ui-protocol.md). What needs another process, the keeper's
// children answer, and the reply comes later.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "serve/channel.h"
#include "serve/http_message.h"
#include "serve/lines.h"
#include "serve/questions.h"
#include "serve/sessions.h"

namespace clew::serve {

// The reply comes when the child of this number is gone.
struct ReplyLater {
  uint32_t child;
};
// All lines behind the one of this number, as they come.
struct StreamFrom {
  uint64_t after;
};
using Answer = std::variant<Reply, ReplyLater, StreamFrom>;

class Api {
 public:
  // `reply` is told what has become of a ReplyLater.
  using TellReply = std::function<void(uint32_t child, const Reply& reply)>;
  Api(Channel& channel, Lines& lines, ServerFacts facts)
      : channel_(channel), facts_(std::move(facts)), sessions_(lines) {}
  void set_teller(TellReply tell) { tell_ = std::move(tell); }

  [[nodiscard]] Answer answer(const HttpRequest& request);
  // Nobody waits for it any more.
  void cancel(uint32_t child);
  // Each second: what takes too long is over.
  void beat();
  // What the keeper says.
  void take(const Frame& frame);

 private:
  struct Running {  // A child that gives one reply.
    std::function<Reply(const CommandResult&)> reply;
    int64_t begun_ns = 0;
    CommandResult result{};
  };

  Answer ask(const Asked& asked);
  Answer start_session(const HttpRequest& request);
  Answer one_session(const HttpRequest& request, uint32_t number);
  void take_of_session(const Frame& frame);
  void take_of_running(const Frame& frame, Running& running);

  Channel& channel_;
  ServerFacts facts_;
  Sessions sessions_;
  TellReply tell_;
  std::map<uint32_t, Running> running_;
  uint32_t last_child_ = 0;
};

}  // namespace clew::serve
