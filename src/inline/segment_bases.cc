// SPDX-License-Identifier: Apache-2.0
// The contract is in segment_bases.h.
#include "inline/segment_bases.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

#include <asm/prctl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "inline/arena_layout.h"
#include "inline/attachment.h"
#include "inline/checks.h"
#include "inline/interrupted_call.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kHwcap2FsGsBase = 2;  // Linux 5.9, asm/hwcap2.h: bit 1.
constexpr unsigned kCookieProcessShift = 48;

bool is_told_otherwise() {
  const char* const told = std::getenv("CLEW_NO_FSGSBASE");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view text = told == nullptr ? "" : told;
  return !text.empty() && text != "0";
}

// A value of the kernel's auxiliary vector for the process; 0 when it is not there.
uint64_t auxiliary_value(pid_t pid, uint64_t key) {
  std::ifstream file(fmt::format("/proc/{}/auxv", target::memory_holder(pid)), std::ios::binary);
  std::array<uint64_t, 2> entry{};
  while (file.read(reinterpret_cast<char*>(entry.data()), sizeof entry)) {
    if (entry[0] == key) return entry[1];
  }
  return 0;
}

// May the thread make the calls of runtime/claim.cc, by its filters?
bool may_ask_kernel(pid_t tid) {
  const auto filters = filters_of(tid);
  if (!filters) return !is_filtered(tid);
  constexpr std::array<uint64_t, 3> kWhat = {ARCH_SET_GS, ARCH_GET_GS, ARCH_GET_FS};
  return std::all_of(kWhat.begin(), kWhat.end(), [&](uint64_t what) {
    seccomp_data call = {};
    call.nr = SYS_arch_prctl;
    call.arch = AUDIT_ARCH_X86_64;
    call.args[0] = what;
    const uint32_t action = answer_of(*filters, call) & SECCOMP_RET_ACTION_FULL;
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
  });
}

// Hands out slots that nobody holds, in their order.
class Giver {
 public:
  Giver(const StoppedTarget& target, const Arena& arena) : target_(target), arena_(arena) {
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(&cookie_), sizeof cookie_);
    if (!target_.read(arena_.low_address() + abi::kCookieOffset, bytes)) cookie_ = 0;
  }

  // A forked child that is not followed has none.
  [[nodiscard]] bool has_cookie() const { return cookie_ != 0; }

  void give_to(StoppedThread& thread) {
    const uint64_t owner = thread.registers.fs_base + cookie_;
    if (!takes_slot(thread, owner)) return;
    const auto index = take_word(owner);
    // The kernel takes no base beyond user space: below A.
    if (!index || base_of(*index) > kUserEnd) return;
    abi::SlotControl& slot = slot_at(*index);
    slot.process = static_cast<uint32_t>(cookie_ >> kCookieProcessShift) - 1;
    slot.index = *index;
    slot.tid = tid_of(thread);
    slot.busy = 0;
    __atomic_fetch_add(&slot.claims, uint64_t{1}, __ATOMIC_RELAXED);
    __atomic_store_n(&slot.owner, owner, __ATOMIC_RELEASE);
    thread.registers.gs_base = base_of(*index);
    thread.registers_changed = true;
  }

 private:
  [[nodiscard]] uint64_t base_of(uint64_t index) const {
    const ArenaShape& shape = arena_.shape();
    return shape.slots_address + index * shape.slot_stride - arena_.low_address();
  }

  // Not who has one, nor who uses gs, nor who is no thread of the C library's.
  [[nodiscard]] bool takes_slot(const StoppedThread& thread, uint64_t owner) const {
    const uint64_t gs = thread.registers.gs_base;
    if (gs != 0 && !arena_.contains_slot(gs)) return false;
    if (!keeps_self_pointer(target_, thread.registers.fs_base)) return false;
    if (gs == 0) return true;
    const uint64_t offset = gs + arena_.low_address() - arena_.shape().slots_address;
    const uint64_t index = offset / arena_.shape().slot_stride;
    return __atomic_load_n(&slot_at(index).owner, __ATOMIC_ACQUIRE) != owner;
  }

  // Forked children take slots at the same time, as abi/slot.h says.
  std::optional<uint32_t> take_word(uint64_t owner) {
    // Where threads can help themselves some are left for those that will need them.
    const bool all = arena_.shape().bases == abi::SegmentBases::Tracer;
    const uint32_t count = all ? arena_.shape().slot_count : arena_.shape().slot_count / 2;
    for (; next_ < count; ++next_) {
      uint64_t* const word = arena_.directory() + next_;
      uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      const bool is_free = seen == 0 || __atomic_load_n(&slot_at(next_).tid, __ATOMIC_ACQUIRE) == 0;
      if (is_free && __atomic_compare_exchange_n(word, &seen, owner, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE)) {
        return next_++;
      }
    }
    return std::nullopt;
  }

  // As the thread would write it down itself.
  [[nodiscard]] uint32_t tid_of(const StoppedThread& thread) const {
    const uint64_t offset = arena_.header().tid_offset & abi::kTidOffsetMax;
    if (offset == abi::kTidFromNobody) return abi::kTidUnknown;
    if (offset == abi::kTidFromKernel) {
      return inner_tid(thread.tid).value_or(abi::kTidUnknown);
    }
    uint32_t tid = 0;
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(&tid), sizeof tid);
    const bool is_there = target_.read(thread.registers.fs_base + offset, bytes) && tid != 0;
    return is_there ? tid : abi::kTidUnknown;
  }

  [[nodiscard]] abi::SlotControl& slot_at(uint64_t index) const {
    return *reinterpret_cast<abi::SlotControl*>(arena_.slots() +
                                                index * arena_.shape().slot_stride);
  }

  const StoppedTarget& target_;
  const Arena& arena_;
  uint64_t cookie_ = 0;
  uint32_t next_ = 0;
};

}  // namespace

bool has_base_instructions(pid_t pid) {
  // The target's own word decides; what the kernel tells us is the same, unless that was changed.
  const bool here = (getauxval(AT_HWCAP2) & kHwcap2FsGsBase) != 0 && !is_told_otherwise();
  return here && (auxiliary_value(pid, AT_HWCAP2) & kHwcap2FsGsBase) != 0;
}

Expected<abi::SegmentBases> find_segment_bases(StoppedTarget& target, bool keeps_self_pointer) {
  if (has_base_instructions(target.pid())) return abi::SegmentBases::Instructions;
  const auto threads = target.threads();
  const bool may_ask = std::all_of(threads.begin(), threads.end(), [](const StoppedThread& thread) {
    return may_ask_kernel(thread.tid);
  });
  if (may_ask) return abi::SegmentBases::SystemCall;
  if (keeps_self_pointer) return abi::SegmentBases::Tracer;
  return fail(ErrorCode::Refused,
              fmt::format("the kernel does not let programs read their fs base by an instruction, "
                          "and process {} forbids itself to ask for it (arch_prctl) [fsgsbase]",
                          target.pid()));
}

void give_slots(StoppedTarget& target, const Arena& arena, SlotsFor whom) {
  const ArenaShape& shape = arena.shape();
  const bool is_wanted =
      (shape.bases != abi::SegmentBases::Instructions || whom == SlotsFor::All) &&
      shape.keeps_self_pointer && arena.shared();
  if (!is_wanted) return;
  Giver giver(target, arena);
  if (!giver.has_cookie()) return;
  for (StoppedThread& thread : target.threads())
    giver.give_to(thread);
}

}  // namespace clew::inline_
