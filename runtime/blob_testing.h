// SPDX-License-Identifier: Apache-2.0
// For tests: the embedded blob, byte for byte as targets get it, over a small arena in this
// process.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "abi/arena.h"
#include "abi/calling.h"
#include "runtime/blob.h"
#include "runtime/segments_testing.h"

namespace clew::runtime {
using abi::Accessor;

inline constexpr uint64_t kLowAddress = 0x2000'0000;
inline constexpr uint64_t kStride = 65536;
inline constexpr uint32_t kRegionOffset = 256;
inline constexpr uint32_t kSession = 3;
inline constexpr uint32_t kSlots = 4;

inline uint8_t* map_at(uint64_t address, uint64_t size, int flags) {
  void* const at = mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE,
                        flags | MAP_ANONYMOUS | (address != 0 ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<uint8_t*>(at);
}

inline abi::RegionLayout test_layout() {
  abi::RegionLayout layout = {};
  layout.size_log2 = 13;
  layout.generations = 1;
  layout.table_count = 1;
  layout.tables[0] = {.offset = 1024, .entries_log2 = 3, .key_words = 2, .cell_words = 1};
  layout.records = {.offset = 2048, .records_log2 = 3, .payload_words = 1, .reserved = 0};
  return layout;
}

class RuntimeBlob : public testing::Test {
 protected:
  void SetUp() override {
    low_ = map_at(kLowAddress, abi::kPrivateSizeBytes, MAP_PRIVATE);
    shared_ = map_at(kLowAddress + abi::kPrivateSizeBytes,
                     abi::kLowBlockSizeBytes - abi::kPrivateSizeBytes, MAP_SHARED);
    slots_ = map_at(0, kSlots * kStride, MAP_SHARED);
    code_ = map_at(0, 65536, MAP_PRIVATE);
    ASSERT_TRUE(low_ != nullptr && shared_ != nullptr && slots_ != nullptr && code_ != nullptr);
    ASSERT_EQ(madvise(low_, abi::kPrivateSizeBytes, MADV_WIPEONFORK), 0);
    const Blob blob = runtime_blob();
    std::memcpy(code_, blob.bytes.data(), blob.bytes.size());
    const auto low = static_cast<uint32_t>(kLowAddress);
    std::memcpy(code_ + blob.low_address_offset, &low, 4);
    ASSERT_EQ(mprotect(code_, 65536, PROT_READ | PROT_EXEC), 0);
    page().cookie = uint64_t{1} << 48;
    header().slot_count = kSlots;
    header().slots_address = reinterpret_cast<uint64_t>(slots_);
    header().slot_stride = kStride;
    header().system_calls_allowed = 1;
    header().tid_offset = abi::kTidFromKernel;
    header().keeps_self_pointer = 1;
    header().bases = own_bases();
    target_page().process_count = 1;
    session().region_offset = kRegionOffset;
    session().layout = test_layout();
  }
  void TearDown() override {
    set_own_gs_base(0);
    munmap(low_, abi::kLowBlockSizeBytes);
    munmap(slots_, kSlots * kStride);
    munmap(code_, 65536);
  }

  abi::PrivatePage& page() { return *reinterpret_cast<abi::PrivatePage*>(low_); }
  abi::ArenaHeader& header() { return *reinterpret_cast<abi::ArenaHeader*>(shared_); }
  abi::SessionEntry& session() { return header().sessions[kSession]; }
  abi::TargetPage& target_page() {
    return *reinterpret_cast<abi::TargetPage*>(low_ + abi::kTargetPageOffset);
  }
  uint64_t* directory() { return reinterpret_cast<uint64_t*>(low_ + abi::kDirectoryOffset); }
  abi::SlotControl& slot(uint32_t i) {
    return *reinterpret_cast<abi::SlotControl*>(slots_ + i * kStride);
  }
  uint8_t* own_region() {
    const uint64_t base = own_gs_base();
    return reinterpret_cast<uint8_t*>(base + kLowAddress + kRegionOffset);
  }
  size_t own_index() { return static_cast<size_t>(own_region() - slots_) / kStride; }
  abi::RegionHeader& counters() { return *reinterpret_cast<abi::RegionHeader*>(own_region()); }

  // Calls an accessor like a verified body; `kept_` says whether the registers survived that it may
  // not change.
  uint64_t access(Accessor accessor, uint64_t r1, uint64_t r2 = 0, uint64_t r3 = 0, uint64_t r4 = 0,
                  uint64_t r5 = 0) {
    return call_door(static_cast<uint32_t>(accessor), {r1, r2, r3, r4, r5});
  }
  // The same by the door that keeps no more than C code does.
  uint64_t access_sparingly(Accessor accessor, uint64_t r1, uint64_t r2 = 0, uint64_t r3 = 0) {
    return call_door(abi::door_of(static_cast<uint32_t>(accessor), abi::Doors::Sparing),
                     {r1, r2, r3, 0, 0});
  }
  uint64_t call_door(uint32_t door, const std::array<uint64_t, 5>& r) {
    uint64_t result = 0;
    uint64_t kept = 0;
    const uint64_t entry = reinterpret_cast<uint64_t>(code_) + thunk_offset(kSession, door);
    asm volatile(
        "mov %[a], %%r11\n mov %[c], %%r12\n mov %[d], %%r14\n mov %[e], %%r15\n"
        "mov %[b], %%rbx\n"
        "mov $11, %%rdi\n mov $22, %%rsi\n mov $33, %%rcx\n mov $44, %%rdx\n mov $55, %%r8\n"
        "mov $66, %%r9\n"
        "call *%[entry]\n"
        "lea (%%rdi,%%rsi), %%rdi\n add %%rcx, %%rdi\n add %%rdx, %%rdi\n add %%r8, %%rdi\n"
        "add %%r9, %%rdi\n mov %%rdi, %[kept]\n"
        : "=a"(result), [kept] "=m"(kept)
        : [a] "m"(r[0]), [b] "m"(r[1]), [c] "m"(r[2]), [d] "m"(r[3]), [e] "m"(r[4]),
          [entry] "m"(entry)
        : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r14", "r15",
          "memory", "cc");
    kept_ = kept == 231;
    return result;
  }
  // Calls a stub's helper; true = run.
  bool stub(StubCall which) {
    uint64_t answer = 0;
    const uint64_t entry = reinterpret_cast<uint64_t>(code_) + stub_call_offset(kSession, which);
    asm volatile("call *%[entry]\n mov %%r10, %[answer]\n"
                 : [answer] "=r"(answer)
                 : [entry] "r"(entry)
                 : "r10", "memory", "cc");
    return answer != 0;
  }

  uint8_t* low_ = nullptr;
  uint8_t* shared_ = nullptr;
  uint8_t* slots_ = nullptr;
  uint8_t* code_ = nullptr;
  bool kept_ = true;
};

}  // namespace clew::runtime
