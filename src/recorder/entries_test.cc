// SPDX-License-Identifier: Apache-2.0
#include "recorder/entries.h"

#include <vector>

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

constexpr uint64_t kAddress = 0x10000;

TEST(Entered, IsWhatHasOnlyRegistersToBringBack) {
  const std::vector<uint8_t> jump = {0xe9, 0x00, 0x01, 0x00, 0x00};
  EXPECT_EQ(entered(jump, kAddress), kAddress + 5 + 0x100);
  const std::vector<uint8_t> spilled = {0x58,                          // pop rax
                                        0x48, 0x8d, 0xa4, 0x24, 0x80,  // lea rsp, [rsp + 128]
                                        0x00, 0x00, 0x00,              //
                                        0xe9, 0xf0, 0xff, 0xff, 0xff};
  EXPECT_EQ(entered(spilled, kAddress), kAddress + 14 - 16);
}

TEST(Entered, IsNotWhatWritesOrGoesElsewhere) {
  const std::vector<uint8_t> before = {0x41, 0x5a,                                // pop r10
                                       0x66, 0x41, 0x83, 0xc3, 0x04,              // add r11w, 4
                                       0x49, 0xc7, 0x03, 0x00, 0x08, 0x00, 0x00,  // mov [r11], …
                                       0xe9, 0x00, 0x01, 0x00, 0x00};
  EXPECT_FALSE(entered(before, kAddress));
  EXPECT_FALSE(entered(std::span(before).subspan(7), kAddress));
  EXPECT_TRUE(entered(std::span(before).subspan(14), kAddress));
  EXPECT_FALSE(entered(std::vector<uint8_t>{0xff, 0xe0}, kAddress));  // jmp rax
  EXPECT_FALSE(entered(std::vector<uint8_t>{0x5a}, kAddress));        // Cut.
  EXPECT_FALSE(entered({}, kAddress));
}

}  // namespace
}  // namespace clew::recorder
