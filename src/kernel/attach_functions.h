// SPDX-License-Identifier: Apache-2.0
// Binds a loaded program to functions of the kernel, and to places of files where the kernel has no
// links for many at once.
#pragma once

#include <span>

#include "base/error.h"
#include "kernel/attach.h"
#include "kernel/function_addresses.h"

namespace clew::kernel {

struct FunctionAttach {
  bool is_return = false;
  bool is_single = false;  // One perf event for each, also where the kernel has kprobe.multi.
};
// Functions that the kernel lets nobody probe are left out: gives their cookies. Refused when none
// is left, or when it lets no program at its functions at all.
Expected<std::vector<uint64_t>> attach_functions(const FileDescriptor& program,
                                                 const FunctionAttach& how,
                                                 std::span<const FunctionPlace> places,
                                                 Attachments& attachments);

// Refused: this kernel lets no program at its functions, as far as that is known without trying.
Expected<void> may_attach_functions();

// A program that the kernel knows the function of already (fexit).
Expected<FileDescriptor> attach_trampoline(const FileDescriptor& program,
                                           const std::string& function);

// attach_user() with one perf event for each place.
Expected<std::vector<uint64_t>> attach_user_singly(const FileDescriptor& program,
                                                   const UserPlaces& places,
                                                   Attachments& attachments);

// The type of a kind of perf events ("kprobe", "uprobe"), which the kernel gives out as it starts.
// Refused when it has none.
Expected<uint32_t> event_type(const char* kind);

}  // namespace clew::kernel
