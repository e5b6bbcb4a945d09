// SPDX-License-Identifier: Apache-2.0
// D's string functions that make a text: joining, cutting, paths of files, numbers.
#include "runtime/kernel/text.h"

namespace clew::runtime::kernel {

// Loops inside of loops: by themselves, so that the verifier looks at one at a time.
extern "C" {

#if defined(__bpf__)
[[gnu::noinline]] uint64_t d_contains(MachineWindow* w, uint64_t set, uint64_t character) {
  const uint64_t limit = string_bytes();
  for (uint64_t i = zero(w); i < limit && go_on(); ++i) {
    const uint64_t one = byte(w, set + i);
    if (one == character) return 1;
    if (one == 0) return 0;
  }
  return 0;
}
#endif

// The begin of the last component of a path that ends at `end`.
[[gnu::noinline]] uint64_t d_component(MachineWindow* w, uint64_t string, uint64_t end) {
  uint64_t round = zero(w);
  uint64_t first = zero(w) + end;
  for (; first > 0 && go_on(round, string_bytes()); --first) {
    if (byte(w, string + first - 1) == '/') break;
  }
  return first;
}

// The end of the component that begins at `begin`.
[[gnu::noinline]] uint64_t d_component_end(MachineWindow* w, uint64_t string, uint64_t begin,
                                           uint64_t size) {
  uint64_t round = zero(w);
  uint64_t end = zero(w) + begin;
  for (; end < size && go_on(round, string_bytes()); ++end) {
    if (byte(w, string + end) == '/') break;
  }
  return end;
}

}  // extern "C"

namespace {

// A start of substr() that is further before the text's begin than any count reaches, but so that
// sums with it do not overflow.
inline constexpr int64_t kBeforeAll = -(int64_t{1} << 62);

// The characters of a text. The kernel ends a search that compares too much (may_goto); in a
// process each character is a bit of the scratch room, so that the text is read once.
class Characters {
 public:
  [[gnu::always_inline]] Characters(MachineWindow* w, uint64_t text) : w_(w), text_(text) {
#if !defined(__bpf__)
    zero_bytes(w->scratch, 256 / 8);
    const uint64_t limit = string_bytes();
    for (uint64_t i = 0; i < limit; ++i) {
      const uint8_t one = byte(w, text + i);
      if (one == 0) break;
      w->scratch[one / 8] = static_cast<uint8_t>(w->scratch[one / 8] | 1U << (one % 8));
    }
#endif
  }

  [[nodiscard, gnu::always_inline]] bool has(uint64_t character) const {
#if defined(__bpf__)
    return d_contains(w_, text_, character) != 0;
#else
    return (w_->scratch[masked(character, 0xFF) / 8] >> (character % 8) & 1) != 0;
#endif
  }

 private:
  MachineWindow* w_;
  [[maybe_unused]] uint64_t text_;  // In a process its bytes are not looked at again.
};

// strtok()'s text is kept outside of D's part of the window, until the clause ends.
[[gnu::always_inline]] inline uint64_t token_byte(MachineWindow* w, uint64_t place) {
  return w->token_text[masked(place, 0xFFF)];
}

[[gnu::always_inline]] inline void change_case(MachineWindow* w, uint64_t dst, uint64_t first) {
  const uint64_t limit = string_bytes();
  for (uint64_t i = zero(w); i < limit && go_on(); ++i) {
    const uint64_t character = byte(w, dst + i);
    if (character == 0) break;
    if (character - first < 26) set_byte(w, dst + i, character ^ 0x20);
  }
}

[[gnu::always_inline]] inline uint64_t change_case_to(MachineWindow* w, uint64_t dst,
                                                      uint64_t string, uint64_t first) {
  if (is_null(w, string)) return 0;
  copy_own_text(at(w, dst), string_bytes(), at(w, string));
  change_case(w, dst, first);
  return dst;
}

// The end of a path without its trailing slashes; 0 when it is all slashes.
[[gnu::always_inline]] inline uint64_t without_slashes(MachineWindow* w, uint64_t string,
                                                       uint64_t end) {
  uint64_t round = zero(w);
  uint64_t last = zero(w) + end;
  for (; last > 0 && go_on(round, string_bytes()); --last) {
    if (byte(w, string + last - 1) != '/') break;
  }
  return forgotten(w, last);
}

[[gnu::always_inline]] inline uint64_t one_byte(MachineWindow* w, uint64_t dst,
                                                uint64_t character) {
  set_byte(w, dst, character);
  return finish(w, dst, 1);
}

}  // namespace

extern "C" {

uint64_t d_string_join(MachineWindow* w, uint64_t dst, uint64_t a, uint64_t b) {
  if (is_null(w, a) || is_null(w, b)) return 0;
  const int64_t copied = copy_own_text(at(w, dst), string_bytes(), at(w, a));
  const uint64_t size = copied <= 0 ? 0 : static_cast<uint64_t>(copied) - 1;
  const uint64_t room = string_bytes() - size;
  const int64_t added = copy_own_text(at(w, dst + size), room, at(w, b));
  return finish(w, dst, size + (added <= 0 ? 0 : static_cast<uint64_t>(added) - 1));
}

uint64_t d_substring(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t first,
                     uint64_t count) {
  if (is_null(w, string)) return 0;
  const auto size = static_cast<int64_t>(length_of(w, string));
  auto begin = static_cast<int64_t>(first);
  const auto wanted = static_cast<int64_t>(count);
  int64_t from_end = 0;  // How many bytes a negative start reaches beyond the begin.
  if (begin < 0) {
    begin += size;
    if (begin < 0) {
      from_end = begin > kBeforeAll ? begin : kBeforeAll;
      begin = 0;
    }
  }
  if (begin >= size) return finish(w, dst, 0);
  int64_t end = size;
  if (wanted < 0) {
    end = size + wanted;
  } else if (wanted < size - begin - from_end) {
    end = begin + wanted + from_end;
  }
  if (end <= begin) return finish(w, dst, 0);
  return slice(w, dst, string + static_cast<uint64_t>(begin), string + static_cast<uint64_t>(end));
}

uint64_t d_tokenize(MachineWindow* w, uint64_t dst, uint64_t string, uint64_t delimiters) {
  if (is_null(w, delimiters)) return 0;
  if (string != 0) {
    copy_own_text(w->token_text, string_bytes(), at(w, string));
    w->header.token_offset = 0;
    w->header.alloca_top |= kHasToken;
  } else if ((w->header.alloca_top & kHasToken) == 0) {
    return fail(w, MachineFault::BadAddress, 0);
  }
  const Characters set(w, delimiters);
  const uint64_t limit = string_bytes();
  uint64_t round = zero(w);
  uint64_t begin = zero(w) + w->header.token_offset;
  for (; begin < limit && go_on(round, limit); ++begin) {
    const uint64_t character = token_byte(w, begin);
    if (character == 0 || !set.has(character)) break;
  }
  begin = forgotten(w, begin);
  round = zero(w);
  uint64_t end = zero(w) + begin;
  for (; end < limit && go_on(round, limit); ++end) {
    const uint64_t character = token_byte(w, end);
    if (character == 0 || set.has(character)) break;
    set_byte(w, dst + end - begin, character);
  }
  w->header.token_offset = token_byte(w, end) == 0 ? end : end + 1;
  if (end == begin) return 0;
  return finish(w, dst, end - begin);
}

uint64_t d_to_lower(MachineWindow* w, uint64_t dst, uint64_t string) {
  return change_case_to(w, dst, string, 'A');
}

uint64_t d_to_upper(MachineWindow* w, uint64_t dst, uint64_t string) {
  return change_case_to(w, dst, string, 'a');
}

uint64_t d_base_name(MachineWindow* w, uint64_t dst, uint64_t string) {
  if (is_null(w, string)) return 0;
  const uint64_t size = length_of(w, string);
  if (size == 0) return one_byte(w, dst, '.');
  const uint64_t end = without_slashes(w, string, size);
  if (end == 0) return one_byte(w, dst, '/');
  return slice(w, dst, string + d_component(w, string, end), string + end);
}

uint64_t d_directory_name(MachineWindow* w, uint64_t dst, uint64_t string) {
  if (is_null(w, string)) return 0;
  const uint64_t size = length_of(w, string);
  if (size == 0) return one_byte(w, dst, '.');
  const uint64_t end = without_slashes(w, string, size);
  if (end == 0) return one_byte(w, dst, '/');
  const uint64_t first = d_component(w, string, end);
  if (first == 0) return one_byte(w, dst, '.');
  const uint64_t parent = without_slashes(w, string, first);
  if (parent == 0) return one_byte(w, dst, '/');
  return slice(w, dst, string, string + parent);
}

// Adds a component to the clean path at `dst`, which has `out` bytes, or takes one away for "..".
// Gives how many bytes it has then. `shape`: the component's length, above whether the path begins
// at the root.
[[gnu::noinline]] uint64_t d_clean_component(MachineWindow* w, uint64_t dst, uint64_t out,
                                             uint64_t place, uint64_t shape) {
  const uint64_t rooted = shape >> 32;
  const uint64_t length = forgotten(w, shape & 0xFFFF'FFFF);
  const bool dotted = byte(w, place) == '.';
  const bool parent = dotted && length == 2 && byte(w, place + 1) == '.';
  if (parent && out > 0) {
    const uint64_t kept = d_component(w, dst, out);
    // What could not be taken away stands for itself: "../..".
    const bool stays =
        out - kept == 2 && byte(w, dst + kept) == '.' && byte(w, dst + kept + 1) == '.';
    if (!stays) return kept > 0 ? kept - 1 : 0;
  }
  if ((dotted && length == 1) || (parent && rooted != 0)) return out;
  uint64_t end = zero(w) + out;
  if (out > 0 || rooted != 0) {
    set_byte(w, dst + end, '/');
    ++end;
  }
  copy_own(at(w, dst + end), length, at(w, place));
  return end + length;
}

// Removes "//", "/./" and "dir/..": what is written is a stack of components.
uint64_t d_clean_path(MachineWindow* w, uint64_t dst, uint64_t string) {
  if (is_null(w, string)) return 0;
  const uint64_t size = length_of(w, string);
  const uint64_t rooted = byte(w, string) == '/' ? 1 : 0;
  uint64_t out = zero(w);
  uint64_t round = zero(w);
  uint64_t begin = zero(w);
  for (; begin < size && go_on(round, string_bytes()); ++begin) {
    if (byte(w, string + begin) == '/') continue;
    const uint64_t end = d_component_end(w, string, begin, size);
    out = d_clean_component(w, dst, out, string + begin, (end - begin) | rooted << 32);
    begin = forgotten(w, end);
  }
  if (out == 0 && size > 0) {
    set_byte(w, dst, rooted != 0 ? '/' : '.');
    out = 1;
  }
  return finish(w, dst, out);
}

}  // extern "C"

}  // namespace clew::runtime::kernel
