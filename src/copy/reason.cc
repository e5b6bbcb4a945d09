// SPDX-License-Identifier: Apache-2.0
#include "copy/reason.h"

#include <array>

#include "base/assert.h"

namespace clew::copy {

namespace {

struct Words {
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array<Words, kReasons> kWords = {{
    {"no-code", "its first byte begins no instruction"},
    {"undecodable", "some of its bytes are no instruction"},
    {"overlaps", "it shares bytes with another function"},
    {"unresolved-jump", "an indirect jump leads where no table says"},
    {"table-escapes", "the address of a switch table is used for something else"},
    {"unbounded-table", "where a switch table ends is not known"},
    {"into-middle", "it jumps into the middle of another function"},
    {"label-escapes", "it takes the address of one of its own instructions"},
    {"reads-own-place", "it calls into itself to learn where it is"},
    {"system-call", "it makes system calls itself"},
    {"trap", "it stops at a breakpoint of its own"},
    {"stack-switch", "it leaves by switching to another stack frame"},
    {"rseq", "the kernel restarts a part of it (rseq)"},
    {"resolver", "the loader calls it to choose a function"},
    {"unsupported", "it has an instruction that cannot be moved"},
    {"asks-caller", "it calls what looks at its caller's module, as dlsym does"},
}};

}  // namespace

std::string_view name(Reason reason) {
  const auto index = static_cast<size_t>(reason);
  CLEW_ASSERT(index < kWords.size());
  return kWords[index].name;
}

std::string_view sentence(Reason reason) {
  const auto index = static_cast<size_t>(reason);
  CLEW_ASSERT(index < kWords.size());
  return kWords[index].sentence;
}

}  // namespace clew::copy
