// SPDX-License-Identifier: Apache-2.0
// Signal frames are recognised by their shape (x86-64 rt_sigframe, Linux asm/sigframe.h):
//
//     +0    address of the restorer: mov eax, 15 ; syscall
//     +8    uc_flags (0..7)
//     +24   the alternate stack that was in force: address,
//     +40   and size
//     +176  saved rip
//     +184  saved flags
//     +192  saved cs = 0x33
#include "inline/program_counters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kAlternateStack = 24;
constexpr uint64_t kAlternateSize = 40;
constexpr uint64_t kSavedRip = 176;
constexpr uint64_t kSavedFlags = 184;
constexpr uint64_t kSavedSegments = 192;
constexpr uint64_t kFrameHead = 200;
constexpr uint64_t kContextFlagsMax = 7;
constexpr uint16_t kUserCodeSegment = 0x33;
constexpr uint64_t kRedZoneBytes = 128;  // System V ABI for x86-64, 3.2.2.
// How far below its frame a handler may be that switches to another stack.
constexpr uint64_t kHandlerDepthMax = 16384;

bool is_inside(std::span<const AddressInterval> intervals, uint64_t value) {
  // Most words of a stack are nowhere near.
  if (value < intervals.front().begin || value >= intervals.back().end) return false;
  const auto next =
      std::upper_bound(intervals.begin(), intervals.end(), value,
                       [](uint64_t wanted, const AddressInterval& i) { return wanted < i.begin; });
  return next != intervals.begin() && value < std::prev(next)->end;
}

struct FrameOfSignal {
  uint64_t address = 0;
  AddressInterval alternate_stack;
};

bool contains(const AddressInterval& interval, uint64_t address) {
  return address >= interval.begin && address < interval.end;
}

uint64_t word_at(std::span<const uint8_t> bytes, uint64_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

// The signal frame whose saved rip is at `rip_at`, when memory looks like one.
std::optional<FrameOfSignal> frame_of(const StoppedTarget& target, uint64_t rip_at) {
  std::array<uint8_t, kFrameHead> head{};
  if (rip_at < kSavedRip || !target.read(rip_at - kSavedRip, head)) return std::nullopt;
  const uint64_t flags = word_at(head, 8);
  const auto code_segment = static_cast<uint16_t>(word_at(head, kSavedSegments));
  if (flags > kContextFlagsMax || code_segment != kUserCodeSegment) return std::nullopt;
  // Both `mov eax, 15` and `mov rax, 15` end like this before the syscall.
  constexpr std::array<uint8_t, 6> kEnd = {0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
  std::array<uint8_t, 16> code{};
  if (!target.read(word_at(head, 0), code)) return std::nullopt;
  if (std::search(code.begin(), code.end(), kEnd.begin(), kEnd.end()) == code.end()) {
    return std::nullopt;
  }
  const uint64_t stack = word_at(head, kAlternateStack);
  return FrameOfSignal{rip_at - kSavedRip, {stack, stack + word_at(head, kAlternateSize)}};
}

// The words of a thread's stack, from its stack pointer on.
std::vector<uint64_t> stack_words(const StoppedTarget& target, uint64_t rsp, uint64_t stack_end) {
  const uint64_t begin = rsp & ~uint64_t{7};
  std::vector<uint64_t> words(std::min(stack_end - begin, kStackScanMax) / 8);
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(words.data()), words.size() * 8);
  if (words.empty() || !target.read(begin, bytes)) return {};
  return words;
}

const target::Mapping* mapping_of(std::span<const target::Mapping> maps, uint64_t address) {
  const auto map =
      std::upper_bound(maps.begin(), maps.end(), address,
                       [](uint64_t wanted, const target::Mapping& m) { return wanted < m.end; });
  return map != maps.end() && map->contains(address) ? &*map : nullptr;
}

// The process's own writable memory, in pieces that `read` (uint64_t, std::span<uint8_t>) gives;
// behind what it does not give a mapping is left. To `look` (uint64_t, std::span<const uint64_t>).
template <typename Read, typename Look>
void for_each_piece(std::span<const target::Mapping> maps, const Read& read, const Look& look) {
  std::vector<uint64_t> piece(8192);
  uint64_t left = kFrameSearchMax;
  for (const target::Mapping& map : maps) {
    if (!map.readable || !map.writable || map.shared) continue;
    const uint64_t end = map.start + std::min(map.size_bytes(), left);
    left -= end - map.start;
    for (uint64_t begin = map.start; begin < end;) {
      const auto words =
          std::span(piece).first(std::min<uint64_t>(piece.size(), (end - begin) / 8));
      const auto bytes = std::span(reinterpret_cast<uint8_t*>(words.data()), words.size_bytes());
      if (!read(begin, bytes)) break;
      look(begin, std::span<const uint64_t>(words));
      begin += bytes.size();
    }
  }
}

// What a handler that has ended, or jumped out, leaves behind still looks like a frame, until
// something else is written there. A frame is alive unless everything says that it is not.
class Remains {
 public:
  Remains(const StoppedTarget& target, std::span<const StoppedThread> threads,
          std::span<const target::Mapping> maps)
      : target_(target), threads_(threads), maps_(maps) {}

  // The stack that the frame is left on, if no thread is in its way; else it is alive.
  [[nodiscard]] std::optional<AddressInterval> stack_of(const FrameOfSignal& frame) const {
    if (!contains(frame.alternate_stack, frame.address)) return stack_above(frame);
    return is_on_idle_stack(frame) ? std::optional(frame.alternate_stack) : std::nullopt;
  }

  // Of those frames, with their stacks, the ones that are alive, by index. A handler that has
  // switched to another stack, and will come back, has its stack pointer in some context: a little
  // below its frame. Its own stack may hold many that nobody needs any more.
  [[nodiscard]] std::set<size_t> awaited(
      std::span<const std::pair<FrameOfSignal, AddressInterval>> frames) const {
    std::set<size_t> found;
    uint64_t lowest = UINT64_MAX;
    uint64_t highest = 0;
    for (const auto& [frame, stack] : frames) {
      lowest = std::min(lowest, frame.address - kHandlerDepthMax);
      highest = std::max(highest, frame.address);
    }
    for_each_word([&](uint64_t at, uint64_t word) {
      if (word < lowest || word > highest) return;
      for (size_t i = 0; i < frames.size(); ++i) {
        const auto& [frame, stack] = frames[i];
        const bool leads_there =
            word > stack.begin && word <= frame.address && word >= frame.address - kHandlerDepthMax;
        if (leads_there && !contains(stack, at)) found.insert(i);
      }
    });
    return found;
  }

 private:
  // Nobody is on the alternate stack, or only above the frame: the kernel puts the next one over
  // it (Linux, include/linux/sched/signal.h: on_sig_stack). A handler that has left the stack for a
  // while, and will come back, has an address in it.
  [[nodiscard]] bool is_on_idle_stack(const FrameOfSignal& frame) const {
    const AddressInterval& stack = frame.alternate_stack;
    bool is_in_use = false;
    for (const StoppedThread& thread : threads_) {
      if (!contains(stack, thread.registers.rsp)) continue;
      if (frame.address >= thread.registers.rsp - kRedZoneBytes) return false;
      is_in_use = true;
    }
    if (is_in_use) return true;
    return std::none_of(threads_.begin(), threads_.end(),
                        [&](const auto& thread) { return knows_a_place_in(thread, stack); });
  }

  [[nodiscard]] bool knows_a_place_in(const StoppedThread& thread,
                                      const AddressInterval& stack) const {
    const auto is_inside = [&](uint64_t word) { return word > stack.begin && word < stack.end; };
    std::array<uint64_t, sizeof thread.registers / sizeof(uint64_t)> registers{};
    std::memcpy(registers.data(), &thread.registers, sizeof registers);
    if (std::any_of(registers.begin(), registers.end(), is_inside)) return true;
    const target::Mapping* const map = mapping_of(maps_, thread.registers.rsp);
    if (map == nullptr) return false;
    const auto words = stack_words(target_, thread.registers.rsp, map->end);
    return std::any_of(words.begin(), words.end(), is_inside);
  }

  // Of the process's own memory, in which find_resting_frames() looks, too.
  void for_each_word(const std::function<void(uint64_t at, uint64_t word)>& look) const {
    const auto read = [this](uint64_t at, std::span<uint8_t> bytes) {
      return target_.read(at, bytes).has_value();
    };
    for_each_piece(maps_, read, [&](uint64_t begin, std::span<const uint64_t> words) {
      for (size_t i = 0; i < words.size(); ++i)
        look(begin + i * 8, words[i]);
    });
  }

  // Below the stack pointer and its red zone of the only thread that has to do with the mapping.
  [[nodiscard]] std::optional<AddressInterval> stack_above(const FrameOfSignal& frame) const {
    const target::Mapping* const map = mapping_of(maps_, frame.address);
    if (map == nullptr) return std::nullopt;
    const StoppedThread* owner = nullptr;
    for (const StoppedThread& thread : threads_) {
      if (!map->contains(thread.registers.rsp) && !map->contains(thread.registers.fs_base)) {
        continue;
      }
      if (owner != nullptr) return std::nullopt;
      owner = &thread;
    }
    // A handler may have interrupted the one of the frame, on a stack that lies above.
    const bool is_below = owner != nullptr && map->contains(owner->registers.rsp) &&
                          is_stack_of(*map, *owner) &&
                          frame.address < owner->registers.rsp - kRedZoneBytes &&
                          !contains(frame.alternate_stack, owner->registers.rsp);
    return is_below ? std::optional(AddressInterval{map->start, map->end}) : std::nullopt;
  }

  // The main thread's is the kernel's; the C libraries put what fs points to at the top of the
  // stacks that they make. Other mappings may hold several stacks.
  static bool is_stack_of(const target::Mapping& map, const StoppedThread& thread) {
    constexpr uint64_t kThreadBlockMax = 8192;
    const uint64_t block = thread.registers.fs_base;
    return map.path == "[stack]" || (map.contains(block) && map.end - block < kThreadBlockMax);
  }

  const StoppedTarget& target_;
  std::span<const StoppedThread> threads_;
  std::span<const target::Mapping> maps_;
};

}  // namespace

std::vector<ProgramCounter> find_program_counters(StoppedTarget& target,
                                                  std::span<const target::Mapping> maps,
                                                  std::span<const AddressInterval> intervals,
                                                  std::span<const uint64_t> resting) {
  std::vector<ProgramCounter> found;
  if (intervals.empty()) return found;
  const auto threads = target.threads();
  const Remains remains(target, threads, maps);
  std::vector<ProgramCounter> left;
  std::vector<std::pair<FrameOfSignal, AddressInterval>> left_frames;
  const auto add_frame = [&](uint64_t value, size_t thread, uint64_t saved_at) {
    if (!is_inside(intervals, value)) return;
    const auto frame = frame_of(target, saved_at);
    if (!frame) return;
    const auto stack = remains.stack_of(*frame);
    (stack ? left : found).push_back({value, thread, saved_at});
    if (stack) left_frames.emplace_back(*frame, *stack);
  };
  for (size_t i = 0; i < threads.size(); ++i) {
    const uint64_t rip = threads[i].registers.rip;
    if (is_inside(intervals, rip)) found.push_back({rip, i, 0});
    const uint64_t rsp = threads[i].registers.rsp;
    const target::Mapping* const stack = mapping_of(maps, rsp);
    if (stack == nullptr) continue;
    const auto words = stack_words(target, rsp, stack->end);
    for (size_t word = 0; word < words.size(); ++word)
      add_frame(words[word], i, (rsp & ~uint64_t{7}) + word * 8);
  }
  for (const uint64_t at : resting) {
    uint64_t value = 0;
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(&value), sizeof value);
    const auto same = [&](const ProgramCounter& c) { return c.saved_at == at; };
    if (std::none_of(found.begin(), found.end(), same) && target.read(at, bytes)) {
      add_frame(value, kNoThread, at);
    }
  }
  if (left.empty()) return found;
  for (const size_t i : remains.awaited(left_frames))
    found.push_back(left[i]);
  return found;
}

std::vector<uint64_t> find_resting_frames(pid_t pid, uint64_t restorer) {
  std::vector<uint64_t> found;
  const auto maps = target::read_memory_map(pid);
  if (restorer == 0 || !maps) return found;
  const auto read = [pid](uint64_t at, std::span<uint8_t> bytes) {
    return target::read_memory(pid, at, bytes).has_value();
  };
  for_each_piece(*maps, read, [&](uint64_t begin, std::span<const uint64_t> words) {
    for (auto at = words.begin(); (at = std::find(at, words.end(), restorer)) != words.end(); ++at)
      found.push_back(begin + static_cast<uint64_t>(at - words.begin()) * 8 + kSavedRip);
  });
  return found;
}

std::optional<uint64_t> flags_of(StoppedTarget& target, const ProgramCounter& counter) {
  if (counter.saved_at == 0) return target.threads()[counter.thread].registers.eflags;
  uint64_t flags = 0;
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&flags), sizeof flags);
  if (!target.read(counter.saved_at - kSavedRip + kSavedFlags, bytes)) return std::nullopt;
  return flags;
}

Expected<void> set_program_counter(StoppedTarget& target, const ProgramCounter& counter,
                                   uint64_t value) {
  if (counter.saved_at != 0) {
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&value), sizeof value);
    return target.write(counter.saved_at, bytes);
  }
  StoppedThread& thread = target.threads()[counter.thread];
  thread.registers.rip = value;
  // The kernel must not restart a system call at the new place. (None is pending there: windows
  // hold no system calls.)
  thread.registers_changed = true;
  return {};
}

}  // namespace clew::inline_
