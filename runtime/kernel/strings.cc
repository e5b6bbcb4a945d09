// SPDX-License-Identifier: Apache-2.0
// D's string functions that look at a text: length, comparison, search.
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {

// By itself, so that the verifier looks at one loop at a time.
extern "C" [[gnu::noinline]] uint64_t d_is_at(MachineWindow* w, uint64_t place, uint64_t needle,
                                              uint64_t needle_bytes) {
  uint64_t round = zero(w);
  uint64_t same = zero(w);
  for (; same < needle_bytes && go_on(round, string_bytes()); ++same) {
    if (byte(w, place + same) != byte(w, needle + same)) return 0;
  }
  return 1;
}

namespace {

inline constexpr uint64_t kFromNowhere = uint64_t{1} << 63;  // No position was given.
inline constexpr uint64_t kAbsent = ~uint64_t{0};

struct Search {
  uint64_t string;
  uint64_t needle;
  uint64_t from;  // The first place, and
  uint64_t to;    // the last one.
};

#if !defined(__bpf__)
// The kernel ends a search that compares too much (may_goto); in a process the time is the
// program's. So longer needles are looked for by a hash that rolls over the text (Karp and Rabin):
// some steps for each byte, and a comparison where the hashes agree.
inline constexpr uint64_t kNeedleBytesMax = 16;  // Of a needle that is compared at each place.
inline constexpr uint64_t kComparisonsMax = 16;  // Only a text made for it agrees more often.
inline constexpr uint64_t kHashFactor = 0x9E37'79B9'7F4A'7C15;

// `newest` and `oldest` are the ends of the piece at a place: what a step adds and takes away.
struct RollingHash {
  uint64_t wanted = 0;
  uint64_t seen = 0;
  uint64_t power = 1;  // Of the oldest byte.

  void begin(uint8_t of_needle, uint8_t of_text, bool is_first) {
    wanted = wanted * kHashFactor + of_needle;
    seen = seen * kHashFactor + of_text;
    if (!is_first) power *= kHashFactor;
  }
  void step(uint8_t oldest, uint8_t newest) {
    seen = (seen - power * oldest) * kHashFactor + newest;
  }
};

uint64_t search_long(MachineWindow* w, const Search& s, uint64_t size, bool is_forward) {
  RollingHash hash;
  const uint64_t first = is_forward ? s.from : s.to;
  const uint64_t last = size - 1;
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t place = is_forward ? i : last - i;
    hash.begin(byte(w, s.needle + place), byte(w, s.string + first + place), i == 0);
  }
  uint64_t comparisons = 0;
  for (uint64_t i = first, left = s.to - s.from + 1; left > 0; --left) {
    if (hash.seen == hash.wanted && comparisons++ < kComparisonsMax &&
        d_is_at(w, s.string + i, s.needle, size) != 0) {
      return i;
    }
    const uint64_t here = s.string + i;
    hash.step(byte(w, is_forward ? here : here + last),
              byte(w, is_forward ? here + size : here - 1));
    i = is_forward ? i + 1 : i - 1;
  }
  return kAbsent;
}
#endif

[[gnu::always_inline]] inline uint64_t search_forward(MachineWindow* w, const Search& s) {
  const uint64_t needle_bytes = length_of(w, s.needle);
#if !defined(__bpf__)
  if (needle_bytes > kNeedleBytesMax && s.from <= s.to) {
    return search_long(w, s, needle_bytes, true);
  }
#endif
  uint64_t round = zero(w);
  for (uint64_t i = zero(w) + s.from; i <= s.to && go_on(round, string_bytes()); ++i) {
    if (d_is_at(w, s.string + i, s.needle, needle_bytes) != 0) return i;
  }
  return kAbsent;
}

[[gnu::always_inline]] inline uint64_t search_backward(MachineWindow* w, const Search& s) {
  const uint64_t needle_bytes = length_of(w, s.needle);
#if !defined(__bpf__)
  if (needle_bytes > kNeedleBytesMax && s.from <= s.to) {
    return search_long(w, s, needle_bytes, false);
  }
#endif
  uint64_t round = zero(w);
  for (uint64_t i = zero(w) + s.to + 1; i > s.from && go_on(round, string_bytes()); --i) {
    if (d_is_at(w, s.string + i - 1, s.needle, needle_bytes) != 0) return i - 1;
  }
  return kAbsent;
}

}  // namespace

extern "C" {

uint64_t d_string_length(MachineWindow* w, uint64_t string) {
  if (is_null(w, string)) return 0;
  return length_of(w, string);
}

uint64_t d_string_compare(MachineWindow* w, uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) {
    if (a == b) return 0;
    return a == 0 ? kAbsent : 1;
  }
  const uint64_t limit = string_bytes();
  uint64_t left = 0;
  uint64_t right = 0;
  for (uint64_t i = zero(w); i < limit && go_on(); ++i) {
    left = byte(w, a + i);
    right = byte(w, b + i);
    if (left != right || left == 0) break;
  }
  if (left == right) return 0;
  return left < right ? kAbsent : 1;
}

uint64_t d_find_string(MachineWindow* w, uint64_t string, uint64_t needle, uint64_t from) {
  if (is_null(w, string) || is_null(w, needle)) return 0;
  const uint64_t size = length_of(w, string);
  const uint64_t needle_bytes = length_of(w, needle);
  // A position before the text counts as its start, one behind it finds only the empty text.
  const uint64_t first = static_cast<int64_t>(from) < 0 ? 0 : from;
  if (first > size) return needle_bytes == 0 ? size : kAbsent;
  if (needle_bytes > size) return kAbsent;
  return search_forward(w, {string, needle, first, size - needle_bytes});
}

uint64_t d_find_last_string(MachineWindow* w, uint64_t string, uint64_t needle, uint64_t from) {
  if (is_null(w, string) || is_null(w, needle)) return 0;
  const uint64_t size = length_of(w, string);
  const uint64_t needle_bytes = length_of(w, needle);
  if (from != kFromNowhere && static_cast<int64_t>(from) < 0) {
    return needle_bytes == 0 ? 0 : kAbsent;
  }
  if (needle_bytes > size) return kAbsent;
  const uint64_t last = size - needle_bytes;
  return search_backward(w, {string, needle, 0, from < last ? from : last});
}

uint64_t d_string_from(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t needle) {
  if (is_null(w, string) || is_null(w, needle)) return 0;
  const uint64_t size = length_of(w, string);
  const uint64_t needle_bytes = length_of(w, needle);
  if (needle_bytes > size) return 0;
  const uint64_t place = search_forward(w, {string, needle, 0, size - needle_bytes});
  return place == kAbsent ? 0 : slice(w, dst, string + place, string + size);
}

// The NUL at the end can be looked for, too, as in C.
uint64_t d_string_at(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t character) {
  if (is_null(w, string)) return 0;
  const uint64_t size = length_of(w, string);
  uint64_t round = zero(w);
  for (uint64_t i = zero(w); i <= size && go_on(round, string_bytes() + 1); ++i) {
    if (byte(w, string + i) == (character & 0xFF)) return slice(w, dst, string + i, string + size);
  }
  return 0;
}

uint64_t d_string_at_last(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t character) {
  if (is_null(w, string)) return 0;
  const uint64_t size = length_of(w, string);
  uint64_t round = zero(w);
  for (uint64_t i = zero(w) + size + 1; i > 0 && go_on(round, string_bytes() + 1); --i) {
    if (byte(w, string + i - 1) == (character & 0xFF)) {
      return slice(w, dst, string + i - 1, string + size);
    }
  }
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel
