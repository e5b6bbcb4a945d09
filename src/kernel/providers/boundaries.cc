// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/boundaries.h"

#include <Zydis/Zydis.h>

namespace clew::kernel {

std::vector<uint64_t> instruction_offsets(std::span<const uint8_t> code) {
  std::vector<uint64_t> result;
  ZydisDecoder decoder;
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))) {
    return result;
  }
  for (size_t at = 0; at < code.size();) {
    ZydisDecodedInstruction instruction;
    const ZyanStatus status = ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data() + at,
                                                            code.size() - at, &instruction);
    if (!ZYAN_SUCCESS(status)) return {};
    result.push_back(at);
    at += instruction.length;
  }
  return result;
}

}  // namespace clew::kernel
