// SPDX-License-Identifier: Apache-2.0
// The arrays have the sizes that src/kernel/maps.cc gives them, to the byte; those are whole pages.
#include "hostile_session.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "abi/arena.h"
#include "abi/buckets.h"
#include "abi/machine/dynamic.h"
#include "abi/machine/unwind.h"
#include "base/assert.h"
#include "runtime/segments_testing.h"

namespace clew::accessors {
namespace {

using abi::AggregateFunction;

constexpr uint64_t kLowAddress = 0x2300'0000;
constexpr uint32_t kRegionOffset = 4096;  // In the slot.
constexpr size_t kSlotBytes = kRegionOffset + (size_t{1} << abi::kMachineRegionSizeLog2);
constexpr size_t kGlobalsBytes = 200;
constexpr size_t kGlobalsSlackBytes = 0x2000;
constexpr char kNames[] = "\0pid\0a module\0a_function_of_it\0entry";

// What the shapes are made of; their numbers have no common factor, so that all combine.
struct Sizes {
  uint64_t string_bytes;
  uint32_t key_bytes;
  uint64_t buckets;
  uint64_t entries;
  bool has_many_cells;
  bool has_one_cpu;
};

constexpr Sizes sizes_of(uint32_t shape) {
  constexpr uint64_t kStrings[] = {256, 4096, 8};
  constexpr uint32_t kKeys[] = {16, 4096, 24, 512};
  return {.string_bytes = kStrings[shape % 3],
          .key_bytes = kKeys[shape % 4],
          .buckets = 1 + shape % 5,
          .entries = 80,
          .has_many_cells = shape == 5,
          .has_one_cpu = shape == 6};
}

std::vector<abi::MachineVariable> variables_of(const Sizes& s) {
  const auto text = static_cast<uint32_t>(s.string_bytes);
  return {{.key_bytes = 0, .value_bytes = 8, .is_thread = 1, .reserved = 0},
          {.key_bytes = 0, .value_bytes = 8, .is_thread = 0, .reserved = 0},
          {.key_bytes = s.key_bytes, .value_bytes = 8, .is_thread = 0, .reserved = 0},
          {.key_bytes = 16, .value_bytes = text, .is_thread = 1, .reserved = 0},
          {.key_bytes = 0, .value_bytes = 8 + text, .is_thread = 1, .reserved = 0}};
}

abi::MachineAggregation aggregation_of(AggregateFunction function, const Sizes& s) {
  abi::MachineAggregation made{};
  made.function = function;
  if (function == AggregateFunction::Lquantize) {
    const int64_t limit = s.has_many_cells ? 0xFFFF : 100;
    std::copy_n(std::array<int64_t, 3>{0, limit, 1}.begin(), 3, made.parameters);
  }
  if (function == AggregateFunction::Llquantize) {
    std::copy_n(std::array<int64_t, 4>{10, 0, 6, 20}.begin(), 4, made.parameters);
  }
  made.cell_words = static_cast<uint32_t>(1 + abi::machine_cell_words(function, made.parameters));
  return made;
}

// Each function without a key, with a key of few words, and with a long one.
std::vector<abi::MachineAggregationTable> aggregations_of(const Sizes& s, uint64_t& cpu_bytes) {
  std::vector<abi::MachineAggregationTable> tables;
  for (uint32_t i = 0; i <= static_cast<uint32_t>(AggregateFunction::Llquantize); ++i) {
    for (const uint32_t key_bytes : {0U, 16U, s.key_bytes}) {
      abi::MachineAggregationTable table{};
      table.aggregation = aggregation_of(static_cast<AggregateFunction>(i), s);
      table.aggregation.key_bytes = key_bytes;
      const int64_t* p = table.aggregation.parameters;
      table.steps =
          i < 8 ? 0
                : abi::log_linear_steps({static_cast<uint64_t>(p[0]), static_cast<uint64_t>(p[1]),
                                         static_cast<uint64_t>(p[2]), static_cast<uint64_t>(p[3])});
      table.entry_bytes = sizeof(abi::MachineAggregateHead) + key_bytes +
                          uint64_t{8} * table.aggregation.cell_words;
      table.entries = key_bytes == 0 ? 1 : s.has_many_cells ? 2 : s.entries;
      table.begin = cpu_bytes;
      cpu_bytes += table.entries * table.entry_bytes;
      tables.push_back(table);
    }
  }
  return tables;
}

template <typename Value>
std::unique_ptr<GuardedMemory> constant(const std::vector<Value>& values) {
  auto made = std::make_unique<GuardedMemory>(values.size() * sizeof(Value));
  std::memcpy(made->bytes().data(), values.data(), values.size() * sizeof(Value));
  made->forbid_writes();
  return made;
}

constexpr uint32_t kSession = 7;

// Tables of stacks in which anything may stand. One for all sessions of a process: they are large,
// and have that one's pid.
struct StackTables {
  static constexpr uint64_t kRows = 1024;

  StackTables() {
    std::mt19937_64 random(17);
    for (uint64_t& word : std::span(memory.as<uint64_t>(), memory.bytes().size() / 8))
      word = random() % 4 == 0 ? random() : random() % 0x1000;
    // The process is found at once, at a moment when nobody changes its entry, which says the same
    // whatever its pid is.
    const auto pid = static_cast<uint64_t>(getpid());
    auto* const processes = reinterpret_cast<abi::MachineUnwindProcess*>(
        memory.bytes().data() + abi::kUnwindProcessesOffset);
    auto& own = processes[abi::unwind_slot(pid, 0, abi::kMachineUnwindProcesses)];
    own.pid = pid;
    own.version = 2;
    own.first_segment = static_cast<uint32_t>(random());
    own.segment_count = static_cast<uint32_t>(random());
    memory.forbid_writes();
  }

  GuardedMemory memory{abi::kUnwindRowsOffset + kRows * sizeof(abi::MachineUnwindRow)};
};

// A forked child makes its own: of its parent's it would read nothing.
const StackTables& stack_tables() {
  static std::unique_ptr<const StackTables> tables;
  static pid_t owner = 0;
  if (std::exchange(owner, getpid()) != getpid()) tables = std::make_unique<StackTables>();
  return *tables;
}

}  // namespace

HostileSession::HostileSession(uint32_t shape)
    : low_(abi::kLowBlockSizeBytes, kLowAddress),
      process_(sizeof(abi::MachineProcess)),
      slot_(kSlotBytes),
      shared_(sizeof(abi::MachineShared)) {
  describe(shape);
  fill_arena();
  place_ = {.low_address = kLowAddress,
            .window = kRegionOffset + abi::kMachineRegionWindow,
            .process = process_.address()};
  enter();
}

HostileSession::~HostileSession() {
  runtime::set_own_gs_base(0);
}

void HostileSession::describe(uint32_t shape) {
  const Sizes sizes = sizes_of(shape % kShapes);
  uint64_t cpu_bytes = 0;
  const std::vector<abi::MachineVariable> variables = variables_of(sizes);
  const std::vector<abi::MachineAggregationTable> tables = aggregations_of(sizes, cpu_bytes);
  const uint64_t cpus =
      sizes.has_one_cpu ? 1 : static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
  const uint64_t key_bytes = std::max<uint64_t>(sizes.key_bytes, 16);
  const uint64_t entry_bytes = abi::dynamic_entry_bytes(key_bytes, 8 + sizes.string_bytes);
  globals_ = std::make_unique<GuardedMemory>(kGlobalsBytes + kGlobalsSlackBytes);
  dynamic_ = std::make_unique<GuardedMemory>(
      sizes.buckets * abi::dynamic_bucket_bytes(entry_bytes) + abi::kMachineDynamicSlackBytes);
  aggregates_ =
      std::make_unique<GuardedMemory>(cpu_bytes * cpus + abi::kMachineAggregateSlackBytes);
  constants_.push_back(constant(variables));
  constants_.push_back(constant(tables));
  constants_.push_back(
      constant<abi::MachineEnabled>({{.probe = 77, .names = {1, 5, 14, 31}, .provider_has_pid = 1},
                                     {.probe = 3, .names = {0, 0, 0, 31}, .provider_has_pid = 0}}));
  constants_.push_back(constant(std::vector<char>(kNames, kNames + sizeof kNames)));
  constants_.push_back(constant(std::vector<uint8_t>(48, 'x')));
  *process_.as<abi::MachineProcess>() = {.magic = abi::kMachineProcessMagic,
                                         .shared = shared_.address(),
                                         .globals = globals_->address(),
                                         .dynamic = dynamic_->address(),
                                         .aggregates = aggregates_->address(),
                                         .variables = constants_[0]->address(),
                                         .aggregations = constants_[1]->address(),
                                         .enabled = constants_[2]->address(),
                                         .names = constants_[3]->address(),
                                         .literals = constants_[4]->address(),
                                         .clock = 0,
                                         .cpus = cpus,
                                         .string_bytes = sizes.string_bytes,
                                         .variable_count = variables.size(),
                                         .aggregation_count = tables.size(),
                                         .enabled_count = 2,
                                         .names_bytes = sizeof kNames,
                                         .globals_bytes = kGlobalsBytes,
                                         .literals_bytes = 48,
                                         .dynamic_buckets = sizes.buckets,
                                         .dynamic_entry_bytes = entry_bytes,
                                         .dynamic_key_bytes = key_bytes,
                                         .aggregates_cpu_bytes = cpu_bytes,
                                         .speculations = 4,
                                         .speculation_bytes = 4096,
                                         .target_pid = 0,
                                         .pid = static_cast<uint64_t>(getpid()),
                                         .may_write_user = 0,
                                         .local_begin = abi::kMachineLocalOffset + 48,
                                         .local_bytes = 64,
                                         .error_enabling = 1,
                                         .token_variable = variables.size() - 1,
                                         .stamp = 4711,
                                         .clock_offset_ns = 0,
                                         .has_rdpid = 0,
                                         .session = kSession};
  process_.forbid_writes();
}

void HostileSession::fill_arena() const {
  auto& page = *low_.as<abi::PrivatePage>();
  page.cookie = uint64_t{1} << 48;
  page.pid = static_cast<uint32_t>(getpid());
  slot_.as<abi::SlotControl>()->tid = static_cast<uint32_t>(gettid());
  slot_.forbid_writes(0, kRegionOffset);
  allow_system_calls(true);
}

void HostileSession::allow_system_calls(bool allowed) const {
  uint8_t* const low = low_.bytes().data();
  CLEW_ASSERT(mprotect(low, low_.bytes().size(), PROT_READ | PROT_WRITE) == 0);
  auto& arena = *reinterpret_cast<abi::ArenaHeader*>(low + abi::kHeaderOffset);
  arena.tid_offset = abi::kTidFromKernel;
  arena.keeps_self_pointer = 1;
  arena.bases = runtime::own_bases();
  arena.pid = static_cast<uint32_t>(getpid());
  arena.sessions[kSession].unwind_tables = stack_tables().memory.address();
  arena.sessions[kSession].unwind_rows = StackTables::kRows;
  arena.slot_count = 1;
  arena.slots_address = slot_.address();
  arena.slot_stride = kSlotBytes;
  arena.system_calls_allowed = allowed ? 1 : 0;
  // Behind that is the page on which the target speaks of itself.
  low_.forbid_writes(0, abi::kTargetPageOffset);
}

uint64_t HostileSession::unknown_code() const {
  const uint8_t* const page = low_.bytes().data() + abi::kTargetPageOffset;
  return reinterpret_cast<const abi::TargetPage*>(page)->unknown_code[kSession];
}

void HostileSession::enter() const {
  runtime::set_own_gs_base(slot_.address() - kLowAddress);
}

std::span<uint8_t> HostileSession::part(Part which) const {
  const std::span<uint8_t> region = slot_.bytes().subspan(kRegionOffset);
  switch (which) {
    case Part::Window:
      return region.subspan(abi::kMachineRegionWindow, sizeof(abi::MachineWindow));
    case Part::Region:
      return region;
    case Part::Shared:
      return shared_.bytes();
    case Part::Globals:
      return globals_->bytes();
    case Part::Dynamic:
      return dynamic_->bytes();
    case Part::Aggregates:
      return aggregates_->bytes();
  }
  return {};
}

abi::MachineWindow& HostileSession::window() const {
  return *reinterpret_cast<abi::MachineWindow*>(part(Part::Window).data());
}

std::span<const abi::MachineAggregationTable> HostileSession::aggregations() const {
  return {constants_[1]->as<abi::MachineAggregationTable>(), process().aggregation_count};
}

std::span<const abi::MachineVariable> HostileSession::variables() const {
  return {constants_[0]->as<abi::MachineVariable>(), process().variable_count};
}

std::array<const GuardedMemory*, 4> HostileSession::arrays() const {
  return {&shared_, globals_.get(), dynamic_.get(), aggregates_.get()};
}

void HostileSession::clear() const {
  const std::span<uint8_t> region = part(Part::Region);
  CLEW_ASSERT(madvise(region.data(), region.size(), MADV_DONTNEED) == 0);
  for (const GuardedMemory* one : arrays())
    one->clear();
}

bool HostileSession::has_paint() const {
  const auto all = arrays();
  return std::all_of(all.begin(), all.end(), [](const auto* one) { return one->has_paint(); });
}

uint64_t HostileSession::call(uint32_t index, const std::array<uint64_t, 4>& arguments) const {
  // All in memory: no register is left for anything else.
  struct Frame {
    uint64_t entry;
    std::array<uint64_t, 4> arguments;
    uint64_t stack;
    uint64_t result;
    uint64_t kept;
  } frame{thunks_ + uint64_t{index} * 16, arguments, 0, 0, 0};
  Frame* at = &frame;
  asm volatile(
      "mov %%rax, %%r13\n mov 8(%%r13), %%rbx\n mov 16(%%r13), %%r12\n"
      "mov 24(%%r13), %%r14\n mov 32(%%r13), %%r15\n"
      "mov $11, %%rdi\n mov $22, %%rsi\n mov $33, %%rcx\n mov $44, %%rdx\n mov $55, %%r8\n"
      "mov $66, %%r9\n mov $77, %%r10\n mov $88, %%r11\n"
      "mov %%rsp, 40(%%r13)\n sub $256, %%rsp\n and $-16, %%rsp\n call *(%%r13)\n"
      "mov 40(%%r13), %%rsp\n mov %%rax, 48(%%r13)\n"
      "add %%rsi, %%rdi\n add %%rcx, %%rdi\n add %%rdx, %%rdi\n add %%r8, %%rdi\n"
      "add %%r9, %%rdi\n add %%r10, %%rdi\n add %%r11, %%rdi\n mov %%rdi, 56(%%r13)\n"
      : "+a"(at)
      :
      : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
        "memory", "cc");
  CLEW_ASSERT(frame.kept == 396);
  return frame.result;
}

}  // namespace clew::accessors
