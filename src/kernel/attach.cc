// SPDX-License-Identifier: Apache-2.0
#include "kernel/attach.h"

#include <algorithm>
#include <cerrno>
#include <future>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "kernel/bpf.h"
#include "kernel/links.h"
#include "kernel/probe_suspects.h"
#include "target/process.h"
#include "target/side_work.h"

namespace clew::kernel {
namespace {

auto refuse(const std::string& what, int64_t result) {
  const auto error = static_cast<int>(-result);
  const ErrorCode code =
      error == ENOENT || error == ESRCH ? ErrorCode::NotFound : ErrorCode::Refused;
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

Expected<void> link_event(const FileDescriptor& program, FileDescriptor event, uint64_t cookie,
                          const std::string& what, Attachments& attachments) {
  PerfEventLink link;
  link.program = static_cast<uint32_t>(program.get());
  link.target = static_cast<uint32_t>(event.get());
  link.cookie = cookie;
  const int64_t result = call_bpf(BPF_LINK_CREATE, &link, sizeof link);
  if (result < 0) return refuse(fmt::format("attaching to {}", what), result);
  attachments.emplace_back(static_cast<int>(result));
  if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return refuse(fmt::format("starting {}", what), -errno);
  }
  attachments.push_back(std::move(event));
  return {};
}

// A link takes all of its places or none, and does not say which one it minds. Each attempt that
// fails, and the end of each link, waits for all that the kernel's programs do at the time. So the
// classes of instructions that may be refused are tried all at once, each on its own, and what is
// left goes into one link; the links of those that were not refused stay. Should that fail, it is
// halved, and the halves that succeed stay.
class UserAttacher {
 public:
  UserAttacher(const FileDescriptor& program, const UserPlaces& places)
      : program_(program), places_(places) {}
  UserAttacher(const UserAttacher&) = delete;
  UserAttacher& operator=(const UserAttacher&) = delete;
  ~UserAttacher() { end_uprobes(links_); }

  Expected<void> attach() {
    classify();
    const std::set<InstructionClass> refused = refused_classes();
    for (size_t i = 0; i < places_.places.size(); ++i) {
      const UserPlace& one = places_.places[i];
      if (is_linked_[i]) continue;
      if (is_misread_[i] || (classes_[i] && refused.count(*classes_[i]) != 0)) {
        refused_.push_back(one.cookie);
        continue;
      }
      offsets_.push_back(one.offset_bytes);
      semaphores_.push_back(one.semaphore_offset_bytes);
      cookies_.push_back(one.cookie);
    }
    return offsets_.empty() ? Expected<void>() : link_all();
  }

  std::vector<uint64_t> finish(Attachments& attachments) {
    std::move(links_.begin(), links_.end(), std::back_inserter(attachments));
    links_.clear();
    return std::move(refused_);
  }

 private:
  struct Range {
    size_t begin = 0;
    size_t count = 0;
  };

  // One place of each class is tried; a few places are tried together, as most will do.
  std::set<InstructionClass> refused_classes() {
    constexpr size_t kFew = 8;
    constexpr size_t kTriesAtOnce = 32;
    if (places_.places.size() <= kFew) return {};
    std::map<InstructionClass, size_t> examples;
    for (size_t i = 0; i < classes_.size(); ++i) {
      if (classes_[i] && !is_misread_[i]) examples.try_emplace(*classes_[i], i);
    }
    std::set<InstructionClass> refused;
    for (auto next = examples.begin(); next != examples.end();) {
      std::vector<std::future<int64_t>> links;
      auto tried = next;
      for (; next != examples.end() && links.size() < kTriesAtOnce; ++next)
        links.push_back(target::start_beside([this, i = next->second] { return link_place(i); }));
      for (std::future<int64_t>& link : links) {
        const auto& [instruction, place] = *tried++;
        const int64_t result = link.get();
        if (is_about_instruction(-result)) refused.insert(instruction);
        if (result < 0) continue;
        links_.emplace_back(static_cast<int>(result));
        is_linked_[place] = true;
      }
    }
    return refused;
  }

  void classify() {
    const FileDescriptor file(open(places_.path.c_str(), O_RDONLY | O_CLOEXEC));
    for (const UserPlace& one : places_.places) {
      const auto code = read_instruction(file, one.offset_bytes);
      classes_.push_back(code ? suspect_class(*code) : std::nullopt);
      is_misread_.push_back(code && is_misread(*code));
    }
    is_linked_.resize(places_.places.size());
  }

  Expected<void> link_all() {
    std::vector<Range> open = {{0, offsets_.size()}};
    while (!open.empty()) {
      const Range range = open.back();
      open.pop_back();
      const int64_t result = link(range);
      if (result >= 0) {
        links_.emplace_back(static_cast<int>(result));
      } else if (!is_about_instruction(-result)) {
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

  [[nodiscard]] int64_t link_place(size_t i) const {
    const UserPlace& place = places_.places[i];
    const uint64_t* const semaphore =
        place.semaphore_offset_bytes == 0 ? nullptr : &place.semaphore_offset_bytes;
    return link(&place.offset_bytes, semaphore, &place.cookie, 1);
  }

  [[nodiscard]] int64_t link(const Range& range) const {
    const auto first = semaphores_.begin() + static_cast<ptrdiff_t>(range.begin);
    const bool has_semaphores = std::any_of(first, first + static_cast<ptrdiff_t>(range.count),
                                            [](uint64_t semaphore) { return semaphore != 0; });
    return link(offsets_.data() + range.begin,
                has_semaphores ? semaphores_.data() + range.begin : nullptr,
                cookies_.data() + range.begin, range.count);
  }

  // The link's descriptor, or -errno.
  [[nodiscard]] int64_t link(const uint64_t* offsets, const uint64_t* semaphores,
                             const uint64_t* cookies, size_t count) const {
    UserProbeLink link;
    link.program = static_cast<uint32_t>(program_.get());
    link.path = address_of(places_.path.c_str());
    link.offsets = address_of(offsets);
    link.semaphores = address_of(semaphores);
    link.cookies = address_of(cookies);
    link.count = static_cast<uint32_t>(count);
    link.multi_flags = places_.is_return ? kMultiReturn : 0;
    link.pid = static_cast<uint32_t>(places_.pid);
    return create_link(&link, sizeof link);
  }

  const FileDescriptor& program_;
  const UserPlaces& places_;
  std::vector<std::optional<InstructionClass>> classes_;  // By place,
  std::vector<bool> is_misread_;                          // as is this,
  std::vector<bool> is_linked_;                           // and this.
  std::vector<uint64_t> offsets_;                         // Of what is left,
  std::vector<uint64_t> semaphores_;                      // and the rest of it.
  std::vector<uint64_t> cookies_;
  Attachments links_;
  std::vector<uint64_t> refused_;
};

Expected<void> attach_clock_on(const FileDescriptor& program, int cpu, const Probe& probe,
                               uint64_t cookie, Attachments& attachments) {
  FileDescriptor event = CLEW_TRY(open_clock(cpu, probe.period_ns));
  return link_event(program, std::move(event), cookie, fmt::format("the clock of CPU {}", cpu),
                    attachments);
}

Expected<FileDescriptor> open_tracepoint(RawTracepointOpen& open, const std::string& tracepoint) {
  const size_t size = open.cookie == 0 ? offsetof(RawTracepointOpen, cookie) : sizeof open;
  const int64_t result = call_bpf(BPF_RAW_TRACEPOINT_OPEN, &open, size);
  if (result < 0) return refuse(fmt::format("attaching to the tracepoint {}", tracepoint), result);
  return FileDescriptor(static_cast<int>(result));
}

}  // namespace

Expected<FileDescriptor> attach_typed_tracepoint(const FileDescriptor& program,
                                                 const std::string& tracepoint) {
  RawTracepointOpen open;
  open.program = static_cast<uint32_t>(program.get());
  return open_tracepoint(open, tracepoint);
}

Expected<FileDescriptor> attach_raw_tracepoint(const FileDescriptor& program,
                                               const std::string& tracepoint, uint64_t cookie) {
  RawTracepointOpen open;
  open.name = address_of(tracepoint.c_str());
  open.program = static_cast<uint32_t>(program.get());
  open.cookie = cookie;
  return open_tracepoint(open, tracepoint);
}

Expected<void> attach_clock(const FileDescriptor& program, const ClockPlace& place, uint64_t cookie,
                            Attachments& attachments) {
  if (place.only_cpu) {
    const auto cpu = static_cast<int>(*place.only_cpu);
    return attach_clock_on(program, cpu, place.probe, cookie, attachments);
  }
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    Expected<void> done = attach_clock_on(program, cpu, place.probe, cookie, attachments);
    const bool is_offline = !done && errno == ENODEV;
    if (!done && !is_offline) return done;
    if (done && place.probe.kind == AttachKind::Tick) return {};
  }
  return {};
}

// The kernel runs the programs of a trace event before it looks at which CPU wants it.
Expected<void> attach_trace_event(const FileDescriptor& program, const Probe& probe,
                                  uint64_t cookie, Attachments& attachments) {
  const std::string what = fmt::format("the tracepoint {}:{}", probe.function, probe.name);
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = probe.number;
  attributes.disabled = 1;
  const int64_t result = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
  if (result < 0) return refuse(fmt::format("opening {}", what), -errno);
  return link_event(program, FileDescriptor(static_cast<int>(result)), cookie, what, attachments);
}

Expected<std::vector<uint64_t>> attach_user(const FileDescriptor& program, const UserPlaces& places,
                                            Attachments& attachments) {
  // The kernel (6.18) compares memory with that of the first thread, and sets them nowhere.
  const auto pid = static_cast<pid_t>(places.pid);
  if (pid != 0 && target::memory_holder(pid) != pid) {
    return fail(ErrorCode::Refused,
                fmt::format("process {}: its first thread has ended, and the kernel knows a "
                            "process's uprobes by that one",
                            pid));
  }
  UserAttacher attacher(program, places);
  CLEW_TRY(attacher.attach());
  return attacher.finish(attachments);
}

}  // namespace clew::kernel
