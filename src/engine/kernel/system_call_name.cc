// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/system_call_name.h"

#include "kernel/providers/syscall_table.h"

namespace clew::engine {

std::string_view system_call_name(uint64_t number) {
  for (const kernel::SystemCall& call : kernel::system_calls()) {
    if (call.number == number) return call.abi_name;
  }
  return {};
}

}  // namespace clew::engine
