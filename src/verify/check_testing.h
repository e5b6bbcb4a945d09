// SPDX-License-Identifier: Apache-2.0
// Bodies for the tests of check(), by their bytes, and what it says of them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/instruction.h"
#include "verify/verified_code.h"

namespace clew::verify {

using Bytes = std::vector<uint8_t>;

inline constexpr uint32_t kSlot = 0x1000'0000;
inline constexpr uint32_t kWindow = 0x1000'1000;
inline constexpr uint32_t kGeneration = 0x1000'0F00;
inline constexpr uint64_t kAddress = 0x5555'0000'0000;
inline constexpr uint64_t kEntry = kAddress + 0x10'0000;  // Of the only accessor.
inline constexpr uint32_t kLog2 = 12;

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes word32(uint32_t value) {
  Bytes out(4);
  std::memcpy(out.data(), &value, 4);
  return out;
}

// A policy that lets everything be written that is not rsp.
inline Policy policy() {
  static constexpr Callee kCallees[] = {{kEntry, abi::RegisterSet(0x0001)}};  // Changes rax.
  return {.address = kAddress,
          .window_address = kWindow,
          .window_size_log2 = kLog2,
          .slot_address = kSlot,
          .generation_address = kGeneration,
          .stack_readable_bytes = 64,
          .stack_mapped_bytes = 64,
          .clobbers = abi::RegisterSet(0xFFEF),
          .callees = kCallees,
          .fuel_max = 1000,
          .time_is_readable = true,
          .cpu_is_readable = true};
}

// Why `bytes` are refused; empty when they are not.
inline std::string verdict(const Bytes& bytes, const Policy& with = policy()) {
  const auto result = check(bytes, with);
  return result ? "" : result.error().message;
}

#define EXPECT_RULE(rule, ...) EXPECT_THAT(verdict(__VA_ARGS__), testing::HasSubstr(rule ": "))
#define EXPECT_FINE(...) EXPECT_EQ(verdict(__VA_ARGS__), "")

// mov eax, gs:[displacement]
inline Bytes load_window(uint32_t displacement) {
  return Bytes{0x65, 0x8B, 0x04, 0x25} + word32(displacement);
}
// mov gs:[displacement], eax
inline Bytes store_window(uint32_t displacement) {
  return Bytes{0x65, 0x89, 0x04, 0x25} + word32(displacement);
}
// mov gs:[rcx + displacement], rax
inline Bytes store_indexed(uint32_t displacement) {
  return Bytes{0x65, 0x48, 0x89, 0x81} + word32(displacement);
}
// mov gs:[rcx*scale + displacement], rax
inline Bytes store_scaled(uint8_t scale_log2, uint32_t displacement) {
  const auto sib = static_cast<uint8_t>(scale_log2 << 6 | 1 << 3 | 5);
  return Bytes{0x65, 0x48, 0x89, 0x04, sib} + word32(displacement);
}
// and ecx, mask
inline Bytes mask_ecx(uint32_t mask) {
  return Bytes{0x81, 0xE1} + word32(mask);
}
// call target
inline Bytes call(uint64_t at, uint64_t target) {
  return Bytes{0xE8} + word32(static_cast<uint32_t>(target - (at + 5)));
}
// mov r13d, fuel
inline Bytes set_fuel(uint32_t fuel) {
  return Bytes{0x41, 0xBD} + word32(fuel);
}
// sub r13d, cost
inline Bytes charge(uint32_t cost) {
  return Bytes{0x41, 0x81, 0xED} + word32(cost);
}
inline Bytes jump_short(uint8_t opcode, int distance) {
  return {opcode, static_cast<uint8_t>(distance)};
}
inline const Bytes kMaskEcx = {0x81, 0xE1, 0xFF, 0x0F, 0, 0};  // and ecx, 0xFFF
inline constexpr uint8_t kJz = 0x74;
inline constexpr uint8_t kJs = 0x78;
inline constexpr uint8_t kJns = 0x79;

// mov r13d, 100 ; head: sub r13d, cost ; js out ; jz head ; out:   The loop weighs 3.
inline Bytes loop(uint32_t cost) {
  return set_fuel(100) + charge(cost) + jump_short(kJs, 2) + jump_short(kJz, -11);
}

}  // namespace clew::verify
