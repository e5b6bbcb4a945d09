// SPDX-License-Identifier: Apache-2.0
// What the tracer takes for a file that the target has just made. The target is a child that holds
// something else under the number: what a process that shares its descriptors could put there.
#include "inline/arena_file.h"

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::inline_ {
namespace {

// A child that has made a descriptor and waits.
class Holder {
 public:
  explicit Holder(const std::function<int()>& make) {
    int ready[2] = {};
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const int made = make();
      if (write(ready[1], &made, sizeof made) != sizeof made) _exit(1);
      while (true)
        pause();
    }
    close(ready[1]);
    EXPECT_EQ(read(ready[0], &descriptor_, sizeof descriptor_), ssize_t{sizeof descriptor_});
    EXPECT_GE(descriptor_, 0);
    close(ready[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] Expected<FileDescriptor> taken() const {
    return open_new_file(pid_, static_cast<uint64_t>(descriptor_), kArenaName);
  }

 private:
  pid_t pid_ = -1;
  int descriptor_ = -1;
};

int memfd(const char* name, unsigned flags = MFD_ALLOW_SEALING) {
  return memfd_create(name, flags);
}

void expect_refused(const Holder& holder) {
  const auto taken = holder.taken();
  ASSERT_FALSE(taken.has_value());
  EXPECT_NE(taken.error().message.find("[shared-descriptors]"), std::string::npos)
      << taken.error().message;
}

struct TemporaryFile {
  TemporaryFile() {
    const int file = mkstemp(path.data());
    EXPECT_EQ(write(file, "kept", 4), 4);
    close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path.c_str()); }

  std::string path = testing::TempDir() + "clew-arena-XXXXXX";
};

TEST(NewFiles, AreTakenAsTheyWereMade) {
  const Holder holder([] { return memfd("clew-arena"); });
  const auto taken = holder.taken();
  ASSERT_TRUE(taken.has_value()) << taken.error().message;
  EXPECT_EQ(ftruncate(taken->get(), 4096), 0);
}

TEST(NewFiles, AreNoFilesOfAFolder) {
  const TemporaryFile file;
  for (const int flags : {O_RDWR, O_RDONLY, O_PATH}) {
    const Holder holder([&] { return open(file.path.c_str(), flags); });
    expect_refused(holder);
  }
  struct stat info = {};
  ASSERT_EQ(stat(file.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 4);
}

TEST(NewFiles, AreNoDeletedFiles) {
  const Holder holder([] { return open("/tmp", O_TMPFILE | O_RDWR, 0600); });
  expect_refused(holder);
}

TEST(NewFiles, AreNoPipesAndNoDevices) {
  const Holder pipe_holder([] {
    int ends[2] = {};
    return pipe(ends) == 0 ? ends[0] : -1;
  });
  expect_refused(pipe_holder);
  const Holder device_holder([] { return open("/dev/null", O_RDWR); });
  expect_refused(device_holder);
}

TEST(NewFiles, AreEmptyUnsealedAndOfTheirName) {
  const Holder full([] {
    const int file = memfd("clew-arena");
    return ftruncate(file, 4096) == 0 ? file : -1;
  });
  expect_refused(full);
  const Holder sealed([] {
    const int file = memfd("clew-arena");
    return fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0 ? file : -1;
  });
  expect_refused(sealed);
  expect_refused(Holder([] { return memfd("clew-arena", 0); }));  // Never to be sealed.
  expect_refused(Holder([] { return memfd("other"); }));
}

TEST(NewFiles, AreOfTheUserOfTheThread) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const Holder holder([] {
    const int file = memfd("clew-arena");
    return setuid(65534) == 0 ? file : -1;
  });
  expect_refused(holder);
}

}  // namespace
}  // namespace clew::inline_
