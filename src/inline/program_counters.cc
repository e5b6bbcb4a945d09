// SPDX-License-Identifier: Apache-2.0
// Signal frames are recognised by their shape (x86-64 rt_sigframe, Linux asm/sigframe.h):
//
//     +0    address of the restorer: mov eax, 15 ; syscall
//     +8    uc_flags (0..7)
//     +176  saved rip
//     +192  saved cs = 0x33
#include "inline/program_counters.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kSavedRip = 176;
constexpr uint64_t kSavedSegments = 192;
constexpr uint64_t kFrameHead = 200;
constexpr uint64_t kContextFlagsMax = 7;
constexpr uint16_t kUserCodeSegment = 0x33;
constexpr uint64_t kRedZoneBytes = 128;  // System V ABI for x86-64, 3.2.2.

bool is_inside(std::span<const AddressInterval> intervals, uint64_t value) {
  const auto next =
      std::upper_bound(intervals.begin(), intervals.end(), value,
                       [](uint64_t wanted, const AddressInterval& i) { return wanted < i.begin; });
  return next != intervals.begin() && value < std::prev(next)->end;
}

// Does memory at `rip_at` - kSavedRip look like a signal frame?
bool is_frame(const StoppedTarget& target, uint64_t rip_at) {
  std::array<uint8_t, kFrameHead> head{};
  if (rip_at < kSavedRip || !target.read(rip_at - kSavedRip, head)) return false;
  uint64_t restorer = 0;
  uint64_t flags = 0;
  uint16_t code_segment = 0;
  std::memcpy(&restorer, head.data(), sizeof restorer);
  std::memcpy(&flags, head.data() + 8, sizeof flags);
  std::memcpy(&code_segment, head.data() + kSavedSegments, sizeof code_segment);
  if (flags > kContextFlagsMax || code_segment != kUserCodeSegment) return false;
  // Both `mov eax, 15` and `mov rax, 15` end like this before the syscall.
  constexpr std::array<uint8_t, 6> kEnd = {0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
  std::array<uint8_t, 16> code{};
  if (!target.read(restorer, code)) return false;
  return std::search(code.begin(), code.end(), kEnd.begin(), kEnd.end()) != code.end();
}

void scan_stack(StoppedTarget& target, size_t thread, uint64_t stack_end,
                std::span<const AddressInterval> intervals, std::vector<ProgramCounter>& found) {
  const uint64_t begin = target.threads()[thread].registers.rsp & ~uint64_t{7};
  const uint64_t size = std::min(stack_end - begin, kStackScanMax);
  std::vector<uint64_t> words(size / 8);
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(words.data()), words.size() * 8);
  if (words.empty() || !target.read(begin, bytes)) return;
  const uint64_t low = intervals.front().begin;
  const uint64_t high = intervals.back().end;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] < low || words[i] >= high || !is_inside(intervals, words[i])) continue;
    const uint64_t at = begin + i * 8;
    if (is_frame(target, at)) found.push_back({words[i], thread, at});
  }
}

// What the main thread's stack has left behind: memory below the stack pointer and its red zone, as
// after a jump out of a signal handler. Known of this mapping alone: others may hold several
// stacks. Empty when no thread runs on it now.
AddressInterval below_main_stack(std::span<const StoppedThread> threads,
                                 std::span<const target::Mapping> maps) {
  const auto stack = std::find_if(maps.begin(), maps.end(),
                                  [](const target::Mapping& map) { return map.path == "[stack]"; });
  if (stack == maps.end()) return {};
  for (const StoppedThread& thread : threads) {
    const uint64_t rsp = thread.registers.rsp;
    if (stack->contains(rsp)) return {stack->start, std::max(stack->start, rsp - kRedZoneBytes)};
  }
  return {};
}

}  // namespace

std::vector<ProgramCounter> find_program_counters(StoppedTarget& target,
                                                  std::span<const target::Mapping> maps,
                                                  std::span<const AddressInterval> intervals,
                                                  std::span<const uint64_t> resting) {
  std::vector<ProgramCounter> found;
  if (intervals.empty()) return found;
  const auto threads = target.threads();
  for (size_t i = 0; i < threads.size(); ++i) {
    const uint64_t rip = threads[i].registers.rip;
    if (is_inside(intervals, rip)) found.push_back({rip, i, 0});
    const uint64_t rsp = threads[i].registers.rsp;
    const auto stack =
        std::upper_bound(maps.begin(), maps.end(), rsp,
                         [](uint64_t wanted, const target::Mapping& m) { return wanted < m.end; });
    if (stack != maps.end() && stack->contains(rsp)) {
      scan_stack(target, i, stack->end, intervals, found);
    }
  }
  const AddressInterval dead = below_main_stack(threads, maps);
  for (const uint64_t at : resting) {
    if (at >= dead.begin && at < dead.end) continue;
    uint64_t value = 0;
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(&value), sizeof value);
    const auto same = [&](const ProgramCounter& c) { return c.saved_at == at; };
    const bool counts = target.read(at, bytes) && is_inside(intervals, value) &&
                        is_frame(target, at) && std::none_of(found.begin(), found.end(), same);
    if (counts) found.push_back({value, kNoThread, at});
  }
  return found;
}

std::vector<uint64_t> find_resting_frames(pid_t pid, uint64_t restorer) {
  std::vector<uint64_t> found;
  const auto maps = target::read_memory_map(pid);
  if (restorer == 0 || !maps) return found;
  uint64_t left = kFrameSearchMax;
  std::vector<uint64_t> words;
  for (const target::Mapping& map : *maps) {
    const bool searched = map.readable && map.writable && !map.shared && left != 0;
    if (!searched) continue;
    words.resize(std::min(map.size_bytes(), left) / 8);
    left -= words.size() * 8;
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(words.data()), words.size() * 8);
    if (!target::read_memory(pid, map.start, bytes)) continue;
    for (auto at = words.begin(); (at = std::find(at, words.end(), restorer)) != words.end(); ++at)
      found.push_back(map.start + static_cast<uint64_t>(at - words.begin()) * 8 + kSavedRip);
  }
  return found;
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
