// SPDX-License-Identifier: Apache-2.0
// GoogleTest with its own samples, and tests that throw. Its arguments are ours. Then it faults.
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "samples/sample1.cc"
#include "samples/sample1_unittest.cc"
#include "samples/sample2.cc"
#include "samples/sample2_unittest.cc"
#include "samples/sample3_unittest.cc"
#include "samples/sample4.cc"
#include "samples/sample4_unittest.cc"
#include "samples/sample6_unittest.cc"
#include "samples/sample7_unittest.cc"
#include "src/gtest-all.cc"

namespace {

int* volatile nowhere;  // Null, as only the machine knows.

struct Thrown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int below(int depth) {
  if (depth == 0) throw Thrown("at the bottom");
  const std::string text(static_cast<size_t>(depth), 'a');  // Has a destructor on the way.
  return below(depth - 1) + static_cast<int>(text.size());
}

TEST(Throws, Expected) {
  EXPECT_THROW(below(5), Thrown);
}
TEST(Throws, Others) {
  EXPECT_THROW(below(3), std::logic_error);
}
TEST(Throws, Nothing) {
  EXPECT_NO_THROW(below(2));
}
TEST(Throws, OutOfTheTest) {
  below(4);
}

}  // namespace

int main(int words_count, char** words) {
  testing::InitGoogleTest(&words_count, words);
  *nowhere = RUN_ALL_TESTS();
  return 3;
}
