// SPDX-License-Identifier: Apache-2.0
#include "target/socket_numbers.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file_descriptor.h"

namespace clew::target {
namespace {

uint64_t number_of_new() {
  const FileDescriptor made(socket(AF_UNIX, SOCK_STREAM, 0));
  struct stat status {};
  EXPECT_EQ(fstat(made.get(), &status), 0);
  return status.st_ino;
}

TEST(SocketNumbers, RiseFromThose) {
  const uint64_t before = number_of_new();
  const std::vector<uint32_t> numbers = socket_numbers();
  ASSERT_FALSE(numbers.empty());
  const auto taken = [](uint64_t number) { return (number - 1) / 1'024; };
  const uint32_t last = *std::max_element(numbers.begin(), numbers.end());
  EXPECT_GT(taken(last), taken(before));
  // A later one is of a processor that is there, or of numbers that were taken since.
  const uint64_t later = number_of_new();
  const bool is_behind = std::any_of(numbers.begin(), numbers.end(), [&](uint32_t each) {
    return taken(each) == taken(later) && later > each;
  });
  EXPECT_TRUE(is_behind || taken(later) > taken(last)) << later;
}

}  // namespace
}  // namespace clew::target
