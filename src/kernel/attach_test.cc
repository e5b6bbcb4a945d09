// SPDX-License-Identifier: Apache-2.0
#include "kernel/attach.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "target/no_threads_testing.h"

namespace clew::kernel {
namespace {

// Descriptors that are no attachments end in the same way.
bool ends_all() {
  constexpr size_t kMany = 100;
  Attachments attachments;
  for (size_t i = 0; i < kMany; ++i)
    attachments.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int last = attachments.back().get();
  close_all(attachments);
  return last >= 0 && fcntl(last, F_GETFD) == -1;
}

TEST(Attach, AttachmentsEndAtOnce) {
  EXPECT_TRUE(ends_all());
}

TEST(Attach, AttachmentsEndWithoutThreads) {
  EXPECT_EXIT(target::end_without_threads(ends_all), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace clew::kernel
