// SPDX-License-Identifier: Apache-2.0
// Memory that a tracer shares with a live victim.
#include "inline/shared_parts.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline/attachment.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::Footprint;
using testing_::footprint_of;
using testing_::small_options;
using testing_::Victim;

constexpr uint64_t kPageBytes = 4096;

FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(memfd_create(std::string(kSharedFileName).c_str(), MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), 2 * kPageBytes), 0);
  EXPECT_EQ(pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

std::string text_at(pid_t pid, uint64_t address, size_t size) {
  std::string text(size, '\0');
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(text.data()), size);
  EXPECT_TRUE(target::read_memory(pid, address, bytes).has_value());
  return text;
}

TEST(SharedParts, AreTheSameMemoryUntilTheSessionLeaves) {
  Victim victim(CLEW_COUNTER_VICTIM);
  const Footprint before = footprint_of(victim.pid());
  const FileDescriptor high = file_with("high");
  const FileDescriptor low = file_with("low");
  auto attachment = Attachment::open(victim.pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  const std::vector<SharedPart> parts = {
      {.descriptor = high.get(), .size_bytes = 2 * kPageBytes, .is_writable = true},
      {.descriptor = low.get(), .size_bytes = kPageBytes, .is_low = true}};
  const auto places = attachment->share(parts);
  ASSERT_TRUE(places.has_value()) << places.error().message;
  EXPECT_EQ(text_at(victim.pid(), (*places)[0], 4), "high");
  EXPECT_EQ(text_at(victim.pid(), (*places)[1], 3), "low");
  EXPECT_LT((*places)[1], uint64_t{1} << 31);
  EXPECT_EQ(pwrite(high.get(), "seen", 4, 0), 4);
  EXPECT_EQ(text_at(victim.pid(), (*places)[0], 4), "seen");
  EXPECT_EQ(victim.ask_number("calls 10"), 10);
  ASSERT_TRUE(attachment->detach().has_value());
  EXPECT_EQ(footprint_of(victim.pid()), before);
  EXPECT_EQ(victim.finish(), 0);
}

TEST(SharedParts, ThatAreWritableAreNotInherited) {
  Victim victim(CLEW_COUNTER_VICTIM);
  const FileDescriptor writable = file_with("ours");
  const FileDescriptor readable = file_with("all's");
  auto attachment = Attachment::open(victim.pid(), small_options());
  ASSERT_TRUE(attachment.has_value()) << attachment.error().message;
  const std::vector<SharedPart> parts = {
      {.descriptor = writable.get(), .size_bytes = 2 * kPageBytes, .is_writable = true},
      {.descriptor = readable.get(), .size_bytes = kPageBytes}};
  const auto places = attachment->share(parts);
  ASSERT_TRUE(places.has_value()) << places.error().message;
  const auto child = static_cast<pid_t>(victim.ask_number("family 10"));
  std::array<uint8_t, 4> bytes{};
  EXPECT_FALSE(target::read_memory(child, (*places)[0], bytes).has_value());
  EXPECT_EQ(text_at(child, (*places)[1], 5), "all's");
  ASSERT_TRUE(attachment->detach().has_value());
  EXPECT_FALSE(target::read_memory(child, (*places)[1], bytes).has_value());
  EXPECT_EQ(WEXITSTATUS(victim.ask_number("bury")), 7);
}

TEST(SharedParts, AreRefusedWhenTheyAreTooMany) {
  Victim victim(CLEW_COUNTER_VICTIM);
  const FileDescriptor file = file_with("x");
  auto attachment = Attachment::open(victim.pid(), small_options());
  ASSERT_TRUE(attachment.has_value());
  const SharedPart part{.descriptor = file.get(), .size_bytes = kPageBytes};
  const std::vector<SharedPart> many(kSharedPartsAtOnceMax + 1, part);
  EXPECT_EQ(attachment->share(many).error().code, ErrorCode::Limit);
  // The journal has room for a few sessions, not for this.
  const std::vector<SharedPart> all(kSharedPartsAtOnceMax, part);
  bool is_full = false;
  for (int i = 0; i < 8 && !is_full; ++i)
    is_full = !attachment->share(all).has_value();
  EXPECT_TRUE(is_full);
  ASSERT_TRUE(attachment->detach().has_value());
  EXPECT_EQ(victim.finish(), 0);
}

TEST(SharedParts, AreRefusedToAProcessWithoutDescriptorsLeft) {
  Victim victim(CLEW_COUNTER_VICTIM);
  const FileDescriptor file = file_with("x");
  auto attachment = Attachment::open(victim.pid(), small_options());
  ASSERT_TRUE(attachment.has_value());
  const Footprint before = footprint_of(victim.pid());
  rlimit limit{};
  ASSERT_EQ(prlimit(victim.pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
  limit.rlim_cur = before.descriptors + 2;  // Enough for the sockets.
  ASSERT_EQ(prlimit(victim.pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  const SharedPart part{.descriptor = file.get(), .size_bytes = kPageBytes};
  const std::vector<SharedPart> parts(kSharedPartsAtOnceMax, part);
  EXPECT_FALSE(attachment->share(parts).has_value());
  EXPECT_EQ(footprint_of(victim.pid()).descriptors, before.descriptors);
  EXPECT_EQ(victim.ask_number("calls 10"), 10);
}

}  // namespace
}  // namespace clew::inline_
