// SPDX-License-Identifier: Apache-2.0
#include "kernel/attach.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "kernel/bpf.h"
#include "kernel/links.h"

namespace clew::kernel {
namespace {

auto refuse(const std::string& what, int64_t result) {
  const auto error = static_cast<int>(-result);
  const ErrorCode code = error == ENOENT ? ErrorCode::NotFound : ErrorCode::Refused;
  return fail(code, fmt::format("{}: {}", what, bpf_error(error)));
}

Expected<FileDescriptor> open_clock(int cpu, uint64_t period_ns) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = period_ns;
  attributes.disabled = 1;
  const int64_t result =
      syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (result < 0) return refuse(fmt::format("opening the clock of CPU {}", cpu), -errno);
  return FileDescriptor(static_cast<int>(result));
}

Expected<void> attach_clock_on(const FileDescriptor& program, int cpu, const Probe& probe,
                               uint64_t cookie, Attachments& attachments) {
  FileDescriptor event = CLEW_TRY(open_clock(cpu, probe.period_ns));
  PerfEventLink link;
  link.program = static_cast<uint32_t>(program.get());
  link.target = static_cast<uint32_t>(event.get());
  link.cookie = cookie;
  const int64_t result = call_bpf(BPF_LINK_CREATE, &link, sizeof link);
  if (result < 0) return refuse(fmt::format("attaching to the clock of CPU {}", cpu), result);
  attachments.emplace_back(static_cast<int>(result));
  if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return refuse(fmt::format("starting the clock of CPU {}", cpu), -errno);
  }
  attachments.push_back(std::move(event));
  return {};
}

}  // namespace

Expected<FileDescriptor> attach_raw_tracepoint(const FileDescriptor& program,
                                               const std::string& tracepoint, uint64_t cookie) {
  RawTracepointOpen open;
  open.name = address_of(tracepoint.c_str());
  open.program = static_cast<uint32_t>(program.get());
  open.cookie = cookie;
  const size_t size = cookie == 0 ? offsetof(RawTracepointOpen, cookie) : sizeof open;
  const int64_t result = call_bpf(BPF_RAW_TRACEPOINT_OPEN, &open, size);
  if (result < 0) return refuse(fmt::format("attaching to the tracepoint {}", tracepoint), result);
  return FileDescriptor(static_cast<int>(result));
}

Expected<void> attach_clock(const FileDescriptor& program, const Probe& probe, uint64_t cookie,
                            Attachments& attachments) {
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    Expected<void> done = attach_clock_on(program, cpu, probe, cookie, attachments);
    const bool is_offline = !done && errno == ENODEV;
    if (!done && !is_offline) return done;
    if (done && probe.kind == AttachKind::Tick) return {};
  }
  return {};
}

Expected<FileDescriptor> attach_user(const FileDescriptor& program, const UserPlaces& places) {
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> semaphores;
  std::vector<uint64_t> cookies;
  bool has_semaphores = false;
  for (const UserPlace& one : places.places) {
    offsets.push_back(one.offset_bytes);
    semaphores.push_back(one.semaphore_offset_bytes);
    cookies.push_back(one.cookie);
    has_semaphores = has_semaphores || one.semaphore_offset_bytes != 0;
  }
  UserProbeLink link;
  link.program = static_cast<uint32_t>(program.get());
  link.path = address_of(places.path.c_str());
  link.offsets = address_of(offsets.data());
  link.semaphores = has_semaphores ? address_of(semaphores.data()) : 0;
  link.cookies = address_of(cookies.data());
  link.count = static_cast<uint32_t>(offsets.size());
  link.multi_flags = places.is_return ? kMultiReturn : 0;
  link.pid = static_cast<uint32_t>(places.pid);
  const int64_t result = call_bpf(BPF_LINK_CREATE, &link, sizeof link);
  if (result < 0) {
    return refuse(fmt::format("attaching to {} places of {}", offsets.size(), places.path), result);
  }
  return FileDescriptor(static_cast<int>(result));
}

}  // namespace clew::kernel
