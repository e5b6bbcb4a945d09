// SPDX-License-Identifier: Apache-2.0
// Any bytes, and any blocks behind a right head and with right checksums, are a side file or an
// error; and a side file can be used: nothing of it leads outside of its bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/file_descriptor.h"
#include "recorder/sidecar.h"
#include "target/cache_folder.h"

namespace {

using namespace clew;

constexpr size_t kBlocksMax = 16;

uint64_t size_of(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  CLEW_ASSERT(size >= 0 && lseek(fd, 0, SEEK_SET) == 0);
  return static_cast<uint64_t>(size);
}

// Blocks of the sizes that the first bytes say.
FileDescriptor with_checksums(std::span<const uint8_t> bytes) {
  FileDescriptor file(memfd_create("side", MFD_CLOEXEC));
  target::BlockWriter writer(file.get());
  recorder::SidecarFile::write_head(writer, {});
  for (size_t i = 0; i < kBlocksMax && bytes.size() >= 2; ++i) {
    const auto wanted = static_cast<size_t>(bytes[0] | bytes[1] << 8);
    bytes = bytes.subspan(2);
    const size_t size = std::min(wanted, bytes.size());
    writer.add(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return file;
}

void use(recorder::Installable& module) {
  user_regs_struct registers = {};
  registers.rip = module.copy().address + 5;
  (void)module.cursor_in(registers);
  (void)module.number_from(1000);
  (void)module.move_to(0x555555554000, 0x555565554000);
  CLEW_ASSERT(module.unwind().header <= module.unwind().bytes.size());
  const recorder::HeadPlaces places = {
      .claim = 0x555565550000, .lobes = 0x555575550000, .keeps_self_pointer = true};
  (void)module.write_entries(places, {0x555555554000, 0x555565554000, 0x555566554000});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  const FileDescriptor any(memfd_create("side", MFD_CLOEXEC));
  CLEW_ASSERT(write(any.get(), data, size) == static_cast<ssize_t>(size));
  CLEW_ASSERT(lseek(any.get(), 0, SEEK_SET) == 0);
  (void)recorder::SidecarFile::read(any.get(), size, {});
  const FileDescriptor file = with_checksums(bytes);
  auto module = recorder::SidecarFile::read(file.get(), size_of(file.get()), {});
  if (module) use(*module);
  return 0;
}
