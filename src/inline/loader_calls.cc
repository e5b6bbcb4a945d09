// SPDX-License-Identifier: Apache-2.0
#include "inline/loader_calls.h"

#include <vector>

#include <sys/ptrace.h>

#include "inline/loader.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr unsigned kCallsMax = 20'000;  // Of 1,000 libraries.

// Of the file that is mapped at an address. The kernel has mapped all of the loader.
uint64_t end_of_file_at(pid_t pid, uint64_t address) {
  const auto maps = target::read_memory_map(pid);
  uint64_t inode = 0;
  uint64_t end = 0;
  for (const target::Mapping& map : maps ? *maps : std::vector<target::Mapping>()) {
    if (map.contains(address)) inode = map.inode;
    if (inode != 0 && map.inode == inode) end = map.end;
  }
  return end;
}

}  // namespace

Expected<void> LoaderCalls::begin() {
  CLEW_TRY(target::check_is_64_bit(pid_));
  const AuxiliaryValues values = read_auxiliary(pid_).value_or(AuxiliaryValues{});
  entry_ = values.entry;
  loader_ = values.loader_base;
  loader_end_ = loader_ == 0 ? 0 : end_of_file_at(pid_, loader_);
  return {};
}

Expected<bool> LoaderCalls::stopped() {
  // As it stands in front of a call, it could not make one for us.
  __ptrace_syscall_info call = {};
  const auto size = reinterpret_cast<void*>(sizeof(call));
  const bool returns =
      ptrace(PTRACE_GET_SYSCALL_INFO, pid_, size, &call) > 0 && call.op == PTRACE_SYSCALL_INFO_EXIT;
  if (!returns) return false;
  const uint64_t pc = call.instruction_pointer;
  if (loader_ == 0 ? pc == entry_ : CLEW_TRY(is_loaded(pc))) return true;
  if (++calls_ < kCallsMax) return false;
  return fail(ErrorCode::Io, "the loader of the program did not finish");
}

// A program that runs may have return addresses where jumps would be written.
Expected<bool> LoaderCalls::is_loaded(uint64_t pc) const {
  const auto state = read_loader_state(pid_);
  if (!state || !state->consistent) return false;
  if (pc >= loader_ && pc < loader_end_) return true;
  return fail(ErrorCode::Refused, "its loader makes no call behind its last library");
}

}  // namespace clew::inline_
