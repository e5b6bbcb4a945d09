// SPDX-License-Identifier: Apache-2.0
// Requests that a command of ours answers, which is over soon: what is run for each, and how its
// words become a reply.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "serve/http_message.h"

namespace clew::serve {

// What a server knows of itself.
struct ServerFacts {
  std::string version{};  // Of Clew.
  std::string host{};
  std::string user{};  // Who traces.
  bool commands_allowed = false;
};

// What has become of a command.
struct CommandResult {
  std::string output{};
  std::string messages{};
  std::string status{};  // See Frame::Ended.
  bool is_cut = false;   // Its output was longer than what is kept.
};

struct Question {
  std::vector<std::string> task{};  // See task.h.
  std::function<Reply(const CommandResult&)> reply{};
};

// `what`: the part of the path behind /api/v1/. Nothing: it is none of these requests.
using Asked = std::variant<Question, Reply>;
[[nodiscard]] std::optional<Asked> question_of(std::string_view what, const HttpRequest& request,
                                               const ServerFacts& facts);

// Of a method that a path does not take. `methods`: those that it takes.
[[nodiscard]] Reply wrong_method(std::string_view methods);

}  // namespace clew::serve
