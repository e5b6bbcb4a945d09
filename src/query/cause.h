// SPDX-License-Identifier: Apache-2.0
// What tracepoints of a vocabulary say of requests: where a thread begins one, and where it hands
// its context over or takes another's. Joins by cause need it (causal/graph.h).
//
//     [[tracepoint]]
//     name = "pool.submit"
//     function = "app!submit"
//     exports = { job = "arg1" }
//     cause = "put job"       # begin, end, multiplexed; put, take, join, send, receive with
//     exports how = "recipe"          # explicit, recipe (default) or heuristic
//
// What goes to other processes is known by a number ("send n"), by two, which are one of 128 bits
// ("send high low"), or by a text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "causal/graph.h"
#include "query/query.h"

namespace clew::query {

struct Text;
class TypeSource;
class Vocabulary;
struct Environment;

// What becomes of the context of the thread that passes.
// Fork: another one, whose number the key is, goes on behind this.
// Multiplex: what it reads is of a connection with several questions at a time.
// Execute, Exit: its process runs another program; it has ended.
// Connect, Send, Receive, Wait: what it does with sockets (query/socket_carriers.h).
enum class Act : uint8_t {
  Begin,
  End,
  Put,
  Take,
  Join,
  Fork,
  Multiplex,
  Execute,
  Exit,
  Connect,
  Send,
  Receive,
  Wait
};

// What bytes go through. Each has probes, and keys, of its own.
enum class Medium : uint8_t { Tcp, Unix, Pipe };

struct Cause {
  Act act = Act::Begin;
  Medium medium = Medium::Tcp;  // Of Act::Send and Act::Receive.
  bool across = false;          // send, receive: the key is the same in all processes.
  std::string key;              // Of an export; empty for begin and end.
  std::string low_key{};        // Of `across`: the key is a token, whose higher half is `key`.
  causal::EdgeClass how = causal::EdgeClass::Recipe;
  bool operator==(const Cause&) const = default;
};

// Of the two values in a vocabulary. An error is a sentence without a place.
Expected<Cause> parse_cause(std::string_view cause, std::string_view how);

// As a vocabulary writes it: "put job".
std::string text_of(const Cause& cause);
// For people: "hands the thread's request over with job".
std::string describe(const Cause& cause);

// One place of such a tracepoint.
struct Carrier {
  Source source{};  // Without inputs.
  Cause cause{};
  std::vector<Expression> keys{};        // Over the source's event; of most acts one.
  std::vector<Expression> conditions{};  // Other events are no such act.
};

// How the key of what goes to other processes is known.
enum class KeyForm : uint8_t { Number, Token, Text };
KeyForm form_of(const Carrier& carrier);

// The places of `from e in SOURCE [where CONDITION] select KEYS`, with what they select as keys.
// Errors: InvalidQuery, also of a key that is no number (nor text, where it goes to other
// processes).
Expected<std::vector<Carrier>> carriers_at(const Text& text, const Cause& cause,
                                           const Environment& environment);
// What the kernel knows of threads: one begins another, and one ends. `types` has the kernel's.
Expected<std::vector<Carrier>> carriers_of_threads(TypeSource* types);
// Of all the vocabulary. Types may be null. Errors: InvalidQuery, of a key that is no number or has
// no meaning, where one of the tracepoint's places is needed; such a tracepoint of other programs
// is left out.
Expected<std::vector<Carrier>> carriers_of(const Vocabulary& vocabulary, TypeSource* types,
                                           const std::function<bool(const Source&)>& is_needed);

}  // namespace clew::query
