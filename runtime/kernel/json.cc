// SPDX-License-Identifier: Apache-2.0
// json(): the text of one element of a JSON text, named by a path like `a.b[3].c`. Places are
// offsets in the window, 0 is "not there". Each step is a function of its own, so that the verifier
// looks at one loop at a time.
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {
namespace {

inline constexpr uint64_t kStepsMax = 64;  // Components of a path.

[[gnu::always_inline]] inline bool is_blank(uint64_t character) {
  return character == ' ' || character - '\t' < 2 || character == '\r';
}

[[gnu::always_inline]] inline bool opens(uint64_t character) {
  return character == '{' || character == '[';
}
[[gnu::always_inline]] inline bool closes(uint64_t character) {
  return character == '}' || character == ']';
}

}  // namespace

extern "C" {

[[gnu::noinline]] uint64_t d_json_space(MachineWindow* w, uint64_t place) {
  const uint64_t limit = string_bytes();
  uint64_t i = zero(w);
  for (; i < limit && go_on(); ++i) {
    if (!is_blank(byte(w, place + i))) break;
  }
  return place + i;
}

// Behind the closing quote of the text that begins at `place`.
[[gnu::noinline]] uint64_t d_json_text_end(MachineWindow* w, uint64_t place) {
  const uint64_t limit = string_bytes();
  uint64_t i = zero(w) + 1;
  for (; i < limit && go_on(); ++i) {
    const uint64_t character = byte(w, place + i);
    if (character == 0) return place + i;
    if (character == '"') return place + i + 1;
    if (character == '\\') ++i;
  }
  return place + i;
}

// Behind the value that begins at `place`.
[[gnu::noinline]] uint64_t d_json_end(MachineWindow* w, uint64_t place) {
  const uint64_t limit = string_bytes();
  uint64_t depth = zero(w);
  uint64_t here = zero(w) + place;
  for (uint64_t i = zero(w); i < limit && go_on(); ++i) {
    const uint64_t character = byte(w, here);
    if (character == 0) break;
    if (depth == 0 && (character == ',' || closes(character))) break;
    here = forgotten(w, character == '"' ? d_json_text_end(w, here) : here + 1);
    const uint64_t change = opens(character) ? 1 : closes(character) ? ~uint64_t{0} : 0;
    depth = forgotten(w, depth + change);
    if (depth == 0 && (character == '"' || closes(character))) break;
  }
  return here;
}

// Whether the text at `place`, of as many bytes, is the `length` bytes at `key`.
[[gnu::noinline]] uint64_t d_json_is_key(MachineWindow* w, uint64_t place, uint64_t key,
                                         uint64_t length) {
  uint64_t round = zero(w);
  uint64_t i = zero(w);
  for (; i < length && go_on(round, string_bytes()); ++i) {
    if (byte(w, place + 1 + i) != byte(w, key + i)) return 0;
  }
  return 1;
}

// The value of a member of the object at `place`.
[[gnu::noinline]] uint64_t d_json_member(MachineWindow* w, uint64_t place, uint64_t key,
                                         uint64_t length) {
  if (byte(w, place) != '{') return 0;
  // No text goes on behind that: a window without any byte 0 does not, either.
  const uint64_t end = place + string_bytes();
  uint64_t here = d_json_space(w, place + 1);
  for (uint64_t i = zero(w); i < string_bytes() && here < end && go_on(); ++i) {
    if (byte(w, here) != '"') return 0;
    // Only texts of the key's length: all comparisons together are not longer than the text.
    const uint64_t text_end = d_json_text_end(w, here);
    uint64_t found = 0;
    if (text_end - here == length + 2) found = d_json_is_key(w, here, key, length);
    here = d_json_space(w, text_end);
    if (byte(w, here) != ':') return 0;
    here = d_json_space(w, here + 1);
    if (found != 0) return here;
    here = d_json_space(w, d_json_end(w, here));
    if (byte(w, here) != ',') return 0;
    here = d_json_space(w, here + 1);
  }
  return 0;
}

// Element `index` of the array at `place`.
[[gnu::noinline]] uint64_t d_json_element(MachineWindow* w, uint64_t place, uint64_t index) {
  if (byte(w, place) != '[') return 0;
  const uint64_t end = place + string_bytes();
  uint64_t here = d_json_space(w, place + 1);
  uint64_t round = zero(w);
  for (uint64_t i = zero(w); i < index && go_on(round, string_bytes()); ++i) {
    if (here >= end) return 0;
    here = d_json_space(w, d_json_end(w, here));
    if (byte(w, here) != ',') return 0;
    here = d_json_space(w, here + 1);
  }
  return byte(w, here) == ']' ? 0 : here;
}

// The length of the path's first component: up to a dot, a bracket or the end.
[[gnu::noinline]] uint64_t d_json_component(MachineWindow* w, uint64_t key) {
  const uint64_t limit = string_bytes();
  uint64_t i = zero(w);
  for (; i < limit && go_on(); ++i) {
    const uint64_t character = byte(w, key + i);
    if (character == 0 || character == '.' || character == '[' || character == ']') break;
  }
  return i;
}

[[gnu::noinline]] uint64_t d_json_index(MachineWindow* w, uint64_t key, uint64_t length) {
  uint64_t value = zero(w);
  uint64_t round = zero(w);
  for (uint64_t i = zero(w); i < length && go_on(round, string_bytes()); ++i)
    value = value * 10 + (byte(w, key + i) & 0xF);
  return value;
}

uint64_t d_json(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t key) {
  if (is_null(w, string) || is_null(w, key)) return 0;
  uint64_t here = d_json_space(w, string);
  uint64_t rest = zero(w) + key;
  for (uint64_t i = zero(w); i < kStepsMax && go_on(); ++i) {
    const uint64_t first = byte(w, rest);
    if (first == 0) break;
    const uint64_t begin = first == '.' || first == '[' ? rest + 1 : rest;
    const uint64_t length = d_json_component(w, begin);
    here = first == '[' ? d_json_element(w, here, d_json_index(w, begin, length))
                        : d_json_member(w, here, begin, length);
    if (here == 0) return 0;
    rest = begin + length;
    if (byte(w, rest) == ']') ++rest;
  }
  const uint64_t end = d_json_end(w, here);
  if (byte(w, here) == '"') return slice(w, dst, here + 1, end - 1);
  uint64_t round = zero(w);
  uint64_t last = zero(w) + end;
  for (; last > here && go_on(round, string_bytes()); --last) {
    if (!is_blank(byte(w, last - 1))) break;
  }
  return slice(w, dst, here, last);
}

}  // extern "C"

}  // namespace clew::runtime::kernel
