// SPDX-License-Identifier: Apache-2.0
#include "inline/words_in_code.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "abi/arena.h"
#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "inline/arena_file.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kChunk = 1 << 24;
// Of address space, used or not: the kernel tells it page by page.
constexpr uint64_t kReservedMax = uint64_t{16} << 30;
constexpr uint64_t kBelowStackBytes = 128;
// struct pthread of glibc, the head of which the psABI of thread-local storage fixes for the first.
constexpr uint64_t kSelfOffset = 16;
constexpr uint64_t kPointerGuardOffset = 0x30;
constexpr unsigned kDisguiseRotation = 17;  // Of setjmp: rol(pc ^ guard).
constexpr uint64_t kThreadBlockMax = 8192;

class Search {
 public:
  Search(StoppedTarget& target, const WordSearch& search) : target_(target), search_(search) {
    begin_ = search.intervals.front().begin;
    span_ = search.intervals.back().end - begin_;
    for (const StoppedThread& thread : target_.threads()) {
      const auto bytes = std::span(reinterpret_cast<uint8_t*>(&guard_), sizeof guard_);
      const uint64_t base = thread.registers.fs_base;
      if (base != 0 && target_.read(base + kPointerGuardOffset, bytes)) break;
    }
  }

  Expected<WordsFound> run() {
    if (registers_lead_there()) return WordsFound::Some;
    const std::string path = fmt::format("/proc/{}/pagemap", target_.pid());
    pages_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!pages_.valid()) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    // It is most likely there, and then nothing else has to be looked at.
    const WordsFound in_stacks = CLEW_TRY(look_at_maps(true));
    return in_stacks != WordsFound::None ? in_stacks : look_at_maps(false);
  }

 private:
  // Those that stack pointers lead to, or the others.
  Expected<WordsFound> look_at_maps(bool stacks) {
    for (const target::Mapping& map : search_.maps) {
      if (!may_hold_places(map) || is_stack(map) != stacks) continue;
      const WordsFound found = CLEW_TRY(look_at(map, live_from(map)));
      if (found != WordsFound::None) return found;
    }
    return WordsFound::None;
  }
  bool is_stack(const target::Mapping& map) {
    const auto threads = target_.threads();
    return std::any_of(threads.begin(), threads.end(), [&](const StoppedThread& thread) {
      return map.contains(thread.registers.rsp);
    });
  }

  [[nodiscard]] bool leads(uint64_t word) const {
    if (word - begin_ >= span_) return false;
    const auto next = std::upper_bound(
        search_.intervals.begin(), search_.intervals.end(), word,
        [](uint64_t wanted, const AddressInterval& one) { return wanted < one.end; });
    return next != search_.intervals.end() && next->begin <= word;
  }
  [[nodiscard]] bool leads_disguised(uint64_t word) const {
    return leads(word) || leads(std::rotr(word, kDisguiseRotation) ^ guard_);
  }

  bool registers_lead_there() {
    const auto threads = target_.threads();
    return std::any_of(threads.begin(), threads.end(), [this](const StoppedThread& thread) {
      std::array<uint64_t, sizeof thread.registers / sizeof(uint64_t)> words{};
      std::memcpy(words.data(), &thread.registers, sizeof words);
      return std::any_of(words.begin(), words.end(), [this](uint64_t word) { return leads(word); });
    });
  }

  // Memory of devices may change when it is read. Our own has nobody's return addresses. What is
  // not writable now may have been, as a stack that is protected while it waits; files' text was
  // not.
  static bool may_hold_places(const target::Mapping& map) {
    const bool is_device = map.shared && map.path.starts_with("/dev/") &&
                           !map.path.starts_with("/dev/shm/") && !map.path.starts_with("/dev/zero");
    const bool is_ours = map.path.starts_with(fmt::format("/memfd:{}", kArenaName));
    const bool was_writable = map.writable || map.path.empty() || map.path.starts_with("[anon");
    return was_writable && !is_device && !is_ours;
  }

  // Where a thread's own stack is in use from. All of a mapping that may be something else.
  uint64_t live_from(const target::Mapping& map) {
    uint64_t from = map.start;
    unsigned count = 0;
    for (const StoppedThread& thread : target_.threads()) {
      const uint64_t block = thread.registers.fs_base;
      const bool is_own =
          map.path == "[stack]" || (map.contains(block) && map.end - block < kThreadBlockMax);
      if (!map.contains(thread.registers.rsp)) continue;
      ++count;
      if (is_own) from = thread.registers.rsp - kBelowStackBytes;
    }
    if (count == 1) return std::max(from & ~uint64_t{7}, map.start);
    return count == 0 && is_of_dead_thread(map) ? map.end : map.start;
  }

  // Kept by glibc for the next thread, with all that the last one has left there.
  [[nodiscard]] bool is_of_dead_thread(const target::Mapping& map) const {
    if (search_.tid_offset <= abi::kTidFromKernel || search_.tid_offset > abi::kTidOffsetMax)
      return false;
    const uint64_t from = map.end - std::min(kThreadBlockMax, map.size_bytes());
    std::vector<uint64_t> words((map.end - from) / 8);
    const auto bytes = std::span(reinterpret_cast<uint8_t*>(words.data()), words.size() * 8);
    if (!is_present(from) || !target_.read(from, bytes)) return false;
    for (size_t i = 0; i + (kSelfOffset + search_.tid_offset) / 8 < words.size(); i += 8) {
      const uint64_t block = from + i * 8;
      if (words[i] != block || words[i + kSelfOffset / 8] != block) continue;
      uint32_t tid = 0;
      std::memcpy(&tid, bytes.data() + i * 8 + search_.tid_offset, sizeof tid);
      return tid == 0;
    }
    return false;
  }

  [[nodiscard]] bool is_present(uint64_t address) const {
    uint64_t entry = 0;
    const auto at = static_cast<off_t>(address / kPage * sizeof entry);
    return pread(pages_.get(), &entry, sizeof entry, at) == sizeof entry && has_page(entry);
  }
  // Present, or swapped out.
  static bool has_page(uint64_t entry) { return entry >> 62 != 0; }

  Expected<WordsFound> look_at(const target::Mapping& map, uint64_t from) {
    const uint64_t size_bytes = map.end - from;
    if (size_bytes > reserved_left_) return WordsFound::TooMuchMemory;
    reserved_left_ -= size_bytes;
    std::vector<uint64_t> entries(kChunk / kPage);
    for (uint64_t page = from / kPage * kPage; page < map.end;) {
      const uint64_t count = std::min<uint64_t>(entries.size(), (map.end - page) / kPage);
      const auto at = static_cast<off_t>(page / kPage * sizeof(uint64_t));
      const auto size = static_cast<ssize_t>(count * sizeof(uint64_t));
      if (pread(pages_.get(), entries.data(), count * sizeof(uint64_t), at) != size)
        return fail(ErrorCode::Io, "the process's pages cannot be told");
      for (uint64_t i = 0; i < count; ++i) {
        if (!has_page(entries[i])) continue;
        uint64_t run = 1;
        while (i + run < count && has_page(entries[i + run]))
          ++run;
        const uint64_t begin = std::max(from, page + i * kPage);
        const WordsFound found = CLEW_TRY(look_at_words(begin, page + (i + run) * kPage));
        if (found != WordsFound::None) return found;
        i += run;
      }
      page += count * kPage;
    }
    return WordsFound::None;
  }

  Expected<WordsFound> look_at_words(uint64_t begin, uint64_t end) {
    const uint64_t size = end - begin;
    if (size > left_) return WordsFound::TooMuchMemory;
    left_ -= size;
    words_.resize(size / 8);
    CLEW_TRY(target_.read(begin, std::span(reinterpret_cast<uint8_t*>(words_.data()), size)));
    const auto there = std::find_if(words_.begin(), words_.end(),
                                    [this](uint64_t word) { return leads_disguised(word); });
    if (there == words_.end()) return WordsFound::None;
    log_detail(target_.pid(), "has a place in a copy at {:#x}: {:#x}",
               begin + 8 * static_cast<uint64_t>(there - words_.begin()), *there);
    return WordsFound::Some;
  }

  StoppedTarget& target_;
  const WordSearch& search_;
  uint64_t begin_ = 0;
  uint64_t span_ = 0;
  uint64_t guard_ = 0;
  uint64_t left_ = kWordSearchMax;
  uint64_t reserved_left_ = kReservedMax;
  FileDescriptor pages_;
  std::vector<uint64_t> words_;
};

}  // namespace

Expected<WordsFound> find_words_in_code(StoppedTarget& target, const WordSearch& search) {
  return Search(target, search).run();
}

}  // namespace clew::inline_
