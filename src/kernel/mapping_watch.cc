// SPDX-License-Identifier: Apache-2.0
#include "kernel/mapping_watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::kernel {
namespace {

constexpr size_t kRingBytes = size_t{64} << 10;

// PERF_RECORD_MMAP2 in <linux/perf_event.h>, without the name at its end.
struct MappingRecord {
  perf_event_header header;
  uint32_t pid;
  uint32_t tid;
  uint64_t address;
  uint64_t size_bytes;
  uint64_t file_offset;
  uint32_t device_major;
  uint32_t device_minor;
  uint64_t inode;
  uint64_t inode_generation;
  uint32_t protection;
  uint32_t flags;
};
static_assert(sizeof(MappingRecord) == 72);

struct LostRecord {
  perf_event_header header;
  uint64_t id;
  uint64_t count;
};

size_t page_bytes() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// An event that never counts, but brings records of mappings.
Expected<FileDescriptor> open_event(int cpu) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 1;
  const int64_t result =
      syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (result < 0) {
    return fail(errno == ENODEV ? ErrorCode::NotFound : ErrorCode::Refused,
                fmt::format("watching the mappings of processes: {}", error_text(errno)));
  }
  return FileDescriptor(static_cast<int>(result));
}

// The data of a ring from `place` on, around its end.
void copy_out(const Mapping& ring, uint64_t place, void* to, size_t size_bytes) {
  const uint8_t* data = ring.data() + page_bytes();
  const size_t begin = place & (kRingBytes - 1);
  const size_t first = std::min(size_bytes, kRingBytes - begin);
  std::memcpy(to, data + begin, first);
  std::memcpy(static_cast<uint8_t*>(to) + first, data, size_bytes - first);
}

MappedFile file_of(const Mapping& ring, uint64_t place, size_t size_bytes) {
  MappingRecord record{};
  copy_out(ring, place, &record, sizeof record);
  MappedFile file{.pid = static_cast<pid_t>(record.pid),
                  .device_major = record.device_major,
                  .device_minor = record.device_minor,
                  .inode = record.inode};
  file.path.resize(size_bytes - sizeof record);
  copy_out(ring, place + sizeof record, file.path.data(), file.path.size());
  file.path.resize(strnlen(file.path.data(), file.path.size()));  // It is padded with NULs.
  return file;
}

}  // namespace

Expected<MappingWatch> MappingWatch::start() {
  MappingWatch watch;
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto event = open_event(cpu);
    if (!event && event.error().code == ErrorCode::NotFound) continue;  // It is offline.
    if (!event) return tl::unexpected(event.error());
    Mapping ring = CLEW_TRY(Mapping::make(*event, page_bytes() + kRingBytes, true));
    watch.cpus_.push_back({std::move(*event), std::move(ring)});
  }
  return watch;
}

std::vector<int> MappingWatch::descriptors() const {
  std::vector<int> descriptors;
  descriptors.reserve(cpus_.size());
  for (const Cpu& cpu : cpus_)
    descriptors.push_back(cpu.event.get());
  return descriptors;
}

uint64_t MappingWatch::read(const std::function<void(const MappedFile&)>& take) {
  uint64_t lost = 0;
  for (const Cpu& cpu : cpus_) {
    auto& page = *reinterpret_cast<perf_event_mmap_page*>(cpu.ring.data());
    const uint64_t end = __atomic_load_n(&page.data_head, __ATOMIC_ACQUIRE);
    uint64_t place = page.data_tail;
    while (place + sizeof(perf_event_header) <= end) {
      perf_event_header header{};
      copy_out(cpu.ring, place, &header, sizeof header);
      if (header.size < sizeof header) break;
      if (header.type == PERF_RECORD_MMAP2 && header.size >= sizeof(MappingRecord)) {
        take(file_of(cpu.ring, place, header.size));
      } else if (header.type == PERF_RECORD_LOST && header.size >= sizeof(LostRecord)) {
        LostRecord record{};
        copy_out(cpu.ring, place, &record, sizeof record);
        lost += record.count;
      }
      place += header.size;
    }
    __atomic_store_n(&page.data_tail, place, __ATOMIC_RELEASE);
  }
  return lost;
}

}  // namespace clew::kernel
