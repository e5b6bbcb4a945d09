// SPDX-License-Identifier: Apache-2.0
#include "code/both_ways.h"

#include <algorithm>

#include "base/assert.h"
#include "code/decode.h"
#include "code/kept_instruction.h"

namespace clew::code {
namespace {

constexpr uint8_t kTestEax = 0xa9;  // test eax, imm32
constexpr uint8_t kNoPrefix = 0x66;
constexpr uint8_t kSetCarry = 0xf9;  // stc

constexpr unsigned kFirstMin = 2;  // One byte more, and nothing of the file's would stay.
constexpr unsigned kFirstMax = kMarkSizeBytes - 1;

}  // namespace

bool can_serve_both(std::span<const uint8_t> bytes) {
  const auto first =
      decode_with_zydis(bytes.first(std::min<size_t>(bytes.size(), kInstructionSizeMax)));
  return first && first->length >= kFirstMin && first->length <= kFirstMax &&
         first->flow == Flow::Next && leaves_alone(bytes, kReadsNothing);
}

// SDM volume 2: A9 id; F9.
std::array<uint8_t, kMarkSizeBytes> mark_over(std::span<const uint8_t> original, uint8_t length) {
  CLEW_ASSERT(length >= kFirstMin && length <= kFirstMax && length <= original.size());
  std::array<uint8_t, kMarkSizeBytes> mark{};
  mark.fill(kNoPrefix);
  std::copy_n(original.begin(), length, mark.begin());
  mark.front() = kTestEax;
  mark.back() = kSetCarry;
  return mark;
}

}  // namespace clew::code
