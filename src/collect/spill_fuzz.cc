// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of spill files. The checksums of each frame are repaired first, else no input
// would get past them; byte 0 says whether.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/file_descriptor.h"
#include "collect/crc32c.h"
#include "collect/spill.h"

namespace {

using clew::collect::crc32c;
using clew::collect::SpillReader;

constexpr size_t kHeaderBytes = 24;

void repair(std::vector<std::byte>& bytes) {
  size_t at = 0;
  while (bytes.size() - at >= kHeaderBytes) {
    uint64_t size = 0;
    std::memcpy(&size, &bytes[at + 8], 8);
    size &= 0xFFFF;
    std::memcpy(&bytes[at + 8], &size, 8);
    std::memcpy(&bytes[at], "CLWF", 4);
    const size_t rest = bytes.size() - at - kHeaderBytes;
    const std::span payload(bytes.data() + at + kHeaderBytes, size < rest ? size : rest);
    const uint32_t payload_crc = crc32c(payload);
    std::memcpy(&bytes[at + 16], &payload_crc, 4);
    const uint32_t header_crc = crc32c(std::span(bytes).subspan(at, 20));
    std::memcpy(&bytes[at + 20], &header_crc, 4);
    at += kHeaderBytes + payload.size();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first + 1, first + size);
  if (data[0] != 0) repair(bytes);
  const clew::FileDescriptor file(memfd_create("spill", MFD_CLOEXEC));
  CLEW_ASSERT(write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  auto reader = SpillReader::open("/proc/self/fd/" + std::to_string(file.get()));
  if (!reader) return 0;
  while (true) {
    const auto round = reader->next();
    if (!round || !*round) return 0;
  }
}
