// SPDX-License-Identifier: Apache-2.0
// Arena: the memory that Clew shares with one target (abi/arena.h), from the tracer's side: made
// through a stopped target, found again in one that has it, laid out, taken away.
//
// The tracer maps both files; pages exist only where somebody wrote. A tracer that may not open
// them (an ordinary user after the first tracer was killed) works on a copy of header and
// journal: enough to clean up, not enough to start a session.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "abi/arena.h"
#include "abi/journal.h"
#include "base/error.h"
#include "inline/arena_file.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

// What the arena must know of the target.
struct TargetTraits {
  bool keeps_self_pointer = true;  // fs:0 of all threads.
  abi::SegmentBases bases = abi::SegmentBases::Instructions;
  bool system_calls_allowed = true;
  uint64_t tid_offset = abi::kTidFromNobody;
};

struct ArenaOptions {
  uint64_t slot_stride = 0;  // Bytes; rounded up to pages.
  abi::ForkPolicy fork_policy = abi::ForkPolicy::Mute;
  TargetTraits traits;
};

// Where code may go: every address of it reaches all of [low, high) with a rel32.
struct CodeRange {
  uint64_t low = 0;
  uint64_t high = 0;
};

// What does not change in the life of an arena, copied and checked once: the target can write the
// header, so nothing of it may be read a second time where it decides what we touch.
struct ArenaShape {
  uint32_t slot_count = 0;
  uint64_t slot_stride = 0;    // Bytes; a multiple of the page size.
  uint64_t slots_address = 0;  // In the target, as all addresses here.
  uint64_t code_address = 0;
  bool keeps_self_pointer = true;
  abi::SegmentBases bases = abi::SegmentBases::Instructions;
};

// A checked copy of the extents: each lies in the code area, behind the one before.
struct ArenaExtents {
  std::array<abi::ExtentRecord, abi::kExtentsMax> records{};
  uint32_t count = 0;

  // Of the extent that contains all of [address, address + size); `count` when there is none.
  [[nodiscard]] uint32_t index_of(uint64_t address, uint64_t size) const;
};

// An arena seen in /proc/PID/maps.
struct ArenaMapping {
  uint64_t low_address = 0;  // A.
  uint64_t inode = 0;        // Of the code file.
  // All of both files, the code file's first: by offset the header, the journal, and the code.
  std::vector<target::Mapping> mappings;
};
std::optional<ArenaMapping> find_arena(std::span<const target::Mapping> maps);
// It has the files of others in its memory, each as a whole. A process that is traced never has the
// code writable.
bool traces_others(std::span<const target::Mapping> maps);

class Arena {
 public:
  static Expected<Arena> create(StoppedTarget& target, const ArenaOptions& options);
  // The arena that is there. Refused when it is another version's, or damaged.
  static Expected<Arena> join(pid_t pid, const ArenaMapping& mapping);

  // False for a copy: what is written there reaches nobody.
  [[nodiscard]] bool shared() const { return code_.has_file(); }
  [[nodiscard]] int code_file() const { return code_.file(); }
  [[nodiscard]] int slots_file() const { return slots_.file(); }
  // Who made the file may still write it. What decides where we read or write is in shape() and
  // extents().
  [[nodiscard]] abi::ArenaHeader& header() const;
  // Shared with the target, which may write anything at any time. Only when shared().
  [[nodiscard]] abi::TargetPage& target_page() const;
  [[nodiscard]] const ArenaShape& shape() const { return shape_; }
  [[nodiscard]] ArenaExtents extents() const;
  // Copies of the records in use: (index, record).
  [[nodiscard]] std::vector<std::pair<uint32_t, abi::SharedRecord>> shared_parts() const;
  // One copy of a session's entry; its layout is of a size that can be.
  [[nodiscard]] abi::SessionEntry session(uint32_t index) const;
  [[nodiscard]] abi::JournalHeader& journal() const;
  [[nodiscard]] std::span<abi::SiteRecord> sites() const;    // All kSitesMax.
  [[nodiscard]] std::span<abi::LayerRecord> layers() const;  // All kLayersMax.
  // Of abi/slot.h; only when shared().
  [[nodiscard]] uint64_t* directory() const { return reinterpret_cast<uint64_t*>(slots_.base()); }
  [[nodiscard]] uint8_t* slots() const { return slots_.base() + slots_file_offset(); }
  [[nodiscard]] static uint64_t slots_file_offset();
  [[nodiscard]] uint64_t low_address() const { return low_address_; }
  [[nodiscard]] bool contains_slot(uint64_t gs_base) const;
  // The gs base of a thread that must take no slot: it sees the header in the place of one, which
  // nobody owns, and the runtime counts its hits as missed (runtime/claim.cc, has_our_gs).
  static constexpr uint64_t kBarredGs = abi::kHeaderOffset;
  // One that a session has given a thread.
  [[nodiscard]] bool has_given(uint64_t gs_base) const {
    return gs_base == kBarredGs || contains_slot(gs_base);
  }
  // Is this address of the target in one of the arena's code mappings?
  [[nodiscard]] bool contains_code(uint64_t address) const;

  // Index of an extent that reaches the range and has room; maps a new one (target needed then).
  [[nodiscard]] std::optional<uint32_t> find_extent(const CodeRange& range, uint64_t size) const;
  Expected<uint32_t> add_extent(StoppedTarget& target, const CodeRange& range, uint64_t size);
  // The tracer's view of `size` bytes of code at this address of the target; null when that is not
  // all in one extent, or this is a copy.
  [[nodiscard]] uint8_t* code_at(uint64_t address, uint64_t size) const;

  // Takes `size` bytes of an extent, 16-aligned; the address in the target, none when they are not
  // there.
  std::optional<uint64_t> take_code(uint32_t extent, uint64_t size);

  // Serialises tracers that change the arena. False when a living tracer holds it until the end of
  // the timeout.
  [[nodiscard]] bool lock(std::chrono::milliseconds timeout) const;
  void unlock() const;

  // Removes every mapping of the arena from the target, and nothing else.
  static Expected<void> unmap(StoppedTarget& target);

 private:
  Arena() = default;
  [[nodiscard]] bool is_mapped_by(pid_t pid) const;
  Expected<void> map_files(pid_t pid, const ArenaMapping& mapping);
  Expected<void> map_copy(pid_t pid, const ArenaMapping& mapping);
  [[nodiscard]] bool take_shape();

  MappedFile code_;   // Of a copy: header and journal only.
  MappedFile slots_;  // None of a copy.
  uint64_t low_address_ = 0;
  ArenaShape shape_;
};

// Field 22 of /proc/PID/stat as it is in the first time namespace: tracers in several agree; 0 when
// there is no such process, or a dead one. Everybody may ask.
uint64_t start_time_of(pid_t pid);
// Whether this process began then. Offsets of namespaces are no whole ticks: one may be lost.
bool is_start_time(pid_t pid, uint64_t noted);

// --- gaps, for tests ----------------------------------------------------------------------------

// The lowest (`from_top`: highest) free address for `size` bytes inside [low, high).
struct GapRequest {
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t size = 0;
  bool from_top = false;
};
std::optional<uint64_t> find_gap(std::span<const target::Mapping> maps, const GapRequest& request);

// Where an extent for the range can go.
std::optional<uint64_t> find_near(std::span<const target::Mapping> maps, const CodeRange& range,
                                  uint64_t size);

}  // namespace clew::inline_
