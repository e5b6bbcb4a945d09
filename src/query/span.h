// SPDX-License-Identifier: Apache-2.0
// A piece of a query's text, for messages.
#pragma once

#include <cstdint>

namespace clew::query {

struct Span {
  uint32_t begin = 0;  // Byte offset of the first byte.
  uint32_t end = 0;    // One past the last.
  bool operator==(const Span&) const = default;
};

}  // namespace clew::query
