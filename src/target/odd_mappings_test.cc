// SPDX-License-Identifier: Apache-2.0
// Mappings of this process that a plain load must not read for others. Devices are in
// tests/kernel_machine/loads.
#include "target/odd_mappings.h"

#include <array>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "target/process.h"

namespace clew::target {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr size_t kPage = 4096;

std::optional<std::string> odd_mapping_of_ours() {
  return find_odd_mapping(getpid(), read_memory_map(getpid()).value());
}

// A page of a file, as long as it lives.
class MappedPage {
 public:
  explicit MappedPage(const char* path, int flags = MAP_PRIVATE)
      : file_(open(path, O_RDONLY | O_CLOEXEC)),
        page_(mmap(nullptr, kPage, PROT_READ, flags, file_.get(), 0)) {}
  MappedPage(const MappedPage&) = delete;
  MappedPage& operator=(const MappedPage&) = delete;
  ~MappedPage() {
    if (is_there()) munmap(page_, kPage);
  }
  [[nodiscard]] bool is_there() const { return page_ != MAP_FAILED; }

 private:
  FileDescriptor file_;
  void* page_;
};

TEST(OddMappings, AreNoneOfAPlainProcess) {
  const MappedPage file("/proc/self/exe");
  const MappedPage zero("/dev/zero");
  const FileDescriptor shared(memfd_create("[odd] \n", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(shared.get(), kPage), 0);
  void* const page = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, shared.get(), 0);
  EXPECT_TRUE(file.is_there() && zero.is_there() && page != MAP_FAILED);
  EXPECT_EQ(odd_mapping_of_ours(), std::nullopt);
  munmap(page, kPage);
}

TEST(OddMappings, AreFilesThatTheKernelMakesUp) {
  const MappedPage types("/sys/kernel/btf/vmlinux");  // Can be mapped since Linux 6.16.
  if (!types.is_there()) GTEST_SKIP() << "no file of /sys can be mapped here";
  EXPECT_THAT(odd_mapping_of_ours(), Optional(HasSubstr("of a file system of type sysfs")));
}

TEST(OddMappings, AreWhereTheProcessServesItsOwnFaults) {
  {
    const FileDescriptor faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
    if (!faults.valid()) GTEST_SKIP() << "userfaultfd is not allowed here";
    EXPECT_THAT(odd_mapping_of_ours(), Optional(HasSubstr("userfaultfd")));
  }
  EXPECT_EQ(odd_mapping_of_ours(), std::nullopt);
}

TEST(OddMappings, AreStacksOfTheProgramsOwn) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
  void* const stack = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  ASSERT_NE(stack, MAP_FAILED);
  EXPECT_THAT(odd_mapping_of_ours(), Optional(HasSubstr("MAP_GROWSDOWN")));
  munmap(stack, kPage);
  EXPECT_EQ(odd_mapping_of_ours(), std::nullopt);
}

// Its name is at that part alone which its first frames are in.
TEST(OddMappings, AreNotPartsOfTheFirstStackThatAreClosed) {
  std::array<char, 8 * kPage> frame{};
  const auto inside = reinterpret_cast<uintptr_t>(frame.data()) / kPage * kPage + 2 * kPage;
  auto* const part = reinterpret_cast<void*>(inside);
  ASSERT_EQ(mprotect(part, kPage, PROT_READ), 0);
  const auto found = odd_mapping_of_ours();
  ASSERT_EQ(mprotect(part, kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(found, std::nullopt);
}

TEST(OddMappings, AreNotTheFirstStackThatHasGrownMeanwhile) {
  std::vector<Mapping> maps = read_memory_map(getpid()).value();
  for (Mapping& map : maps)
    if (map.path == "[stack]") map.start += kPage;
  EXPECT_EQ(find_odd_mapping(getpid(), maps), std::nullopt);
}

TEST(OddMappings, AreWhateverCannotBeSeen) {
  EXPECT_NE(find_odd_mapping(0x3FFF'FFFF, {}), std::nullopt);
}

}  // namespace
}  // namespace clew::target
