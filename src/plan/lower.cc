// SPDX-License-Identifier: Apache-2.0
// The programs of a query: one for each of its sources, and those that keep the records of calls.
#include "plan/lower.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "abi/context.h"
#include "aggregate/hash.h"
#include "base/assert.h"
#include "plan/lowering.h"
#include "plan/update.h"
#include "plan/uprobe_form.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::SourceKind;

namespace {

constexpr uint32_t kOffsetMax = 32'000;
constexpr auto kEventHeaderBytes = static_cast<int32_t>(abi::kEventHeaderBytes);

ProgramPoint point_of(SourceKind kind) {
  if (kind == SourceKind::Entry) return ProgramPoint::Entry;
  return is_exit_source(kind) ? ProgramPoint::Exit : ProgramPoint::Offset;
}

}  // namespace

Expected<void> Lowering::filters(Coder& coder) {
  for (const Expression* condition : plan_.program_filters())
    CLEW_TRY(coder.require(*condition));
  return {};
}

void Lowering::count_passed(Coder& coder) {
  if (!result_.passed_dense) return;
  CLEW_ASSERT(passed_offset_ >= result_.layout.cells_offset);
  coder.builder().load_window(Register::R2, passed_offset_);
  add_generation(coder, Register::R2, result_.layout.cells_half_bytes);
  coder.builder()
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Add, Register::R3, 1)
      .store(Size::Double, Register::R2, 0, Register::R3);
}

// `pointer` += the half of the state that takes updates now.
void Lowering::add_generation(Coder& coder, Register pointer, uint32_t half_bytes) {
  if (result_.layout.generations == 1) return;
  coder.builder()
      .load(Size::Double, Register::R3, Register::R6, offsetof(abi::Context, generation))
      .alu(Alu::And, Register::R3, 1)
      .alu(Alu::Multiply, Register::R3, static_cast<int32_t>(half_bytes))
      .alu(Alu::Add, pointer, Register::R3);
}

// A key with a stack is in the region, from where the runtime looks it up: the frame has no room,
// and the program would be long. r9 = the entry of the key.
Expected<void> Lowering::find_long_entry(Coder& coder) {
  isa::Builder& builder = coder.builder();
  const int32_t hash = CLEW_TRY(coder.reserve(8));
  builder.load_constant(Register::R0, aggregate::kHashSeed)
      .store(Size::Double, Register::R10, hash, Register::R0)
      .load_window(Register::R9, key_offset_);
  const auto add_word = [&] {
    builder.load(Size::Double, Register::R0, Register::R10, hash);
    coder.hash_step();
    builder.store(Size::Double, Register::R10, hash, Register::R0);
  };
  int32_t at = 0;
  for (const Expression* part : key_parts(query_)) {
    const bool is_stack = part->type.kind == query::TypeKind::Stack;
    const auto end = at + static_cast<int32_t>(8 * stored_words(*part));
    CLEW_TRY(coder.store(*part, Register::R9, at));
    if (is_stack) {
      builder.move(Register::R2, Register::R0);
      add_word();
    }
    for (; !is_stack && at < end; at += 8) {
      builder.load(Size::Double, Register::R2, Register::R9, at);
      add_word();
    }
    at = end;
  }
  builder.move(Register::R1, 0)
      .load_window(Register::R2, key_offset_)
      .load(Size::Double, Register::R3, Register::R10, hash)
      .call(abi::Accessor::TableFind)
      .jump_if(Jump::Equal, Register::R0, 0, coder.exit_label())
      .move(Register::R9, Register::R0)
      .alu(Alu::Subtract, Register::R9,
           static_cast<int32_t>(8 + 8 * result_.layout.tables[0].key_words));
  CLEW_ASSERT(at == static_cast<int32_t>(8 * result_.layout.tables[0].key_words));
  return {};
}

// The key in the frame, or in r5 when it is one word; r0 = its hash.
Expected<Lowering::KeyPlace> Lowering::hash_key(Coder& coder) {
  const uint32_t words = result_.layout.tables[0].key_words;
  CLEW_ASSERT(words > 0);  // Without a key the counts are dense.
  const std::vector<const Expression*> parts = key_parts(query_);
  const KeyPlace key{.area = CLEW_TRY(coder.reserve(8 * words)),
                     .in_register = words == 1 && is_stored_as_word(*parts[0])};
  isa::Builder& builder = coder.builder();
  if (key.in_register) {
    CLEW_TRY(coder.word(*parts[0]));
    builder.move(Register::R5, Register::R0).load_constant(Register::R2, aggregate::kHashSeed);
    coder.hash_step();
    return key;
  }
  int32_t at = key.area;
  for (const Expression* part : parts) {
    CLEW_TRY(coder.store(*part, Register::R10, at));
    at += static_cast<int32_t>(8 * stored_words(*part));
  }
  CLEW_ASSERT(at == key.area + static_cast<int32_t>(8 * words));
  builder.load_constant(Register::R0, aggregate::kHashSeed);
  for (at = key.area; at < key.area + static_cast<int32_t>(8 * words); at += 8) {
    builder.load(Size::Double, Register::R2, Register::R10, at);
    coder.hash_step();
  }
  return key;
}

// r9 = the entry of the key. The first place where it can be is looked at here, the others and an
// insertion are for the runtime.
Expected<void> Lowering::find_entry(Coder& coder) {
  const abi::TableLayout& table = result_.layout.tables[0];
  const KeyPlace key = CLEW_TRY(hash_key(coder));
  isa::Builder& builder = coder.builder();
  const Label slow = builder.label();
  const Label found = builder.label();
  // The top bit of the shifted hash is the half, the bits below it are the position there.
  builder.load_window(Register::R3, offsetof(abi::RegionHeader, table_half))
      .load(Size::Double, Register::R3, Register::R3, 0)
      .move(Register::R1, Register::R0)
      .alu(Alu::ShiftRight, Register::R1, 1)
      .alu(Alu::Or, Register::R1, Register::R3)
      .alu(Alu::ShiftRight, Register::R1, static_cast<int32_t>(63 - table.entries_log2))
      .alu(Alu::Multiply, Register::R1, static_cast<int32_t>(table.entry_size_bytes()))
      .load_window(Register::R9, table.offset)
      .alu(Alu::Add, Register::R9, Register::R1);
  add_generation(coder, Register::R9, table.generation_size_bytes());
  builder.alu(Alu::Or, Register::R0, 1)
      .load(Size::Double, Register::R3, Register::R9, 0)
      .jump_if(Jump::NotEqual, Register::R3, Register::R0, slow);
  // Registers that the call changes anyway.
  const Register wanted = key.in_register ? Register::R5 : Register::R2;
  for (uint32_t word = 0; word < table.key_words; ++word) {
    const auto offset = static_cast<int32_t>(8 * word);
    if (!key.in_register) builder.load(Size::Double, wanted, Register::R10, key.area + offset);
    builder.load(Size::Double, Register::R3, Register::R9, 8 + offset)
        .jump_if(Jump::NotEqual, Register::R3, wanted, slow);
  }
  builder.bind(found);
  const auto to_cells = static_cast<int32_t>(8 + 8 * table.key_words);
  coder.out_of_line([&coder, slow, found, key, to_cells] {
    isa::Builder& far = coder.builder();
    far.bind(slow);
    if (key.in_register) far.store(Size::Double, Register::R10, key.area, Register::R5);
    far.move(Register::R1, 0)
        .move(Register::R2, Register::R10)
        .alu(Alu::Add, Register::R2, key.area)
        .move(Register::R3, Register::R0)
        .call(abi::Accessor::TableFind)
        .jump_if(Jump::Equal, Register::R0, 0, coder.exit_label())
        .move(Register::R9, Register::R0)
        .alu(Alu::Subtract, Register::R9, to_cells)
        .jump(found);
  });
  return {};
}

// Computes the arguments for which memory must be read: a hit whose memory cannot be read leaves
// before anything is counted. In a dense group the first argument may wait for its own turn.
Expected<std::vector<std::optional<int32_t>>> Lowering::read_arguments(
    Coder& coder, const query::Source& source) {
  std::vector<std::optional<int32_t>> areas(query_.aggregates.size());
  const size_t first = result_.form == StateForm::Dense ? 1 : 0;
  for (size_t i = first; i < query_.aggregates.size(); ++i) {
    const query::Aggregate& aggregate = query_.aggregates[i];
    if (!needs_value(aggregate)) continue;
    Use use;
    find_use(query_, source, aggregate.arguments[0], use);
    if (use.memory) areas[i] = CLEW_TRY(prepare(coder, aggregate));
  }
  return areas;
}

Expected<void> Lowering::update_cells(Coder& coder, const query::Source& source) {
  const auto prepared = CLEW_TRY(read_arguments(coder, source));
  if (result_.form == StateForm::Table) {
    CLEW_TRY(result_.walks_stacks ? find_long_entry(coder) : find_entry(coder));
  } else {
    coder.load_site(Register::R9, SiteConstant::GroupPointer);
    add_generation(coder, Register::R9, result_.layout.cells_half_bytes);
  }
  CLEW_ASSERT(prepared.size() == query_.aggregates.size());
  // Offsets in instructions have 16 bits; r9 moves on when they are used up.
  uint32_t offset =
      result_.form == StateForm::Table ? 8 + 8 * result_.layout.tables[0].key_words : 0;
  for (size_t i = 0; i < query_.aggregates.size(); ++i) {
    if (offset > kOffsetMax) {
      coder.builder().alu(Alu::Add, Register::R9, static_cast<int32_t>(offset));
      offset = 0;
    }
    CLEW_TRY(update(coder, query_.aggregates[i], offset, prepared[i]));
    offset += 8 * aggregate::cell_words(spec_of(query_.aggregates[i]));
  }
  count_passed(coder);
  return {};
}

// r9 = where the next event goes; leaves when the largest one has no room. Gives the offset of the
// ring that is not in r9 yet.
int32_t Lowering::begin_event(Coder& coder, uint32_t size_max) {
  const abi::RingLayout& ring = result_.layout.ring;
  CLEW_ASSERT(ring.size_log2 > 0 && size_max <= abi::kEventSizeMax);
  isa::Builder& builder = coder.builder();
  const Label full = builder.label();
  builder.load_window(Register::R2, offsetof(abi::RegionHeader, ring_head))
      .load(Size::Double, Register::R9, Register::R2, 0)
      .move(Register::R0, Register::R9)
      .load(Size::Double, Register::R3, Register::R2, 8)
      .alu(Alu::Subtract, Register::R0, Register::R3)
      .jump_if(Jump::Greater, Register::R0, static_cast<int32_t>((1U << ring.size_log2) - size_max),
               full)
      .alu(Alu::And, Register::R9, static_cast<int32_t>((1U << ring.size_log2) - 1));
  coder.out_of_line([&coder, full] {
    coder.builder().bind(full);
    coder.count_loss(offsetof(abi::RegionHeader, dropped_ring));
    coder.builder().jump(coder.exit_label());
  });
  // Offsets in instructions have 16 bits; a ring near the start of the window needs no addition.
  if (ring.offset < kOffsetMax - abi::kEventSizeMax) return static_cast<int32_t>(ring.offset);
  builder.load_window(Register::R3, ring.offset).alu(Alu::Add, Register::R9, Register::R3);
  return 0;
}

Expected<void> Lowering::emit_event(Coder& coder, uint16_t source) {
  const collect::EventWords words = words_of_event(captured_.captures);
  result_.event_words[source] = words;
  const uint32_t size_max = kEventHeaderBytes + 8 * words.most;
  if (size_max > abi::kEventSizeMax) {
    return fail(ErrorCode::Limit,
                fmt::format("an event of this query may have {} bytes, {} are possible", size_max,
                            abi::kEventSizeMax));
  }
  const int32_t at = begin_event(coder, size_max);
  return words.vary() ? emit_long_event(coder, source, at) : emit_short_event(coder, source, at);
}

// Behind the header of the event at [r9 + at].
Expected<int32_t> Lowering::store_event(Coder& coder, int32_t at) {
  return store_captures(coder, captured_.captures, at + kEventHeaderBytes,
                        [&coder](const Expression& capture, int32_t place) {
                          return coder.store(capture, Register::R9, place);
                        });
}

// All events have one size.
Expected<void> Lowering::emit_short_event(Coder& coder, uint16_t source, int32_t at) {
  const uint32_t size = kEventHeaderBytes + 8 * result_.event_words[source].most;
  isa::Builder& builder = coder.builder();
  builder.load_constant(Register::R0, uint64_t{source} << 32 | size)
      .store(Size::Double, Register::R9, at, Register::R0);
  coder.stamp(Register::R9, at + 8);
  const int32_t end = CLEW_TRY(store_event(coder, at));
  CLEW_ASSERT(end - at == static_cast<int32_t>(size));
  builder.load_window(Register::R2, offsetof(abi::RegionHeader, ring_head))
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Add, Register::R3, static_cast<int32_t>(size))
      .store(Size::Double, Register::R2, 0, Register::R3);
  return {};
}

// The event's size is known when its texts are there. Behind each of them r9 moves on, so that what
// is needed afterwards is in the frame: where the event begins, and its time.
Expected<void> Lowering::emit_long_event(Coder& coder, uint16_t source, int32_t at) {
  isa::Builder& builder = coder.builder();
  const int32_t begin = CLEW_TRY(coder.reserve(8));
  builder.store(Size::Double, Register::R10, begin, Register::R9);
  coder.stamp(Register::R10, CLEW_TRY(coder.reserve(8)));
  builder.store(Size::Double, Register::R9, at + 8, Register::R0);
  const int32_t end = CLEW_TRY(store_event(coder, at));
  CLEW_ASSERT(end - at ==
              kEventHeaderBytes + static_cast<int32_t>(8 * result_.event_words[source].least));
  builder.load(Size::Double, Register::R1, Register::R10, begin)
      .alu(Alu::Subtract, Register::R9, Register::R1)
      .alu(Alu::Add, Register::R9, end - at)
      .load_constant(Register::R0, uint64_t{source} << 32)
      .alu(Alu::Or, Register::R0, Register::R9)
      .store(Size::Double, Register::R1, at, Register::R0)
      .load_window(Register::R2, offsetof(abi::RegionHeader, ring_head))
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Add, Register::R3, Register::R9)
      .store(Size::Double, Register::R2, 0, Register::R3);
  return {};
}

// What is done for a hit, when the record of its call is there.
Expected<void> Lowering::count(Coder& coder, uint16_t index, const Use& use) {
  const query::Source& source = query_.sources[index];
  if (is_exit_source(source.kind) && use.elapsed) {
    CLEW_TRY(coder.measure_elapsed(use.time || result_.form == StateForm::Events));
  }
  coder.prepare_extensions(use.functions);
  if (duty_of(index) != nullptr && !CLEW_TRY(perform(coder, index, use))) return {};
  CLEW_TRY(filters(coder));
  count_of_duty(coder, index, DutyCounter::Passed);
  if (result_.form == StateForm::Events) return emit_event(coder, index);
  if (query_.window) CLEW_TRY(coder.keep_time());
  return update_cells(coder, source);
}

Expected<void> Lowering::program(uint16_t index) {
  const query::Source& source = query_.sources[index];
  const Use use = use_of(source);
  Coder coder(query_, source, environment_);
  coder.begin();
  if (is_exit_source(source.kind) && use.any()) {
    coder.take_record({.elapsed = use.elapsed, .arguments = !use.arguments.empty()});
  } else if (pairs_for_open(source)) {
    coder.forget_record();
  }
  CLEW_TRY(count(coder, index, use));
  CLEW_ASSERT(index < query_.sources.size() && query::is_process_source(source.kind));
  isa::Program program = CLEW_TRY(coder.finish(fmt::format("source {}", index)));
  std::optional<isa::Program> at_tail_call;
  const bool has_record = use.any() || pairs_for_open(source);
  if (use.return_value) at_tail_call = CLEW_TRY(tail_call_program(source, has_record, coder));
  result_.programs.push_back({.program = std::move(program),
                              .source = index,
                              .point = point_of(source.kind),
                              .at_tail_call = std::move(at_tail_call),
                              .site_constants = coder.site_constants()});
  return {};
}

// Takes the record, if there is one, and counts the hit as missed.
Expected<isa::Program> Lowering::tail_call_program(const query::Source& source, bool has_record,
                                                   const Coder& main) {
  Coder coder(query_, source, environment_);
  for (const SiteConstant constant : main.site_constants()) {
    (void)coder.site_constant(constant);  // The same numbers as in the main program.
  }
  coder.begin();
  if (has_record) coder.take_record({});
  const Duty* const duty = duty_of(static_cast<size_t>(&source - query_.sources.data()));
  if (duty != nullptr && duty->kind != Duty::Kind::Answer) {
    coder.builder()
        .move(Register::R1, static_cast<int32_t>(abi::ContextAct::Lose))
        .move(Register::R2, 0)
        .move(Register::R3, 0)
        .call(abi::Accessor::ContextAct);
  }
  CLEW_ASSERT(coder.site_constants() == main.site_constants());
  coder.count_loss(offsetof(abi::RegionHeader, missed_tail_call));
  return coder.finish("tail call");
}

// `coder` has written what is counted nowhere, but keeps the records of calls.
Expected<void> Lowering::add_recorder(Coder& coder, std::string_view name, uint16_t source,
                                      ProgramPoint point) {
  isa::Program program = CLEW_TRY(coder.finish(fmt::format("{} {}", name, source)));
  result_.programs.push_back({.program = std::move(program),
                              .source = source,
                              .point = point,
                              .is_recorder = true,
                              .site_constants = coder.site_constants()});
  return {};
}

Expected<void> Lowering::recorder(uint16_t index) {
  Coder coder(query_, query_.sources[index], environment_);
  coder.begin();
  coder.put_record();
  return add_recorder(coder, "recorder", index, ProgramPoint::Entry);
}

// At the exits of the functions of an exception source: the call is not left by an exception.
Expected<void> Lowering::remover(uint16_t index) {
  Coder coder(query_, query_.sources[index], environment_);
  coder.begin();
  coder.drop_record();
  return add_recorder(coder, "remover", index, ProgramPoint::Exit);
}

// What is done for a call of this source that is left by an exception.
Expected<void> Lowering::part(Coder& coder, uint16_t index) {
  const query::Source& source = query_.sources[index];
  const Use use = use_of(source);
  coder.begin_part(source, use.elapsed);
  CLEW_TRY(count(coder, index, use));
  coder.end_part();
  return {};
}

// The programs at the unwinder and at longjmp, which serve all exception sources.
Expected<void> Lowering::unwinder() {
  const auto is_exception = [](const query::Source& source) {
    return source.kind == SourceKind::Exception;
  };
  const auto first = std::find_if(query_.sources.begin(), query_.sources.end(), is_exception);
  if (first == query_.sources.end()) return {};
  const auto first_index = static_cast<uint16_t>(first - query_.sources.begin());
  Coder start(query_, *first, environment_);
  start.begin();
  start.note_unwinder();
  Coder jump(query_, *first, environment_);
  jump.begin();
  jump.drop_jumped();
  Coder landing(query_, *first, environment_);
  landing.begin_landing();
  for (size_t i = first_index; i < query_.sources.size(); ++i) {
    if (is_exception(query_.sources[i])) CLEW_TRY(part(landing, static_cast<uint16_t>(i)));
  }
  landing.end_landing();
  result_.programs.push_back({.program = CLEW_TRY(start.finish("start of unwinding")),
                              .source = first_index,
                              .point = ProgramPoint::UnwindStart,
                              .is_recorder = true});
  result_.programs.push_back({.program = CLEW_TRY(jump.finish("longjmp")),
                              .source = first_index,
                              .point = ProgramPoint::Jump,
                              .is_recorder = true});
  result_.programs.push_back({.program = CLEW_TRY(landing.finish("landing")),
                              .source = first_index,
                              .point = ProgramPoint::Landing});
  return {};
}

Expected<Lowered> Lowering::run() {
  if (reads_stack(query_) && !can_walk_in_processes(query_)) {
    return fail(ErrorCode::InvalidQuery, "the kernel alone can walk these stacks");
  }
  CLEW_TRY(find_state());
  CLEW_TRY(lay_out());
  result_.event_words.resize(query_.sources.size());
  for (size_t i = 0; i < query_.sources.size(); ++i) {
    const query::Source& source = query_.sources[i];
    const auto index = static_cast<uint16_t>(i);
    if (!query::is_process_source(source.kind)) continue;
    CLEW_TRY(check_duty(index));
    const bool is_exception = source.kind == SourceKind::Exception;
    const bool records =
        pairs_for_open(source) || (is_exit_source(source.kind) && use_of(source).any());
    if (is_exception || records) CLEW_TRY(recorder(index));
    CLEW_TRY(is_exception ? remover(index) : program(index));
  }
  CLEW_TRY(unwinder());
  CLEW_ASSERT(next_ <= uint64_t{1} << result_.layout.size_log2);  // Nothing was placed since.
  return std::move(result_);
}

// In two parts, as in the probe.
uint64_t Clock::monotonic_ns(uint64_t ticks) const {
  const uint64_t since = ticks - base_ticks;
  const uint64_t high = (since >> 32) * tick_multiplier << (32 - tick_shift);
  const uint64_t low = (since & UINT32_MAX) * tick_multiplier >> tick_shift;
  return base_ns + high + low;
}

uint64_t Lowered::group_pointer(uint32_t group) const {
  CLEW_ASSERT(state.dense.empty() || group < state.dense[0].groups || form != StateForm::Dense);
  const uint32_t words = state.dense.empty() ? 0 : state.dense[0].group.words();
  return layout.cells_offset + uint64_t{8} * words * group;
}

StateForm state_form(const Plan& plan) {
  if (!plan.has(OperatorKind::PartialGroup) && !plan.has(OperatorKind::PartialAggregate)) {
    return StateForm::Events;
  }
  return keys_known_before(plan.query) ? StateForm::Dense : StateForm::Table;
}

Expected<Lowered> lower(const Plan& plan, const LowerInput& input) {
  return Lowering(plan, input).run();
}

}  // namespace clew::plan
