// SPDX-License-Identifier: Apache-2.0
#include "kernel/process_notices.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/page.h"

namespace clew::kernel {
namespace {

constexpr size_t kDataBytes = size_t{1} << 19;  // Of each CPU; a power of 2.
constexpr uint32_t kWakeBytes = 1;              // At once: the process runs on meanwhile.
constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kAnonymous = "//anon";
constexpr uint32_t kProtectExecute = 4;  // PROT_EXEC

// The bodies of records, up to their texts (perf_event_open(2), "MMAP layout"). Behind all of them
// stands the time, as sample_id_all asks for.
struct TaskBody {
  uint32_t pid;
  uint32_t parent;
  uint32_t tid;
  uint32_t parent_tid;
};
struct MapBody {
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
static_assert(sizeof(MapBody) == 64);

template <typename Value>
std::optional<Value> value_at(std::span<const uint8_t> bytes, size_t offset) {
  if (offset > bytes.size() || sizeof(Value) > bytes.size() - offset) return std::nullopt;
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

target::Mapping mapping_of(const MapBody& body, std::string_view path) {
  target::Mapping mapping;
  mapping.start = body.address;
  mapping.end = body.address + body.size_bytes;
  mapping.executable = (body.protection & kProtectExecute) != 0;
  mapping.file_offset = body.file_offset;
  mapping.device_major = body.device_major;
  mapping.device_minor = body.device_minor;
  mapping.inode = body.inode;
  if (path.ends_with(kDeleted)) {
    mapping.is_deleted = true;
    path.remove_suffix(kDeleted.size());
  }
  if (path != kAnonymous) mapping.path = path;
  return mapping;
}

std::optional<ProcessNotice> map_notice(std::span<const uint8_t> body) {
  const auto fixed = value_at<MapBody>(body, 0);
  if (!fixed || fixed->size_bytes == 0) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(body.data() + sizeof(MapBody));
  const std::string_view path(text, strnlen(text, body.size() - sizeof(MapBody)));
  ProcessNotice notice{.kind = ProcessNotice::Kind::Map,
                       .pid = static_cast<pid_t>(fixed->pid),
                       .mapping = mapping_of(*fixed, path)};
  return notice.mapping.executable ? std::optional(std::move(notice)) : std::nullopt;
}

// Of whole processes only: threads come and go unseen.
std::optional<ProcessNotice> task_notice(std::span<const uint8_t> body, bool is_fork) {
  const auto fixed = value_at<TaskBody>(body, 0);
  if (!fixed) return std::nullopt;
  const bool is_thread = is_fork ? fixed->pid == fixed->parent : fixed->pid != fixed->tid;
  if (is_thread) return std::nullopt;
  return ProcessNotice{.kind = is_fork ? ProcessNotice::Kind::Fork : ProcessNotice::Kind::End,
                       .pid = static_cast<pid_t>(fixed->pid),
                       .parent = static_cast<pid_t>(fixed->parent),
                       .mapping = {}};
}

std::optional<ProcessNotice> notice_of(const perf_event_header& header,
                                       std::span<const uint8_t> body) {
  switch (header.type) {
    case PERF_RECORD_MMAP2:
      return map_notice(body);
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
      return task_notice(body, header.type == PERF_RECORD_FORK);
    case PERF_RECORD_COMM: {
      const auto pid = value_at<uint32_t>(body, 0);
      constexpr size_t kNameOffset = 8;  // Behind pid and tid.
      const bool is_exec = (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      if (!is_exec || !pid || body.size() < kNameOffset) return std::nullopt;
      const auto* name = reinterpret_cast<const char*>(body.data() + kNameOffset);
      return ProcessNotice{.kind = ProcessNotice::Kind::Exec,
                           .pid = static_cast<pid_t>(*pid),
                           .mapping = {},
                           .name = {name, strnlen(name, body.size() - kNameOffset)}};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

Expected<ProcessNotices::Buffer> ProcessNotices::open_buffer(int cpu, Wanted wanted) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.sample_type = PERF_SAMPLE_TIME;
  attributes.sample_id_all = 1;
  attributes.mmap = wanted == Wanted::Tasks ? 0 : 1;
  attributes.mmap2 = attributes.mmap;
  attributes.comm = wanted == Wanted::Mappings ? 0 : 1;
  attributes.comm_exec = attributes.comm;
  attributes.task = attributes.comm;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.exclude_kernel = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = kWakeBytes;
  const int64_t result =
      syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (result < 0) {
    return fail(errno == ENODEV ? ErrorCode::NotFound : ErrorCode::Refused,
                fmt::format("opening the notices of CPU {}: {}", cpu, error_text(errno)));
  }
  Buffer buffer;
  buffer.event = FileDescriptor(static_cast<int>(result));
  buffer.memory = CLEW_TRY(Mapping::make(buffer.event, kPage + kDataBytes, true));
  return buffer;
}

Expected<ProcessNotices> ProcessNotices::open(Wanted wanted) {
  ProcessNotices notices;
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto buffer = open_buffer(cpu, wanted);
    if (!buffer && buffer.error().code == ErrorCode::NotFound) continue;  // It is offline.
    if (!buffer) return tl::unexpected(buffer.error());
    notices.buffers_.push_back(std::move(*buffer));
  }
  return notices;
}

std::vector<int> ProcessNotices::descriptors() const {
  std::vector<int> descriptors;
  descriptors.reserve(buffers_.size());
  for (const Buffer& buffer : buffers_)
    descriptors.push_back(buffer.event.get());
  return descriptors;
}

void ProcessNotices::read_buffer(const Buffer& buffer, std::vector<ProcessNotice>& notices,
                                 bool& is_lossy) {
  auto& page = *reinterpret_cast<perf_event_mmap_page*>(buffer.memory.data());
  const uint8_t* data = buffer.memory.data() + kPage;
  const uint64_t head = __atomic_load_n(&page.data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = page.data_tail;
  std::vector<uint8_t> record;
  while (tail + sizeof(perf_event_header) <= head) {
    const auto byte = [&](uint64_t at) { return data[at & (kDataBytes - 1)]; };
    perf_event_header header{};
    for (size_t i = 0; i < sizeof header; ++i)
      reinterpret_cast<uint8_t*>(&header)[i] = byte(tail + i);
    if (header.size < sizeof header + sizeof(uint64_t) || header.size > head - tail) {
      is_lossy = true;
      tail = head;
      break;
    }
    record.resize(header.size - sizeof header);
    for (size_t i = 0; i < record.size(); ++i)
      record[i] = byte(tail + sizeof header + i);
    tail += header.size;
    is_lossy = is_lossy || header.type == PERF_RECORD_LOST;
    const size_t end = record.size() - sizeof(uint64_t);
    auto notice = notice_of(header, std::span(record).first(end));
    if (!notice) continue;
    notice->time_ns = value_at<uint64_t>(record, end).value_or(0);
    notices.push_back(std::move(*notice));
  }
  __atomic_store_n(&page.data_tail, tail, __ATOMIC_RELEASE);
}

std::vector<ProcessNotice> ProcessNotices::read(bool& is_lossy) {
  std::vector<ProcessNotice> notices;
  for (const Buffer& buffer : buffers_)
    read_buffer(buffer, notices, is_lossy);
  std::stable_sort(
      notices.begin(), notices.end(),
      [](const ProcessNotice& a, const ProcessNotice& b) { return a.time_ns < b.time_ns; });
  return notices;
}

}  // namespace clew::kernel
