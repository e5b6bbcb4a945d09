// SPDX-License-Identifier: Apache-2.0
#include "recorder/entries.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "abi/recorder.h"
#include "code/flag_use.h"
#include "code/full_decode.h"
#include "code/lost_jumps.h"
#include "code/windows.h"
#include "recorder/time_probe.h"

namespace clew::recorder {

namespace {

class EntryWriter {
 public:
  EntryWriter(const HeadPlaces& places, const EntryPlacement& placement)
      : places_(places),
        load_bias_(placement.load_bias),
        copy_(placement.copy),
        address_(placement.address) {}

  Expected<Entries> run(const EntryPlan& plan) {
    put_claim();
    for (const PlannedEntry& entry : plan.entries)
      CLEW_TRY(put_window(entry));
    return std::move(result_);
  }

 private:
  [[nodiscard]] uint64_t here() const { return address_ + result_.bytes.size(); }
  void put(std::initializer_list<uint8_t> bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes);
  }
  void put(const std::vector<uint8_t>& bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
  }
  template <typename Word>
  void put_word(Word value) {
    const size_t at = result_.bytes.size();
    result_.bytes.resize(at + sizeof(value));
    std::memcpy(result_.bytes.data() + at, &value, sizeof(value));
  }
  // What the copy, its extent and the module are near to, distances reach.
  void put_distance(uint64_t target) { put_word(static_cast<uint32_t>(target - (here() + 4))); }
  void put_jump(uint64_t target) {
    put({0xe9});
    put_distance(target);
  }
  // A short jump over what comes, or the rel32 of one, to be led somewhere later.
  size_t put_open(std::initializer_list<uint8_t> opcode) {
    put(opcode);
    put_word(uint32_t{0});
    return result_.bytes.size();
  }
  void lead(size_t end, size_t target) {
    const auto distance = static_cast<uint32_t>(target - end);
    std::memcpy(result_.bytes.data() + end - 4, &distance, sizeof(distance));
  }
  void put_gs(std::initializer_list<uint8_t> opcode, uint32_t displacement) {
    put(opcode);
    put_word(displacement);
  }

  // Called with r10 and the flags free; answers as the runtime does, in ZF (set: no slot).
  void put_claim() {
    if (places_.lobes == 0) return;
    put({0xe8});  // call claim
    put_distance(places_.claim);
    const size_t none = put_open({0x0f, 0x84});              // jz end
    put({0x50});                                             // push rax
    put_gs({0x65, 0x48, 0x8b, 0x04, 0x25}, places_.cursor);  // mov rax, gs:[cursor]
    put({0x48, 0x85, 0xc0});                                 // test rax, rax
    const size_t has_one = put_open({0x0f, 0x85});           // jnz start
    put_gs({0x65, 0x44, 0x8b, 0x14, 0x25}, places_.index);   // mov r10d, gs:[index]
    put({0x49, 0xc1, 0xe2, abi::kLobeStrideLog2});           // shl r10, …
    put({0x48, 0xb8});                                       // mov rax, …
    put_word(places_.lobes + abi::kLobeBytes - abi::kRecordBytes);
    put({0x4c, 0x01, 0xd0});  // add rax, r10
    lead(has_one, result_.bytes.size());
    put_start();
    put({0x48, 0x83, 0xcc, 0x00});  // or rsp, 0: clears ZF
    lead(none, result_.bytes.size());
    put({0xc3});  // ret
  }

  // Two words with the thread's number, each like a record. rax: the cursor.
  void put_start() {
    put_gs({0x65, 0x44, 0x8b, 0x14, 0x25}, places_.tid);  // mov r10d, gs:[tid]
    put({0x45, 0x0f, 0xb7, 0xd2});                        // movzx r10d, r10w
    put({0x41, 0x81, 0xca});                              // or r10d, …
    put_word(abi::extended_word(abi::ExtendedRecord::Start, 2, 0));
    put({0x66, 0x8d, 0x40, 0x04});                        // lea ax, [rax + 4]
    put({0x4c, 0x89, 0x10});                              // mov [rax], r10
    put_gs({0x65, 0x44, 0x8b, 0x14, 0x25}, places_.tid);  // mov r10d, gs:[tid]
    put({0x41, 0xc1, 0xea, 0x10});                        // shr r10d, 16
    put({0x41, 0x81, 0xca});                              // or r10d, …
    put_word(abi::extended_word(abi::ExtendedRecord::Start, 2, 0));
    put({0x66, 0x8d, 0x40, 0x04});                           // lea ax, [rax + 4]
    put_gs({0x65, 0x48, 0x89, 0x04, 0x25}, places_.cursor);  // mov gs:[cursor], rax
    put({0x4c, 0x89, 0x10});                                 // mov [rax], r10
    put({0x58});                                             // pop rax
    if (!places_.has_time) return;
    constexpr auto kAllButR10 =
        abi::RegisterSet(0xffff & ~(1U << static_cast<unsigned>(abi::Register::R10)));
    put(time_probe({.registers = kAllButR10, .flags = 0}, places_.cursor));
  }

  Expected<void> put_window(const PlannedEntry& entry) {
    const code::Window& window = entry.window;
    const code::Placement placement = {.destination = here(), .load_bias = load_bias_};
    const code::Relocated patched = CLEW_TRY(code::relocate(window, {}, placement, {}));
    result_.windows.push_back(
        {.window = window, .load_bias = load_bias_, .patches = patched.patches});
    const bool is_both = window.window_class == code::WindowClass::BothWays;
    const size_t behind = is_both ? put_open({0x0f, 0x82}) : 0;  // jc behind
    // What the relocated window begins with: what takes back a first instruction that has been done
    // in its place, as it is done again.
    const auto head = is_both ? patched.bytes.begin()
                              : patched.bytes.begin() + patched.boundaries.front().probe_offset;
    const std::vector<uint8_t> taken_back(patched.bytes.begin(), head);
    CLEW_TRY(put_entry(window, entry.first, {taken_back, false}));
    if (!is_both) return {};
    lead(behind, result_.bytes.size());
    return put_entry(window, entry.second, {{}, true});
  }

  struct Arrival {
    std::vector<uint8_t> taken_back;  // In front of all else.
    bool has_done_first = false;      // As bytes that serve both ways tell by the carry flag.
  };

  Expected<void> put_entry(const code::Window& window, const EntryWay& way,
                           const Arrival& arrival) {
    const uint64_t copy = copy_ + way.copy_offset;
    if (places_.lobes == 0) {
      put(arrival.taken_back);
      put_jump(copy);
      return {};
    }
    put({0x41, 0x52});  // push r10
    const size_t slow = put_owner_check();
    const size_t run = result_.bytes.size();
    put({0x41, 0x5a});  // pop r10
    put(arrival.taken_back);
    put(way.probe);
    put_jump(copy);
    lead(slow, result_.bytes.size());
    put({0xe8});  // call claim
    put_distance(address_);
    lead(put_open({0x0f, 0x85}), run);  // jnz run
    put({0x41, 0x5a});                  // pop r10
    return put_plain(window, arrival.has_done_first);
  }

  // The displaced instructions, and back.
  Expected<void> put_plain(const code::Window& window, bool has_done_first) {
    if (has_done_first) put({0xf9});  // stc: what follows is told once more.
    const code::Placement placement = {.destination = here(), .load_bias = load_bias_};
    const code::Relocated plain = CLEW_TRY(code::relocate(window, {}, placement, {}));
    const bool is_both = window.window_class == code::WindowClass::BothWays;
    if (is_both && !has_done_first) put({0xf8});  // clc
    const code::Placement behind = {.destination = here(), .load_bias = load_bias_};
    code::Relocated copied = CLEW_TRY(code::relocate(window, {}, behind, {}));
    std::vector<uint8_t>& bytes = copied.bytes;
    if (!has_done_first) {
      result_.windows.back().copy = behind.destination;
      result_.windows.back().boundaries = std::move(copied.boundaries);
    }
    if (is_both) {
      const uint32_t way = plain.boundaries[1].copy_offset - (code::kBehindField + 4);
      std::memcpy(bytes.data() + code::kBehindField, &way, sizeof(way));
    }
    put(bytes);
    return {};
  }

  // Returns the end of the jump to where the thread gets a slot.
  size_t put_owner_check() {
    if (places_.keeps_self_pointer) {
      put_gs({0x64, 0x4c, 0x8b, 0x14, 0x25}, 0);  // mov r10, fs:[0]
    } else if (places_.has_base_instructions) {
      put({0xf3, 0x49, 0x0f, 0xae, 0xc2});  // rdfsbase r10
    } else {
      return put_open({0xe9});  // jmp slow
    }
    put_gs({0x4c, 0x03, 0x14, 0x25}, places_.cookie);       // add r10, [cookie]
    put_gs({0x65, 0x4c, 0x3b, 0x14, 0x25}, places_.owner);  // cmp r10, gs:[owner]
    return put_open({0x0f, 0x85});                          // jne slow
  }

  const HeadPlaces& places_;
  uint64_t load_bias_;
  uint64_t copy_;
  uint64_t address_;
  Entries result_;
};

class EntryPlanner {
 public:
  EntryPlanner(const copy::ModuleCopy& copy, const EntryProbe& probe, EntryPlan& plan)
      : map_(copy), copy_(copy.address), probe_(probe), plan_(plan) {}

  Expected<void> add(const code::Window& window, const code::Point& point, uint64_t function) {
    if (point.keeps_flags) {
      plan_.unreachable.push_back(function);
      return {};
    }
    PlannedEntry entry;
    entry.first = CLEW_TRY(way_to(function, window.address));
    if (window.window_class == code::WindowClass::BothWays) {
      const uint64_t second = window.address + window.instructions.front().length;
      entry.second = CLEW_TRY(way_to(function, second));
    }
    entry.window = window;
    plan_.entries.push_back(std::move(entry));
    return {};
  }

 private:
  // In front of the instruction at `at`.
  Expected<EntryWay> way_to(uint64_t function, uint64_t at) {
    const auto copy = map_.copy_of(at);
    if (!copy) return fail(ErrorCode::Limit, "a window begins where there is no copy");
    return EntryWay{*copy - copy_, probe_ ? probe_(function, at) : std::vector<uint8_t>()};
  }

  copy::CopyMap map_;
  uint64_t copy_;
  const EntryProbe& probe_;
  EntryPlan& plan_;
};

}  // namespace

Expected<EntryPlan> plan_entries(const copy::Facts& facts, const copy::ModuleCopy& copy,
                                 const EntryProbe& probe) {
  std::vector<code::Request> requests;
  requests.reserve(copy.functions.size());
  for (const copy::CopiedFunction& function : copy.functions) {
    requests.push_back({.kind = code::RequestKind::Entry,
                        .address = function.original,
                        .reads = code::kReadsNothing});
  }
  const code::Plan windows =
      code::plan_windows(facts.code, requests, {}, code::LateUprobeDanger::Refused);
  EntryPlan plan;
  for (const code::Refusal& refusal : windows.refusals)
    plan.unreachable.push_back(requests[refusal.request].address);
  EntryPlanner planner(copy, probe, plan);
  for (size_t i = 0; i < windows.windows.size(); ++i) {
    const code::Window& window = windows.windows[i];
    // No journal has them: what is left by who is killed has to be found.
    const bool is_lost = !code::can_be_found(facts.code, window);
    for (const code::Point& point : windows.points_of(static_cast<uint32_t>(i))) {
      const uint64_t function = requests[point.request].address;
      if (is_lost) plan.unreachable.push_back(function);
      if (!is_lost) CLEW_TRY(planner.add(window, point, function));
    }
  }
  std::sort(plan.unreachable.begin(), plan.unreachable.end());
  return plan;
}

// What probes write behind the record brings registers back (probes.h).
std::optional<uint64_t> entered(std::span<const uint8_t> bytes, uint64_t address) {
  while (true) {
    const auto full = code::decode_full(bytes);
    if (!full) return std::nullopt;
    const size_t length = full->instruction.length;
    address += length;
    switch (full->instruction.mnemonic) {
      case ZYDIS_MNEMONIC_POP:
      case ZYDIS_MNEMONIC_LEA:
        break;
      case ZYDIS_MNEMONIC_JMP:
        if (!full->instruction.raw.imm[0].is_relative) return std::nullopt;
        return address + static_cast<uint64_t>(full->instruction.raw.imm[0].value.s);
      default:
        return std::nullopt;
    }
    bytes = bytes.subspan(length);
  }
}

uint64_t entry_bytes_max(const EntryPlan& plan) {
  constexpr uint64_t kClaimBytesMax = 384;
  constexpr uint64_t kEntryBytesMax = 320;
  return kClaimBytesMax + kEntryBytesMax * plan.entries.size();
}

Expected<Entries> write_entries(const EntryPlan& plan, const HeadPlaces& places,
                                const EntryPlacement& placement) {
  return EntryWriter(places, placement).run(plan);
}

}  // namespace clew::recorder
