// SPDX-License-Identifier: Apache-2.0
// Uses the formatter of Zydis 4.0.
#include "native/print.h"

#include <array>

#include <Zydis/Zydis.h>
#include <fmt/format.h>

#include "abi/calling.h"
#include "isa/opcode.h"

namespace clew::native {
namespace {

std::string one(const ZydisFormatter& formatter, const ZydisDecodedInstruction& instruction,
                const ZydisDecodedOperand* operands, uint64_t offset) {
  std::array<char, 128> text = {};
  const ZyanStatus status = ZydisFormatterFormatInstruction(
      &formatter, &instruction, operands, instruction.operand_count_visible, text.data(),
      text.size(), offset, nullptr);
  return ZYAN_SUCCESS(status) ? std::string(text.data()) : std::string("?");
}

std::string name_of(uint32_t number) {
  if (number < abi::kAccessorCount) {
    return std::string(isa::accessor_name(static_cast<abi::Accessor>(number)));
  }
  if (abi::is_sparing_door(number)) return name_of(abi::accessor_behind(number)) + ", sparing";
  return fmt::format("accessor {} of D", number);
}

const CallFixup* call_at(const Code& code, size_t offset) {
  for (const CallFixup& call : code.calls) {
    if (call.offset_bytes == offset + 1) return &call;
  }
  return nullptr;
}

}  // namespace

std::string print(const Code& code) {
  ZydisDecoder decoder;
  ZydisFormatter formatter;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  std::string text;
  size_t offset = 0;
  while (offset < code.bytes.size()) {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    const ZyanStatus status =
        ZydisDecoderDecodeFull(&decoder, code.bytes.data() + offset, code.bytes.size() - offset,
                               &instruction, operands.data());
    if (!ZYAN_SUCCESS(status)) {
      text += fmt::format("{:5x}  db 0x{:02x}\n", offset, code.bytes[offset]);
      ++offset;
      continue;
    }
    if (const CallFixup* call = call_at(code, offset)) {
      text += fmt::format("{:5x}  call {}\n", offset, name_of(call->door));
    } else {
      text +=
          fmt::format("{:5x}  {}\n", offset, one(formatter, instruction, operands.data(), offset));
    }
    offset += instruction.length;
  }
  return text;
}

}  // namespace clew::native
