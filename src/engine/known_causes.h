// SPDX-License-Identifier: Apache-2.0
// What joins by cause know of one process: what its program is said to do with messages, where it
// hands requests on, and which of its descriptors they could come through. Looks, and changes
// nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace clew::engine {

struct HandOverPlace {
  std::string text;       // entry("squid!AsyncCall::make()")
  size_t functions = 0;   // Of the process that it names.
  std::string problem{};  // Why it is not there, or takes no probe; empty: it is, and does.
};

// A tracepoint of a vocabulary that says what becomes of requests, of which the process has the
// module.
struct HandOver {
  std::string tracepoint;
  std::string cause;  // As the vocabulary writes it: "put call".
  std::string how;    // "recipe"
  std::vector<HandOverPlace> places;
};

struct KnownCauses {
  std::string program;  // What messages call it.
  std::string says;     // What it does with messages, for people.
  bool follows_pipes = false;
  bool has_table = false;    // A vocabulary says so,
  std::string file{};        // this one,
  bool is_believed = false;  // and queries that do not ask for worse believe it.
  std::vector<HandOver> hand_overs{};
  std::string message_problem{};  // Why the kernel does not say who sends what; empty: it does.
};

// Errors: of the vocabularies, or what cannot be read of the process.
Expected<KnownCauses> find_known_causes(pid_t pid,
                                        const std::vector<std::string>& vocabulary_paths);

// Open descriptors, by what they lead to.
struct OpenCarriers {
  size_t tcp = 0;
  size_t unix_sockets = 0;
  size_t unix_datagrams = 0;
  size_t udp = 0;
  size_t other_sockets = 0;
  size_t pipes = 0;
  size_t io_urings = 0;
};
OpenCarriers open_carriers(pid_t pid);

}  // namespace clew::engine
