// SPDX-License-Identifier: Apache-2.0
// `clew ui`: a server for one browser's user on this machine. There are two processes. The keeper
// (keeper.h) has the rights to trace, starts sessions as its children (child.h) and reads nothing
// from a browser. The front (front.h) has no rights, speaks HTTP (http_server.h) and knows what
// sessions say (sessions.h, lines.h). They speak over a pair of sockets (frame.h), in which the
// front names tasks of a closed list (task.h). docs/ui-protocol.md is the contract with the page.
//
// Whoever has the token may do what this user may do with Clew, and no more: commands are started
// only if that is allowed. Nobody else may do anything (http_message.h: refusal_of).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "serve/questions.h"

namespace clew::serve {

struct Settings {
  uint16_t port = 0;  // 0: a free one.
  ServerFacts facts{};
  std::string page_folder{};  // Instead of the page that is built in.
};

inline constexpr uint16_t kUsualPort = 7417;

// Serves until `stop_descriptor` is readable, and then stops all sessions, which is waited for.
// `ready` gets the URL once the server listens. Errors: the port is taken (names a free one), or
// the system says no.
Expected<void> serve(const Settings& settings, int stop_descriptor,
                     const std::function<void(const std::string& url)>& ready);

}  // namespace clew::serve
