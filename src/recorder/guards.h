// SPDX-License-Identifier: Apache-2.0
// The second front end: programs whose compiler has put a call into their blocks
// (-fsanitize-coverage=trace-pc-guard, or trace-pc; include/clew/guards.h has what is called). The
// function that is called is led to a probe, which is all that changes; nothing else is copied. It
// writes two words (abi/recorder.h): which guard it was, by the return address of the call, since
// compilers copy and merge what arguments say; and where the stack pointer was, by which one
// activation of a function is told from another one. guard_walk.h has the way back.
//
//   in front of the function's first instruction; r10, r11, rax and flags are dead there
//     mov eax, [rsp] ; sub eax, text ; cmp eax, size ; jae out
//     add eax, first record
//     mov r10d, esp ; shl r10d, 5 ; shr r10d, 8 ; or r10d, Frame
//     shl r10, 32 ; or rax, r10
//     mov r11, gs:[cursor] ; add r11w, 4
//     mov dword [r11 + 8], 0 ; mov [r11], rax ; add r11w, 4
//     mov gs:[cursor], r11
//   out:
//
// The word behind the newest one is 0 at each moment. Up to its last store the probe can begin
// anew, as it does behind the handler of a signal that has interrupted it. A call from elsewhere
// than the module's text records nothing: libraries have callbacks of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "target/module_image.h"

namespace clew::recorder {

class Guards {
 public:
  // Errors: NotFound when its symbols have no such function; Refused when one of that name is not
  // that of clew/guards.h.
  static Expected<Guards> of(const target::ModuleImage& image);
  // By names alone.
  static bool are_in(const target::ModuleImage& image);

  // Is it what guards call? By its first instruction.
  [[nodiscard]] bool calls(uint64_t function) const;
  [[nodiscard]] const target::AddressRange& text() const { return text_; }
  [[nodiscard]] uint32_t ids() const;
  [[nodiscard]] std::vector<uint8_t> probe(uint64_t load_bias, uint32_t first_id,
                                           uint32_t cursor) const;

  // The probe's last instruction, by which a record is there.
  static constexpr size_t kLastStoreBytes = 9;

 private:
  std::vector<uint64_t> callbacks_;
  target::AddressRange text_;
};

}  // namespace clew::recorder
