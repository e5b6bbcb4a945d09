// SPDX-License-Identifier: Apache-2.0
// Aggregations: finds or makes the key's entry in this CPU's table (abi/machine/tables.h) and adds
// to its cells. The CPU may be interrupted by a program that does the same, hence atomic cells.
#include "abi/buckets.h"
#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

extern "C" {
uint64_t d_aggregate_hash(MachineWindow* w, uint64_t key_words);
uint64_t d_aggregate_find(MachineWindow* w, uint64_t aggregation, uint64_t hash);
uint64_t d_aggregate_take(MachineWindow* w, uint64_t aggregation, uint64_t hash, uint64_t entry);
uint64_t d_aggregate_bucket(MachineWindow* w, uint64_t aggregation, uint64_t value);
uint64_t d_aggregate_is_key(MachineWindow* w, uint64_t entry, uint64_t key_words);
}

namespace {

inline constexpr uint64_t kUsed = static_cast<uint64_t>(abi::MachineAggregateState::Used);
inline constexpr uint64_t kClaimed = static_cast<uint64_t>(abi::MachineAggregateState::Claimed);
inline constexpr int64_t kLowest = static_cast<int64_t>(uint64_t{1} << 63);
inline constexpr uint64_t kSwapsMax = 16;
// A CPU's table has one writer in the kernel, and what interrupts it; in processes the threads that
// were on that CPU a moment ago, too.
#if defined(__bpf__)
inline constexpr uint64_t kTakesMax = 1;
#else
inline constexpr uint64_t kTakesMax = 8;
#endif
inline constexpr uint64_t kKeyWordsMax = abi::kMachineKeyBytesMax / 8;

// The masks say to the verifier that words are aligned; an entry ends within the second.
inline constexpr uint64_t kWordsMask = 0xF'FFF8;
static_assert(8 * (abi::kMachineCellWordsMax + kKeyWordsMax + 2) < kWordsMask &&
              2 * kWordsMask < abi::kMachineAggregateSlackBytes);
[[gnu::always_inline]] inline uint64_t& word(uint64_t offset, uint64_t index) {
  return *reinterpret_cast<uint64_t*>(aggregates() + masked(offset, 0x3FFF'FFF8) +
                                      masked(index * 8, kWordsMask));
}

[[gnu::always_inline]] inline uint64_t key_word(MachineWindow* w, uint64_t index) {
  return *reinterpret_cast<const uint64_t*>(reinterpret_cast<const uint8_t*>(w) +
                                            abi::kMachineKeyOffset + masked(index * 8, 0xFF8));
}

inline constexpr uint64_t kHashBegin = 0x9E37'79B9'7F4A'7C15;
inline constexpr uint64_t kFactors[4] = {0x9E37'79B9'7F4A'7C15, 0xC2B2'AE3D'27D4'EB4F,
                                         0x1656'67B1'9E37'79F9, 0xD6E8'FEB8'6659'FD93};

[[gnu::always_inline]] inline uint64_t mix(uint64_t hash, uint64_t word) {
  return (hash ^ (hash >> 29) ^ word) * 0xBF58'476D'1CE4'E5B9;
}

[[gnu::always_inline]] inline uint64_t end_hash(uint64_t hash) {
  return hash ^ (hash >> 32);
}

// Four words a turn: most keys of many words are texts.
[[gnu::always_inline]] inline uint64_t hash_of(MachineWindow* w, uint64_t words) {
  uint64_t hash = kHashBegin;
  uint64_t round = zero(w);
  uint64_t i = zero(w);
  for (; i + 4 <= words && go_on(round, kKeyWordsMax / 4); i += 4) {
    const uint64_t first = key_word(w, i) * kFactors[0] + key_word(w, i + 1) * kFactors[1];
    const uint64_t second = key_word(w, i + 2) * kFactors[2] + key_word(w, i + 3) * kFactors[3];
    hash = mix(hash, first + second);
  }
  round = zero(w);
  for (; i < words && go_on(round, 3); ++i) {
    hash = mix(hash, key_word(w, i));
  }
  return end_hash(hash);
}

// Most keys have few words.
inline constexpr uint64_t kFewWords = 4;

// Without a loop: visit(0), …
template <typename Visit>
[[gnu::always_inline]] inline void each_of_few(uint64_t words, Visit visit) {
  static_assert(kFewWords == 4);
  if (words > 0) visit(0);
  if (words > 1) visit(1);
  if (words > 2) visit(2);
  if (words > 3) visit(3);
}

[[gnu::always_inline]] inline uint64_t hash_of_few(MachineWindow* w, uint64_t words) {
  uint64_t hash = kHashBegin;
  each_of_few(words, [&](uint64_t i) { hash = mix(hash, key_word(w, i)); });
  return end_hash(hash);
}

struct Wanted {
  MachineWindow* w;
  uint64_t hash;
  uint64_t key_words;
};

[[gnu::always_inline]] inline uint64_t in_tables(uint64_t offset) {
  return bounded(offset, number(d_n_aggregates_cpu_bytes) * number(d_n_cpus));
}

[[gnu::always_inline]] inline const abi::MachineAggregationTable& table_of(uint64_t aggregation) {
  return aggregations()[index_below(aggregation, number(d_n_aggregations))];
}

[[gnu::always_inline]] inline uint64_t key_words_of(const abi::MachineAggregationTable& t) {
  constexpr uint64_t kMask = 2 * kKeyWordsMax - 1;  // kKeyWordsMax itself is a number of words.
  return masked(t.aggregation.key_bytes / 8, kMask);
}

[[gnu::always_inline]] inline bool has_key(const Wanted& k, uint64_t offset) {
  if (word(offset, 1) != k.hash) return false;
  return k.key_words == 0 || d_aggregate_is_key(k.w, offset, k.key_words) != 0;
}

[[gnu::always_inline]] inline void clear_cells(MachineWindow* w, uint64_t begin, uint64_t size) {
  constexpr uint64_t kPartsMax = 8 * abi::kMachineCellWordsMax / kCopyBytesMax + 1;
  const uint64_t all = forgotten(w, size);
  for (uint64_t i = zero(w); i < kPartsMax && go_on(); ++i) {
    const uint64_t done = forgotten(w, i * kCopyBytesMax);
    if (done >= all) break;
    const uint64_t left = all - done;
    zero_bytes(&word(begin, done / 8), forgotten(w, left < kCopyBytesMax ? left : kCopyBytesMax));
  }
}

// An empty entry becomes this key's, with one update pending.
[[gnu::always_inline]] inline bool take_entry(const Wanted& k, const abi::MachineAggregation& a,
                                              uint64_t offset, uint64_t state) {
  const uint64_t version = state & ~uint64_t{3};
  const uint64_t next = (version + 4) | kUsed;
  const uint64_t cells = k.key_words + 2;
  if (!abi::swap_word(word(offset, 0), state, version | kClaimed)) return false;
  const uint64_t before = abi::load_word(word(offset, cells));
  const bool is_ours =
      abi::is_untouched(before) &&
      abi::swap_word(word(offset, cells), before, abi::kMachinePending | abi::tag_of(next));
  if (!is_ours) {
    abi::store_word(word(offset, 0), state);
    return false;
  }
  word(offset, 1) = k.hash;
  copy_own(&word(offset, 2), forgotten(k.w, 8 * k.key_words),
           reinterpret_cast<const uint8_t*>(k.w) + abi::kMachineKeyOffset);
  clear_cells(k.w, offset + 8 * (cells + 1), 8 * (masked(a.cell_words, kWordsMask / 8) - 1));
  const uint64_t neutral = abi::neutral_word(a.function);
  if (neutral != 0) word(offset, cells + 1) = neutral;
  abi::store_word(word(offset, 0), next);
  return true;
}

// The place of an entry, and what is known of the way to it.
struct Probed {
  uint64_t found;  // 0 = none: place 0 is given as 1.
  uint64_t empty;  // The first entry that the key could take.
  uint64_t state;  // Under which the key was seen.
};

[[gnu::always_inline]] inline Probed search(const Wanted& k, const abi::MachineAggregationTable& t,
                                            uint64_t cpu_begin) {
  Probed result{0, 0, 0};
  const uint64_t entries = masked(t.entries, 0xFFFFFF);
  const uint64_t end = number(d_n_aggregates_cpu_bytes);
  const uint64_t home = ((k.hash & 0xFFFF'FFFF) * entries) >> 32;
  for (uint64_t probe = zero(k.w); probe < abi::kMachineProbesMax && probe < entries && go_on();
       ++probe) {
    const uint64_t index = home + probe >= entries ? home + probe - entries : home + probe;
    uint64_t place = t.begin + index * t.entry_bytes;
    if (place >= end) break;
    asm volatile("" : "+r"(place));
    place += cpu_begin;
    const uint64_t state = abi::load_word(word(place, 0));
    const bool is_used = (state & 3) == kUsed;
    if (is_used && has_key(k, place)) {
      result.found = place + 1;
      result.state = state;
      break;
    }
    const bool is_empty =
        is_used && abi::is_untouched(abi::load_word(word(place, 2 + k.key_words)));
    if ((state == 0 || is_empty) && result.empty == 0) result.empty = place + 1;
    if (state == 0) break;
  }
  return result;
}

[[gnu::always_inline]] inline void replace(MachineWindow* w, uint64_t cells, uint64_t value,
                                           bool is_max) {
  for (uint64_t turn = zero(w); turn < kSwapsMax && go_on(); ++turn) {
    const uint64_t old = abi::load_word(word(cells, 1));
    const bool is_better = is_max ? static_cast<int64_t>(value) > static_cast<int64_t>(old)
                                  : static_cast<int64_t>(value) < static_cast<int64_t>(old);
    if (!is_better || abi::swap_word(word(cells, 1), old, value)) break;
  }
}

// value² as two words: 32-bit halves, as one multiplies by hand.
[[gnu::always_inline]] inline void add_square(uint64_t cells, uint64_t value) {
  const uint64_t amount = static_cast<int64_t>(value) < 0 ? ~value + 1 : value;
  const uint64_t low = amount & 0xFFFF'FFFF;
  const uint64_t high = amount >> 32;
  const uint64_t middle = low * high;
  const uint64_t low_square = low * low;
  const uint64_t sum = low_square + (middle << 33);
  const uint64_t carry = sum < low_square ? 1 : 0;
  const uint64_t before = abi::add_word(word(cells, 3), sum);
  const uint64_t overflow = before + sum < before ? 1 : 0;
  abi::add_word(word(cells, 4), high * high + (middle >> 31) + carry + overflow);
}

[[gnu::always_inline]] inline uint64_t bucket_of(MachineWindow* w,
                                                 const abi::MachineAggregationTable& t,
                                                 uint64_t value) {
  const auto number_of = static_cast<int64_t>(value);
  const int64_t* p = t.aggregation.parameters;
  if (t.aggregation.function == abi::AggregateFunction::Quantize) {
    return abi::quantize_bucket(number_of);
  }
  if (t.aggregation.function == abi::AggregateFunction::Lquantize) {
    return abi::linear_bucket({.low = p[0], .high = p[1], .step = p[2]}, number_of);
  }
  const abi::LogLinearBuckets l{static_cast<uint64_t>(p[0]), static_cast<uint64_t>(p[1]),
                                static_cast<uint64_t>(p[2]), static_cast<uint64_t>(p[3])};
  return abi::log_linear_bucket(l, zero(w), t.steps, number_of);
}

struct Update {
  uint64_t aggregation;
  uint64_t cells;
  uint64_t value;
  uint64_t weight;
};

[[gnu::always_inline]] inline void add(MachineWindow* w, const abi::MachineAggregationTable& t,
                                       const Update& u) {
  using abi::AggregateFunction;
  const AggregateFunction function = t.aggregation.function;
  if (function == AggregateFunction::Sum) {
    abi::add_word(word(u.cells, 1), u.value);
  } else if (function == AggregateFunction::Min || function == AggregateFunction::Max) {
    replace(w, u.cells, u.value, function == AggregateFunction::Max);
  } else if (function == AggregateFunction::Average ||
             function == AggregateFunction::StandardDeviation) {
    abi::add_word(word(u.cells, 1), 1);
    abi::add_word(word(u.cells, 2), u.value);
    if (function == AggregateFunction::StandardDeviation) add_square(u.cells, u.value);
  } else {
    const bool is_quantize = function == AggregateFunction::Quantize;
    uint64_t bucket = 1;
    if (is_quantize) {  // Forgotten: the verifier would follow each bucket on its own.
      bucket += forgotten(w, abi::quantize_bucket(static_cast<int64_t>(u.value)));
    } else {
      bucket += d_aggregate_bucket(w, u.aggregation, u.value);
    }
    if (bucket < t.aggregation.cell_words) abi::add_word(word(u.cells, bucket), u.weight);
  }
}

// That of an aggregation without a key, once it is used.
[[gnu::always_inline]] inline Probed only_entry(const abi::MachineAggregationTable& t,
                                                uint64_t cpu) {
  const uint64_t place = in_tables(t.begin + times(cpu, number(d_n_aggregates_cpu_bytes)));
  const uint64_t state = abi::load_word(word(place, 0));
  return {(state & 3) == kUsed ? place + 1 : 0, 0, state};
}

// That of a key of few words, when it is where its hash points; most are.
[[gnu::always_inline]] inline Probed home_entry(const Wanted& k,
                                                const abi::MachineAggregationTable& t,
                                                uint64_t cpu) {
  const uint64_t home = ((k.hash & 0xFFFF'FFFF) * masked(t.entries, 0xFFFFFF)) >> 32;
  const uint64_t place =
      in_tables(t.begin + home * t.entry_bytes + times(cpu, number(d_n_aggregates_cpu_bytes)));
  const uint64_t state = abi::load_word(word(place, 0));
  if ((state & 3) != kUsed || word(place, 1) != k.hash) return {0, 0, state};
  uint64_t difference = 0;
  each_of_few(k.key_words,
              [&](uint64_t i) { difference |= word(place, 2 + i) ^ key_word(k.w, i); });
  return {difference == 0 ? place + 1 : 0, 0, state};
}

// The key's entry in this CPU's table, found or taken.
struct Entry {
  uint64_t entry;  // + 1; 0 = none.
  uint64_t state;
  bool is_fresh;  // Taken just now: one update is pending.
};

[[gnu::always_inline]] inline Entry find_or_take(MachineWindow* w,
                                                 const abi::MachineAggregationTable& t,
                                                 uint64_t aggregation, uint64_t cpu) {
  const uint64_t key_words = key_words_of(t);
  uint64_t hash = 0;
  Probed found{0, 0, 0};
  if (key_words == 0) {
    found = only_entry(t, cpu);
  } else if (key_words <= kFewWords) {
    hash = hash_of_few(w, key_words);
    found = home_entry({w, hash, key_words}, t, cpu);
  } else {
    hash = d_aggregate_hash(w, key_words);
  }
  if (found.found != 0) return {found.found, found.state, false};
  const uint64_t entry = d_aggregate_find(w, aggregation, hash);
  if (entry != 0) return {entry, w->header.third_result, false};
  const uint64_t empty = w->header.second_result;
  if (empty == 0 || d_aggregate_take(w, aggregation, hash, empty - 1) == 0) return {0, 0, false};
  return {empty, 0, true};
}

// A count is its number of updates.
[[gnu::always_inline]] inline bool is_count(const abi::MachineAggregationTable& t) {
  return t.aggregation.function == abi::AggregateFunction::Count;
}

#if !defined(__bpf__)
// Changes cells[0] by `change` as long as the entry is the key's.
[[gnu::always_inline]] inline bool change_updates(uint64_t cells, uint64_t state, uint64_t change) {
  for (uint64_t turn = 0; turn < kSwapsMax; ++turn) {
    const uint64_t before = abi::load_word(word(cells, 0));
    const bool is_pinned = (before & abi::kMachinePinMask) == abi::kMachinePinMask;
    if ((before & abi::kMachineTagMask) != abi::tag_of(state) || is_pinned) return false;
    if (abi::swap_word(word(cells, 0), before, before + change)) return true;
  }
  return false;
}
#endif

// False when the entry is another key's by now.
[[gnu::always_inline]] inline bool update(MachineWindow* w, const abi::MachineAggregationTable& t,
                                          const Entry& place, const Update& u) {
#if defined(__bpf__)
  bool is_fresh = place.is_fresh;
  const uint64_t before = abi::load_word(word(u.cells, 0));
  if (abi::is_untouched(before)) {
    is_fresh = abi::swap_word(word(u.cells, 0), before, before | abi::kMachinePending);
  }
  if (!is_count(t)) add(w, t, u);
  abi::add_word(word(u.cells, 0), is_fresh ? abi::kMachinePending + 1 : 1);
#else
  if (!place.is_fresh && is_count(t)) return change_updates(u.cells, place.state, 1);
  if (!place.is_fresh && !change_updates(u.cells, place.state, abi::kMachinePin)) return false;
  if (!is_count(t)) add(w, t, u);
  abi::add_word(word(u.cells, 0), place.is_fresh ? abi::kMachinePending + 1 : 1 - abi::kMachinePin);
#endif
  return true;
}

[[gnu::always_inline]] inline uint64_t lose(uint64_t cpu) {
  if (cpu < abi::kMachineCpusMax) abi::add_word(shared().losses.aggregation[cpu], 1);
  return 0;
}

}  // namespace

extern "C" {

[[gnu::noinline]] uint64_t d_aggregate_is_key(MachineWindow* w, uint64_t entry,
                                              uint64_t key_words) {
  const uint64_t offset = in_tables(entry);
  uint64_t difference = 0;
  uint64_t round = zero(w);
  uint64_t i = zero(w);
  for (; i + 4 <= key_words && difference == 0 && go_on(round, kKeyWordsMax / 4); i += 4) {
    difference =
        (word(offset, i + 2) ^ key_word(w, i)) | (word(offset, i + 3) ^ key_word(w, i + 1)) |
        (word(offset, i + 4) ^ key_word(w, i + 2)) | (word(offset, i + 5) ^ key_word(w, i + 3));
  }
  round = zero(w);
  for (; i < key_words && difference == 0 && go_on(round, 3); ++i) {
    difference = word(offset, i + 2) ^ key_word(w, i);
  }
  return difference == 0 ? 1 : 0;
}

[[gnu::noinline]] uint64_t d_aggregate_hash(MachineWindow* w, uint64_t key_words) {
  return hash_of(w, key_words);
}

// The key's entry + 1, or 0; the first empty entry + 1, and the state under which the key was seen,
// come back in the window.
[[gnu::noinline]] uint64_t d_aggregate_find(MachineWindow* w, uint64_t aggregation, uint64_t hash) {
  const abi::MachineAggregationTable& t = table_of(aggregation);
  const uint64_t cpu = processor();
  if (cpu >= number(d_n_cpus)) return 0;
  const Probed result =
      search({w, hash, key_words_of(t)}, t, times(cpu, number(d_n_aggregates_cpu_bytes)));
  w->header.second_result = result.empty;
  w->header.third_result = result.state;
  return result.found;
}

// Whether the empty entry could be taken for the key.
[[gnu::noinline]] uint64_t d_aggregate_take(MachineWindow* w, uint64_t aggregation, uint64_t hash,
                                            uint64_t entry) {
  const abi::MachineAggregationTable& t = table_of(aggregation);
  const uint64_t place = in_tables(entry);
  const uint64_t state = abi::load_word(word(place, 0));
  if ((state & 3) == kClaimed) return 0;
  return take_entry({w, hash, key_words_of(t)}, t.aggregation, place, state) ? 1 : 0;
}

[[gnu::noinline]] uint64_t d_aggregate_bucket(MachineWindow* w, uint64_t aggregation,
                                              uint64_t value) {
  return bucket_of(w, table_of(aggregation), value);
}

uint64_t d_aggregate(MachineWindow* w, uint64_t aggregation, uint64_t value, uint64_t weight) {
  const abi::MachineAggregationTable& t = table_of(aggregation);
  const uint64_t cpu = processor();
  for (uint64_t turn = 0; turn < kTakesMax; ++turn) {
    const Entry place = find_or_take(w, t, aggregation, cpu);
    if (place.entry == 0) continue;
    const uint64_t cells = in_tables(place.entry - 1) + 16 + 8 * key_words_of(t);
    if (update(w, t, place, {aggregation, cells, value, weight})) return 0;
  }
  return lose(cpu);
}

}  // extern "C"

}  // namespace clew::runtime::kernel
