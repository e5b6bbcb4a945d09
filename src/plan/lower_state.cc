// SPDX-License-Identifier: Apache-2.0
// The state of a query: which cells, tables, records and rings it needs, and where they lie in the
// region of a thread.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "abi/machine/unwind.h"
#include "base/assert.h"
#include "isa/opcode.h"
#include "plan/lowering.h"
#include "plan/update.h"
#include "plan/uprobe_form.h"
#include "query/arithmetic.h"
#include "query/at_event.h"

namespace clew::plan {

using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::SourceKind;

namespace {

constexpr uint32_t kKeyWordsEnd = 256;  // runtime/accessors.cc, kEntryWordsMax

// What its stored word means differs from process to process.
bool depends_on_process(const Expression& expression) {
  return is_process_constant(expression) ||
         (expression.kind == ExpressionKind::Field && expression.field == Field::Comm);
}

// An answer per interval, or since a common beginning, needs the difference of two reads, or a
// fresh half for each interval.
bool needs_turns(const query::Query& query, bool begins_later) {
  // Tables by pane would fill up.
  if (query.window) return true;
  return (query.every_ns || begins_later) &&
         !std::all_of(query.aggregates.begin(), query.aggregates.end(),
                      [](const auto& a) { return aggregate::subtractable(spec_of(a)); });
}

// Of the node itself.
void find_own_use(const Expression& expression, Use& use) {
  if (expression.kind == ExpressionKind::Field) {
    if (expression.field == Field::Elapsed) use.elapsed = true;
    if (expression.field == Field::Time) use.time = true;
    if (expression.field == Field::ReturnValue) use.return_value = true;
    if (expression.field == Field::Caller) use.caller = true;
    if (expression.type.kind == query::TypeKind::Stack) use.stack = true;
    if (expression.field == Field::Function) use.constants.insert(SiteConstant::FunctionIndex);
    if (expression.field == Field::Module) use.constants.insert(SiteConstant::ModuleIndex);
    if (expression.field == Field::Probe) use.constants.insert(SiteConstant::ProbeIndex);
    if (expression.field == Field::EntryArgument) use.arguments.insert(expression.index);
  }
  const bool calls_extension =
      expression.kind == ExpressionKind::Call && expression.function == query::Function::Extension;
  if (calls_extension) use.functions.insert(expression.text);
  use.memory |= query::reads_memory(expression);
}

}  // namespace

void find_use(const query::Query& query, const query::Source& source, const Expression& expression,
              Use& use) {
  query::find_meaning(query, source, expression, [&use](const Expression& node) {
    find_own_use(node, use);
    return false;
  });
}

uint32_t Lowering::place(uint64_t size_bytes, uint32_t alignment) {
  CLEW_ASSERT(std::has_single_bit(alignment));
  next_ = (next_ + alignment - 1) / alignment * alignment;
  const uint64_t at = next_;
  next_ += size_bytes;
  return static_cast<uint32_t>(std::min<uint64_t>(at, UINT32_MAX));
}

std::vector<Expression> Lowering::probe_expressions(const query::Source& source) const {
  std::vector<Expression> all;
  const auto add = [&](const Expression& e) { all.push_back(query::bind(e, source)); };
  if (const Duty* const duty = duty_of(static_cast<size_t>(&source - query_.sources.data()))) {
    all = duty->operands;
    for (const query::Aggregate& cell : duty->cells)
      all.insert(all.end(), cell.arguments.begin(), cell.arguments.end());
    if (duty->condition) all.push_back(*duty->condition);
    if (duty->kind != Duty::Kind::Answer) return all;
  }
  for (size_t i = 0; i < query_.where.size(); ++i) {
    if (plan_.pushed(OperatorKind::Filter, static_cast<uint16_t>(i))) add(query_.where[i]);
  }
  if (result_.form == StateForm::Events) {
    for (const Expression& e : captured_.captures) {
      add(e);
    }
    return all;
  }
  for (const query::NamedExpression& value : query_.values) {
    if (result_.form == StateForm::Table) add(value.expression);  // Dense: constant at a site.
  }
  for (const query::Aggregate& aggregate : query_.aggregates) {
    for (const Expression& e : aggregate.arguments) {
      add(e);
    }
  }
  return all;
}

Use Lowering::use_of(const query::Source& source) const {
  Use use;
  for (const Expression& e : probe_expressions(source)) {
    find_use(query_, source, e, use);
  }
  return use;
}

// What the entries of its calls must record.
void Lowering::find_records(const query::Source& source) {
  const Use use = use_of(source);
  environment_.records_time |= use.elapsed;
  std::vector<uint16_t>& known = environment_.record_arguments;
  for (const uint16_t argument : use.arguments) {
    const bool is_known = std::find(known.begin(), known.end(), argument) != known.end();
    if (!is_known) known.push_back(argument);
  }
  if (pairs_for_open(source)) {
    environment_.records_time = true;
    environment_.records_caller = true;
  }
  if (source.kind != SourceKind::Exception) return;
  environment_.records_source = true;
  environment_.records_caller |= use.caller;
  environment_.records_registers |= use.stack;
  std::vector<SiteConstant>& constants = environment_.record_constants;
  const auto record = [&](SiteConstant constant) {
    const bool is_known =
        std::find(constants.begin(), constants.end(), constant) != constants.end();
    if (!is_known) constants.push_back(constant);
  };
  if (result_.form == StateForm::Dense) record(SiteConstant::GroupPointer);
  for (const SiteConstant constant : use.constants) {
    record(constant);
  }
}

Expected<void> Lowering::find_state() {
  result_.form = state_form(plan_);
  result_.branch_guards = input_.branch_guards;
  result_.extension_fuel = input_.extension_fuel;
  if (result_.form == StateForm::Events) {
    captured_ = CLEW_TRY(capture(plan_));
    result_.captures = captured_.captures;
  }
  for (const query::Source& source : query_.sources) {
    if (is_exit_source(source.kind)) find_records(source);
  }
  result_.state.by_process =
      !cell_filters(plan_).empty() ||
      std::any_of(query_.values.begin(), query_.values.end(),
                  [](const auto& value) { return depends_on_process(value.expression); }) ||
      std::any_of(query_.aggregates.begin(), query_.aggregates.end(), [](const auto& a) {
        return a.function == abi::AggregateFunction::TopK && depends_on_process(a.arguments[0]);
      });
  environment_.tick_multiplier = input_.tick_multiplier;
  environment_.tick_shift = input_.tick_shift;
  environment_.base_ticks = input_.base_ticks;
  environment_.base_ns = input_.base_ns;
  result_.clock = {.tick_multiplier = input_.tick_multiplier,
                   .tick_shift = input_.tick_shift,
                   .base_ticks = input_.base_ticks,
                   .base_ns = input_.base_ns,
                   .epoch_ns = input_.epoch_ns};
  return {};
}

void Lowering::place_dense() {
  aggregate::GroupShape group;
  if (result_.form == StateForm::Dense) {
    for (const query::Aggregate& aggregate : query_.aggregates) {
      group.cells.push_back(spec_of(aggregate));
    }
    const uint32_t words = group.words();
    result_.state.dense.push_back(
        {.first_word = 0, .groups = input_.group_count, .group = std::move(group)});
    result_.dense_words = words * input_.group_count;
  }
  if (query_.for_events && result_.form != StateForm::Events) {
    aggregate::GroupShape passed;
    passed.cells.push_back({.function = aggregate::AggregateFunction::Count, .is_signed = false});
    result_.passed_dense = static_cast<uint32_t>(result_.state.dense.size());
    result_.state.dense.push_back(
        {.first_word = result_.dense_words, .groups = 1, .group = std::move(passed)});
    ++result_.dense_words;
  }
  result_.layout.cells_offset =
      place(uint64_t{8} * result_.dense_words * result_.layout.generations, 8);
  result_.layout.cells_half_bytes = 8 * result_.dense_words;
  CLEW_ASSERT(!result_.passed_dense || *result_.passed_dense + 1 == result_.state.dense.size());
  passed_offset_ = result_.layout.cells_offset + 8 * (result_.dense_words - 1);
}

void Lowering::place_table() {
  if (result_.form != StateForm::Table) return;
  aggregate::TableShape shape = table_shape(query_);
  abi::TableLayout& table = result_.layout.tables[0];
  table.key_words = shape.key_words;
  table.cell_words = shape.group.words();
  table.entries_log2 = kTableEntriesLog2Max;
  while (table.half_size_bytes() > kTableBytesMax && table.entries_log2 > kTableEntriesLog2Min) {
    --table.entries_log2;
  }
  CLEW_ASSERT(table.key_words > 0 && table.half_size_bytes() > 0);
  table.offset = place(uint64_t{table.generation_size_bytes()} * result_.layout.generations, 4096);
  result_.layout.table_count = 1;
  result_.state.tables.push_back(std::move(shape));
}

Expected<void> Lowering::place_walk() {
  result_.walks_stacks = reads_stack(query_);
  if (!result_.walks_stacks) return {};
  result_.layout.walk_offset = place(sizeof(abi::ProcessWalk));
  if (result_.form != StateForm::Table) return {};
  const uint32_t words = result_.layout.tables[0].key_words;
  key_offset_ = place(uint64_t{8} * words);
  if (words < kKeyWordsEnd) return {};
  return fail(ErrorCode::Limit,
              fmt::format("a key of {} bytes, {} are possible; ask for fewer frames: ustack(n)",
                          8 * words, 8 * (kKeyWordsEnd - 1)));
}

void Lowering::place_samples() {
  uint32_t samples = 0;
  for (const query::Source& source : query_.sources) {
    for (const Expression& e : probe_expressions(source)) {
      samples += count_samples(e);
    }
  }
  for (const query::NamedExpression& let : query_.lets) {
    for (const query::Source& source : query_.sources) {
      samples += count_samples(query::bind(let.expression, source));
    }
  }
  environment_.samples_offset = place(uint64_t{8} * samples, 8);
}

// A state for each extension of which the query calls a function.
Expected<void> Lowering::place_extensions() {
  Use use;
  for (const query::Source& source : query_.sources) {
    const Use here = use_of(source);
    use.functions.insert(here.functions.begin(), here.functions.end());
  }
  for (const extension::Extension& extension : input_.extensions) {
    for (const extension::Function& function : extension.functions) {
      if (use.functions.erase(function.name) == 0) continue;
      std::vector<LinkedState>& states = environment_.extension_states;
      if (states.empty() || states.back().owner != &extension) place_state(extension);
      link_function(function);
      result_.calls_extensions = true;
    }
  }
  const bool has_loops =
      std::any_of(environment_.functions.begin(), environment_.functions.end(),
                  [](const auto& linked) { return linked.second.function->has_loops; });
  if (has_loops) {
    result_.fuel_offset = place(8 * (uint64_t{1} + kFuelWords), 8);
    environment_.left_alone_offset = result_.fuel_offset;
  }
  if (use.functions.empty()) return {};
  return fail(ErrorCode::InvalidQuery, fmt::format("'{}' is a function of an extension, which is "
                                                   "not possible here",
                                                   *use.functions.begin()));
}

void Lowering::place_state(const extension::Extension& extension) {
  LinkedState state{.owner = &extension, .initial_words = extension.initial_words};
  state.offset = place(extension.state_bytes);
  state.ready_offset = place(extension.initial_words.empty() ? 0 : 8, 8);
  environment_.extension_states.push_back(state);
}

void Lowering::link_function(const extension::Function& function) {
  const std::vector<LinkedState>& states = environment_.extension_states;
  CLEW_ASSERT(!states.empty());
  LinkedFunction linked{.function = &function, .body = {.code = function.code, .references = {}}};
  linked.extension = static_cast<uint16_t>(states.size() - 1);
  std::vector<isa::Instruction>& code = linked.body.code;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i].opcode != isa::kLoad64Opcode) continue;
    CLEW_ASSERT(i + 1 < code.size());  // They come in pairs.
    const bool is_state = code[i].source() == static_cast<uint8_t>(isa::Load64::Window);
    if (is_state) code[i].immediate += static_cast<int32_t>(states.back().offset);
    ++i;
  }
  CLEW_ASSERT(!environment_.functions.contains(function.name));
  environment_.functions.emplace(function.name, std::move(linked));
}

Expected<void> Lowering::lay_out() {
  abi::RegionLayout& layout = result_.layout;
  layout.generations = needs_turns(query_, input_.begins_later) ? 2 : 1;
  place_dense();
  place_samples();
  CLEW_TRY(place_extensions());
  const uint32_t payload = environment_.payload_words();
  if (payload > 0) {
    layout.records.records_log2 = kRecordsLog2;
    layout.records.payload_words = payload;
    layout.records.offset =
        place(uint64_t{layout.records.record_size_bytes()} << layout.records.records_log2);
  }
  place_table();
  CLEW_TRY(place_contexts());
  CLEW_TRY(place_walk());
  if (result_.form == StateForm::Events) {
    layout.ring.size_log2 = kRingSizeLog2;
    layout.ring.offset = place((uint64_t{1} << kRingSizeLog2) + abi::kEventSizeMax, 4096);
  }
  CLEW_ASSERT(next_ > sizeof(abi::RegionHeader));
  layout.size_log2 = static_cast<uint32_t>(std::bit_width(next_ - 1));
  if (layout.size_log2 > kRegionSizeLog2Max) {
    return fail(ErrorCode::Limit,
                fmt::format("the query needs {} MiB of state per thread, {} are possible; group by "
                            "fewer functions or use smaller aggregates than quantile and distinct",
                            next_ >> 20, 1U << (kRegionSizeLog2Max - 20)));
  }
  environment_.records = layout.records;
  result_.records = {.has_time = environment_.records_time,
                     .arguments = environment_.record_arguments};
  if (environment_.records_caller) {
    result_.records.caller_word = static_cast<uint32_t>(environment_.caller_at()) / 8;
  }
  return {};
}

}  // namespace clew::plan
