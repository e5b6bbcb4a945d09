// SPDX-License-Identifier: Apache-2.0
// The slow or long parts of machine.h.
#include "runtime/process/machine.h"

#include "runtime/load.h"

namespace clew::runtime::kernel {
namespace {

constexpr uint64_t kSizeMask = 0x1FFF;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kManyBytes = 1024;  // From here on the string instructions are faster.
constexpr uint64_t kClockMonotonic = 1;
constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;

struct Time {
  uint64_t seconds;
  uint64_t nanoseconds;
};

struct IoVector {
  uint64_t address;
  uint64_t size;
};

// How many bytes the kernel could copy between our memory and the process's, which are one.
uint64_t transfer(int64_t number, const IoVector& local, const IoVector& remote) {
  if (!may_call()) return 0;
  const int64_t copied =
      call({number, {own_pid(), address_of(&local), 1, address_of(&remote), 1, 0}});
  return copied < 0 ? 0 : static_cast<uint64_t>(copied);
}

// Four words at a time: a string instruction takes longer to begin.
struct Words {
  uint64_t values[4];
};

[[gnu::always_inline]] inline uint64_t load_word(const uint8_t* from) {
  uint64_t word = 0;
  __builtin_memcpy(&word, from, sizeof word);
  return word;
}
[[gnu::always_inline]] inline void store_word(uint8_t* to, uint64_t word) {
  __builtin_memcpy(to, &word, sizeof word);
}
[[gnu::always_inline]] inline Words load_words(const uint8_t* from) {
  return {{load_word(from), load_word(from + 8), load_word(from + 16), load_word(from + 24)}};
}
[[gnu::always_inline]] inline void store_words(uint8_t* to, const Words& words) {
  store_word(to, words.values[0]);
  store_word(to + 8, words.values[1]);
  store_word(to + 16, words.values[2]);
  store_word(to + 24, words.values[3]);
}

// The number of bytes before the first NUL in [0, size), or `size`.
uint64_t length_until_nul(const uint8_t* bytes, uint64_t size) {
  uint64_t length = 0;
  while (length < size && bytes[length] != 0)
    ++length;
  return length;
}

// Copies by loads that cannot fault (runtime/load.h), up to the first that gives nothing. How many
// bytes.
uint64_t load_bytes(uint64_t place, uint8_t* out, uint64_t size, uint64_t from) {
  uint64_t done = 0;
  while (done < size) {
    const uint64_t skipped = (from + done) % kWordBytes;
    uint64_t word = 0;
    if (!runtime::load_word(place, from + done - skipped, word)) break;
    word >>= 8 * skipped;
    if (skipped == 0 && size - done >= kWordBytes) {
      store_word(out + done, word);
      done += kWordBytes;
      continue;
    }
    const uint64_t end = done + kWordBytes - skipped;
    for (; done < size && done < end; ++done, word >>= 8)
      out[done] = static_cast<uint8_t>(word);
  }
  return done;
}

// The same up to a zero, which is not copied. False where there is none and not all could be read.
bool load_text(uint64_t place, uint8_t* out, uint64_t size, uint64_t from, uint64_t& length) {
  length = 0;
  while (length < size) {
    const uint64_t skipped = (from + length) % kWordBytes;
    uint64_t word = 0;
    if (!runtime::load_word(place, from + length - skipped, word)) return false;
    word >>= 8 * skipped;
    const uint64_t before_zero = bytes_to_zero(word);
    const uint64_t found = kWordBytes - skipped;
    if (before_zero == kWordBytes && size - length >= kWordBytes) {
      store_word(out + length, word);
      length += kWordBytes;
      continue;
    }
    const uint64_t end = length + (before_zero < found ? before_zero : found);
    for (; length < size && length < end; ++length, word >>= 8)
      out[length] = static_cast<uint8_t>(word);
    if (before_zero < found) break;
  }
  return true;
}

// Page by page, so that a text that ends before an unmapped page is read whole. False where there
// is no zero and not all could be read.
bool copy_text_by_pages(uint8_t* out, uint64_t size, uint64_t from, uint64_t& length) {
  length = 0;
  while (length < size) {
    const uint64_t address = from + length;
    const uint64_t to_page_end = kPageBytes - (address & (kPageBytes - 1));
    const uint64_t left = size - length;
    const uint64_t wanted = left < to_page_end ? left : to_page_end;
    const uint64_t copied =
        transfer(kSysProcessVmReadv, {address_of(out + length), wanted}, {address, wanted});
    const uint64_t found = length_until_nul(out + length, copied);
    length += found;
    if (found < copied) break;
    if (copied != wanted) return false;
  }
  return true;
}

uint64_t call_clock(uint64_t clock) {
  Time now = {};
  if (!may_call() || call({kSysClockGettime, {clock, address_of(&now)}}) != 0) return 0;
  return now.seconds * kNanosecondsPerSecond + now.nanoseconds;
}

}  // namespace

uint32_t own_pid() {
  abi::PrivatePage& page = private_page();
  if (page.pid == 0) page.pid = static_cast<uint32_t>(call({kSysGetpid}));
  return page.pid;
}

uint64_t monotonic_ns() {
  using Function = int64_t (*)(uint64_t, Time*);
  Time now = {};
  if (process().clock == 0) return call_clock(kClockMonotonic) + process().clock_offset_ns;
  reinterpret_cast<Function>(process().clock)(kClockMonotonic, &now);
  return now.seconds * kNanosecondsPerSecond + now.nanoseconds + process().clock_offset_ns;
}

uint64_t thread_ns() {
  constexpr uint64_t kClockThread = 3;  // CLOCK_THREAD_CPUTIME_ID
  return call_clock(kClockThread);
}

// A followed child has a number of its own, which only it knows. The slot may be that of an ended
// thread for a while, whose TCB this one has (src/collect/release.cc); the TCB has this one's id.
uint64_t process_and_thread() {
  const abi::SlotControl& slot = own_slot();
  uint64_t number = process().pid;
  if (slot.process != 0) number = may_call() ? own_pid() : 0;
  uint64_t thread = noted_tid_of_owner(slot);
  if (thread == abi::kTidUnknown) thread = slot.tid;
  if (thread == abi::kTidUnknown) {
    thread = may_call() ? static_cast<uint32_t>(call({kSysGettid})) : 0;
  }
  return number << 32 | thread;
}

uint64_t group_and_user() {
  if (!may_call()) return 0;
  const auto user = static_cast<uint32_t>(call({kSysGetuid}));
  const auto group = static_cast<uint32_t>(call({kSysGetgid}));
  return uint64_t{group} << 32 | user;
}

// xorshift64*; begun by where and when it is first asked.
uint64_t random_word(MachineWindow* w) {
  uint64_t state = w->header.random;
  if (state == 0) state = (monotonic_ns() ^ address_of(w)) | 1;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  w->header.random = state;
  return (state * 0x2545'F491'4F6C'DD1D) >> 32;
}

// The handler runs on top of this probe, unless the signal is blocked.
uint64_t send_signal(uint64_t signal) {
  if (!may_call()) return 0;
  return static_cast<uint64_t>(call({kSysKill, {own_pid(), signal}}));
}

// As abi/region.h tells producers, with room behind the ring for the largest record.
bool put_record(MachineWindow* w, const void* record, uint64_t size) {
  constexpr uint64_t kRingBytes = uint64_t{1} << abi::kMachineRingSizeLog2;
  uint8_t* const region = reinterpret_cast<uint8_t*>(w) - abi::kMachineRegionWindow;
  auto& region_header = *reinterpret_cast<abi::RegionHeader*>(region);
  const uint64_t head = region_header.ring_head & ~uint64_t{7};
  const uint64_t bytes = abi::kMachineEventHeadBytes + ((size + 7) & ~uint64_t{7});
  const uint64_t held = head - abi::load_word(region_header.ring_tail);
  if (bytes > abi::kMachineEventBytesMax || held > kRingBytes || held + bytes > kRingBytes)
    return false;
  uint8_t* const place = region + abi::kMachineRegionRing + (head & (kRingBytes - 1));
  const auto* const as_record = static_cast<const abi::MachineRecordHeader*>(record);
  auto* const words = reinterpret_cast<uint64_t*>(place);
  words[0] = bytes | uint64_t{abi::kMachineEventShape} << 32;
  words[1] = as_record->time_ns;
  __builtin_memcpy(place + abi::kMachineEventHeadBytes, record, size);
  abi::store_word(region_header.ring_head, head + bytes);
  return true;
}

int64_t copy_own(void* to, uint64_t size, const void* from) {
  const uint64_t bytes = size & kSizeMask;
  if (bytes >= kManyBytes) {
    __builtin_memcpy(to, from, bytes);
    return 0;
  }
  auto* const out = static_cast<uint8_t*>(to);
  const auto* const in = static_cast<const uint8_t*>(from);
  uint64_t done = 0;
  for (; done + 32 <= bytes; done += 32) {
    const Words words = load_words(in + done);
    store_words(out + done, words);
  }
  for (; done + 8 <= bytes; done += 8)
    store_word(out + done, load_word(in + done));
  for (; done < bytes; ++done)
    out[done] = in[done];
  return 0;
}

int64_t copy_own_text(void* to, uint64_t size, const void* from) {
  const uint64_t room = size & kSizeMask;
  auto* const out = static_cast<uint8_t*>(to);
  const auto* const in = static_cast<const uint8_t*>(from);
  if (room == 0) return 0;
  uint64_t length = 0;
  while (length + 1 < room && in[length] != 0) {
    out[length] = in[length];
    ++length;
  }
  out[length] = 0;
  return static_cast<int64_t>(length) + 1;
}

void zero_bytes(void* to, uint64_t size) {
  const uint64_t bytes = size & kSizeMask;
  auto* const out = static_cast<uint8_t*>(to);
  if (bytes >= kManyBytes) {
    __builtin_memset(to, 0, bytes);
    return;
  }
  uint64_t done = 0;
  for (; done + 32 <= bytes; done += 32)
    store_words(out + done, {});
  for (; done + 8 <= bytes; done += 8)
    store_word(out + done, 0);
  for (; done < bytes; ++done)
    out[done] = 0;
}

int64_t copy_user(void* to, uint64_t size, const void* from) {
  const uint64_t bytes = size & kSizeMask;
  if (bytes == 0) return 0;
  const uint64_t place = load_for(address_of(from), bytes);
  const uint64_t copied =
      place != 0 ? load_bytes(place, static_cast<uint8_t*>(to), bytes, address_of(from))
                 : transfer(kSysProcessVmReadv, {address_of(to), bytes}, {address_of(from), bytes});
  if (copied == bytes) return 0;
  zero_bytes(to, bytes);
  return kBadAddress;
}

int64_t copy_user_text(void* to, uint64_t size, const void* from) {
  const uint64_t room = size & kSizeMask;
  auto* const out = static_cast<uint8_t*>(to);
  if (room == 0) return 0;
  const uint64_t address = address_of(from);
  const uint64_t place = load_for(address, room);
  uint64_t length = 0;
  const bool is_whole = place != 0 ? load_text(place, out, room - 1, address, length)
                                   : copy_text_by_pages(out, room - 1, address, length);
  if (!is_whole) {
    zero_bytes(to, room);
    return kBadAddress;
  }
  out[length] = 0;
  return static_cast<int64_t>(length) + 1;
}

int64_t write_user(uint64_t to, const void* from, uint64_t size) {
  const uint64_t bytes = size & kSizeMask;
  const uint64_t copied = transfer(kSysProcessVmWritev, {address_of(from), bytes}, {to, bytes});
  return copied == bytes ? 0 : kBadAddress;
}

}  // namespace clew::runtime::kernel
