// SPDX-License-Identifier: Apache-2.0
// The table of dynamic variables (self->x, x[keys]): lookup, store and delete, for kernel programs
// and for processes that share its memory.
//
// The table is buckets of a lock word and kMachineWays entries; an entry is in the bucket of its
// hash. An entry is
//
//     state      version << 2 | MachineEntryState
//     identity   variable << 32 | thread (0 for a global variable)
//     key        key_bytes_max
//     value      value_bytes_max
//
// A variable without keys has at most one entry of its bucket, also while that is free, and only
// the thread whose variable it is, or what interrupts that thread, uses it. So the thread may take
// it again without the lock, as long as nobody else took it: the version tells.
//
// Lookups take no lock: they compare the state before and after. Who changes an entry claims its
// state by compare-exchange; only inserting takes the bucket's lock, so that a key is never there
// twice. A claim may be held by what this CPU interrupted, hence every wait has a bound, and a
// change that cannot be made is a drop.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/machine/loop.h"

namespace clew::abi {

inline constexpr uint64_t kMachineWays = 8;
inline constexpr uint64_t kMachineBucketHeadBytes = 8;
inline constexpr uint64_t kMachineEntryHeadBytes = 16;
inline constexpr uint64_t kMachineTriesMax = 64;
// Behind the last bucket: what the verifier must believe that a masked offset can reach, which is a
// bucket of the largest entries (keys and values of 4 KB), and a word of its last one.
inline constexpr uint64_t kMachineDynamicSlackBytes = 0x14000;

enum class MachineEntryState : uint64_t {
  Free = 0,
  Live = 1,
  Claimed = 2,   // Its key is being written.
  Updating = 3,  // Its value is.
};

struct MachineEntryHead {
  uint64_t state;
  uint64_t identity;
};
static_assert(offsetof(MachineEntryHead, identity) == 8);
static_assert(sizeof(MachineEntryHead) == kMachineEntryHeadBytes);

[[gnu::always_inline]] constexpr MachineEntryState state_of(uint64_t state) {
  return static_cast<MachineEntryState>(state & 3);
}
// The same version in another state; the next version.
[[gnu::always_inline]] constexpr uint64_t with_state(uint64_t state, MachineEntryState next) {
  return (state & ~uint64_t{3}) | static_cast<uint64_t>(next);
}
[[gnu::always_inline]] constexpr uint64_t next_state(uint64_t state, MachineEntryState next) {
  return with_state(state, next) + 4;
}

constexpr uint64_t dynamic_entry_bytes(uint64_t key_bytes_max, uint64_t value_bytes_max) {
  return kMachineEntryHeadBytes + key_bytes_max + value_bytes_max;
}
constexpr uint64_t dynamic_bucket_bytes(uint64_t entry_bytes) {
  return kMachineBucketHeadBytes + kMachineWays * entry_bytes;
}

struct MachineFound {
  uint64_t offset = 0;  // Of the entry in the table; 0 = none, since a bucket begins with its lock.
  uint64_t state = 0;
};

// `Self` derives from it and says where the table is, of what shape, and what is looked for:
//   uint64_t zero(): 0, unknown to the verifier; buckets(); entry_bytes(); key_bytes_max()
//   uint64_t& word(uint64_t offset, uint64_t index): word `index` from byte `offset` on
//   uint64_t identity(); uint64_t key_words(); uint64_t key_word(uint64_t index)
//   uint64_t bucket(): what find_bucket() gave
//   uint64_t home_way(): the way that is tried first; way_offset(way): way * entry_bytes()
//   MachineFound find(): find_here(); MachineFound claim_new(): claim_new_here(), each perhaps by a
//   function of its own, which the verifier then looks at once
template <typename Self>
class DynamicTable {
 public:
  // The first byte of the key's bucket. hash * buckets >> 32 keeps bounds that the verifier knows.
  [[nodiscard, gnu::always_inline]] uint64_t find_bucket() const {
    const uint64_t index = ((hash() & 0xFFFF'FFFF) * self().buckets()) >> 32;
    return index * dynamic_bucket_bytes(self().entry_bytes());
  }

  // Of the hash's bits, those above the ones that choose the bucket.
  [[nodiscard, gnu::always_inline]] uint64_t hashed_way() const {
    return (hash() >> 32) & (kMachineWays - 1);
  }

  [[nodiscard, gnu::always_inline]] MachineFound find_here() const {
    MachineFound found;
    for (uint64_t way = self().zero(); way < kMachineWays && go_on(); ++way) {
      const uint64_t offset = entry_offset(way);
      const uint64_t state = load_word(self().word(offset, 0));
      if ((state & 1) == 0 || !is_mine(offset)) continue;
      found.offset = offset;
      found.state = state;
      break;
    }
    return found;
  }

  // Of a variable without keys: its entry in any state, when it is where such entries are put
  // first; most are. Offset 0: it is elsewhere, or nowhere.
  [[nodiscard, gnu::always_inline]] MachineFound find_home() const {
    MachineFound found;
    const uint64_t offset = entry_offset(self().home_way());
    found.state = load_word(self().word(offset, 0));
    if (self().word(offset, 1) == self().identity()) found.offset = offset;
    return found;
  }

  // Whether the entry is what it was when it was found.
  [[nodiscard, gnu::always_inline]] bool is_unchanged(const MachineFound& found) const {
    return load_word(self().word(found.offset, 0)) == found.state;
  }

  [[nodiscard, gnu::always_inline]] uint64_t value_offset(const MachineFound& found) const {
    return found.offset + kMachineEntryHeadBytes + self().key_bytes_max();
  }

  // Takes a live or a free entry that was found at home. False when another one was faster.
  [[nodiscard, gnu::always_inline]] bool take_home(const MachineFound& found) const {
    const bool is_live = state_of(found.state) == MachineEntryState::Live;
    if (!is_live && state_of(found.state) != MachineEntryState::Free) return false;
    const MachineEntryState next =
        is_live ? MachineEntryState::Updating : MachineEntryState::Claimed;
    return swap_word(self().word(found.offset, 0), found.state, with_state(found.state, next));
  }

  // Ends what take_home() began.
  [[gnu::always_inline]] void publish(const MachineFound& found) const {
    store_word(self().word(found.offset, 0), next_state(found.state, MachineEntryState::Live));
  }

  // Frees a live entry. False when another one was faster.
  [[nodiscard, gnu::always_inline]] bool set_free(const MachineFound& found) const {
    return swap_word(self().word(found.offset, 0), found.state,
                     next_state(found.state, MachineEntryState::Free));
  }

  // A free entry with the key in it, the bucket locked. Offset 0: no room, or no lock; state 0 (and
  // an offset): the key is there by now.
  [[nodiscard, gnu::always_inline]] MachineFound claim_new_here() const {
    MachineFound result;
    if (!lock()) return result;
    const MachineFound other = self().find();
    if (other.offset != 0) {
      unlock();
      result.offset = other.offset;
      return result;
    }
    result = claim_free();
    if (result.offset == 0) {
      unlock();
      return result;
    }
    write_key(result.offset);
    return result;
  }

  // A value of one word; 0 when there is none. One word is never torn, so that an update that goes
  // on does no harm.
  [[nodiscard, gnu::always_inline]] uint64_t load() const {
    uint64_t value = 0;
    for (uint64_t turn = self().zero(); turn < kMachineTriesMax && go_on(); ++turn) {
      const MachineFound found = self().find();
      value = 0;
      if (found.offset == 0) break;
      value = load_word(self().word(value_offset(found), 0));
      if (is_unchanged(found)) break;
    }
    return value;
  }

  // Copies a value out by copy(value offset). False when there is none, or it never stood still.
  template <typename Copy>
  [[nodiscard, gnu::always_inline]] bool load_bytes(Copy copy) const {
    for (uint64_t turn = self().zero(); turn < kMachineTriesMax && go_on(); ++turn) {
      const MachineFound found = self().find();
      if (found.offset == 0) return false;
      if (state_of(found.state) != MachineEntryState::Live) continue;
      copy(value_offset(found));
      if (is_unchanged(found)) return true;
    }
    return false;
  }

  // Stores by copy(value offset), and inserts the key when it is new. False: dropped.
  template <typename Copy>
  [[nodiscard, gnu::always_inline]] bool store(Copy copy) const {
    for (uint64_t turn = self().zero(); turn < kMachineTriesMax && go_on(); ++turn) {
      MachineFound found = self().find();
      const bool is_new = found.offset == 0;
      if (is_new) {
        found = self().claim_new();
        if (found.offset == 0) return false;
        if (found.state == 0) continue;  // Another one inserted it.
      } else if (!claim(found)) {
        continue;
      }
      copy(value_offset(found));
      publish(found);
      if (is_new) unlock();
      return true;
    }
    return false;
  }

  [[gnu::always_inline]] void remove() const {
    for (uint64_t turn = self().zero(); turn < kMachineTriesMax && go_on(); ++turn) {
      const MachineFound found = self().find();
      if (found.offset == 0) return;
      if (state_of(found.state) != MachineEntryState::Live) continue;
      if (set_free(found)) return;
    }
  }

 private:
  [[gnu::always_inline]] const Self& self() const { return static_cast<const Self&>(*this); }

  [[nodiscard, gnu::always_inline]] uint64_t key_words_max() const {
    return self().key_bytes_max() / 8;
  }

  [[nodiscard, gnu::always_inline]] uint64_t hash() const {
    uint64_t hash = self().identity() * 0x9E37'79B9'7F4A'7C15;
    const uint64_t words = self().key_words();
    uint64_t round = self().zero();
    for (uint64_t i = self().zero(); i < words && go_on(round, key_words_max()); ++i) {
      hash = (hash ^ (hash >> 29) ^ self().key_word(i)) * 0xBF58'476D'1CE4'E5B9;
    }
    return hash ^ (hash >> 32);
  }

  [[nodiscard, gnu::always_inline]] uint64_t entry_offset(uint64_t way) const {
    return self().bucket() + kMachineBucketHeadBytes + self().way_offset(way & (kMachineWays - 1));
  }

  [[nodiscard, gnu::always_inline]] bool is_mine(uint64_t offset) const {
    if (self().word(offset, 1) != self().identity()) return false;
    const uint64_t words = self().key_words();
    bool same = true;
    uint64_t round = self().zero();
    for (uint64_t i = self().zero(); i < words && same && go_on(round, key_words_max()); ++i) {
      same = self().word(offset, i + 2) == self().key_word(i);
    }
    return same;
  }

  [[nodiscard, gnu::always_inline]] bool claim(const MachineFound& found) const {
    if (state_of(found.state) != MachineEntryState::Live) return false;
    return swap_word(self().word(found.offset, 0), found.state,
                     with_state(found.state, MachineEntryState::Updating));
  }

  [[nodiscard, gnu::always_inline]] bool lock() const {
    for (uint64_t turn = self().zero(); turn < kMachineTriesMax && go_on(); ++turn) {
      if (swap_word(self().word(self().bucket(), 0), 0, 1)) return true;
    }
    return false;
  }
  [[gnu::always_inline]] void unlock() const { store_word(self().word(self().bucket(), 0), 0); }

  // Whether the entry of a variable without keys is here, in whatever state.
  [[nodiscard, gnu::always_inline]] bool has_own() const {
    bool has = false;
    for (uint64_t way = self().zero(); way < kMachineWays && !has && go_on(); ++way)
      has = self().word(entry_offset(way), 1) == self().identity();
    return has;
  }

  [[nodiscard, gnu::always_inline]] MachineFound claim_free() const {
    MachineFound result;
    const bool wants_own = self().key_words() == 0 && has_own();
    const uint64_t home = self().home_way();
    for (uint64_t way = self().zero(); way < kMachineWays && go_on(); ++way) {
      const uint64_t offset = entry_offset(home + way);
      const uint64_t state = load_word(self().word(offset, 0));
      if (state_of(state) != MachineEntryState::Free) continue;
      if (wants_own && self().word(offset, 1) != self().identity()) continue;
      const uint64_t claimed = with_state(state, MachineEntryState::Claimed);
      if (!swap_word(self().word(offset, 0), state, claimed)) continue;
      result.offset = offset;
      result.state = claimed;
      break;
    }
    return result;
  }

  [[gnu::always_inline]] void write_key(uint64_t offset) const {
    self().word(offset, 1) = self().identity();
    const uint64_t words = self().key_words();
    uint64_t round = self().zero();
    for (uint64_t i = self().zero(); i < words && go_on(round, key_words_max()); ++i) {
      self().word(offset, i + 2) = self().key_word(i);
    }
  }
};

}  // namespace clew::abi
