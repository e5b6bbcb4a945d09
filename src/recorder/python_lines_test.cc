// SPDX-License-Identifier: Apache-2.0
// Compared with what Python itself says (co_lines()).
#include "recorder/python_lines.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

// co_linetable of a function of Python 3.11.2 whose first line is 2: with a list comprehension, a
// call over two lines, an exception's handler, and a return 37 lines further.
constexpr std::array<uint8_t, 96> kTable = {
    0x80, 0x0,  0xf0, 0x4,  0x1,  0x9,  0x15, 0xf0, 0x0,  0x1,  0x9,  0x15, 0xd8, 0x12, 0x13, 0xf0,
    0x3,  0x1,  0x9,  0x15, 0xf1, 0x0,  0x1,  0x9,  0x15, 0xf4, 0x0,  0x1,  0x9,  0x15, 0x80, 0x41,
    0xf0, 0x6,  0x4,  0x5,  0xd,  0xd8, 0xc,  0xd,  0x88, 0x61, 0x8c, 0x44, 0xd8, 0xc,  0xd,  0xf1,
    0x3,  0x1,  0xd,  0xe,  0x88, 0x1,  0x88, 0x1,  0xf8, 0xe5, 0xb,  0x15, 0xf0, 0x0,  0x1,  0x5,
    0xd,  0xf0, 0x0,  0x1,  0x5,  0xd,  0xf0, 0x0,  0x1,  0x5,  0xd,  0xd8, 0x8,  0xc,  0x88, 0x4,
    0xf0, 0x3,  0x1,  0x5,  0xd,  0xf8, 0xf8, 0xf8, 0xf0, 0x4c, 0x1,  0x0,  0xc,  0xd,  0x80, 0x48};

struct LineOf {
  uint64_t begin;
  uint64_t end;
  uint32_t line;  // 0: None.
};
constexpr std::array<LineOf, 29> kLines = {
    {{0, 2, 2},    {2, 4, 4},    {4, 6, 4},    {6, 8, 5},    {8, 10, 4},   {10, 14, 4},
     {14, 24, 4},  {24, 26, 4},  {26, 28, 7},  {28, 30, 8},  {30, 32, 8},  {32, 42, 8},
     {42, 44, 9},  {44, 48, 8},  {48, 50, 8},  {50, 52, 8},  {52, 54, 0},  {54, 66, 10},
     {66, 68, 10}, {68, 70, 10}, {70, 72, 10}, {72, 74, 11}, {74, 76, 11}, {76, 78, 10},
     {78, 80, 0},  {80, 82, 0},  {82, 84, 0},  {84, 86, 48}, {86, 88, 48}}};

TEST(PythonLines, AreThoseThatPythonSays) {
  const PythonLines lines(kTable, 2);
  for (const LineOf& one : kLines) {
    for (uint64_t offset = one.begin; offset < one.end; offset += kPythonUnitBytes)
      EXPECT_EQ(lines.at(offset), one.line) << offset;
  }
  EXPECT_EQ(lines.at(88), 0U);
  EXPECT_EQ(lines.at(UINT64_MAX), 0U);
}

TEST(PythonLines, OfATableWithoutSenseAreNotKnown) {
  EXPECT_EQ(PythonLines({}, 7).at(0), 0U);
  const std::vector<uint8_t> cut = {0xf0};
  EXPECT_EQ(PythonLines(cut, 7).at(0), 7U);
  const std::vector<uint8_t> below = {0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01};
  EXPECT_EQ(PythonLines(below, 7).at(0), 0U);
}

}  // namespace
}  // namespace clew::recorder
