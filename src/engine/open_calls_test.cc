// SPDX-License-Identifier: Apache-2.0
// Whose memory is read for calls that are open.
#include "engine/open_calls.h"

#include <array>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace clew::engine {
namespace {

constexpr size_t kPage = 4096;

// A file that this process has mapped, and the children that it forks.
class SharedFile {
 public:
  SharedFile() : file_(memfd_create("clew-test", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_.get(), kPage), 0);
    bytes_ = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, file_.get(), 0);
    EXPECT_NE(bytes_, MAP_FAILED);
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() { unmap(); }
  void unmap() { (void)munmap(bytes_, kPage); }
  [[nodiscard]] int descriptor() const { return file_.get(); }

 private:
  FileDescriptor file_;
  void* bytes_ = nullptr;
};

// A forked child that waits, once it has let go of the file or kept it.
class ForkedChild {
 public:
  ForkedChild(SharedFile& file, bool keeps) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    const FileDescriptor reader(ends[0]);
    const FileDescriptor writer(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (!keeps) file.unmap();
      if (write(writer.get(), "y", 1) == 1) pause();
      _exit(1);
    }
    char answer = 0;
    EXPECT_EQ(read(reader.get(), &answer, 1), 1);
  }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;
  ~ForkedChild() {
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(OpenCalls, OnlyAProcessThatSharesTheMemoryIsTakenForAChild) {
  SharedFile file;
  const ForkedChild child(file, true);
  const ForkedChild other(file, false);
  const auto life = sharer_of(file.descriptor(), child.pid());
  ASSERT_TRUE(life);
  EXPECT_EQ(life->pid, child.pid());
  EXPECT_GT(life->start_ticks, 0U);
  EXPECT_FALSE(sharer_of(file.descriptor(), other.pid()));
  EXPECT_FALSE(sharer_of(file.descriptor(), 1));
  EXPECT_FALSE(sharer_of(file.descriptor(), 0));
}

TEST(OpenCalls, MemoryIsReadOfTheLifeThatWasMeantAlone) {
  const uint64_t word = 0x1234;
  const auto address = reinterpret_cast<uint64_t>(&word);
  const auto life = incarnation_of(getpid());
  ASSERT_TRUE(life);
  const target::Incarnation earlier = {.pid = life->pid, .start_ticks = life->start_ticks - 1};
  std::array<uint8_t, 8> bytes{};
  ReadMemory memory({{0, *life}, {1, earlier}});
  EXPECT_TRUE(memory.read(0, address, bytes));
  EXPECT_EQ(bytes[0], 0x34);
  EXPECT_FALSE(memory.read(1, address, bytes));
  EXPECT_FALSE(memory.read(2, address, bytes));
}

}  // namespace
}  // namespace clew::engine
