// SPDX-License-Identifier: Apache-2.0
// The structs of bpf(2) are written out here where they are newer than Debian 12's <linux/bpf.h>.
#include "kernel/attach.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "kernel/bpf.h"

namespace clew::kernel {
namespace {

constexpr uint32_t kUserProbeMulti = 48;  // BPF_TRACE_UPROBE_MULTI, Linux 6.6
constexpr uint32_t kMultiReturn = 1;      // BPF_F_UPROBE_MULTI_RETURN

// bpf_attr::raw_tracepoint; the cookie came with Linux 6.10.
struct RawTracepointOpen {
  uint64_t name = 0;
  uint32_t program = 0;
  uint32_t reserved = 0;
  uint64_t cookie = 0;
};

// bpf_attr::link_create for uprobe_multi.
struct UserProbeLink {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = kUserProbeMulti;
  uint32_t flags = 0;
  uint64_t path = 0;
  uint64_t offsets = 0;
  uint64_t semaphores = 0;
  uint64_t cookies = 0;
  uint32_t count = 0;
  uint32_t multi_flags = 0;
  uint32_t pid = 0;
  uint32_t reserved = 0;
};

// bpf_attr::link_create for perf_event.
struct PerfEventLink {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = BPF_PERF_EVENT;
  uint32_t flags = 0;
  uint64_t cookie = 0;
};

template <typename Value>
uint64_t address_of(const Value* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

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

// What a uprobe at an instruction that cannot be moved fails with: arch_uprobe_analyze_insn() in
// arch/x86/kernel/uprobes.c. The first is not in <errno.h>.
constexpr int kNotSupported = 524;  // ENOTSUPP

bool is_about_instruction(int64_t result) {
  return result == -kNotSupported || result == -ENOEXEC;
}

// A link takes all of its places or none, and does not say which one it minds. So a link that fails
// is tried again in two halves; those that succeed stay.
class UserAttacher {
 public:
  UserAttacher(const FileDescriptor& program, const UserPlaces& places)
      : program_(program), places_(places) {
    for (const UserPlace& one : places.places) {
      offsets_.push_back(one.offset_bytes);
      semaphores_.push_back(one.semaphore_offset_bytes);
      cookies_.push_back(one.cookie);
    }
  }

  Expected<void> attach() {
    std::vector<Range> open = {{0, offsets_.size()}};
    while (!open.empty()) {
      const Range range = open.back();
      open.pop_back();
      const int64_t result = link(range);
      if (result >= 0) {
        links_.emplace_back(static_cast<int>(result));
      } else if (!is_about_instruction(result)) {
        return refuse(fmt::format("attaching to {} places of {}", offsets_.size(), places_.path),
                      result);
      } else if (range.count == 1) {
        refused_.push_back(cookies_[range.begin]);
      } else {
        const size_t half = range.count / 2;
        open.push_back({range.begin + half, range.count - half});
        open.push_back({range.begin, half});
      }
    }
    return {};
  }

  std::vector<uint64_t> finish(Attachments& attachments) {
    std::move(links_.begin(), links_.end(), std::back_inserter(attachments));
    return std::move(refused_);
  }

 private:
  struct Range {
    size_t begin = 0;
    size_t count = 0;
  };

  // The link's descriptor, or -errno.
  [[nodiscard]] int64_t link(const Range& range) const {
    const auto first = semaphores_.begin() + static_cast<ptrdiff_t>(range.begin);
    const auto end = first + static_cast<ptrdiff_t>(range.count);
    const bool has_semaphores =
        std::any_of(first, end, [](uint64_t semaphore) { return semaphore != 0; });
    UserProbeLink link;
    link.program = static_cast<uint32_t>(program_.get());
    link.path = address_of(places_.path.c_str());
    link.offsets = address_of(offsets_.data() + range.begin);
    link.semaphores = has_semaphores ? address_of(semaphores_.data() + range.begin) : 0;
    link.cookies = address_of(cookies_.data() + range.begin);
    link.count = static_cast<uint32_t>(range.count);
    link.multi_flags = places_.is_return ? kMultiReturn : 0;
    link.pid = static_cast<uint32_t>(places_.pid);
    return call_bpf(BPF_LINK_CREATE, &link, sizeof link);
  }

  const FileDescriptor& program_;
  const UserPlaces& places_;
  std::vector<uint64_t> offsets_;
  std::vector<uint64_t> semaphores_;
  std::vector<uint64_t> cookies_;
  Attachments links_;
  std::vector<uint64_t> refused_;
};

}  // namespace

Expected<FileDescriptor> attach_raw_tracepoint(const FileDescriptor& program,
                                               const std::string& tracepoint, uint64_t cookie) {
  RawTracepointOpen open;
  open.name = address_of(tracepoint.c_str());
  open.program = static_cast<uint32_t>(program.get());
  open.cookie = cookie;
  const int64_t result = call_bpf(BPF_RAW_TRACEPOINT_OPEN, &open, sizeof open);
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

Expected<std::vector<uint64_t>> attach_user(const FileDescriptor& program, const UserPlaces& places,
                                            Attachments& attachments) {
  UserAttacher attacher(program, places);
  CLEW_TRY(attacher.attach());
  return attacher.finish(attachments);
}

}  // namespace clew::kernel
