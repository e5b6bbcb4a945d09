// SPDX-License-Identifier: Apache-2.0
// The code by which unwinders are answered (answers.h), at the entry of two functions of the C
// library, and the words in the process that it reads.
//
//   _dl_find_object:   jmp answer                       (a window as any probe's)
//   answer:            looks for the place in the table
//                      not there: what stood at the window, and on behind it
//                      there: calls that for the original's module ; the copies' extent and header
//
//   dl_iterate_phdr:   jmp answer
//   answer:            looks in the table of askers for who calls
//                      not there: what stood at the window, and on behind it
//                      there: calls that with a callback of ours
//   the callback:      calls the asker's ; behind the first object, which is the program, also for
//                      the copies of each module, as an object with two segments
//
// Nothing is locked or allocated, and nothing of the process is called but what it asked for
// itself. The loader's lock is held while callbacks run, as it is without us, and no longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <elf.h>

#include "base/error.h"
#include "code/led_window.h"
#include "code/module_code.h"

namespace clew::inline_ {

struct Answer {
  uint64_t begin = 0;       // Of the copies.
  uint64_t size_bytes = 0;  // Not 0.
  uint64_t original = 0;    // Any address in their module.
  uint64_t header = 0;      // Their .eh_frame_hdr.
  uint64_t header_bytes = 0;
};

// A row of the table of answers. The last one is all 0. Unwinders keep the addresses of segments.
struct AnswerRow {
  Answer answer;
  Elf64_Phdr code = {};
  Elf64_Phdr frames = {};
};
static_assert(sizeof(Answer) == 40 && sizeof(AnswerRow) == 152);

AnswerRow row_of(const Answer& answer);

// Code that asks by dl_iterate_phdr() to unwind. The last one is all 0.
struct Asker {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
};
static_assert(sizeof(Asker) == 16);

struct AnsweringCode {
  std::vector<uint8_t> bytes;  // For their place.
  code::LedWindow window;
};

// Where it is asked (link time), and where the code and the tables will be.
struct AnsweringPlaces {
  uint64_t function = 0;
  uint64_t load_bias = 0;
  uint64_t code = 0;
  uint64_t table = 0;
  uint64_t askers = 0;
};

// Errors of both: Refused when the function cannot have a window of the simple kind; Limit when
// something is out of reach.
// Of _dl_find_object().
Expected<AnsweringCode> make_finding_code(const code::ModuleCode& code,
                                          const AnsweringPlaces& places);
// Of dl_iterate_phdr().
Expected<AnsweringCode> make_listing_code(const code::ModuleCode& code,
                                          const AnsweringPlaces& places);

}  // namespace clew::inline_
