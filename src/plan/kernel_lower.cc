// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_lower.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "abi/context.h"
#include "abi/machine/accessor.h"
#include "abi/query_window.h"
#include "base/assert.h"
#include "isa/opcode.h"
#include "plan/capture.h"
#include "plan/kernel_cells.h"
#include "plan/kernel_functions.h"
#include "plan/kernel_lowering.h"
#include "plan/lowering.h"
#include "plan/update.h"

namespace clew::plan {

using abi::MachineAccessor;
using abi::QueryAccessor;
using abi::QueryWord;
using isa::Alu;
using isa::Jump;
using isa::Register;
using isa::Size;
using query::Expression;
using query::SourceKind;

namespace {

constexpr uint32_t kFrameStart = abi::kFrameEnd;  // sample() words follow in the region.
constexpr int32_t kEntryArguments = 6;
// Time, arguments, id of the probe.
constexpr uint32_t kEntryRecordBytes = 8 * (1 + kEntryArguments + 1);
static_assert(kEntryRecordBytes <= abi::kQueryEntryBytes);
constexpr uint32_t kCallKeyBytes = 16;  // Of a function's: the call's frame, the probe.

// A thread is in many calls of functions at once, in one system call.
bool is_nested(const query::Source& source) {
  return query::is_kernel_function(source.kind) || source.kind == SourceKind::Return;
}

}  // namespace

// --- state ---------------------------------------------------------------------------------------

// What a hit that passes its filters computes.
std::vector<const Expression*> KernelLowering::counted() const {
  std::vector<const Expression*> all;
  if (result_.root.form == StateForm::Events) {
    for (const Expression& capture : captured_.captures)
      all.push_back(&capture);
    return all;
  }
  all = key();
  for (const query::Aggregate& aggregate : query_.aggregates) {
    for (const Expression& argument : aggregate.arguments)
      all.push_back(&argument);
  }
  return all;
}

// Of a cell.
std::vector<const Expression*> KernelLowering::key() const {
  std::vector<const Expression*> parts = key_parts(query_);
  for (const Expression& owner : owner_keys_)
    parts.push_back(&owner);
  return parts;
}

// The table of an earlier aggregate that counts the same, or a new one.
size_t KernelLowering::table_for(const query::Aggregate& aggregate, uint32_t key_words) {
  for (size_t i = 0; i < result_.table_of.size(); ++i) {
    if (have_same_cells(query_.aggregates[i], aggregate)) return result_.table_of[i];
  }
  result_.aggregations.push_back(kernel_aggregation(aggregate, 8 * key_words));
  return result_.aggregations.size() - 1;
}

Expected<void> KernelLowering::find_table() {
  aggregate::TableShape shape = table_shape(query_);
  shape.key_words += static_cast<uint32_t>(owner_keys_.size());
  const uint32_t key_words = shape.key_words;
  constexpr uint32_t kKeyBytesMax = abi::kMachineKeyBytesMax - 8;  // A bucket may follow.
  if (8 * key_words > kKeyBytesMax) {
    return fail(ErrorCode::Limit, fmt::format("a key of this query has {} bytes, {} are possible",
                                              8 * key_words, kKeyBytesMax));
  }
  for (const query::Aggregate& aggregate : query_.aggregates)
    result_.table_of.push_back(table_for(aggregate, key_words));
  if (query_.aggregates.empty()) result_.aggregations.push_back(kernel_count(8 * key_words));
  result_.root.state.tables.push_back(std::move(shape));
  return {};
}

Expected<void> KernelLowering::place_samples() {
  uint32_t samples = 0;
  for (const Expression& condition : query_.where)
    samples += count_samples(condition);
  for (const Expression* expression : counted())
    samples += count_samples(*expression);
  for (const query::NamedExpression& let : query_.lets)
    samples += count_samples(let.expression);
  environment_.samples_offset = kFrameStart;
  if (kFrameStart + 8 * samples <= abi::kQueryRegionBytes) return {};
  return fail(ErrorCode::Limit, "the query has too many sample()");
}

Expected<void> KernelLowering::find_state() {
  const bool in_tables =
      plan_.has(OperatorKind::PartialGroup) || plan_.has(OperatorKind::PartialAggregate);
  result_.root.form = in_tables ? StateForm::Table : StateForm::Events;
  result_.root.event_words.resize(query_.sources.size());
  // Time stamps of the kernel are ns: one tick is one ns.
  environment_.tick_multiplier = 1;
  result_.root.clock = {.tick_multiplier = 1, .epoch_ns = input_.epoch_ns};
  environment_.for_kernel = true;
  result_.root.records = {.has_time = true, .arguments = {0, 1, 2, 3, 4, 5}};
  offer_functions();
  if (in_tables) {
    CLEW_TRY(find_table());
  } else {
    captured_ = CLEW_TRY(capture(plan_));
    result_.root.captures = captured_.captures;
  }
  return place_samples();
}

// --- functions of extensions ---------------------------------------------------------------------

void KernelLowering::offer_functions() {
  for (const extension::Extension& extension : input_.extensions) {
    for (const extension::Function& function : extension.functions)
      environment_.functions[function.name].function = &function;
  }
}

// --- programs ------------------------------------------------------------------------------------

void KernelLowering::load_word(Coder& coder, QueryWord word) {
  isa::Builder& builder = coder.builder();
  const auto address = [&](QueryAccessor accessor, uint32_t offset) {
    builder.move(Register::R2, static_cast<int32_t>(offset));
    call(coder, accessor);
    builder.load_constant(Register::R0, abi::kMachineWindowTag | offset);
  };
  if (word == QueryWord::NodeName)
    return address(QueryAccessor::NodeName, abi::kQueryNodeNameOffset);
  if (word == QueryWord::Uid || word == QueryWord::ControlGroup) {
    const bool is_uid = word == QueryWord::Uid;
    result_.asks_for_groups = result_.asks_for_groups || !is_uid;
    call(coder, is_uid ? QueryAccessor::Uid : QueryAccessor::ControlGroup);
    builder
        .load_window(Register::R3,
                     machine(is_uid ? abi::kQueryUidOffset : abi::kQueryControlGroupOffset))
        .store(Size::Double, Register::R3, 0, Register::R0);
    return;
  }
  if (word >= QueryWord::Elapsed) return;  // take_entry() has them.
  if (word == QueryWord::Pid) call(coder, QueryAccessor::Pid);
  if (word == QueryWord::Comm) address(QueryAccessor::Comm, abi::kQueryCommOffset);
  if (word == QueryWord::ProcessName) {
    address(QueryAccessor::ProcessName, abi::kQueryProcessNameOffset);
  }
  builder.store(Size::Double, Register::R6, context_of(word), Register::R0);
}

// Of a function of a process the return address: at its entry that is on the stack, at its return
// the thread is there. What cannot be read stays 0.
void KernelLowering::load_caller(Coder& coder, const query::Source& source) {
  constexpr auto kCaller = static_cast<int32_t>(offsetof(abi::Context, caller));
  constexpr auto kPlace = static_cast<uint32_t>(offsetof(abi::MachineWindowHeader, user_pc));
  isa::Builder& builder = coder.builder();
  if (source.kind == SourceKind::Entry) {
    builder.load_window(Register::R1, machine(abi::kQueryContextOffset + kCaller))
        .move(Register::R2, 8)
        .load(Size::Double, Register::R3, Register::R6, offsetof(abi::Context, frame))
        .call(abi::Accessor::TryRead);
    return;
  }
  if (source.kind == SourceKind::Return) {
    builder.load_window(Register::R3, machine(kPlace))
        .load(Size::Double, Register::R0, Register::R3, 0);
  } else {
    call(coder, QueryAccessor::Caller);
  }
  builder.store(Size::Double, Register::R6, kCaller, Register::R0);
}

// The key of the variable of open calls of a function.
void KernelLowering::put_call_key(Coder& coder, const query::Source& source) {
  if (!is_nested(source)) return;
  coder.builder()
      .load_window(Register::R2, machine(abi::kMachineKeyOffset))
      .load(Size::Double, Register::R0, Register::R6, offsetof(abi::Context, frame))
      .store(Size::Double, Register::R2, 0, Register::R0);
  load_probe(coder);
  coder.builder().store(Size::Double, Register::R2, 8, Register::R0);
}

// r0 = the id of the probe. Uses r3.
void KernelLowering::load_probe(Coder& coder) {
  constexpr auto kProbe = static_cast<uint32_t>(offsetof(abi::MachineWindowHeader, probe));
  coder.builder()
      .load_window(Register::R3, machine(kProbe))
      .load(Size::Word, Register::R0, Register::R3, 0);
}

// What a hit and its filters compute.
KernelUse KernelLowering::use_of(const query::Source& source) const {
  KernelUse use;
  for (const Expression* expression : counted())
    find_kernel_use(query_, source, *expression, use);
  for (const Expression* condition : plan_.program_filters())
    find_kernel_use(query_, source, *condition, use);
  return use;
}

bool KernelLowering::pairs_for_open(const query::Source& source) const {
  return query_.including_open && source.kind == SourceKind::SyscallReturn;
}

// Before any filter: a call that has returned is not open, whoever asks for it.
Expected<void> KernelLowering::entry(Coder& coder, const query::Source& source,
                                     const KernelUse& use) {
  if (!use.entry()) {
    if (!pairs_for_open(source)) return {};
    coder.builder().move(Register::R2, variable_);
    call(coder, MachineAccessor::VariableDelete);
    return {};
  }
  KernelUse first;
  first.words.insert(QueryWord::Elapsed);
  return provide(coder, source, first);
}

// The words of the entry from the thread's variable; leaves when there are none.
void KernelLowering::take_entry(Coder& coder, const query::Source& source) {
  isa::Builder& builder = coder.builder();
  const isa::Label unpaired = builder.label();
  put_call_key(coder, source);
  builder.move(Register::R2, variable_)
      .move(Register::R3, static_cast<int32_t>(abi::kQueryEntryOffset));
  call(coder, MachineAccessor::VariableLoadBytes);
  builder.jump_if(Jump::Equal, Register::R0, 0, unpaired).move(Register::R2, variable_);
  call(coder, MachineAccessor::VariableDelete);
  builder.call(abi::Accessor::Time)
      .load_window(Register::R2, machine(abi::kQueryEntryOffset))
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Subtract, Register::R0, Register::R3)
      .store(Size::Double, Register::R6, context_of(QueryWord::Elapsed), Register::R0);
  for (int32_t i = 0; i < kEntryArguments; ++i) {
    builder.load(Size::Double, Register::R0, Register::R2, 8 * (1 + i))
        .store(Size::Double, Register::R6, context_of(QueryWord::EntryArgument0) + 8 * i,
               Register::R0);
  }
  coder.out_of_line([&coder, unpaired] {
    coder.builder().bind(unpaired);
    coder.count_loss(offsetof(abi::RegionHeader, missed_unpaired));
    coder.builder().jump(coder.exit_label());
  });
}

// Puts what is used, and not there yet, into the context.
Expected<void> KernelLowering::provide(Coder& coder, const query::Source& source,
                                       const KernelUse& use) {
  if (use.entry() && !provided_.entry()) take_entry(coder, source);
  for (const QueryWord word : use.words) {
    if (provided_.words.insert(word).second) load_word(coder, word);
  }
  if (use.tid && !provided_.tid) {
    provided_.tid = true;
    call(coder, QueryAccessor::Tid);
    coder.builder().store(Size::Double, Register::R6, offsetof(abi::Context, tid), Register::R0);
  }
  if (use.caller && !provided_.caller) {
    provided_.caller = true;
    load_caller(coder, source);
  }
  return {};
}

Expected<void> KernelLowering::filters(Coder& coder, const query::Source& source) {
  for (const Expression* condition : plan_.program_filters()) {
    KernelUse use;
    find_kernel_use(query_, source, *condition, use);
    CLEW_TRY(provide(coder, source, use));
    CLEW_TRY(coder.require(*condition));
  }
  return {};
}

// At [r9 + at].
Expected<void> KernelLowering::store(Coder& coder, const query::Source& source,
                                     const Expression& value, int32_t at) {
  if (value.type.kind != query::TypeKind::Stack) return coder.store(value, Register::R9, at);
  store_stack(coder, source, meaning_of(query_, source, value), at);
  return {};
}

void KernelLowering::store_stack(Coder& coder, const query::Source& source, const Expression& stack,
                                 int32_t at) {
  const bool is_kernel =
      stack.field == query::Field::KernelStack ||
      (stack.field == query::Field::Stack && query::is_kernel_source(source.kind));
  isa::Builder& builder = coder.builder();
  if (is_kernel) {
    builder.store(Size::Double, Register::R9, at, 0);
    at += 8;
  }
  // Where that is in the window.
  builder.move(Register::R2, Register::R9)
      .load_window(Register::R3, machine(0))
      .alu(Alu::Subtract, Register::R2, Register::R3)
      .alu(Alu::Add, Register::R2, at)
      .move(Register::R3, static_cast<int32_t>(frames_of(stack)));
  call(coder, is_kernel ? QueryAccessor::KernelStack : QueryAccessor::UserStack);
}

Expected<void> KernelLowering::emit_event(Coder& coder, uint16_t source) {
  constexpr auto kHeaderBytes = static_cast<int32_t>(sizeof(abi::MachineRecordHeader));
  const collect::EventWords words = words_of_event(captured_.captures);
  result_.root.event_words[source] = words;
  const uint32_t size = kHeaderBytes + 8 * words.most;
  if (size > abi::kMachineRecordBytesMax) {
    return fail(ErrorCode::Limit,
                fmt::format("an event of this query may have {} bytes, {} are possible", size,
                            abi::kMachineRecordBytesMax));
  }
  isa::Builder& builder = coder.builder();
  builder.load_window(Register::R9, machine(abi::kMachineRecordOffset));
  const int32_t at = CLEW_TRY(store_captures(
      coder, captured_.captures, kHeaderBytes, [&](const Expression& capture, int32_t place) {
        return store(coder, query_.sources[source], capture, place);
      }));
  CLEW_ASSERT(at == kHeaderBytes + static_cast<int32_t>(8 * words.least));
  builder.move(Register::R2, at);
  if (words.vary()) {
    builder.load_window(Register::R3, machine(abi::kMachineRecordOffset))
        .move(Register::R2, Register::R9)
        .alu(Alu::Subtract, Register::R2, Register::R3)
        .alu(Alu::Add, Register::R2, at);
  }
  call(coder, MachineAccessor::Commit);
  return {};
}

// Whether an earlier aggregate is counted in the same table.
bool KernelLowering::shares_table(size_t aggregate) const {
  CLEW_ASSERT(result_.table_of.size() == query_.aggregates.size());
  CLEW_ASSERT(aggregate < result_.table_of.size());
  const auto end = result_.table_of.begin() + static_cast<ptrdiff_t>(aggregate);
  return std::find(result_.table_of.begin(), end, result_.table_of[aggregate]) != end;
}

// r0 = what update_cells() keeps of an aggregate.
Expected<void> KernelLowering::prepare_value(Coder& coder, const query::Aggregate& aggregate) {
  CLEW_TRY(compute(coder, aggregate));
  if (kernel_bias(aggregate) == 0) return {};
  coder.builder()
      .load_constant(Register::R2, kernel_bias(aggregate))
      .alu(Alu::Xor, Register::R0, Register::R2);
  return {};
}

// r0 = what was kept: the bucket behind the key, r3 = what is added there.
Expected<void> KernelLowering::put_bucket(Coder& coder, const query::Aggregate& aggregate) {
  isa::Builder& builder = coder.builder();
  const int32_t mark = coder.frame_used();
  if (aggregate.function == abi::AggregateFunction::Distinct) {
    CLEW_TRY(find_distinct_register(coder));
  } else {
    CLEW_TRY(find_quantile_bucket(coder, spec_of(aggregate).is_signed));
    builder.move(Register::R2, Register::R0).move(Register::R3, 1);
  }
  coder.release(mark);
  const uint32_t key_bytes = 8 * result_.root.state.tables[0].key_words;
  builder.load_window(Register::R1, machine(abi::kMachineKeyOffset + key_bytes))
      .store(Size::Double, Register::R1, 0, Register::R2);
  return {};
}

// All values are computed before any is added: memory that cannot be read leaves the hit out whole.
Expected<void> KernelLowering::update_cells(Coder& coder, const query::Source& source) {
  isa::Builder& builder = coder.builder();
  const auto place = [](size_t aggregate) {
    return machine(abi::kQueryValuesOffset + 8 * static_cast<uint32_t>(aggregate));
  };
  for (size_t i = 0; i < query_.aggregates.size(); ++i) {
    if (!needs_value(query_.aggregates[i]) || shares_table(i)) continue;
    CLEW_TRY(prepare_value(coder, query_.aggregates[i]));
    builder.load_window(Register::R2, place(i)).store(Size::Double, Register::R2, 0, Register::R0);
  }
  builder.load_window(Register::R9, machine(abi::kMachineKeyOffset));
  int32_t at = 0;
  for (const Expression* part : key()) {
    CLEW_TRY(store(coder, source, *part, at));
    at += static_cast<int32_t>(8 * stored_words(*part));
  }
  CLEW_ASSERT(at <= static_cast<int32_t>(abi::kMachineKeyBytesMax));
  const auto add = [&](size_t table) {
    builder.move(Register::R2, static_cast<int32_t>(table)).move(Register::R4, 1);
    call(coder, MachineAccessor::Aggregate);
  };
  for (size_t i = 0; i < query_.aggregates.size(); ++i) {
    if (shares_table(i)) continue;
    builder.load_window(Register::R3, place(i)).load(Size::Double, Register::R3, Register::R3, 0);
    if (has_kernel_buckets(query_.aggregates[i])) {
      builder.move(Register::R0, Register::R3);
      CLEW_TRY(put_bucket(coder, query_.aggregates[i]));
    }
    add(result_.table_of[i]);
  }
  if (!query_.aggregates.empty()) return {};
  builder.move(Register::R3, 0);
  add(0);
  return {};
}

bool KernelLowering::is_lowered(uint16_t source) const {
  if (!input_.process_sources.empty()) return input_.process_sources.contains(source);
  return is_kernel_source(query_.sources[source].kind);
}

Expected<void> KernelLowering::program(uint16_t index) {
  CLEW_ASSERT(index < query_.sources.size() && is_lowered(index));
  const query::Source& source = query_.sources[index];
  Coder coder(query_, source, environment_);
  provided_ = {};
  variable_ = static_cast<int32_t>(result_.variables.size());
  coder.begin();
  CLEW_TRY(restrict(coder, source));
  const KernelUse use = use_of(source);
  CLEW_TRY(entry(coder, source, use));
  CLEW_TRY(filters(coder, source));
  CLEW_TRY(provide(coder, source, use));
  if (result_.root.form == StateForm::Events) {
    CLEW_TRY(emit_event(coder, index));
  } else {
    if (query_.window) CLEW_TRY(coder.keep_time());
    CLEW_TRY(update_cells(coder, source));
  }
  result_.programs.push_back({.program = CLEW_TRY(coder.finish(fmt::format("source {}", index))),
                              .source = index,
                              .calls = coder.kernel_calls()});
  return use.entry() || pairs_for_open(source) ? recorder(index) : Expected<void>{};
}

Expected<void> KernelLowering::recorder(uint16_t index) {
  const query::Source& source = query_.sources[index];
  Coder coder(query_, source, environment_);
  provided_ = {};
  CLEW_ASSERT(variable_ == static_cast<int32_t>(result_.variables.size()));  // The next one.
  coder.begin();
  CLEW_TRY(restrict(coder, source));
  isa::Builder& builder = coder.builder();
  builder.call(abi::Accessor::Time)
      .load_window(Register::R2, machine(abi::kQueryEntryOffset))
      .store(Size::Double, Register::R2, 0, Register::R0);
  for (int32_t i = 0; i < kEntryArguments; ++i) {
    builder
        .load(Size::Double, Register::R0, Register::R6,
              static_cast<int32_t>(offsetof(abi::Context, arguments)) + 8 * i)
        .store(Size::Double, Register::R2, 8 * (1 + i), Register::R0);
  }
  load_probe(coder);
  builder.store(Size::Double, Register::R2, 8 * (1 + kEntryArguments), Register::R0);
  put_call_key(coder, source);
  builder.move(Register::R2, variable_)
      .move(Register::R3, static_cast<int32_t>(abi::kQueryEntryOffset));
  call(coder, MachineAccessor::VariableStoreBytes);
  result_.programs.push_back({.program = CLEW_TRY(coder.finish(fmt::format("recorder {}", index))),
                              .source = index,
                              .is_recorder = true});
  if (!is_nested(source))
    result_.calls.push_back({.variable = static_cast<uint32_t>(variable_), .source = index});
  result_.variables.push_back({.key_bytes = is_nested(source) ? kCallKeyBytes : 0,
                               .value_bytes = kEntryRecordBytes,
                               .is_thread = 1,
                               .reserved = 0});
  return {};
}

Expected<KernelLowered> KernelLowering::run() {
  CLEW_TRY(find_state());
  CLEW_ASSERT(result_.variables.empty());
  if (follows()) {
    result_.variables.push_back({.key_bytes = 8, .value_bytes = 8, .is_thread = 0, .reserved = 0});
  }
  for (size_t i = 0; i < query_.sources.size(); ++i) {
    const auto index = static_cast<uint16_t>(i);
    if (is_lowered(index)) CLEW_TRY(program(index));
  }
  CLEW_TRY(family());
  link_kernel_functions(input_.extensions, result_);
  return std::move(result_);
}

Expected<KernelLowered> lower_kernel(const Plan& plan, const KernelLowerInput& input) {
  return KernelLowering(plan, input).run();
}

}  // namespace clew::plan
