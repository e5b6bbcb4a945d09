// SPDX-License-Identifier: Apache-2.0
// The keys of messages that have a name: a token of 128 bits, which a program writes as 32
// hexadecimal digits (clew/cause.h), or a text of its own. Both are exact. A text of 32 such digits
// is that token, whoever wrote it.
//
// What is received can be anything, so only what is sent is kept, and of that so much: where there
// is more, what was sent longest ago is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "causal/graph.h"

namespace clew::causal {

// None: 0, 0 is no token.
std::optional<ContextKey> key_of_token(uint64_t high, uint64_t low);

class MessageKeys {
 public:
  // Borrows the graph, which forgets what is forgotten here.
  explicit MessageKeys(Graph& graph, size_t limit) : graph_(graph), limit_(limit) {}

  // Of a text; none: it is empty, or has more bytes than a key can have.
  std::optional<ContextKey> sent(std::string_view text);
  // The same. Of a text that nobody has sent it is one that nobody has put.
  [[nodiscard]] std::optional<ContextKey> received(std::string_view text) const;

 private:
  struct Known {
    uint64_t number = 0;
    std::list<std::string>::iterator age;
  };

  Graph& graph_;
  size_t limit_;
  uint64_t last_ = 0;                                  // 0 is nobody's number.
  std::list<std::string> ages_;                        // Sent longest ago first.
  std::unordered_map<std::string_view, Known> known_;  // Of texts in `ages_`.
};

}  // namespace clew::causal
