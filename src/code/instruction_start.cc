// SPDX-License-Identifier: Apache-2.0
#include "code/instruction_start.h"

#include <algorithm>
#include <iterator>

#include "code/decode.h"

namespace clew::code {
namespace {

constexpr size_t kReaders = 6;  // That begin one byte behind the other.

// Reads from `from` on. A nop that `at` is inside of lies between functions.
bool comes_to(std::span<const uint8_t> code, size_t from, size_t at) {
  while (from < at) {
    const auto decoded = decode(code.subspan(from));
    const size_t length = decoded ? decoded->length : size_t{1};
    if (decoded && decoded->flow == Flow::Nop && from + length > at) return true;
    from += length;
  }
  return from == at;
}

bool is_filling(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [&](uint8_t byte) {
    return byte == bytes.front() && (byte == 0x00 || byte == 0x90 || byte == 0xcc);
  });
}

}  // namespace

bool can_be_patched(std::span<const uint8_t> code, size_t at, size_t size,
                    std::span<const size_t> begins) {
  if (at + size > code.size()) return false;
  if (is_filling(code.subspan(at, size))) return true;
  const auto next = std::upper_bound(begins.begin(), begins.end(), at);
  if (next != begins.begin() && at - *std::prev(next) < kCodeInFront)
    return comes_to(code, *std::prev(next), at);
  if (at < kCodeInFront) return false;
  for (size_t reader = 0; reader < kReaders; ++reader) {
    if (!comes_to(code, at - kCodeInFront + reader, at)) return false;
  }
  return true;
}

}  // namespace clew::code
