// SPDX-License-Identifier: Apache-2.0
// Where a cluster's bus is, as a user writes it: nats://host:4222 or tls://host:4222, with
// user:password@ or token@ in front of the host and commas between several servers. What is printed
// of it has no secrets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::cluster {

struct NatsAddress {
  std::vector<std::string> servers;  // "nats://host:port" each.
  std::vector<std::string> hosts;    // Of these, without ports and brackets.
  bool is_tls = false;
  std::string user;
  std::string password;
  std::string token;

  [[nodiscard]] std::string shown() const;
  [[nodiscard]] std::string shown(size_t server) const;  // One of them.
};

// Whether what is sent there stays on this machine: "localhost", 127.x.y.z, ::1.
bool is_loopback(std::string_view host);

// InvalidQuery: it is none.
Expected<NatsAddress> parse_nats_address(std::string_view text);

}  // namespace clew::cluster
