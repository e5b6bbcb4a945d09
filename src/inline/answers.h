// SPDX-License-Identifier: Apache-2.0
// Unwinders find their way through copies of functions. They ask the C library in which object a
// program counter is, by _dl_find_object() (glibc 2.35 and libgcc 12 on), and what they get for one
// in a copy is the object of the original, with the .eh_frame_hdr of the copies:
//
//   _dl_find_object:   jmp answer                       (a window as any probe's)
//   answer:            looks for the place in the table
//                      not there: what stood at the window, and on behind it
//                      there: calls that for the original's module ; the copies' extent and header
//
// Nothing is locked or allocated, and nothing of the process is called but what it asked for
// itself. The table is only added to, and stays as the copies stay.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "code/led_window.h"
#include "code/module_code.h"
#include "inline/attachment.h"
#include "target/process.h"

namespace clew::inline_ {

// In the process, as the code reads it. The last one is all 0.
struct Answer {
  uint64_t begin = 0;       // Of the copies.
  uint64_t size_bytes = 0;  // Not 0.
  uint64_t original = 0;    // Any address in their module.
  uint64_t header = 0;      // Their .eh_frame_hdr.
};
static_assert(sizeof(Answer) == 32);
inline constexpr size_t kAnswersMax = 255;

struct AnsweringCode {
  std::vector<uint8_t> bytes;  // For their place.
  code::LedWindow window;
};

// Where it is asked (link time), and where the code and its table will be.
struct AnsweringPlaces {
  uint64_t function = 0;
  uint64_t load_bias = 0;
  uint64_t code = 0;
  uint64_t table = 0;
};

// Errors: Refused when the function cannot have a window of the simple kind; Limit when something
// is out of reach.
Expected<AnsweringCode> make_answering_code(const code::ModuleCode& code,
                                            const AnsweringPlaces& places);

class Answers {
 public:
  // Nothing when its C library does not have the function, or when an unwinder of the process asks
  // elsewhere. Errors: as lead_to_copies(), and of make_answering_code().
  static Expected<std::optional<Answers>> install(Attachment& attachment,
                                                  std::span<const target::ProcessModule> modules);

  // Those that a session before has installed in this room, and whose copies are there yet. Errors
  // also: Refused when others answer there.
  static Expected<std::optional<Answers>> adopt(Attachment& attachment,
                                                std::span<const target::ProcessModule> modules,
                                                uint64_t room_address);
  [[nodiscard]] uint64_t address() const { return room_.address; }

  // In front of the first call of the copies. Errors: Limit when the table is full.
  Expected<void> add(Attachment& attachment, const Answer& answer);

 private:
  explicit Answers(const CopyRoom& room) : room_(room) {}
  CopyRoom room_;
  std::vector<Answer> table_;
};

}  // namespace clew::inline_
