// SPDX-License-Identifier: Apache-2.0
// Does a stopped process know a place in code that is going to be unmapped? All words of its memory
// that could be one are looked at: return addresses in stacks, those of coroutines, too, contexts
// that handlers or programs have saved, and those of setjmp(3), which the C library disguises.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "inline/program_counters.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

// In JournalHeader::copied_modules, whose other bits are of the recorder: functions have run on
// copies with probes of queries (copy_way.h). From then on the arena goes when nobody knows a place
// in its code.
inline constexpr uint32_t kQueryCopies = 1U << 31;
// And exceptions may go through them.
inline constexpr uint32_t kExceptionsPass = 1U << 30;
inline constexpr uint32_t kRecordersCopies = kExceptionsPass - 1;

struct WordSearch {
  std::span<const AddressInterval> intervals;  // Ascending. Not empty.
  std::span<const target::Mapping> maps;
  uint64_t tid_offset = 0;  // As ArenaHeader has it.
};

enum class WordsFound : uint8_t { None, Some, TooMuchMemory };

// The process stands no longer than it takes to look at so much.
inline constexpr uint64_t kWordSearchMax = 64ULL << 20;

// Errors: Io.
Expected<WordsFound> find_words_in_code(StoppedTarget& target, const WordSearch& search);

}  // namespace clew::inline_
