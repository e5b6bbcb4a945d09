// SPDX-License-Identifier: Apache-2.0
// What a server of NATS says first to whoever connects, before it knows who that is: INFO {…}. It
// tells apart what libnats does not: a port of another program, an old server, one that wants TLS.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"

namespace clew::cluster {

struct NatsGreeting {
  std::string version{};  // Empty: it says none.
  std::string cluster{};  // Of several servers, the name of all.
  bool wants_tls = false;
  bool wants_certificate = false;  // Of who connects, with TLS.
  bool wants_credentials = false;
  bool has_headers = false;
  bool has_jetstream = false;  // This one; another one of its cluster may.
};

// Of its first line. Io: it is no server of NATS.
Expected<NatsGreeting> parse_nats_greeting(std::string_view line);

// `server` is a URL of NatsAddress::servers. NotFound: no machine is known by that name. Io: nobody
// listens, or what listens is no server of NATS, or says nothing for so long. The errors name the
// server as `shown`.
Expected<NatsGreeting> greet_nats(std::string_view server, const std::string& shown,
                                  std::chrono::milliseconds patience);

// Refused: it is too old for a cluster.
Expected<void> check_version(const NatsGreeting& greeting, const std::string& shown);

}  // namespace clew::cluster
