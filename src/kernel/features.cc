// SPDX-License-Identifier: Apache-2.0
#include "kernel/features.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "isa/program.h"
#include "kernel/attach_functions.h"
#include "kernel/bpf.h"
#include "kernel/link_types.h"
#include "kernel/links.h"

namespace clew::kernel {
namespace {

using isa::Instruction;

constexpr Instruction kReturnZero[] = {{0xB7, 0, 0, 0}, {0x95, 0, 0, 0}};
// r0 = 0 ; may_goto +1 ; r0 = 1 ; exit     (Linux 6.12 refuses a distance of 0)
constexpr Instruction kOpenLoop[] = {
    {0xB7, 0, 0, 0}, {0xE5, 0, 1, 0}, {0xB7, 0, 0, 1}, {0x95, 0, 0, 0}};
// call bpf_get_attach_cookie ; exit
constexpr Instruction kCookie[] = {{0x85, 0, 0, 174}, {0x95, 0, 0, 0}};

// A descriptor, or -errno.
int64_t try_load(bpf_prog_type type, std::span<const Instruction> code, uint32_t attach_type,
                 uint32_t attach_to) {
  bpf_attr attributes{};
  attributes.prog_type = type;
  attributes.expected_attach_type = attach_type;
  attributes.attach_btf_id = attach_to;
  attributes.insns = address_of(code.data());
  attributes.insn_cnt = static_cast<uint32_t>(code.size());
  attributes.license = address_of("GPL");
  return call_bpf(BPF_PROG_LOAD, &attributes, sizeof attributes);
}

// Not valid when the kernel refuses it.
FileDescriptor load(bpf_prog_type type, std::span<const Instruction> code, uint32_t attach_type,
                    uint32_t attach_to = 0) {
  const int64_t result = try_load(type, code, attach_type, attach_to);
  return result < 0 ? FileDescriptor() : FileDescriptor(static_cast<int>(result));
}

// Of a call that gives a descriptor, which is closed again.
int error_of(int64_t result) {
  if (result < 0) return static_cast<int>(-result);
  const FileDescriptor opened(static_cast<int>(result));
  return 0;
}

// The error of attaching to something that does not exist tells a kernel that looked for it from
// one that does not know such links.
template <typename Link>
int64_t attach_error(const FileDescriptor& program, Link& link) {
  if (!program.valid()) return 0;
  link.program = static_cast<uint32_t>(program.get());
  return -call_bpf(BPF_LINK_CREATE, &link, sizeof link);
}

bool knows_user_probe_multi() {
  const uint64_t offset = 0;
  UserProbeLink link;
  link.path = address_of("/proc/self/no such file");
  link.offsets = address_of(&offset);
  link.count = 1;
  const auto program = load(BPF_PROG_TYPE_KPROBE, kReturnZero, kUserProbeMulti);
  return attach_error(program, link) == ENOENT;
}

bool knows_kernel_probe_multi() {
  const uint64_t name = address_of("clew_has_no_such_function");
  KernelProbeLink link;
  link.names = address_of(&name);
  link.count = 1;
  const auto program = load(BPF_PROG_TYPE_KPROBE, kReturnZero, BPF_TRACE_KPROBE_MULTI);
  const int64_t error = attach_error(program, link);
  return error == ESRCH || error == ENOENT;
}

Features try_all() {
  Features found;
  found.has_open_loops = load(BPF_PROG_TYPE_RAW_TRACEPOINT, kOpenLoop, 0).valid();
  found.has_tracepoint_cookies = load(BPF_PROG_TYPE_RAW_TRACEPOINT, kCookie, 0).valid();
  found.has_user_probe_multi = knows_user_probe_multi();
  found.has_kernel_probe_multi = knows_kernel_probe_multi();
  return found;
}

}  // namespace

bool is_too_old() {
  FunctionTypes types;
  Function any;
  any.name = "any";
  (void)types.add(any);
  const std::vector<uint8_t> bytes = types.finish();
  bpf_attr attributes{};
  attributes.btf = address_of(bytes.data());
  attributes.btf_size = static_cast<uint32_t>(bytes.size());
  return error_of(call_bpf(BPF_BTF_LOAD, &attributes, sizeof attributes)) == EINVAL;
}

const Features& features() {
  static const Features kFeatures = try_all();
  return kFeatures;
}

int error_of_programs() {
  return error_of(try_load(BPF_PROG_TYPE_RAW_TRACEPOINT, kReturnZero, 0, 0));
}

int error_of_user_probes() {
  const Expected<uint32_t> type = event_type("uprobe");
  if (!type) return ENOENT;
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = *type;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.config1 = reinterpret_cast<uint64_t>("");  // The rights are looked at before the path.
  constexpr pid_t kSelf = 0;
  constexpr int kAnyProcessor = -1;
  constexpr int kNoGroup = -1;
  const FileDescriptor event(static_cast<int>(syscall(
      SYS_perf_event_open, &attributes, kSelf, kAnyProcessor, kNoGroup, PERF_FLAG_FD_CLOEXEC)));
  const bool is_about_rights = errno == EACCES || errno == EPERM;
  return !event.valid() && is_about_rights ? errno : 0;
}

int error_of_trampoline(uint32_t function) {
  const int64_t loaded = try_load(BPF_PROG_TYPE_TRACING, kReturnZero, BPF_TRACE_FEXIT, function);
  if (loaded < 0) return error_of(loaded);
  const FileDescriptor program(static_cast<int>(loaded));
  RawTracepointOpen open;
  open.program = static_cast<uint32_t>(program.get());
  return error_of(call_bpf(BPF_RAW_TRACEPOINT_OPEN, &open, offsetof(RawTracepointOpen, cookie)));
}

UntrustedPointers untrusted_pointers(const target::Btf& kernel) {
  const target::BtfId function = kernel.find(target::BtfKind::Function, "bpf_rdonly_cast");
  const target::BtfId type = kernel.find(target::BtfKind::Struct, "timespec64");
  if (function == target::kBtfVoid || type == target::kBtfVoid) return {};
  // r1 = 0 ; r2 = type ; call function ; r0 = *(u32*)r0 ; exit
  const Instruction code[] = {{0xB7, 1, 0, 0},
                              {0xB7, 2, 0, static_cast<int32_t>(type)},
                              {0x85, BPF_PSEUDO_KFUNC_CALL << 4, 0, static_cast<int32_t>(function)},
                              {0x61, 0, 0, 0},
                              {0x95, 0, 0, 0}};
  for (const bpf_prog_type kind : {BPF_PROG_TYPE_TRACEPOINT, BPF_PROG_TYPE_KPROBE}) {
    if (!load(kind, code, 0).valid()) return {};
  }
  return {.function = function, .type = type};
}

bool takes_typed_tracepoint(uint32_t type) {
  return load(BPF_PROG_TYPE_TRACING, kReturnZero, BPF_TRACE_RAW_TP, type).valid();
}

}  // namespace clew::kernel
