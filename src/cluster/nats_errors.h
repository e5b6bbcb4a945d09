// SPDX-License-Identifier: Apache-2.0
// Why a server of NATS could not be reached, or did not let this end in, in one line of a user's
// words: what libnats says of it is a status and a text for its own programmers.
#pragma once

#include <string>
#include <string_view>

#include <nats/nats.h>

#include "base/error.h"
#include "cluster/bus_nats.h"
#include "cluster/nats_address.h"

namespace clew::cluster {

// libnats' text, without the place in its source.
std::string without_place(std::string_view text);

// Of what a server's permissions do not have. `does`: "publish to" or "subscribe to".
std::string not_permitted(std::string_view does, std::string_view subject);
// The same of what a server says of it.
std::string not_permitted(std::string_view text);

// Asks the servers themselves, where that says more; takes a second at most for each.
Error connection_error(natsStatus status, std::string_view text, const NatsOptions& options,
                       const NatsAddress& address);

}  // namespace clew::cluster
