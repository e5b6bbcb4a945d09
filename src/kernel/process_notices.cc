// SPDX-License-Identifier: Apache-2.0
#include "kernel/process_notices.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>

#include <unistd.h>

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

namespace {

perf_event_attr attributes_of(ProcessNotices::Wanted wanted) {
  using Wanted = ProcessNotices::Wanted;
  perf_event_attr attributes{};
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
  return attributes;
}

}  // namespace

Expected<ProcessNotices> ProcessNotices::open(Wanted wanted) {
  ProcessNotices notices;
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto buffer = PerfBuffer::open(attributes_of(wanted), cpu, kDataBytes, "notices");
    if (!buffer && buffer.error().code == ErrorCode::NotFound) continue;  // It is offline.
    if (!buffer) return tl::unexpected(buffer.error());
    notices.buffers_.push_back(std::move(*buffer));
  }
  return notices;
}

std::vector<int> ProcessNotices::descriptors() const {
  std::vector<int> descriptors;
  descriptors.reserve(buffers_.size());
  for (const PerfBuffer& buffer : buffers_)
    descriptors.push_back(buffer.descriptor());
  return descriptors;
}

std::vector<ProcessNotice> ProcessNotices::read(bool& is_lossy) {
  std::vector<ProcessNotice> notices;
  const auto take = [&](const perf_event_header& header, std::span<const uint8_t> record) {
    is_lossy = is_lossy || header.type == PERF_RECORD_LOST || record.size() < sizeof(uint64_t);
    if (record.size() < sizeof(uint64_t)) return;
    const size_t end = record.size() - sizeof(uint64_t);
    auto notice = notice_of(header, record.first(end));
    if (!notice) return;
    notice->time_ns = value_at<uint64_t>(record, end).value_or(0);
    notices.push_back(std::move(*notice));
  };
  for (const PerfBuffer& buffer : buffers_)
    is_lossy = !buffer.read(take) || is_lossy;
  std::stable_sort(
      notices.begin(), notices.end(),
      [](const ProcessNotice& a, const ProcessNotice& b) { return a.time_ns < b.time_ns; });
  return notices;
}

}  // namespace clew::kernel
