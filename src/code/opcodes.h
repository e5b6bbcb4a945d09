// SPDX-License-Identifier: Apache-2.0
// Instructions that are written, or looked for, by their bytes.
#pragma once

#include <array>
#include <cstdint>

namespace clew::code {

inline constexpr uint8_t kInt3 = 0xcc;
inline constexpr uint8_t kNop = 0x90;
inline constexpr uint8_t kJumpRel8 = 0xeb;
inline constexpr uint8_t kJumpRel32 = 0xe9;
inline constexpr uint32_t kJumpRel8Bytes = 2;
inline constexpr uint32_t kJumpRel32Bytes = 5;
inline constexpr std::array<uint8_t, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};

}  // namespace clew::code
