// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of messages: who sends which bytes of a TCP stream, a UNIX socket or a
// pipe, who reads them, and where a thread waits for more. What programs do with them is a table of
// a vocabulary:
//
//     [[program]]
//     name = "nginx"             # the file name of its executable
//     onward = "last"            # last, oldest, blocking, slice or none: causal/sockets.h
//     reply = "alternating"      # alternating (default) or none
//     how = "recipe"             # recipe (default) or heuristic
//     pipes = "followed"         # followed or ignored (default)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "causal/sockets.h"
#include "query/cause.h"

namespace clew::query {

// How a program hands its requests on.
struct Program {
  std::string name;
  std::string doc;
  std::string file;  // That defined it, for messages and lists.
  causal::Profile profile{};
};

struct ProgramText {
  std::string_view onward;
  std::string_view reply;
  std::string_view how;
  std::string_view pipes = "ignored";
};
// Of the values in a vocabulary. An error is a sentence without a place.
Expected<causal::Profile> parse_profile(const ProgramText& text);
std::string_view name_of(causal::Onward onward);
// As a vocabulary writes it: "onward last, reply alternating (recipe)".
std::string text_of(const causal::Profile& profile);
// For people: "writes onward for the message read last (recipe)".
std::string describe(const causal::Profile& profile);

// Values of the keys of Act::Send and Act::Receive by TCP, in their order.
enum class SocketKey : uint8_t {
  Socket,  // Where the kernel has it.
  Remote,  // Addresses, in the order of the network: IPv4's, or 64 bits of IPv6's.
  Local,
  Ports,     // The peer's, the own one above it, and the number of the network namespace.
  Bytes,     // The sequence number behind them, and below it how many they are.
  Accepted,  // Not 0: its program has accepted it, and not connected it.
};
inline constexpr size_t kSocketKeys = 6;
// By UNIX sockets.
enum class UnixKey : uint8_t {
  Socket,   // Where the kernel has it.
  Peer,     // And the other end.
  Numbers,  // Of their inodes: the own one, and the peer's above it, or 0.
  Bytes,    // How many, and above it how many are unread. The highest bit of each of the two: it is
            // the own end, or the peer's, that has been accepted.
};
inline constexpr size_t kUnixKeys = 4;
inline constexpr uint32_t kUnreadIsUnknown = INT32_MAX;
// By pipes.
enum class PipeKey : uint8_t {
  Pipe,    // Where the kernel has it; 1 more: its end that is read from.
  Number,  // Of its inode; with the highest bit of 32 where a file system has given it.
  Bytes,   // How many, and above it how many are unread. The highest bit of the lower half: the
           // thread has not seen them.
};
inline constexpr size_t kPipeKeys = 3;

// Act::Connect has the first of these keys, Act::Wait none. `types` has the kernel's.
Expected<std::vector<Carrier>> carriers_of_sockets(TypeSource* types);

// What goes through pipes.
Expected<std::vector<Carrier>> carriers_of_pipes(TypeSource* types);

// Of such keys.
causal::Passage passage_of(causal::Thread thread, Medium medium, std::span<const uint64_t> keys);

}  // namespace clew::query
