// SPDX-License-Identifier: Apache-2.0
// The dynamic loader's side of a process: its r_debug record, which debuggers read, and the
// function that it calls when the list of modules changes (link.h, struct r_debug).
#pragma once

#include <cstdint>
#include <optional>

#include <sys/types.h>

namespace clew::inline_ {

// Of the kernel's auxiliary vector (getauxval(3)).
struct AuxiliaryValues {
  uint64_t loader_base = 0;  // 0 = a static program.
  uint64_t entry = 0;
  uint64_t headers = 0;
  uint64_t header_count = 0;
  bool is_secure = false;  // It has rights that who executed it has not.
};
// None of a process without memory, which is about to end. `entry` is 0 while an exec is under way:
// the kernel tells of it when the memory is new, and fills that afterwards (Linux 6.18,
// begin_new_exec() and create_elf_tables()).
std::optional<AuxiliaryValues> read_auxiliary(pid_t pid);

struct LoaderState {
  uint64_t notice_address = 0;  // Called after each change; 0 = not set yet.
  bool consistent = false;      // The list is complete: no module is just being added or removed.
};
// None when the program has no loader, or it has not come that far.
std::optional<LoaderState> read_loader_state(pid_t pid);

}  // namespace clew::inline_
