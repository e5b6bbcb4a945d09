// SPDX-License-Identifier: Apache-2.0
#include "kernel/perf_buffer.h"

#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/page.h"

namespace clew::kernel {

Expected<PerfBuffer> PerfBuffer::open(perf_event_attr attributes, int cpu, size_t data_bytes,
                                      std::string_view what) {
  constexpr int kAllProcesses = -1;
  constexpr int kNoGroup = -1;
  attributes.size = sizeof attributes;
  const int64_t result =
      syscall(SYS_perf_event_open, &attributes, kAllProcesses, cpu, kNoGroup, PERF_FLAG_FD_CLOEXEC);
  if (result < 0) {
    return fail(errno == ENODEV ? ErrorCode::NotFound : ErrorCode::Refused,
                fmt::format("opening the {} of CPU {}: {}", what, cpu, error_text(errno)));
  }
  FileDescriptor event(static_cast<int>(result));
  Mapping memory = CLEW_TRY(Mapping::make(event, kPage + data_bytes, true));
  return PerfBuffer(std::move(event), std::move(memory), data_bytes);
}

bool PerfBuffer::read(const Take& take) const {
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(memory_.data());
  const uint8_t* data = memory_.data() + kPage;
  const uint64_t head = __atomic_load_n(&page.data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = page.data_tail;
  bool is_whole = true;
  std::vector<uint8_t> record;
  while (tail + sizeof(perf_event_header) <= head) {
    const auto byte = [&](uint64_t at) { return data[at & (data_bytes_ - 1)]; };
    perf_event_header header{};
    for (size_t i = 0; i < sizeof header; ++i)
      reinterpret_cast<uint8_t*>(&header)[i] = byte(tail + i);
    if (header.size < sizeof header || header.size > head - tail) {
      is_whole = false;
      tail = head;
      break;
    }
    record.resize(header.size - sizeof header);
    for (size_t i = 0; i < record.size(); ++i)
      record[i] = byte(tail + sizeof header + i);
    tail += header.size;
    take(header, record);
  }
  __atomic_store_n(&page.data_tail, tail, __ATOMIC_RELEASE);
  return is_whole;
}

}  // namespace clew::kernel
