// SPDX-License-Identifier: Apache-2.0
// The journal: all that is needed to take Clew out of a process again, by any tracer, whatever
// happened to the one that went in. It lies in the arena's memfd and is written by tracers only,
// always before the change it describes; the order of writes is the order of the fields' use.
//
//     JournalHeader · ExtentRecord[kExtentsMax] · SiteRecord[kSitesMax] · LayerRecord[kLayersMax]
//
// A site is one window of displaced instructions. What runs there is a stack of layers, one per
// installation: layer k has a trampoline with its own points and a complete copy of the displaced
// instructions. Only the copy of the top layer runs. For each instruction i where a lower layer
// has points, a layer has a link slot (5 bytes) before its own points:
//
//     window:  jmp top.start
//     layer:   [link_i: jmp lower.probe_i, or nop5] [stubs_i] [copy_i: displaced instruction i] …
//     lower:   its copy_i begins with `jmp upper.stubs_i` while an upper layer is there
//
// A window that serves both ways (code/both_ways.h) has one more instruction in its layers, behind
// the last: where a thread arrives that has done the first one. Its probes count the hit as lost,
// and its copy is the jump to the second instruction's probes.
//
// Bodies never move, so leaving in any order is a matter of these 5-byte jumps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clew::abi {

inline constexpr uint64_t kJournalMagic = 0x314e4a4552415743;  // "CWAREJN1", little endian.
inline constexpr uint32_t kJournalVersion = 8;
inline constexpr uint32_t kExtentsMax = 64;
inline constexpr uint32_t kSitesMax = 1U << 17;
inline constexpr uint32_t kLayersMax = 1U << 18;
inline constexpr uint32_t kWindowInstructionsMax = 16;
inline constexpr uint32_t kPatchesMax = 2;
inline constexpr uint32_t kPatchSizeMax = 12;
inline constexpr uint32_t kCopyHeadBytes = 5;  // A jmp rel32 over the start of a copy.

// Code in the target. Mapped before it is recorded: an unrecorded mapping is found by its name.
struct ExtentRecord {
  uint64_t address;
  uint64_t size_bytes;
  uint64_t file_offset;
  uint64_t used_bytes;  // Grows only.
};
static_assert(offsetof(ExtentRecord, size_bytes) == 8);
static_assert(offsetof(ExtentRecord, file_offset) == 16);
static_assert(offsetof(ExtentRecord, used_bytes) == 24);
static_assert(sizeof(ExtentRecord) == 32);

enum class SiteState : uint32_t {
  Free = 0,
  Prepared = 1,  // The text may hold the original bytes or ours.
  Patched = 2,
};

// A displaced instruction; inline/window.h explains the fields. Deltas are from the window's start.
struct DisplacedRecord {
  uint8_t offset;
  uint8_t length;
  uint8_t form;
  uint8_t field_offset;
  int32_t target_delta;  // 0 = no target.
};
static_assert(offsetof(DisplacedRecord, length) == 1);
static_assert(offsetof(DisplacedRecord, form) == 2);
static_assert(offsetof(DisplacedRecord, field_offset) == 3);
static_assert(offsetof(DisplacedRecord, target_delta) == 4);
static_assert(sizeof(DisplacedRecord) == 8);

struct SiteRecord {
  SiteState state;
  uint32_t reserved3;
  uint64_t address;  // Of the window, in the target.
  uint64_t load_bias;
  // What was mapped there at installation: a module that went away is never "restored".
  uint64_t map_start;
  uint64_t map_inode;
  uint64_t map_device;
  uint64_t map_offset;  // In the file, of map_start.
  uint8_t size_bytes;
  uint8_t window_class;
  uint8_t falls_through;
  uint8_t instruction_count;
  uint8_t kept_bytes;  // Of the first instruction, when it stays and the jump is behind it.
  uint8_t reserved[3];
  int32_t hop_delta;  // 0 = none.
  uint8_t hop_original[8];
  uint32_t reserved2;
  uint8_t original[32];
  DisplacedRecord instructions[kWindowInstructionsMax];
};
static_assert(offsetof(SiteRecord, address) == 8);
static_assert(offsetof(SiteRecord, load_bias) == 16);
static_assert(offsetof(SiteRecord, map_start) == 24);
static_assert(offsetof(SiteRecord, map_inode) == 32);
static_assert(offsetof(SiteRecord, map_device) == 40);
static_assert(offsetof(SiteRecord, map_offset) == 48);
static_assert(offsetof(SiteRecord, size_bytes) == 56);
static_assert(offsetof(SiteRecord, window_class) == 57);
static_assert(offsetof(SiteRecord, falls_through) == 58);
static_assert(offsetof(SiteRecord, instruction_count) == 59);
static_assert(offsetof(SiteRecord, kept_bytes) == 60);
static_assert(offsetof(SiteRecord, hop_delta) == 64);
static_assert(offsetof(SiteRecord, hop_original) == 68);
static_assert(offsetof(SiteRecord, original) == 80);
static_assert(offsetof(SiteRecord, instructions) == 112);
static_assert(sizeof(SiteRecord) == 112 + 8 * kWindowInstructionsMax);

// Bytes written over the program's text, compared before each change.
struct PatchRecord {
  uint64_t address;
  uint8_t size_bytes;
  uint8_t reserved[7];
  uint8_t original[kPatchSizeMax];
  uint8_t written[kPatchSizeMax];
};
static_assert(offsetof(PatchRecord, size_bytes) == 8);
static_assert(offsetof(PatchRecord, original) == 16);
static_assert(offsetof(PatchRecord, written) == 28);
static_assert(sizeof(PatchRecord) == 40);

// One instruction's places in a trampoline, as offsets from its start.
struct LayerInstruction {
  uint32_t probe;  // Link slot (layers with a layer below), then stubs; = copy when there is none.
  uint32_t copy;   // The displaced instruction.
};
static_assert(offsetof(LayerInstruction, copy) == 4);
static_assert(sizeof(LayerInstruction) == 8);

struct LayerRecord {
  uint32_t in_use;
  uint32_t session;
  uint32_t site;   // Index.
  uint32_t order;  // Counts installations: a layer lies above those with lower numbers.
  // Where the jump to the function's copy is, as an offset; 0 = none, nor what stands last.
  uint32_t copy_jump;
  uint32_t size_bytes;  // Of the trampoline with its out-of-line parts.
  uint64_t address;
  uint32_t with_points;  // Bit i: instruction i has a probe (own points or a link slot).
  uint32_t with_links;   // Bit i: its first 5 bytes are a link slot.
  uint32_t conditional;  // Bit i: it has points behind it, which lie inside its copy.
  uint32_t back_offset;  // The jump back to the end of the window; 0 = none.
  uint32_t patch_count;
  uint32_t point_count;  // Of its session; for lists.
  PatchRecord patches[kPatchesMax];
  LayerInstruction instructions[kWindowInstructionsMax];
  // The first bytes of each copy, to be put back when the layer above leaves.
  uint8_t copy_head[kWindowInstructionsMax][kCopyHeadBytes];
  // Where calls between copies of functions come to the probe of this one, and where they would go
  // without: its original.
  uint64_t copy_entry;
  uint64_t copy_original;
};
static_assert(offsetof(LayerRecord, session) == 4);
static_assert(offsetof(LayerRecord, site) == 8);
static_assert(offsetof(LayerRecord, order) == 12);
static_assert(offsetof(LayerRecord, size_bytes) == 20);
static_assert(offsetof(LayerRecord, address) == 24);
static_assert(offsetof(LayerRecord, with_points) == 32);
static_assert(offsetof(LayerRecord, with_links) == 36);
static_assert(offsetof(LayerRecord, conditional) == 40);
static_assert(offsetof(LayerRecord, back_offset) == 44);
static_assert(offsetof(LayerRecord, patch_count) == 48);
static_assert(offsetof(LayerRecord, point_count) == 52);
static_assert(offsetof(LayerRecord, patches) == 56);
static_assert(offsetof(LayerRecord, instructions) == 136);
static_assert(offsetof(LayerRecord, copy_jump) == 16);
static_assert(offsetof(LayerRecord, copy_head) == 264);
static_assert(offsetof(LayerRecord, copy_entry) == 344);
static_assert(offsetof(LayerRecord, copy_original) == 352);
static_assert(sizeof(LayerRecord) == 56 + 40 * kPatchesMax + 8 * kWindowInstructionsMax +
                                         kCopyHeadBytes * kWindowInstructionsMax + 16);

// What one session has in the target besides sites; written before the change, where that can be.
inline constexpr uint32_t kSharedPartsMax = 60;
enum class SharedKind : uint32_t {
  // There may be nothing yet; what is there is known by its name (inline/shared_parts.h). Identity:
  // of the BPF map, whose descriptor may have stayed behind; 0 = of a file.
  Memory = 0,
  // Of a static probe. Changing: raised or not, as we may die just then. Identity: what it holds
  // when it is not raised. Size: the inode of its file, whose library may be gone by now.
  SemaphoreChanging = 1,
  Semaphore = 2,
  Socket = 3,  // By which descriptors came. Address: its descriptor + 1; identity: the inode.
};
struct SharedRecord {
  uint64_t address;  // In the target; 0 = free.
  uint64_t size_bytes;
  uint64_t identity;
  uint32_t session;
  SharedKind kind;
};
static_assert(offsetof(SharedRecord, size_bytes) == 8);
static_assert(offsetof(SharedRecord, identity) == 16);
static_assert(offsetof(SharedRecord, session) == 24);
static_assert(offsetof(SharedRecord, kind) == 28);
static_assert(sizeof(SharedRecord) == 32);

// What the process's vDSO had where the load without a fault is written (inline/vdso_load.h): five
// bytes and two.
struct LoadRecord {
  uint64_t load;  // Addresses in the target; 0 = nothing is written.
  uint64_t landing;
  uint8_t load_original[8];
  uint8_t landing_original[8];
};
static_assert(offsetof(LoadRecord, landing) == 8);
static_assert(offsetof(LoadRecord, load_original) == 16);
static_assert(offsetof(LoadRecord, landing_original) == 24);
static_assert(sizeof(LoadRecord) == 32);

struct JournalHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t extent_count;
  uint32_t site_count;   // Highest index used + 1.
  uint32_t layer_count;  // Highest index used + 1.
  uint32_t next_order;   // Of the next layer.
  // Modules whose functions run on copies in the extents: nobody can take these out while the
  // process lives, as return addresses lead there. Set before the first entry leads to one.
  uint32_t copied_modules;
  LoadRecord load;
  uint8_t reserved[4096 - 32 - sizeof(LoadRecord) - kExtentsMax * sizeof(ExtentRecord) -
                   kSharedPartsMax * sizeof(SharedRecord)];
  SharedRecord shared[kSharedPartsMax];
  ExtentRecord extents[kExtentsMax];
};
static_assert(offsetof(JournalHeader, version) == 8);
static_assert(offsetof(JournalHeader, extent_count) == 12);
static_assert(offsetof(JournalHeader, site_count) == 16);
static_assert(offsetof(JournalHeader, layer_count) == 20);
static_assert(offsetof(JournalHeader, next_order) == 24);
static_assert(offsetof(JournalHeader, copied_modules) == 28);
static_assert(offsetof(JournalHeader, load) == 32);
static_assert(offsetof(JournalHeader, shared) == 128);
static_assert(offsetof(JournalHeader, extents) == 2048);
static_assert(sizeof(JournalHeader) == 4096);

inline constexpr uint64_t kJournalSitesOffset = sizeof(JournalHeader);
inline constexpr uint64_t kJournalLayersOffset =
    kJournalSitesOffset + uint64_t{kSitesMax} * sizeof(SiteRecord);
inline constexpr uint64_t kJournalSizeBytes =
    (kJournalLayersOffset + uint64_t{kLayersMax} * sizeof(LayerRecord) + 4095) & ~uint64_t{4095};

}  // namespace clew::abi
