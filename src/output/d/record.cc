// SPDX-License-Identifier: Apache-2.0
#include "output/d/record.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "output/d/default_text.h"
#include "output/d/effect.h"
#include "output/d/padding.h"
#include "output/d/printf.h"
#include "output/d/structure.h"
#include "output/d/text.h"

namespace clew::output::d {
namespace {

using query::d::Action;
using query::d::RecordedAction;
using query::d::RecordField;

constexpr uint32_t kFlowStep = 2;
constexpr uint32_t kFlowIndentMax = 512;
constexpr size_t kFlowNameWidth = 41;

// "entry" itself, or anything that ends with "-entry"; not "carpentry".
bool is_named(std::string_view name, std::string_view kind) {
  if (!name.ends_with(kind)) return false;
  name.remove_suffix(kind.size());
  return name.empty() || name.back() == '-';
}

}  // namespace

void RecordPrinter::print(std::span<const uint8_t> record, const query::d::RecordLayout& layout,
                          const ProbeNames& probe, const abi::MachineRecordHeader* next) {
  abi::MachineRecordHeader header{};
  if (record.size() < sizeof header) return;
  std::memcpy(&header, record.data(), sizeof header);
  const auto executed = [&](const RecordedAction& action) { return is_executed(action, record); };
  // Every branch that records was left out: the clause did nothing to show.
  if (!layout.actions.empty() &&
      std::none_of(layout.actions.begin(), layout.actions.end(), executed)) {
    return;
  }
  if (context_.options.is_json()) return print_json(header, record, layout, probe);
  if (context_.options.records_are_rows()) return add_row(header, record, layout, probe);
  append_heading();
  append_row_start(header, probe, next);
  for (const RecordedAction& action : layout.actions) {
    if (executed(action)) perform(action, record);
  }
  if (!context_.options.is_quiet) text_ += '\n';
  flush();
}

// One that only prints or changes aggregations, or calls on the host, is no row.
void RecordPrinter::add_row(const abi::MachineRecordHeader& header, std::span<const uint8_t> record,
                            const query::d::RecordLayout& layout, const ProbeNames& probe) {
  std::vector<aggregate::Value> values;
  for (const RecordedAction& action : layout.actions) {
    const bool executed = is_executed(action, record);
    if (executed) perform(action, record);
    if (!has_values(effect_of(action.action))) continue;
    for (const RecordField& field : action.fields) {
      values.push_back(executed ? value_of(recorded(action, field, record), context_.symbols)
                                : aggregate::Value());
    }
  }
  if (values.empty() && text_.empty() && !layout.actions.empty()) return;
  context_.host.add_record(header, probe, std::move(values), std::exchange(text_, {}));
}

// The text of a row waits for it.
void RecordPrinter::flush() {
  if (context_.options.records_are_rows()) return;
  if (!text_.empty()) context_.host.write(text_);
  text_.clear();
}

// --- the start of a row --------------------------------------------------------------------------

void RecordPrinter::append_heading() {
  if (has_heading_) return;
  has_heading_ = true;
  if (context_.options.has_flow_indent) {
    text_ += fmt::format("{:>3} {:<41}\n", "CPU", "FUNCTION");
  } else if (!context_.options.is_quiet) {
    text_ += fmt::format("{:>3} {:>6} {:>32}\n", "CPU", "ID", "FUNCTION:NAME");
  }
}

void RecordPrinter::append_row_start(const abi::MachineRecordHeader& header,
                                     const ProbeNames& probe,
                                     const abi::MachineRecordHeader* next) {
  if (context_.options.has_flow_indent) {
    append_flow_start(header, probe, next);
  } else if (!context_.options.is_quiet) {
    text_ += fmt::format("{:3} {:6} ", header.cpu, probe.id);
    append_right(text_, fmt::format("{}:{}", probe.function, probe.name), 32);
    text_ += ' ';
  }
}

void RecordPrinter::append_flow_start(const abi::MachineRecordHeader& header,
                                      const ProbeNames& probe,
                                      const abi::MachineRecordHeader* next) {
  CpuFlow& cpu = flows_[header.cpu];
  const Flow flow = flow_of(cpu, header, probe, next);
  const bool is_syscall = probe.provider == "syscall";
  if (flow == Flow::Return) cpu.indent -= std::min(cpu.indent, kFlowStep);
  std::string name(cpu.indent, ' ');
  if (flow == Flow::Entry) {
    name += fmt::format(" {} {}", is_syscall ? "=>" : "->", probe.function);
  } else if (flow == Flow::Return) {
    name += fmt::format(" {} {}", is_syscall ? "<=" : "<-", probe.function);
  } else {
    name += fmt::format("| {}:{}", probe.function, probe.name);
  }
  if (flow == Flow::Entry) cpu.indent = std::min(cpu.indent + kFlowStep, kFlowIndentMax);
  text_ += fmt::format("{:3} ", header.cpu);
  append_left(text_, name, kFlowNameWidth);
  text_ += ' ';
  cpu.last_probe = header.probe;
  cpu.last_clause = header.clause;
  cpu.has_last = true;
}

// Of several clauses of one probe, only the first indents and only the last unindents.
RecordPrinter::Flow RecordPrinter::flow_of(const CpuFlow& cpu,
                                           const abi::MachineRecordHeader& header,
                                           const ProbeNames& probe,
                                           const abi::MachineRecordHeader* next) const {
  if (is_named(probe.name, "entry")) {
    const bool is_again =
        cpu.has_last && cpu.last_probe == header.probe && cpu.last_clause != header.clause;
    return is_again ? Flow::None : Flow::Entry;
  }
  if (!is_named(probe.name, "return")) return Flow::None;
  const bool goes_on =
      next != nullptr && next->probe == header.probe && next->clause != header.clause;
  return goes_on ? Flow::None : Flow::Return;
}

// --- actions -------------------------------------------------------------------------------------

void RecordPrinter::perform(const RecordedAction& action, std::span<const uint8_t> record) {
  switch (effect_of(action.action)) {
    case Effect::None:
      return;
    case Effect::Text:
      append_text(action, record);
      return;
    case Effect::Memory:
      append_memory(action, record);
      return;
    case Effect::Printed:
      append_printed(action, record);
      return;
    case Effect::Formatted:
      text_ += formatted(action, record);
      return;
    case Effect::Aggregations:
      append_aggregations(action);
      return;
    case Effect::Change:
      change_aggregations(action, record);
      return;
    case Effect::Host:
      act_on_host(action, record);
      return;
  }
}

void RecordPrinter::append_text(const RecordedAction& action, std::span<const uint8_t> record) {
  for (const RecordField& field : action.fields)
    append_traced(recorded(action, field, record), context_.symbols, context_.options, text_);
}

// tracemem(address, size[, used]): the third argument says how many of the bytes are shown.
void RecordPrinter::append_memory(const RecordedAction& action, std::span<const uint8_t> record) {
  if (action.fields.empty()) return;
  Datum memory = datum_of(action.fields[0], record);
  if (action.fields.size() > 1) {
    const int64_t used = signed_of(datum_of(action.fields[1], record));
    const auto size = static_cast<int64_t>(memory.bytes.size());
    memory.bytes = memory.bytes.first(static_cast<size_t>(std::clamp<int64_t>(used, 0, size)));
  }
  append_byte_table(memory.bytes, text_);
}

// print(pointer): the address and what lies there; of any other value, the value alone.
void RecordPrinter::append_printed(const RecordedAction& action, std::span<const uint8_t> record) {
  if (action.fields.empty() || action.fields.back().type == query::d::kNoType) return;
  const RecordField& value = action.fields.back();
  if (action.fields.size() > 1) {
    text_ += fmt::format("{:#x} = *\n", unsigned_of(datum_of(action.fields[0], record)));
  }
  append_structure(context_.script.types, value.type, datum_of(value, record).bytes, text_);
  text_ += '\n';
}

std::string RecordPrinter::formatted(const RecordedAction& action,
                                     std::span<const uint8_t> record) const {
  const auto& formats = context_.script.formats;
  if (!action.format || *action.format >= formats.size()) return {};
  std::vector<Datum> values;
  values.reserve(action.fields.size());
  for (const RecordField& field : action.fields)
    values.push_back(datum_of(field, record));
  std::string text;
  append_formatted(formats[*action.format],
                   {.values = values, .aggregates = {}, .symbols = context_.symbols}, text);
  return text;
}

void RecordPrinter::append_aggregations(const RecordedAction& action) {
  for (const uint32_t aggregation : action.aggregations)
    context_.host.refresh(aggregation);
  const auto& formats = context_.script.formats;
  const bool has_format = action.format && *action.format < formats.size();
  const PrintOptions& options = context_.options;
  // Where one table is drawn at the end, what is printed before is text beside it.
  if (options.draws_aggregations() && !options.draws_at_end() && !has_format) {
    return draw_aggregations(action);
  }
  if (has_format) {
    context_.aggregations.print(formats[*action.format], action.aggregations, text_);
  } else {
    context_.aggregations.print(action.aggregations, text_);
  }
}

void RecordPrinter::draw_aggregations(const RecordedAction& action) {
  const std::span<const uint32_t> all = action.aggregations;
  const size_t together = context_.options.records_are_rows() ? 1 : all.size();
  for (size_t i = 0; i < all.size(); i += together) {
    const Table table = context_.aggregations.table(all.subspan(i, together));
    if (table.rows.empty()) continue;
    flush();
    context_.host.draw(all.subspan(i, together), table);
  }
}

void RecordPrinter::change_aggregations(const RecordedAction& action,
                                        std::span<const uint8_t> record) {
  const int64_t number = action.fields.empty() ? 0 : signed_of(datum_of(action.fields[0], record));
  Aggregations& aggregations = context_.aggregations;
  for (const uint32_t aggregation : action.aggregations) {
    if (action.action == Action::Normalize) {
      aggregations.normalize(aggregation, number);
    } else if (action.action == Action::Denormalize) {
      aggregations.denormalize(aggregation);
    } else {
      context_.host.take_out(aggregation);
      if (action.action == Action::Clear) aggregations.clear(aggregation);
      if (action.action == Action::Trunc) aggregations.truncate(aggregation, number);
    }
  }
}

void RecordPrinter::act_on_host(const RecordedAction& action, std::span<const uint8_t> record) {
  flush();
  if (action.action == Action::System) context_.host.run_command(formatted(action, record));
  if (action.action == Action::Freopen) context_.host.reopen(formatted(action, record));
  if (action.action == Action::Ftruncate) context_.host.truncate_output();
  if (action.action != Action::Setopt || action.fields.empty()) return;
  const std::string name(string_of(datum_of(action.fields[0], record)));
  const std::string value(action.fields.size() > 1 ? string_of(datum_of(action.fields[1], record))
                                                   : "");
  if (!context_.options.set(name, value)) context_.host.refuse_option(name, value);
}

}  // namespace clew::output::d
