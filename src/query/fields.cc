// SPDX-License-Identifier: Apache-2.0
#include "query/fields.h"

#include <array>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/arithmetic.h"
#include "query/token.h"

namespace clew::query {
namespace {

constexpr uint32_t bit(SourceKind kind) {
  return 1U << static_cast<unsigned>(kind);
}

constexpr uint32_t kRecording = bit(SourceKind::Recording);
// Their events happen now.
constexpr uint32_t kLive = ~kRecording;
constexpr uint32_t kTracer = bit(SourceKind::Tick) | bit(SourceKind::Begin) | bit(SourceKind::End);
constexpr uint32_t kThread = kLive & ~kTracer;
constexpr uint32_t kIdentity = kThread | kRecording;
constexpr uint32_t kExit = bit(SourceKind::Return) | bit(SourceKind::Exception) |
                           bit(SourceKind::SyscallReturn) | bit(SourceKind::KernelReturn);
constexpr uint32_t kReturn = kExit & ~bit(SourceKind::Exception);
constexpr uint32_t kPlace = kIdentity & ~bit(SourceKind::Profile);
constexpr uint32_t kArguments = kThread & ~kExit;
constexpr uint32_t kOfKernel = bit(SourceKind::Kernel) | bit(SourceKind::KernelReturn) |
                               bit(SourceKind::Syscall) | bit(SourceKind::SyscallReturn) |
                               bit(SourceKind::Tracepoint) | bit(SourceKind::Profile);
constexpr uint32_t kCall = bit(SourceKind::Entry) | bit(SourceKind::Return) |
                           bit(SourceKind::Exception) | bit(SourceKind::Kernel);

constexpr Type kStack{.kind = TypeKind::Stack,
                      .size_bytes = 0,
                      .is_signed = false,
                      .capacity_bytes = 8 * kStackFramesDefault};
constexpr Type kSymbol{.kind = TypeKind::Symbol, .is_signed = false};

constexpr Type string_of(uint16_t capacity_bytes) {
  return {.kind = TypeKind::String,
          .size_bytes = 0,
          .is_signed = false,
          .capacity_bytes = capacity_bytes};
}

constexpr std::array<FieldInfo, 24> kFields = {{
    {"time",
     Field::Time,
     {.unit = Unit::Timestamp},
     "every source but recordings",
     kLive,
     "when it happened, in ns of the monotonic clock; answers show the time of the day"},
    {"pid", Field::Pid, kInt32, "process and kernel sources", kIdentity, "the process"},
    {"tid", Field::Tid, kInt32, "process and kernel sources", kIdentity, "the thread"},
    {"cpu", Field::Cpu, kInt32, "process and kernel sources", kThread, "the processor"},
    // TASK_COMM_LEN of the Linux kernel.
    {"comm", Field::Comm, string_of(16), "process and kernel sources", kThread,
     "the thread's name"},
    {"procName", Field::ProcName, string_of(64), "process and kernel sources", kIdentity,
     "the file name by which the process's program was started"},
    {"host", Field::Host, string_of(64), "every source but recordings", kLive,
     "the machine's name"},
    {"function", Field::Function, string_of(256), "process and kernel sources but profile", kPlace,
     "the traced function's plain demangled name"},
    {"module", Field::Module, string_of(64), "process and kernel sources but profile", kPlace,
     "the file that holds the traced function"},
    {"probe", Field::Probe, string_of(256), "every source", ~0U,
     "the source or tracepoint, as the query names it"},
    {"caller", Field::Caller, kSymbol, "entry, return, exception, kernel", kCall,
     "where the traced function was called from"},
    {"stack", Field::Stack, kStack, "process and kernel sources", kThread,
     "the call stack of the side where the event is: ustack in a process, kstack in the kernel"},
    {"ustack", Field::UserStack, kStack, "process and kernel sources", kThread,
     "the call stack of the program, 64 frames at most; ustack(n): n frames, up to 200"},
    {"kstack", Field::KernelStack, kStack, "kernel sources", kOfKernel,
     "the call stack of the kernel, as many frames"},
    {"arg", Field::Argument, kInt64, "entry, offset, line, usdt, syscall, kernel", kArguments,
     "arg0 to arg15: an argument, with its type where debug information has it, else 8 raw bytes"},
    {"retval", Field::ReturnValue, kInt64, "return, syscall_return, kernel_return", kReturn,
     "the return value, with its type where debug information has it, else 8 raw bytes; xmm0, "
     "xmm0f: the double or float that is returned"},
    {"elapsed",
     Field::Elapsed,
     {.unit = Unit::Nanoseconds},
     "return, exception, syscall_return, kernel_return",
     kExit,
     "ns since the entry of the same call"},
    {"entry.arg", Field::EntryArgument, kInt64, "return, exception, syscall_return, kernel_return",
     kExit, "entry.arg0 to entry.arg15: the argument as it was at the entry of the same call"},
    {"nodename", Field::NodeName, string_of(64), "process and kernel sources", kThread,
     "the machine's name as the process sees it: of its container, as uname -n there says"},
    {"container", Field::Container, string_of(128), "process and kernel sources", kThread,
     "the container that the process is in, by its name, else 12 digits of its id; empty: none"},
    {"unit", Field::Unit, string_of(256), "process and kernel sources", kThread,
     "the service or scope of systemd that the process is of; empty: none"},
    {"cgroup", Field::ControlGroup, string_of(256), "process and kernel sources", kThread,
     "the path of the process's control group"},
    {"user", Field::User, string_of(64), "process and kernel sources", kThread,
     "whom the process may act as, by the name that this machine has for the uid"},
    {"uid", Field::Uid, kUint32, "process and kernel sources", kThread,
     "the number of that user: the effective one"},
}};

// What is no field of its own, but a way to name one: numbers and names come behind it.
constexpr std::array<FieldForm, 13> kForms = {{
    {"args.NAME", "its own", "entry, syscall, kernel, tracepoint",
     "an argument by its name, where debug information or the kernel has it, or a field of a "
     "tracepoint's record; also just NAME"},
    {"entry.args.NAME", "its own", "return, exception, syscall_return, kernel_return",
     "the same as it was at the entry of the call"},
    {"xmm", "float64", "entry, offset, line, return",
     "xmm0 to xmm7: the low half of a vector register, a double passed by value; at a return xmm0"},
    {"entry.xmm", "float64", "return, exception",
     "entry.xmm0 to entry.xmm7: the same at the entry"},
    {"xmm0f", "float64", "entry, offset, line, return",
     "xmm0f to xmm7f: the register read as a float"},
    {"GetArg", "int64", "entry, offset, line, usdt, syscall, kernel",
     "GetArg(1) is arg0, as Fay counts"},
    {"errno", "errno", "syscall_return", "why the call failed, by name; 0 when it did not"},
    {"pc", "symbol", "profile", "where the processor was: kernel_pc or user_pc"},
    {"kernel_pc", "symbol", "profile", "the same in the kernel; 0 when it was in a program"},
    {"user_pc", "symbol", "profile", "the same in a program; 0 when it was in the kernel"},
    {"timestamp", "int64", "every source but recordings", "another name of time (Pivot Tracing)"},
    {"procId", "int32", "process and kernel sources", "another name of pid"},
    {"tracepoint", "string", "every source", "another name of probe"},
}};

// Every tracepoint of Pivot Tracing exports host, timestamp, process id, process name and
// tracepoint (section 3).
constexpr std::array<FieldAlias, 3> kFieldAliases = {
    {{"timestamp", Field::Time}, {"procId", Field::Pid}, {"tracepoint", Field::Probe}}};

}  // namespace

std::span<const FieldAlias> field_aliases() {
  return kFieldAliases;
}

std::span<const FieldForm> field_forms() {
  return kForms;
}

std::span<const FieldInfo> fields() {
  return kFields;
}

const FieldInfo* find_field(std::string_view name) {
  for (const FieldInfo& candidate : kFields) {
    if (same_word(candidate.name, name)) return &candidate;
  }
  for (const FieldAlias& alias : kFieldAliases) {
    if (same_word(alias.name, name)) return &info(alias.field);
  }
  return nullptr;
}

const FieldInfo& info(Field field) {
  const FieldInfo& found = kFields[static_cast<size_t>(field)];
  CLEW_ASSERT(found.field == field);
  return found;
}

std::string argument_name(Field field, uint16_t index) {
  if (index < kVectorArgument) return fmt::format("{}{}", info(field).name, index);
  const std::string_view where = field == Field::EntryArgument ? "entry." : "";
  return fmt::format("{}xmm{}", where, index - kVectorArgument);
}

bool has_field(SourceKind kind, Field field) {
  return (info(field).kinds & bit(kind)) != 0;
}

std::string_view name_of(SourceKind kind) {
  switch (kind) {
    case SourceKind::Entry:
      return "entry";
    case SourceKind::Return:
      return "return";
    case SourceKind::Exception:
      return "exception";
    case SourceKind::Offset:
      return "offset";
    case SourceKind::Line:
      return "line";
    case SourceKind::Tick:
      return "tick";
    case SourceKind::Begin:
      return "begin";
    case SourceKind::End:
      return "end";
    case SourceKind::Usdt:
      return "usdt";
    case SourceKind::Syscall:
      return "syscall";
    case SourceKind::SyscallReturn:
      return "syscall_return";
    case SourceKind::Kernel:
      return "kernel";
    case SourceKind::KernelReturn:
      return "kernel_return";
    case SourceKind::Tracepoint:
      return "tracepoint";
    case SourceKind::Profile:
      return "profile";
    case SourceKind::Recording:
      return "recording";
  }
  return "";
}

std::string_view name_of(const Type& type) {
  switch (type.kind) {
    case TypeKind::Integer:
      if (type.unit == Unit::Address) return "pointer";
      if (type.size_bytes == 1) return type.is_signed ? "int8" : "uint8";
      if (type.size_bytes == 2) return type.is_signed ? "int16" : "uint16";
      if (type.size_bytes == 4) return type.is_signed ? "int32" : "uint32";
      return type.is_signed ? "int64" : "uint64";
    case TypeKind::Float:
      return type.size_bytes == 4 ? "float32" : "float64";
    case TypeKind::String:
      return "string";
    case TypeKind::Bytes:
      return "bytes";
    case TypeKind::Symbol:
      return "symbol";
    case TypeKind::Stack:
      return "stack";
  }
  return "";
}

}  // namespace clew::query
