// SPDX-License-Identifier: Apache-2.0
// check() on arbitrary bytes never crashes or reads outside them, keeps what it accepts as it is,
// and our decoder never reads an instruction that Zydis reads otherwise.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "verify/instruction.h"
#include "verify/verified_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace verify = clew::verify;
  if (size < 4) return 0;
  const verify::Callee callees[] = {
      {0x5555'0000'1000, clew::abi::RegisterSet(0x0001)},   // rax
      {0x5555'0000'1020, clew::abi::RegisterSet(0x1C09)}};  // rax, rbx, r10 to r12
  const verify::Policy policy = {
      .address = 0x5555'0000'0000,
      .window_address = 0x1000'1000,
      .window_size_log2 = data[0] % 32U,
      .slot_address = 0x1000'0000,
      .generation_address = 0x1000'0F00,
      .stack_readable_bytes = 8U * data[1],
      .stack_mapped_bytes = 4U * data[1],
      .clobbers = clew::abi::RegisterSet(static_cast<uint16_t>(data[2] | data[3] << 8)),
      .callees = callees,
      .fuel_max = 1000,
      .time_is_readable = (data[0] & 32U) != 0,
      .cpu_is_readable = (data[0] & 64U) != 0};
  const std::span<const uint8_t> bytes(data + 4, size - 4);
  const auto code = verify::check(bytes, policy);
  if (code) CLEW_ASSERT(std::equal(bytes.begin(), bytes.end(), code->bytes().begin()));
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto ours = verify::decode(bytes.subspan(at));
    if (!ours) continue;
    const auto theirs = verify::decode_by_zydis(bytes.subspan(at));
    CLEW_ASSERT(theirs && *ours == *theirs);
  }
  return 0;
}
