// SPDX-License-Identifier: Apache-2.0
#include "output/d/json.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "output/d/aggregations.h"
#include "output/d/drops.h"
#include "output/d/effect.h"

namespace clew::output::d {

using query::d::Action;
using query::d::FieldKind;
using query::d::RecordedAction;
using query::d::RecordField;

std::string hex_of(std::span<const uint8_t> bytes) {
  std::string text;
  for (const uint8_t byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

Json datum_json(const Datum& datum, const target::Symbolizer& symbols) {
  switch (datum.kind) {
    case FieldKind::Integer:
      return datum.is_signed ? Json(signed_of(datum)) : Json(unsigned_of(datum));
    case FieldKind::String:
      return exact_text(std::string(string_of(datum)));
    case FieldKind::Bytes:
      return hex_of(datum.bytes);
    case FieldKind::KernelStack:
    case FieldKind::UserStack:
      return to_json(stack_of(datum, symbols), aggregate::ColumnType::Stack);
    case FieldKind::KernelAddress:
    case FieldKind::UserAddress:
      return address_text(datum, symbols);
  }
  return nullptr;
}

Json probe_json(const ProbeNames& probe) {
  return {{"id", probe.id},
          {"provider", probe.provider},
          {"module", probe.module},
          {"function", probe.function},
          {"name", probe.name}};
}

Json value_json(const aggregate::DValue& value) {
  if (!aggregate::is_distribution(value.function)) return aggregate::number_of(value);
  return to_json(aggregate::histogram_of(value), aggregate::ColumnType::Histogram);
}

std::string summary_json(const abi::MachineLosses& losses, int exit_code) {
  Json drops = Json::object();
  for (const auto& [name, count] : dropped(losses))
    drops[name] = count;
  const Json summary = {{"exit", exit_code}, {"drops", std::move(drops)}};
  return json_text({{"summary", summary}}) + '\n';
}

// Aggregations that it prints follow it, each row on a line of its own. What goes to the host comes
// behind what the record has shown before.
void RecordPrinter::print_json(const abi::MachineRecordHeader& header,
                               std::span<const uint8_t> record,
                               const query::d::RecordLayout& layout, const ProbeNames& probe) {
  Json values = Json::array();
  std::string aggregations;
  const auto write = [&] {
    if (values.empty() && text_.empty() && !layout.actions.empty()) return;
    Json line = {{"probe", probe_json(probe)}, {"cpu", header.cpu}, {"time", header.time_ns}};
    line["values"] = std::exchange(values, Json::array());
    line["text"] = std::exchange(text_, "");
    context_.host.write(json_text(line) + '\n');
  };
  for (const RecordedAction& action : layout.actions) {
    if (!is_executed(action, record)) continue;
    const Effect effect = effect_of(action.action);
    if (effect == Effect::Aggregations) {
      for (const uint32_t aggregation : action.aggregations)
        context_.host.refresh(aggregation);
      context_.aggregations.print_json(action.aggregations, aggregations);
      continue;
    }
    if (effect == Effect::Host) write();
    perform(action, record);
    if (!has_values(effect)) continue;
    for (const RecordField& field : action.fields)
      values.push_back(datum_json(recorded(action, field, record), context_.symbols));
  }
  write();
  if (!aggregations.empty()) context_.host.write(aggregations);
}

void Aggregations::print_json(std::span<const uint32_t> aggregations, std::string& out) {
  for (const uint32_t aggregation : aggregations) {
    const uint32_t only[] = {aggregation};
    const std::vector<Row> rows = sorted_rows(only);
    for (const Row& row : rows) {
      Json key = Json::array();
      for (const Datum& datum : row.key_data)
        key.push_back(datum_json(datum, symbols_));
      out += json_text({{"aggregation", script_.aggregations[aggregation].name},
                        {"key", std::move(key)},
                        {"value", value_json(value_of(aggregation, row.cells[0]))}}) +
             '\n';
    }
    if (!rows.empty()) mark_printed(only);
  }
}

}  // namespace clew::output::d
