// SPDX-License-Identifier: Apache-2.0
// Mappings of this process that a plain load must not read for others. Devices are in
// tests/kernel_machine/loads.
#include "target/odd_mappings.h"

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

TEST(OddMappings, AreWhateverCannotBeSeen) {
  EXPECT_NE(find_odd_mapping(0x3FFF'FFFF, {}), std::nullopt);
}

}  // namespace
}  // namespace clew::target
