// SPDX-License-Identifier: Apache-2.0
// Memory of a DMachine:
//
//     low     the arena's low block at A
//     slots   one slot: SlotControl, then the session's region at kRegionOffset
//     code    the common runtime, the D runtime, then stubs with their bodies
#include "d_machine.h"

#include <chrono>
#include <cstring>

#include <cpuid.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/context.h"
#include "base/assert.h"
#include "engine/callees.h"
#include "kernel/machine_session_aggregates.h"
#include "native/code.h"
#include "native/print.h"
#include "plan/d/limits.h"
#include "query/d/check_testing.h"
#include "runtime/blob.h"
#include "runtime/d_blob.h"
#include "runtime/segments_testing.h"
#include "verify/verified_code.h"

extern "C" uint64_t clew_native_enter(uint64_t stub, uint64_t* registers,
                                      const uint64_t* arguments);

namespace clew::process {
namespace {

using abi::Register;

constexpr uint64_t kLowAddress = 0x2100'0000;
constexpr uint32_t kRegionOffset = 4096;
constexpr size_t kSlotBytes = kRegionOffset + (size_t{1} << abi::kMachineRegionSizeLog2) + 4096;
constexpr uint32_t kSlots = 8;
constexpr size_t kCodeBytes = 1U << 20;
constexpr uint32_t kSession = 2;
constexpr uint32_t kFuelWord = 0xF800;  // Of the window.
constexpr uint32_t kLeftAloneWord = 0xF808;

uint8_t* map(uint64_t address, size_t size, int flags, int file = -1) {
  const int source = file < 0 ? MAP_ANONYMOUS | MAP_PRIVATE : MAP_SHARED;
  void* const at =
      mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE, source | flags, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<uint8_t*>(at);
}

uint64_t address_of(const void* p) {
  return reinterpret_cast<uint64_t>(p);
}

bool has_rdpid() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 22 & 1) != 0;
}

// The C library may have it loaded under that name.
uint64_t vdso_clock() {
  void* const vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return vdso == nullptr ? 0 : address_of(dlsym(vdso, "__vdso_clock_gettime"));
}

native::PointKind native_point(plan::d::FiringPoint point) {
  switch (point) {
    case plan::d::FiringPoint::Entry:
      return native::PointKind::Entry;
    case plan::d::FiringPoint::Return:
      return native::PointKind::Exit;
    case plan::d::FiringPoint::Offset:
      return native::PointKind::Offset;
  }
  return native::PointKind::Offset;
}

uint32_t readable_above(plan::d::FiringPoint point) {
  if (point == plan::d::FiringPoint::Entry) return 8 + 8 * abi::kStackArgumentsMax;
  return point == plan::d::FiringPoint::Return ? 8 : 0;
}

// In the order of abi/stub.h.
std::vector<Register> pushed(abi::RegisterSet clobbers) {
  std::vector<Register> order = {Register::R10};
  for (uint32_t n = 0; n < 16; ++n) {
    const auto r = static_cast<Register>(n);
    if (r != Register::R10 && clobbers.has(r)) order.push_back(r);
  }
  return order;
}

void put(std::vector<uint8_t>& out, std::initializer_list<uint8_t> bytes) {
  out.insert(out.end(), bytes);
}

void put_stack_move(std::vector<uint8_t>& out, uint8_t opcode, Register r) {
  const auto number = static_cast<uint8_t>(r);
  if (number >= 8) out.push_back(0x41);
  out.push_back(static_cast<uint8_t>(opcode + (number & 7U)));
}

// As src/inline/trampoline.cc writes it, without the checks of owner and busy.
std::vector<uint8_t> prologue(abi::RegisterSet clobbers, bool in_flight) {
  std::vector<uint8_t> text;
  if (in_flight) put(text, {0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, 0xfc});
  for (const Register r : pushed(clobbers))
    put_stack_move(text, 0x50, r);
  return text;
}

std::vector<uint8_t> epilogue(abi::RegisterSet clobbers, bool in_flight) {
  std::vector<uint8_t> text;
  std::vector<Register> order = pushed(clobbers);
  for (auto r = order.rbegin(); r != order.rend(); ++r)
    put_stack_move(text, 0x58, *r);
  if (in_flight) put(text, {0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0});
  put(text, {0xC3});
  return text;
}

}  // namespace

Expected<DScript> DScript::compile(std::string_view text, engine::Extensions* extensions) {
  DScript made;
  query::d::CompileOptions options = query::d::script_options();
  options.extensions = extensions;
  auto script = query::d::compiled(text, options);
  if (!script) return fail(ErrorCode::InvalidQuery, query::d::shown_error(script.error()));
  made.script = std::move(*script);
  std::span<const extension::Extension> known;
  if (extensions != nullptr) known = extensions->all();
  auto generated = plan::d::generate(made.script, known);
  if (!generated) return fail(ErrorCode::InvalidQuery, query::d::shown_error(generated.error()));
  made.generated = std::move(*generated);
  for (uint32_t i = 0; i < made.script.clauses.size(); ++i) {
    const bool is_error = made.script.clauses[i].probes.front().name == "ERROR";
    (is_error ? made.error_clauses : made.clauses).push_back(i);
  }
  return made;
}

kernel::MachinePrograms DScript::programs() const {
  kernel::MachinePrograms programs;
  programs.clauses = generated.clauses;
  programs.error_clauses = error_clauses;
  programs.scratch_begin = generated.scratch_begin;
  programs.globals = generated.globals;
  programs.literals = generated.literals;
  programs.variables = generated.variables;
  programs.aggregations = generated.aggregations;
  programs.local_begin = generated.local_begin;
  programs.local_bytes = generated.local_bytes;
  programs.string_bytes = plan::d::string_bytes_of(script);
  programs.principal_bytes = 1U << 16;
  programs.aggregation_bytes = 1U << 20;
  programs.speculations = 4;
  return programs;
}

Expected<std::unique_ptr<DMachine>> DMachine::make(kernel::MachinePrograms programs) {
  std::unique_ptr<DMachine> machine(new DMachine(std::move(programs)));
  CLEW_TRY(machine->map());
  machine->fill_process();
  machine->fill_arena();
  CLEW_ASSERT(mprotect(machine->code_, kCodeBytes, PROT_READ | PROT_EXEC) == 0);
  CLEW_TRY(machine->claim());
  machine->shared().activity = static_cast<uint64_t>(abi::MachineActivity::Active);
  return machine;
}

Expected<void> DMachine::map() {
  kernel::Probe probe;
  probe.id = 77;
  probe.provider = "pid1";
  probe.module = "shop";
  probe.function = "charge_card";
  probe.name = "entry";
  kernel::Probe error;
  error.id = kernel::kErrorProbe;
  error.provider = "dtrace";
  error.name = "ERROR";
  const std::vector<kernel::MachineEnabling> enablings = {{probe, {}}, {error, {}}};
  maps_ = CLEW_TRY(kernel::MachineMaps::make(programs_, enablings, 0, {}));
  low_ = clew::process::map(kLowAddress, abi::kLowBlockSizeBytes, MAP_FIXED_NOREPLACE);
  slots_ = clew::process::map(0, kSlots * kSlotBytes, 0);
  code_ = clew::process::map(0, kCodeBytes, 0);
  globals_size_ = maps_.globals.memory.size_bytes();
  low_globals_ = clew::process::map(0, globals_size_, MAP_32BIT, maps_.globals.map.get());
  shared_size_ = maps_.shared.memory.size_bytes();
  low_shared_ = clew::process::map(0, shared_size_, MAP_32BIT, maps_.shared.map.get());
  if (low_shared_ == nullptr || low_ == nullptr || slots_ == nullptr || code_ == nullptr ||
      low_globals_ == nullptr) {
    return fail(ErrorCode::Io, "mmap failed");
  }
  return {};
}

void DMachine::fill_process() {
  const kernel::Symbols symbols = maps_.symbols(programs_);
  const auto number = [&](const char* name) { return symbols.at(name).value; };
  process_ = {.magic = abi::kMachineProcessMagic,
              .shared = address_of(low_shared_),
              .globals = address_of(low_globals_),
              .dynamic = address_of(maps_.dynamic.memory.data()),
              .aggregates = address_of(maps_.aggregates.memory.data()),
              .variables = address_of(maps_.variables.memory.data()),
              .aggregations = address_of(maps_.aggregations.memory.data()),
              .enabled = address_of(maps_.enabled.memory.data()),
              .names = address_of(maps_.names.memory.data()),
              .literals = address_of(programs_.literals.data()),
              .clock = vdso_clock(),
              .cpus = number("d_n_cpus"),
              .string_bytes = number("d_n_string_bytes"),
              .variable_count = number("d_n_variables"),
              .aggregation_count = number("d_n_aggregations"),
              .enabled_count = 2,
              .names_bytes = maps_.names_bytes,
              .globals_bytes = number("d_n_globals_bytes"),
              .literals_bytes = programs_.literals.size(),
              .dynamic_buckets = number("d_n_dynamic_buckets"),
              .dynamic_entry_bytes = number("d_n_dynamic_entry_bytes"),
              .dynamic_key_bytes = number("d_n_dynamic_key_bytes"),
              .aggregates_cpu_bytes = number("d_n_aggregates_cpu_bytes"),
              .speculations = number("d_n_speculations"),
              .speculation_bytes = number("d_n_speculation_bytes"),
              .target_pid = 0,
              .pid = static_cast<uint64_t>(getpid()),
              .may_write_user = 1,
              .local_begin = number("d_n_local_begin"),
              .local_bytes = number("d_n_local_bytes"),
              .error_enabling = 1,
              .token_variable = 0,
              .stamp = 4711,
              .clock_offset_ns = 0,
              .has_rdpid = has_rdpid() ? 1U : 0U,
              .session = kSession};
}

void DMachine::fill_arena() {
  abi::ArenaHeader& arena = header();
  reinterpret_cast<abi::PrivatePage*>(low_)->cookie = uint64_t{1} << 48;
  arena.slot_count = kSlots;
  arena.slots_address = address_of(slots_);
  arena.slot_stride = kSlotBytes;
  arena.system_calls_allowed = 1;
  arena.tid_offset = abi::kTidFromKernel;
  arena.keeps_self_pointer = 1;
  arena.bases = runtime::own_bases();
  auto& page = *reinterpret_cast<abi::TargetPage*>(low_ + abi::kTargetPageOffset);
  page.process_count = 1;
  arena.sessions[kSession].region_offset = kRegionOffset;
  arena.sessions[kSession].layout.size_log2 = abi::kMachineRegionSizeLog2;
  const runtime::Blob blob = runtime::runtime_blob();
  std::memcpy(code_, blob.bytes.data(), blob.bytes.size());
  const auto low = static_cast<uint32_t>(kLowAddress);
  std::memcpy(code_ + blob.low_address_offset, &low, sizeof low);
  const size_t place = (blob.bytes.size() + 63) & ~size_t{63};
  const std::span<const uint8_t> d = runtime::d_blob();
  std::memcpy(code_ + place, d.data(), d.size());
  runtime::set_place({code_ + place, d.size()},
                     {.low_address = kLowAddress,
                      .window = kRegionOffset + abi::kMachineRegionWindow,
                      .process = address_of(&process_)});
  entries_ = runtime::d_accessor_entries(address_of(code_) + runtime::thunk_offset(kSession, 0),
                                         address_of(code_) + place);
  used_ = static_cast<uint32_t>((place + d.size() + 63) & ~size_t{63});
}

Expected<void> DMachine::claim() {
  const uint64_t entry =
      address_of(code_) + runtime::stub_call_offset(kSession, runtime::StubCall::Claim);
  uint64_t answer = 0;
  asm volatile("call *%[entry]\n mov %%r10, %[answer]\n"
               : [answer] "=r"(answer)
               : [entry] "r"(entry)
               : "r10", "memory", "cc");
  if (answer == 0) return fail(ErrorCode::Refused, "no slot");
  return {};
}

uint64_t DMachine::call(abi::MachineAccessor accessor, uint64_t r2, uint64_t r3, uint64_t r4) {
  uint64_t result = 0;
  const uint64_t entry = entries_.at(static_cast<size_t>(accessor));
  asm volatile(
      "mov %[r2], %%rbx\n mov %[r3], %%r12\n mov %[r4], %%r14\n"
      "mov %%rsp, %%r13\n sub $256, %%rsp\n and $-16, %%rsp\n call *%[entry]\n mov %%r13, %%rsp\n"
      : "=a"(result)
      : [r2] "r"(r2), [r3] "r"(r3), [r4] "r"(r4), [entry] "r"(entry)
      : "rbx", "r12", "r13", "r14", "memory", "cc");
  return result;
}

uint8_t* DMachine::own_slot() {
  const uint64_t base = runtime::own_gs_base();
  return reinterpret_cast<uint8_t*>(base + kLowAddress);
}

void DMachine::leave() {
  runtime::set_own_gs_base(0);
}

DMachine::~DMachine() {
  leave();
  if (low_ != nullptr) munmap(low_, abi::kLowBlockSizeBytes);
  if (slots_ != nullptr) munmap(slots_, kSlots * kSlotBytes);
  if (code_ != nullptr) munmap(code_, kCodeBytes);
  if (low_globals_ != nullptr) munmap(low_globals_, globals_size_);
  if (low_shared_ != nullptr) munmap(low_shared_, shared_size_);
}

abi::ArenaHeader& DMachine::header() const {
  return *reinterpret_cast<abi::ArenaHeader*>(low_ + abi::kHeaderOffset);
}
abi::RegionHeader& DMachine::region() const {
  return *reinterpret_cast<abi::RegionHeader*>(own_slot() + kRegionOffset);
}
abi::MachineWindow& DMachine::window() const {
  return *reinterpret_cast<abi::MachineWindow*>(own_slot() + kRegionOffset +
                                                abi::kMachineRegionWindow);
}

uint64_t& DMachine::out_of_fuel() const {
  return *reinterpret_cast<uint64_t*>(reinterpret_cast<uint8_t*>(&window()) + kFuelWord);
}
uint64_t& DMachine::left_alone() const {
  return *reinterpret_cast<uint64_t*>(reinterpret_cast<uint8_t*>(&window()) + kLeftAloneWord);
}

std::vector<plan::d::FiringClause> DMachine::clauses_of(
    const std::vector<uint32_t>& clauses) const {
  std::vector<plan::d::FiringClause> out;
  for (const uint32_t i : clauses)
    out.push_back({&programs_.clauses[i], i, programs_.scratch_begin[i]});
  for (plan::d::FiringClause& one : out) {
    if (extensions_ != nullptr) one.calls = extensions_->calls[one.clause];
  }
  return out;
}

Expected<InstalledFiring> DMachine::install(const FiringSite& site,
                                            const std::vector<uint32_t>& clauses) {
  const auto begin = std::chrono::steady_clock::now();
  plan::d::FiringState state{.left_alone_offset = kLeftAloneWord};
  if (extensions_ != nullptr) state.extensions = &extensions_->extensions;
  const plan::d::Firing firing =
      CLEW_TRY(plan::d::compose(site.point, clauses_of(clauses),
                                clauses_of(programs_.error_clauses), site.static_arguments, state));
  const auto low = static_cast<uint32_t>(kLowAddress);
  const auto globals = static_cast<uint32_t>(address_of(low_globals_));
  const auto globals_bytes = static_cast<uint32_t>(programs_.globals.size());
  const auto saved = firing.wants_registers ? abi::kAllSaved : abi::RegisterSet{};
  const native::Environment environment{
      .point = native_point(site.point),
      .window_address = low + kRegionOffset + abi::kMachineRegionWindow,
      .window_size_log2 = abi::kMachineWindowSizeLog2,
      .slot_address = low,
      .generation_address = static_cast<uint32_t>(address_of(low_shared_)),
      .missed_fuel_offset = kFuelWord,
      .is_machine = true,
      .globals_address = globals,
      .globals_bytes = globals_bytes,
      .saved = saved};
  const uint64_t constants[] = {site.cookie, site.program_counter, site.return_offset, kFuelWord,
                                0 /* Tick: no clause is private. */};
  const native::Code code = CLEW_TRY(native::translate(firing.program, environment, constants));
  const bool in_flight = site.point == plan::d::FiringPoint::Offset;
  std::vector<uint8_t> text = prologue(code.clobbers, in_flight);
  const uint64_t address = address_of(code_) + used_ + text.size();
  std::vector<uint8_t> body = code.bytes;
  if (!native::relocate(code, address, entries_, body)) return fail(ErrorCode::Limit, "far");
  const std::vector<verify::Callee> callees = engine::callees_of(firing.program, entries_);
  const verify::Policy policy{
      .address = address,
      .window_address = environment.window_address,
      .window_size_log2 = environment.window_size_log2,
      .slot_address = low,
      .generation_address = environment.generation_address,
      .globals_address = globals,
      .globals_bytes = globals_bytes,
      .stack_readable_bytes = 8 * abi::saved_count(code.clobbers) + readable_above(site.point),
      .stack_mapped_bytes = 8 * abi::saved_count(code.clobbers) + readable_above(site.point),
      .clobbers = code.clobbers,
      .callees = callees};
  const auto verified = verify::check(body, policy);
  if (!verified) {
    return fail(ErrorCode::Refused, verified.error().message + "\n" + native::print(code));
  }
  const auto end = std::chrono::steady_clock::now();
  text.insert(text.end(), body.begin(), body.end());
  const std::vector<uint8_t> after = epilogue(code.clobbers, in_flight);
  text.insert(text.end(), after.begin(), after.end());
  CLEW_ASSERT(used_ + text.size() <= kCodeBytes);
  CLEW_ASSERT(mprotect(code_, kCodeBytes, PROT_READ | PROT_WRITE) == 0);
  std::memcpy(code_ + used_, text.data(), text.size());
  CLEW_ASSERT(mprotect(code_, kCodeBytes, PROT_READ | PROT_EXEC) == 0);
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
  const InstalledFiring made{.stub_address = address_of(code_) + used_,
                             .code_bytes = static_cast<uint32_t>(body.size()),
                             .instructions = static_cast<uint32_t>(firing.program.code.size()),
                             .made_ns = static_cast<uint64_t>(took)};
  used_ = static_cast<uint32_t>((used_ + text.size() + 63) & ~size_t{63});
  return made;
}

RegisterFile DMachine::fire(const InstalledFiring& firing, const RegisterFile& registers,
                            const std::array<uint64_t, 10>& stack) {
  RegisterFile after = registers;
  uint64_t arguments[18] = {};
  std::memcpy(arguments, stack.data(), sizeof stack);
  const uint64_t frame = clew_native_enter(firing.stub_address, after.data(), arguments);
  if (gettid() == thread_) frame_ = frame;
  return after;
}

Expected<void> DMachine::know_stacks() {
  stacks_ = CLEW_TRY(kernel::UserStacks::make(
      {.spaces = &spaces_,
       .targets = {getpid()},
       .memory = [this](size_t size_bytes) -> Expected<std::span<uint8_t>> {
         tables_.resize(size_bytes);
         return std::span<uint8_t>(tables_);
       }}));
  header().pid = static_cast<uint32_t>(getpid());
  header().sessions[kSession].unwind_tables = address_of(tables_.data());
  header().sessions[kSession].unwind_rows = stacks_->rows_max();
  return {};
}

uint32_t DMachine::unknown_code() const {
  return reinterpret_cast<const abi::TargetPage*>(low_ + abi::kTargetPageOffset)
      ->unknown_code[kSession];
}

std::vector<kernel::Record> DMachine::read_records() {
  constexpr uint64_t kMask = (uint64_t{1} << abi::kMachineRingSizeLog2) - 1;
  std::vector<kernel::Record> records;
  abi::RegionHeader& counters = region();
  const uint8_t* const ring = own_slot() + kRegionOffset + abi::kMachineRegionRing;
  while (counters.ring_tail != counters.ring_head) {
    const uint8_t* const event = ring + (counters.ring_tail & kMask);
    uint32_t head[2];
    std::memcpy(head, event, sizeof head);
    if (head[1] != abi::kMachineEventShape || head[0] <= abi::kMachineEventHeadBytes) break;
    kernel::Record record;
    record.bytes.assign(event + abi::kMachineEventHeadBytes, event + head[0]);
    std::memcpy(&record.header, record.bytes.data(), sizeof record.header);
    records.push_back(std::move(record));
    counters.ring_tail += head[0];
  }
  return records;
}

std::vector<kernel::MachineAggregate> DMachine::aggregate(uint32_t aggregation) const {
  return kernel::read_aggregation(maps_, aggregation, false);
}

std::vector<kernel::MachineAggregate> DMachine::take(uint32_t aggregation) {
  return kernel::read_aggregation(maps_, aggregation, true);
}

}  // namespace clew::process
