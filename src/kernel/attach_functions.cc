// SPDX-License-Identifier: Apache-2.0
#include "kernel/attach_functions.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
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
#include "kernel/features.h"
#include "kernel/links.h"
#include "kernel/probe_suspects.h"

namespace clew::kernel {
namespace {

constexpr uint64_t kReturnProbe = 1;      // Bit 0 of config: format/retprobe of both kinds.
constexpr uint32_t kSemaphoreShift = 32;  // format/ref_ctr_offset of uprobes.
constexpr char kNoFunctions[] = "this kernel lets no program at its functions";

// The kernel refuses the place, and may take another one.
bool is_about_place(int64_t error) {
  return error == EINVAL || error == ENOENT || error == ESRCH || error == EADDRNOTAVAIL ||
         error == EILSEQ || error == EBUSY || error == ERANGE;
}

// 0, or the error.
int attach_event(const FileDescriptor& program, perf_event_attr& attributes, pid_t pid,
                 uint64_t cookie, Attachments& attachments) {
  attributes.size = sizeof attributes;
  const int cpu = pid > 0 ? -1 : 0;
  const int64_t opened =
      syscall(SYS_perf_event_open, &attributes, pid > 0 ? pid : -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (opened < 0) return errno;
  FileDescriptor event(static_cast<int>(opened));
  PerfEventLink link;
  link.program = static_cast<uint32_t>(program.get());
  link.target = static_cast<uint32_t>(event.get());
  link.cookie = cookie;
  const int64_t result = call_bpf(BPF_LINK_CREATE, &link, sizeof link);
  if (result < 0) return static_cast<int>(-result);
  attachments.emplace_back(static_cast<int>(result));
  if (ioctl(event.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return errno;
  attachments.push_back(std::move(event));
  return 0;
}

// Attaches functions of the kernel, and keeps which of them it takes.
class FunctionAttacher {
 public:
  FunctionAttacher(const FileDescriptor& program, bool is_return, Attachments& attachments)
      : program_(program), is_return_(is_return), attachments_(attachments) {}

  [[nodiscard]] const std::set<uint64_t>& attached() const { return attached_; }  // Cookies.
  [[nodiscard]] int64_t error() const { return error_; }

  // All in one link; when one of them is refused, in halves. False when no other try makes sense.
  bool attach_many(std::span<const FunctionAddress> functions) {
    if (functions.empty()) return true;
    const int64_t error = try_many(functions);
    if (error == 0) {
      for (const FunctionAddress& one : functions)
        attached_.insert(one.cookie);
      return true;
    }
    error_ = error;
    if (!is_about_place(error)) return false;
    if (functions.size() == 1) return true;
    const size_t half = functions.size() / 2;
    return attach_many(functions.first(half)) && attach_many(functions.subspan(half));
  }

  bool attach_singly(std::span<const FunctionAddress> functions, uint32_t type) {
    for (const FunctionAddress& one : functions) {
      perf_event_attr attributes{};
      attributes.type = type;
      attributes.config = is_return_ ? kReturnProbe : 0;
      attributes.config2 = one.address;  // With no name in config1.
      const int error = attach_event(program_, attributes, 0, one.cookie, attachments_);
      if (error == 0) attached_.insert(one.cookie);
      if (error != 0) error_ = error;
      if (error != 0 && !is_about_place(error)) return false;
    }
    return true;
  }

 private:
  int64_t try_many(std::span<const FunctionAddress> functions) {
    std::vector<uint64_t> addresses;
    std::vector<uint64_t> cookies;
    for (const FunctionAddress& one : functions) {
      addresses.push_back(one.address);
      cookies.push_back(one.cookie);
    }
    KernelProbeLink link;
    link.program = static_cast<uint32_t>(program_.get());
    link.multi_flags = is_return_ ? kMultiReturn : 0;
    link.count = static_cast<uint32_t>(functions.size());
    link.addresses = address_of(addresses.data());
    link.cookies = address_of(cookies.data());
    const int64_t result = call_bpf(BPF_LINK_CREATE, &link, sizeof link);
    if (result < 0) return -result;
    attachments_.emplace_back(static_cast<int>(result));
    return 0;
  }

  const FileDescriptor& program_;
  bool is_return_;
  Attachments& attachments_;
  std::set<uint64_t> attached_;
  int64_t error_ = 0;
};

std::string names_of(std::span<const FunctionPlace> places) {
  return places.size() == 1
             ? places.front().name
             : fmt::format("{} and {} others", places.front().name, places.size() - 1);
}

}  // namespace

Expected<uint32_t> event_type(const char* kind) {
  const std::string path = fmt::format("/sys/bus/event_source/devices/{}/type", kind);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[16] = {};
  uint32_t type = 0;
  const ssize_t got = file.valid() ? ::read(file.get(), text, sizeof text) : -1;
  if (got <= 0 || std::from_chars(text, text + got, type).ec != std::errc()) {
    return fail(ErrorCode::Refused, fmt::format("this kernel has no {} events", kind));
  }
  return type;
}

Expected<void> may_attach_functions() {
  if (features().has_kernel_probe_multi) return {};
  const Expected<uint32_t> type = event_type("kprobe");
  if (type) return {};
  return fail(type.error().code, fmt::format("{}: {}", kNoFunctions, type.error().message));
}

Expected<std::vector<uint64_t>> attach_functions(const FileDescriptor& program,
                                                 const FunctionAttach& how,
                                                 std::span<const FunctionPlace> places,
                                                 Attachments& attachments) {
  const std::vector<FunctionAddress> functions = CLEW_TRY(find_functions(places));
  if (functions.empty()) {
    return fail(ErrorCode::Refused,
                fmt::format("{}: the kernel lists no such function as traceable (tracefs: "
                            "available_filter_functions)",
                            names_of(places)));
  }
  FunctionAttacher attacher(program, how.is_return, attachments);
  bool is_possible = true;
  if (features().has_kernel_probe_multi && !how.is_single) {
    is_possible = attacher.attach_many(functions);
  } else {
    if (const auto may = may_attach_functions(); !may) {
      return fail(may.error().code, fmt::format("{}: {}", names_of(places), may.error().message));
    }
    is_possible = attacher.attach_singly(functions, CLEW_TRY(event_type("kprobe")));
  }
  if (is_possible && !attacher.attached().empty()) {
    std::vector<uint64_t> left_out;
    for (const FunctionPlace& one : places) {
      if (!attacher.attached().contains(one.cookie)) left_out.push_back(one.cookie);
    }
    return left_out;
  }
  const std::string reason = bpf_error(static_cast<int>(attacher.error()));
  return fail(ErrorCode::Refused,
              is_possible ? fmt::format("{}: the kernel does not let it be probed: {}",
                                        names_of(places), reason)
                          : fmt::format("{}: {}: {}", names_of(places), kNoFunctions, reason));
}

Expected<FileDescriptor> attach_trampoline(const FileDescriptor& program,
                                           const std::string& function) {
  RawTracepointOpen open;
  open.program = static_cast<uint32_t>(program.get());
  const int64_t result =
      call_bpf(BPF_RAW_TRACEPOINT_OPEN, &open, offsetof(RawTracepointOpen, cookie));
  if (result >= 0) return FileDescriptor(static_cast<int>(result));
  return fail(ErrorCode::Refused,
              fmt::format("{}: {}: attaching to its return with its arguments (fexit): {}",
                          function, kNoFunctions, bpf_error(static_cast<int>(-result))));
}

Expected<std::vector<uint64_t>> attach_user_singly(const FileDescriptor& program,
                                                   const UserPlaces& places,
                                                   Attachments& attachments) {
  const uint32_t type = CLEW_TRY(event_type("uprobe"));
  const FileDescriptor file(open(places.path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<uint64_t> left_out;
  for (const UserPlace& one : places.places) {
    const auto code = read_instruction(file, one.offset_bytes);
    if (code && is_misread(*code)) {
      left_out.push_back(one.cookie);
      continue;
    }
    perf_event_attr attributes{};
    attributes.type = type;
    attributes.config = (places.is_return ? kReturnProbe : 0) | one.semaphore_offset_bytes
                                                                    << kSemaphoreShift;
    attributes.config1 = address_of(places.path.c_str());
    attributes.config2 = one.offset_bytes;
    const int error =
        attach_event(program, attributes, static_cast<pid_t>(places.pid), one.cookie, attachments);
    if (is_about_instruction(error)) {
      left_out.push_back(one.cookie);
    } else if (error != 0) {
      return fail(error == ENOENT ? ErrorCode::NotFound : ErrorCode::Refused,
                  fmt::format("attaching to {:#x} of {}: {}", one.offset_bytes, places.path,
                              bpf_error(error)));
    }
  }
  return left_out;
}

}  // namespace clew::kernel
