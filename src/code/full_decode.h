// SPDX-License-Identifier: Apache-2.0
// One instruction with all its operands, also those that its text does not name, as Zydis reads it.
// Some 300 ns; what only needs lengths and flow asks decode.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <Zydis/Zydis.h>

namespace clew::code {

struct Full {
  ZydisDecodedInstruction instruction{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> all{};

  [[nodiscard]] std::span<const ZydisDecodedOperand> operands() const {
    return std::span(all).first(instruction.operand_count);
  }
};

inline std::optional<Full> decode_full(std::span<const uint8_t> bytes) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  Full full;
  const ZyanStatus status = ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(),
                                                   &full.instruction, full.all.data());
  return ZYAN_SUCCESS(status) ? std::optional(full) : std::nullopt;
}

// The whole register that `part` is a part of. The flags are a part of nothing.
inline ZydisRegister whole(ZydisRegister part) {
  const ZydisRegister found = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
  return found == ZYDIS_REGISTER_NONE ? part : found;
}

}  // namespace clew::code
