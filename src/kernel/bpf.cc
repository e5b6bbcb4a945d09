// SPDX-License-Identifier: Apache-2.0
#include "kernel/bpf.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/log.h"
#include "kernel/link_types.h"
#include "kernel/links.h"
#include "kernel/verifier_message.h"

namespace clew::kernel {
namespace {

constexpr size_t kLogBytes = size_t{16} << 20;
constexpr char kLicense[] = "GPL";  // Of what is loaded: helpers like stacks ask for it.

void set_name(char (&to)[BPF_OBJ_NAME_LEN], const std::string& name) {
  std::copy_n(name.begin(), std::min(name.size(), sizeof to - 1), to);
}

Expected<FileDescriptor> create_map(bpf_map_type type, const std::string& name,
                                    bpf_attr& attributes) {
  attributes.map_type = type;
  set_name(attributes.map_name, name);
  const int64_t result = call_bpf(BPF_MAP_CREATE, &attributes, sizeof attributes);
  if (result < 0) {
    const auto error = static_cast<int>(-result);
    return fail(error == EPERM ? ErrorCode::Refused : ErrorCode::Io,
                fmt::format("creating the map '{}': {}", name, bpf_error(error)));
  }
  return FileDescriptor(static_cast<int>(result));
}

Expected<FileDescriptor> create_array(const std::string& name, size_t size_bytes, uint32_t flags) {
  bpf_attr attributes{};
  attributes.key_size = 4;
  attributes.value_size = static_cast<uint32_t>(size_bytes);
  attributes.max_entries = 1;
  attributes.map_flags = flags;
  return create_map(BPF_MAP_TYPE_ARRAY, name, attributes);
}

bpf_prog_type type_of(ProgramType type) {
  switch (type) {
    case ProgramType::RawTracepoint:
      return BPF_PROG_TYPE_RAW_TRACEPOINT;
    case ProgramType::TraceEvent:
      return BPF_PROG_TYPE_TRACEPOINT;
    case ProgramType::PerfEvent:
      return BPF_PROG_TYPE_PERF_EVENT;
    case ProgramType::SingleProbe:
    case ProgramType::UserProbeMulti:
    case ProgramType::KernelProbeMulti:
      return BPF_PROG_TYPE_KPROBE;
    case ProgramType::FunctionExit:
    case ProgramType::TypedTracepoint:
      return BPF_PROG_TYPE_TRACING;
  }
  return BPF_PROG_TYPE_UNSPEC;
}

uint32_t attach_type_of(ProgramType type) {
  switch (type) {
    case ProgramType::RawTracepoint:
    case ProgramType::TraceEvent:
    case ProgramType::PerfEvent:
    case ProgramType::SingleProbe:
      return 0;
    case ProgramType::UserProbeMulti:
      return kUserProbeMulti;
    case ProgramType::KernelProbeMulti:
      return BPF_TRACE_KPROBE_MULTI;
    case ProgramType::FunctionExit:
      return BPF_TRACE_FEXIT;
    case ProgramType::TypedTracepoint:
      return BPF_TRACE_RAW_TP;
  }
  return 0;
}

Expected<FileDescriptor> load_types(const std::vector<uint8_t>& types) {
  bpf_attr attributes{};
  attributes.btf = address_of(types.data());
  attributes.btf_size = static_cast<uint32_t>(types.size());
  const int64_t result = call_bpf(BPF_BTF_LOAD, &attributes, sizeof attributes);
  if (result < 0) {
    return fail(ErrorCode::Refused, fmt::format("loading the types of a program: {}",
                                                bpf_error(static_cast<int>(-result))));
  }
  return FileDescriptor(static_cast<int>(result));
}

bpf_attr attributes_of(const Image& image, const FileDescriptor& types) {
  bpf_attr attributes{};
  attributes.prog_type = type_of(image.type);
  attributes.insns = address_of(image.code.data());
  attributes.insn_cnt = static_cast<uint32_t>(image.code.size());
  attributes.license = address_of(kLicense);
  set_name(attributes.prog_name, image.name);
  attributes.prog_btf_fd = static_cast<uint32_t>(types.get());
  attributes.func_info_rec_size = sizeof(bpf_func_info);
  attributes.func_info = address_of(image.function_info.data());
  attributes.func_info_cnt = static_cast<uint32_t>(image.function_info.size() / 2);
  attributes.expected_attach_type = attach_type_of(image.type);
  attributes.attach_btf_id = image.attach_type;
  return attributes;
}

// This thread on one processor, until it is where it was allowed to be before.
class OnProcessor {
 public:
  OnProcessor() = default;
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;
  ~OnProcessor() {
    if (is_there_) (void)sched_setaffinity(0, sizeof before_, &before_);
  }

  // False: errno says why not.
  [[nodiscard]] bool go(uint64_t processor) {
    cpu_set_t there;
    CPU_ZERO(&there);
    if (processor < CPU_SETSIZE) CPU_SET(processor, &there);  // Of none: EINVAL.
    is_there_ = sched_getaffinity(0, sizeof before_, &before_) == 0 &&
                sched_setaffinity(0, sizeof there, &there) == 0;
    return is_there_;
  }

 private:
  cpu_set_t before_{};
  bool is_there_ = false;
};

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) (void)munmap(data_, size_bytes_);
}

Expected<Mapping> Mapping::make(const FileDescriptor& file, size_t size_bytes, bool is_writable,
                                size_t offset_bytes) {
  const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, size_bytes, protection, MAP_SHARED, file.get(),
                    static_cast<off_t>(offset_bytes));
  if (data == MAP_FAILED) {
    return fail(ErrorCode::Io, fmt::format("mapping a map of the kernel: {}", error_text(errno)));
  }
  Mapping mapping;
  mapping.data_ = static_cast<uint8_t*>(data);
  mapping.size_bytes_ = size_bytes;
  return mapping;
}

int64_t call_bpf(int command, void* attributes, size_t size_bytes) {
  const int64_t result = syscall(SYS_bpf, command, attributes, size_bytes);
  return result < 0 ? -errno : result;
}

std::string bpf_error(int error) {
  if (error == EPERM) return "not permitted; run as root";
  return error_text(error);
}

Expected<FileDescriptor> create_array(const std::string& name, size_t size_bytes) {
  return create_array(name, size_bytes, BPF_F_MMAPABLE);
}

// The kernel lets nobody map it for writing.
Expected<FileDescriptor> create_constants(const std::string& name, std::span<const uint8_t> bytes) {
  FileDescriptor map =
      CLEW_TRY(create_array(name, bytes.size(), BPF_F_MMAPABLE | BPF_F_RDONLY_PROG));
  const uint32_t key = 0;
  bpf_attr filled{};
  filled.map_fd = static_cast<uint32_t>(map.get());
  filled.key = address_of(&key);
  filled.value = address_of(bytes.data());
  bpf_attr frozen{};
  frozen.map_fd = filled.map_fd;
  int64_t result = call_bpf(BPF_MAP_UPDATE_ELEM, &filled, sizeof filled);
  if (result >= 0) result = call_bpf(BPF_MAP_FREEZE, &frozen, sizeof frozen);
  if (result >= 0) return map;
  return fail(ErrorCode::Io,
              fmt::format("filling the map '{}': {}", name, bpf_error(static_cast<int>(-result))));
}

Expected<FileDescriptor> create_hash(const std::string& name, size_t key_bytes, size_t value_bytes,
                                     uint32_t entries) {
  bpf_attr attributes{};
  attributes.key_size = static_cast<uint32_t>(key_bytes);
  attributes.value_size = static_cast<uint32_t>(value_bytes);
  attributes.max_entries = entries;
  return create_map(BPF_MAP_TYPE_LRU_HASH, name, attributes);
}

// The kernel asks for the types of keys and values, whatever they are.
Expected<FileDescriptor> create_thread_storage(const std::string& name, size_t value_bytes) {
  const FileDescriptor types = CLEW_TRY(load_types(storage_types(value_bytes)));
  bpf_attr attributes{};
  attributes.key_size = 4;
  attributes.value_size = static_cast<uint32_t>(value_bytes);
  attributes.map_flags = BPF_F_NO_PREALLOC;
  attributes.btf_fd = static_cast<uint32_t>(types.get());
  attributes.btf_key_type_id = kStorageKeyType;
  attributes.btf_value_type_id = kStorageValueType;
  return create_map(BPF_MAP_TYPE_TASK_STORAGE, name, attributes);
}

Expected<FileDescriptor> create_ring(const std::string& name, size_t size_bytes) {
  bpf_attr attributes{};
  attributes.max_entries = static_cast<uint32_t>(size_bytes);
  return create_map(BPF_MAP_TYPE_RINGBUF, name, attributes);
}

// In the words of the kernel's verifier, but for the one refusal that is not about the program:
// what reads memory is not offered under lockdown (LOCKDOWN_BPF_READ_KERNEL, since Linux 5.5).
std::string reason_of_refusal(const std::string& log) {
  if (log.find("unknown func bpf_probe_read_kernel") == std::string::npos)
    return verifier_message(log);
  return "it reads memory, and the kernel is locked down; boot without lockdown=confidentiality";
}

// The first try is without a log, which costs time; a refusal is repeated with one.
Expected<FileDescriptor> load_image(const Image& image, std::string* log) {
  const StepTime time;
  const FileDescriptor types = CLEW_TRY(load_types(image.types));
  bpf_attr attributes = attributes_of(image, types);
  int64_t result = call_bpf(BPF_PROG_LOAD, &attributes, sizeof attributes);
  log_detail(0, "the kernel {} a program of {} instructions ({:.1f} ms)",
             result >= 0 ? "took" : "refused", attributes.insn_cnt, time.ms());
  if (result >= 0) return FileDescriptor(static_cast<int>(result));
  std::string words(kLogBytes, '\0');
  attributes.log_buf = address_of(words.data());
  attributes.log_size = static_cast<uint32_t>(words.size());
  attributes.log_level = 1;
  result = call_bpf(BPF_PROG_LOAD, &attributes, sizeof attributes);
  if (result >= 0) return FileDescriptor(static_cast<int>(result));
  words.resize(std::strlen(words.c_str()));
  const std::string reason = reason_of_refusal(words);
  if (log != nullptr) *log = std::move(words);
  return fail(ErrorCode::Refused,
              fmt::format("the kernel refuses the program '{}': {}", image.name,
                          reason.empty() ? bpf_error(static_cast<int>(-result)) : reason));
}

Expected<uint32_t> run_program(const FileDescriptor& program, uint64_t argument,
                               std::optional<uint64_t> only_cpu) {
  OnProcessor there;
  if (only_cpu && !there.go(*only_cpu)) {
    return fail(ErrorCode::NotFound, fmt::format("processor {}: {}", *only_cpu, error_text(errno)));
  }
  uint64_t context[1] = {argument};
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<uint32_t>(program.get());
  attributes.test.ctx_in = address_of(context);
  attributes.test.ctx_size_in = sizeof context;
  const int64_t result = call_bpf(BPF_PROG_TEST_RUN, &attributes, sizeof attributes);
  if (result < 0) {
    return fail(ErrorCode::Io,
                fmt::format("running a program: {}", bpf_error(static_cast<int>(-result))));
  }
  return attributes.test.retval;
}

uint64_t recursion_misses(const FileDescriptor& program) {
  bpf_prog_info info{};
  bpf_attr attributes{};
  attributes.info.bpf_fd = static_cast<uint32_t>(program.get());
  attributes.info.info_len = sizeof info;
  attributes.info.info = address_of(&info);
  const int64_t result = call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes, sizeof attributes);
  return result < 0 ? 0 : info.recursion_misses;
}

}  // namespace clew::kernel
