// SPDX-License-Identifier: Apache-2.0
// The runtime as the host embeds it: one position-independent piece of code, copied into the arena
// near the modules it serves. Its offsets come from its symbol table at build time.
#pragma once

#include <cstdint>
#include <span>

#include "abi/accessor.h"

namespace clew::runtime {

inline constexpr uint32_t kThunkSizeBytes = 16;
inline constexpr uint32_t kThunksPerSession = 28;

// What a stub may call besides the accessors; index of the thunk in its session's row.
enum class StubCall : uint32_t { Claim = 25, Busy = 26, Loader = 27 };

struct Blob {
  std::span<const uint8_t> bytes;
  uint32_t low_address_offset = 0;  // 4 bytes to be set to A.
  uint32_t remote_call_offset = 0;  // syscall; ret
  uint32_t restorer_offset = 0;     // mov eax, rt_sigreturn; syscall
};

// Valid for ever.
Blob runtime_blob();

// Offsets of the entries in the blob.
constexpr uint32_t thunk_offset(uint32_t session, uint32_t index) {
  return (session * kThunksPerSession + index) * kThunkSizeBytes;
}
constexpr uint32_t accessor_offset(uint32_t session, abi::Accessor accessor) {
  return thunk_offset(session, static_cast<uint32_t>(accessor));
}
constexpr uint32_t stub_call_offset(uint32_t session, StubCall call) {
  return thunk_offset(session, static_cast<uint32_t>(call));
}

}  // namespace clew::runtime
