// SPDX-License-Identifier: Apache-2.0
// User stacks without frame pointers: the tables that say how to get from a frame to its caller's,
// made of call frame information (DWARF 5, section 6.4) by the tracer, and the walk itself, which
// the kernel's programs and code in processes share. Nothing here waits or allocates: the tables
// are arrays of fixed size in shared memory, and a walk ends after `limit` frames at most.
//
//     processes   hash of pids: where a process's segments are
//     segments    its executable mappings by address: where the rows of their file are
//     files       hash of inodes: the same for a mapping that the kernel itself finds, when a
//                 process has mapped something that the tracer has not heard of yet
//     rows        (address, rule) of all files, those of a file by address; a row holds up to the
//                 next
//     rules       each that occurs, once: rule 0 means "no information"
//
// A process's segments may be replaced while they are read: `version` is odd meanwhile, and a walk
// that saw two versions is thrown away. Rows and rules only grow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/machine/loop.h"

namespace clew::abi {

inline constexpr uint32_t kMachineUnwindProcesses = 1U << 14;  // Powers of 2.
inline constexpr uint32_t kMachineUnwindSegments = 1U << 16;
inline constexpr uint32_t kMachineUnwindRules = 1U << 14;
inline constexpr uint32_t kMachineUnwindFiles = 1U << 12;
inline constexpr uint32_t kMachineUnwindSlotsMax = 32;  // Looked at for a pid, an inode.
inline constexpr uint64_t kMachineUnwindRemoved = ~uint64_t{0};

struct MachineUnwindProcess {
  uint64_t pid;      // 0 = never used, so that no search goes on behind it.
  uint64_t version;  // Odd while the tracer changes the rest.
  uint32_t first_segment;
  uint32_t segment_count;  // 0: the tracer was asked for them.
  uint64_t asked;          // The tracer was asked to look at the process again.
  uint64_t program;  // Inode of the program that it ran then; another one: all of this is old.
  uint64_t reserved[3];
};
static_assert(offsetof(MachineUnwindProcess, version) == 8);
static_assert(offsetof(MachineUnwindProcess, first_segment) == 16);
static_assert(offsetof(MachineUnwindProcess, segment_count) == 20);
static_assert(offsetof(MachineUnwindProcess, asked) == 24);
static_assert(offsetof(MachineUnwindProcess, program) == 32);
static_assert(sizeof(MachineUnwindProcess) == 64);

// [begin, end) of the process; an address minus `origin` is one of the rows'.
struct MachineUnwindSegment {
  uint64_t begin;
  uint64_t end;
  uint64_t origin;
  uint32_t first_row;
  uint32_t row_count;  // 0: nothing is known of its code.
};
static_assert(offsetof(MachineUnwindSegment, end) == 8);
static_assert(offsetof(MachineUnwindSegment, origin) == 16);
static_assert(offsetof(MachineUnwindSegment, first_row) == 24);
static_assert(offsetof(MachineUnwindSegment, row_count) == 28);
static_assert(sizeof(MachineUnwindSegment) == 32);

// An address minus (start of a mapping - its offset in the file + delta) is one of the rows'.
struct MachineUnwindFile {
  uint64_t inode;  // 0 = never used.
  uint64_t device;
  uint64_t delta;
  uint32_t first_row;
  uint32_t row_count;
};
static_assert(offsetof(MachineUnwindFile, device) == 8);
static_assert(offsetof(MachineUnwindFile, delta) == 16);
static_assert(offsetof(MachineUnwindFile, first_row) == 24);
static_assert(offsetof(MachineUnwindFile, row_count) == 28);
static_assert(sizeof(MachineUnwindFile) == 32);

struct MachineUnwindRow {
  uint32_t address;
  uint32_t rule;
};
static_assert(sizeof(MachineUnwindRow) == 8);

enum class MachineUnwindKind : uint8_t {
  None,         // No information: the frame pointer is tried.
  End,          // The outermost frame.
  Unsupported,  // There is information, of a kind that is not followed.
  Base,         // CFA = base + offset, or the word there + second_offset.
  Plt,          // CFA = rsp + offset, and 8 more from byte `second_offset` of 16 on.
};

// Where a register of the caller is.
enum class MachineSaved : uint8_t { Same, Lost, AtCfa, AtSp, AtFp };

inline constexpr uint8_t kDwarfBx = 3;  // psABI x86-64, figure 3.36.
inline constexpr uint8_t kDwarfFp = 6;
inline constexpr uint8_t kDwarfSp = 7;

struct MachineUnwindRule {
  MachineUnwindKind kind;
  uint8_t base;       // DWARF's number of a register.
  uint8_t is_loaded;  // The word at base + offset is meant.
  uint8_t is_signal;  // The caller was interrupted, it did not call.
  int32_t offset;
  int32_t second_offset;
  MachineSaved pc_saved;
  MachineSaved fp_saved;
  MachineSaved bx_saved;
  uint8_t reserved;
  int32_t pc_offset;
  int32_t fp_offset;
  int32_t bx_offset;
  uint32_t reserved_end;
};
static_assert(offsetof(MachineUnwindRule, base) == 1);
static_assert(offsetof(MachineUnwindRule, is_loaded) == 2);
static_assert(offsetof(MachineUnwindRule, is_signal) == 3);
static_assert(offsetof(MachineUnwindRule, offset) == 4);
static_assert(offsetof(MachineUnwindRule, second_offset) == 8);
static_assert(offsetof(MachineUnwindRule, pc_saved) == 12);
static_assert(offsetof(MachineUnwindRule, fp_saved) == 13);
static_assert(offsetof(MachineUnwindRule, bx_saved) == 14);
static_assert(offsetof(MachineUnwindRule, pc_offset) == 16);
static_assert(offsetof(MachineUnwindRule, fp_offset) == 20);
static_assert(offsetof(MachineUnwindRule, bx_offset) == 24);
static_assert(sizeof(MachineUnwindRule) == 32);

// Where to look for a pid or an inode. `slots`: a power of 2.
constexpr uint64_t unwind_slot(uint64_t key, uint64_t turn, uint64_t slots) {
  const uint64_t mixed = key * 0x9E37'79B9'7F4A'7C15;
  return ((mixed >> 40) + turn) & (slots - 1);
}

struct MachineFrame {
  uint64_t pc;
  uint64_t sp;
  uint64_t fp;
  uint64_t bx;
  uint64_t is_call;  // pc is where a call returns to: its code is before it.
};

// A walk that is under way. In memory of its own, of which the kernel's verifier knows nothing: it
// could not bound a loop over values that it knows.
struct MachineWalk {
  MachineFrame frame;
  uint64_t first_segment;
  uint64_t segment_count;
  uint64_t depth;                // Frames put.
  uint64_t is_begun;             // The first frame was left.
  uint64_t is_stale;             // Code was seen that lies in no segment.
  MachineUnwindSegment segment;  // Of the code at hand.
};

// The tables in one file, which processes may read (SessionEntry::unwind_tables): rows last, as
// many as SessionEntry::unwind_rows says. Its processes are found by the pid that the tracer knows,
// and a forked child goes by its parent's.
inline constexpr uint64_t kUnwindProcessesOffset = 0;
inline constexpr uint64_t kUnwindSegmentsOffset =
    kUnwindProcessesOffset + kMachineUnwindProcesses * sizeof(MachineUnwindProcess);
inline constexpr uint64_t kUnwindRulesOffset =
    kUnwindSegmentsOffset + kMachineUnwindSegments * sizeof(MachineUnwindSegment);
inline constexpr uint64_t kUnwindRowsOffset =
    kUnwindRulesOffset + kMachineUnwindRules * sizeof(MachineUnwindRule);

// The rule of code that was looked up before.
struct KnownRule {
  uint64_t code;  // 0 = none.
  uint64_t rule;
};
inline constexpr uint64_t kKnownRules = 128;  // A power of 2.

// In a region (RegionLayout::walk_offset): the walk of its thread, the page of memory that was read
// last, and the rules of the code that it met last, by the segments of one version.
struct ProcessWalk {
  MachineWalk walk;
  uint64_t page;  // Its address.
  uint8_t bytes[4096];
  uint64_t known_version;
  KnownRule known[kKnownRules];
};

inline constexpr uint64_t kMachineUserAddressEnd = uint64_t{1} << 47;
inline constexpr uint64_t kMachineSearchTurnsMax = 33;
// `mov $15, %rax` and the first byte of `syscall`: what a signal handler returns to. The kernel put
// a ucontext on the stack for it; these are its registers in it (arch/x86/include/uapi/asm/
// sigcontext.h).
inline constexpr uint64_t kMachineSignalReturnCode = 0x0f00'0000'0fc0'c748;
inline constexpr uint64_t kMachineSignalReturnBytes = 9;
inline constexpr uint64_t kMachineSignalFp = 120;
inline constexpr uint64_t kMachineSignalBx = 128;
inline constexpr uint64_t kMachineSignalSp = 160;
inline constexpr uint64_t kMachineSignalPc = 168;

// A Host has what differs between the kernel and a process:
//     bool read(uint64_t address, uint64_t& word)     of the walked process; false: not readable
//     const MachineUnwindSegment& segment(uint64_t index)   all three for any index
//     const MachineUnwindRow& row(uint64_t index)
//     const MachineUnwindRule& rule(uint64_t index)
//     uint64_t leaf_register(uint64_t number)         of the first frame
//     uint64_t hidden_return(uint64_t slot)           what the word at `slot` was before a probe of
//                                                     returns took its place; 0: none did
//     bool recall_rule(uint64_t code, uint64_t& rule)  of what was noted
//     void note_rule(uint64_t code, uint64_t rule)
//     bool find_mapping(uint64_t address)             sets the walk's segment to what the process
//                                                     has there beyond its segments
//     void put(uint64_t index, uint64_t pc)
//     uint64_t zero()                                 abi/machine/loop.h
//
//     while (walk.depth < limit && visitor.visit()) {}
template <typename Host>
class FrameVisitor {
 public:
  [[gnu::always_inline]] FrameVisitor(Host& host, MachineWalk& walk) : host_(host), walk_(walk) {}

  // Puts the frame that the walk is at, and goes to its caller. False at the end. At a frame whose
  // address a probe hides, it only learns the address; so count the visits, too.
  [[gnu::always_inline]] bool visit() {
    MachineFrame frame = walk_.frame;
    const bool is_leaf = walk_.is_begun == 0;
    const uint64_t code = frame.pc - frame.is_call;
    uint64_t rule = 0;
    bool is_known = host_.recall_rule(code, rule);
    const bool is_recalled = is_known;
    if (!is_recalled) is_known = find_segment(code);
    if (!is_known) {
      const uint64_t hidden = is_leaf ? 0 : host_.hidden_return(frame.sp - 8);
      if (hidden != 0 && hidden != frame.pc) {
        walk_.frame.pc = hidden;
        return true;
      }
      walk_.is_stale = 1;
      is_known = host_.find_mapping(code);
      if (!is_known && !is_leaf) return false;
    }
    host_.put(walk_.depth, frame.pc);
    walk_.depth = walk_.depth + 1;
    walk_.is_begun = 1;
    if (!is_recalled) {
      rule = is_known ? find_rule(code) : 0;
      host_.note_rule(code, rule);
    }
    const bool has_caller = step(frame, host_.rule(rule), is_leaf);
    walk_.frame = frame;
    return has_caller;
  }

 private:
  [[gnu::always_inline]] bool find_segment(uint64_t address) {
    uint64_t low = walk_.first_segment;
    uint64_t high = low + walk_.segment_count;
    for (uint64_t turn = host_.zero(); turn < kMachineSearchTurnsMax && low < high && go_on();
         ++turn) {
      const uint64_t middle = low + (high - low) / 2;
      const MachineUnwindSegment& segment = host_.segment(middle);
      if (address < segment.begin) {
        high = middle;
      } else if (address >= segment.end) {
        low = middle + 1;
      } else {
        walk_.segment = segment;
        return true;
      }
    }
    return false;
  }

  // The rule of the last row at or before the address.
  [[gnu::always_inline]] uint64_t find_rule(uint64_t address) {
    const MachineUnwindSegment segment = walk_.segment;
    const uint64_t wanted = address - segment.origin;
    uint64_t low = segment.first_row;
    uint64_t high = low + segment.row_count;
    uint64_t rule = 0;
    for (uint64_t turn = host_.zero(); turn < kMachineSearchTurnsMax && low < high && go_on();
         ++turn) {
      const uint64_t middle = low + (high - low) / 2;
      const MachineUnwindRow& row = host_.row(middle);
      if (row.address <= wanted) {
        rule = row.rule;
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return rule;
  }

  // To the caller's frame; false when there is none.
  [[gnu::always_inline]] bool step(MachineFrame& frame, const MachineUnwindRule& rule,
                                   bool is_leaf) {
    if (rule.kind == MachineUnwindKind::None) return step_without_rule(frame);
    if (rule.kind != MachineUnwindKind::Base && rule.kind != MachineUnwindKind::Plt) return false;
    uint64_t cfa = 0;
    if (!find_cfa(frame, rule, is_leaf, cfa)) return false;
    // Stacks grow downwards; only the frame below a signal's may be on another stack.
    if (rule.is_signal == 0 && cfa <= frame.sp) return false;
    MachineFrame caller = frame;
    if (!load(frame, cfa, rule.pc_saved, rule.pc_offset, caller.pc)) return false;
    // gcc 12 says of some last instructions that these lie where they did before they were popped.
    // What is not there is lost, which matters only where a caller's rule needs it.
    (void)load(frame, cfa, rule.fp_saved, rule.fp_offset, caller.fp);
    (void)load(frame, cfa, rule.bx_saved, rule.bx_offset, caller.bx);
    caller.sp = cfa;
    caller.is_call = rule.is_signal == 0 ? 1 : 0;
    return accept(frame, caller);
  }

  [[gnu::always_inline]] bool find_cfa(const MachineFrame& frame, const MachineUnwindRule& rule,
                                       bool is_leaf, uint64_t& cfa) {
    const auto offset = static_cast<uint64_t>(int64_t{rule.offset});
    const auto second = static_cast<uint64_t>(int64_t{rule.second_offset});
    if (rule.kind == MachineUnwindKind::Plt) {
      cfa = frame.sp + offset + ((frame.pc & 15) >= second ? 8 : 0);
      return true;
    }
    uint64_t base = frame.sp;
    if (rule.base == kDwarfFp) {
      base = frame.fp;
    } else if (rule.base == kDwarfBx) {
      base = frame.bx;
    } else if (rule.base != kDwarfSp) {
      if (!is_leaf) return false;
      base = host_.leaf_register(rule.base);
    }
    cfa = base + offset;
    if (rule.is_loaded == 0) return true;
    uint64_t word = 0;
    if (!host_.read(cfa, word)) return false;
    cfa = word + second;
    return true;
  }

  [[gnu::always_inline]] bool load(const MachineFrame& frame, uint64_t cfa, MachineSaved saved,
                                   int32_t offset, uint64_t& value) {
    if (saved == MachineSaved::Same) return true;
    uint64_t address = cfa;
    if (saved == MachineSaved::AtSp) address = frame.sp;
    if (saved == MachineSaved::AtFp) address = frame.fp;
    value = 0;
    if (saved == MachineSaved::Lost) return true;
    if (host_.read(address + static_cast<uint64_t>(int64_t{offset}), value)) return true;
    value = 0;
    return false;
  }

  [[gnu::always_inline]] bool step_without_rule(MachineFrame& frame) {
    MachineFrame caller = frame;
    uint64_t word = 0;
    // A handler's return address, or behind the system call that is made there.
    const uint64_t code = frame.is_call != 0 ? frame.pc : frame.pc - kMachineSignalReturnBytes;
    if (host_.read(code, word) && word == kMachineSignalReturnCode) {
      caller.is_call = 0;
      return host_.read(frame.sp + kMachineSignalPc, caller.pc) &&
             host_.read(frame.sp + kMachineSignalSp, caller.sp) &&
             host_.read(frame.sp + kMachineSignalFp, caller.fp) &&
             host_.read(frame.sp + kMachineSignalBx, caller.bx) && accept(frame, caller);
    }
    if (frame.fp < frame.sp || (frame.fp & 7) != 0) return false;
    if (!host_.read(frame.fp, caller.fp) || !host_.read(frame.fp + 8, caller.pc)) return false;
    caller.sp = frame.fp + 16;
    caller.is_call = 1;
    return accept(frame, caller);
  }

  [[gnu::always_inline]] static bool accept(MachineFrame& frame, const MachineFrame& caller) {
    frame = caller;
    return frame.pc != 0 && frame.pc < kMachineUserAddressEnd;
  }

  Host& host_;
  MachineWalk& walk_;
};

}  // namespace clew::abi
