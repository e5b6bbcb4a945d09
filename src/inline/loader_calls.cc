// SPDX-License-Identifier: Apache-2.0
#include "inline/loader_calls.h"

#include <sys/ptrace.h>

#include "inline/loader.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

constexpr unsigned kCallsMax = 20'000;  // Of 1,000 libraries.

}  // namespace

Expected<void> LoaderCalls::begin() {
  CLEW_TRY(target::check_is_64_bit(pid_));
  const AuxiliaryValues values = read_auxiliary(pid_).value_or(AuxiliaryValues{});
  entry_ = values.entry;
  has_loader_ = values.loader_base != 0;
  return {};
}

Expected<bool> LoaderCalls::stopped() {
  // As it stands in front of a call, it could not make one for us.
  __ptrace_syscall_info call = {};
  const auto size = reinterpret_cast<void*>(sizeof(call));
  const bool returns =
      ptrace(PTRACE_GET_SYSCALL_INFO, pid_, size, &call) > 0 && call.op == PTRACE_SYSCALL_INFO_EXIT;
  if (!returns) return false;
  if (has_loader_ ? is_there() : call.instruction_pointer == entry_) return true;
  if (++calls_ < kCallsMax) return false;
  return fail(ErrorCode::Io, "the loader of the program did not finish");
}

bool LoaderCalls::is_there() const {
  const auto state = read_loader_state(pid_);
  return state && state->consistent;
}

}  // namespace clew::inline_
