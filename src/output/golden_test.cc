// SPDX-License-Identifier: Apache-2.0
// Golden files in tests/golden/output: NAME.json holds columns, rows and losses; NAME.text,
// NAME.jsonl, NAME.csv, NAME.chart, NAME.ndjson and (of stacks) NAME.folded hold what each format
// makes of them. With CLEW_GOLDEN_UPDATE=1 in the environment the expected files are written
// instead of compared.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "aggregate/function.h"
#include "base/assert.h"
#include "output/sinks.h"

namespace clew::output {
namespace {

namespace fs = std::filesystem;
using aggregate::AggregateFunction;
using aggregate::AggregateSpec;
using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Unit;
using aggregate::Value;
using ParsedJson = nlohmann::json;

const fs::path kFolder = fs::path(CLEW_SOURCE_DIR) / "tests/golden/output";

ColumnType type_of(const std::string& name) {
  const std::map<std::string, ColumnType> types = {
      {"integer", ColumnType::Integer},     {"unsigned", ColumnType::Unsigned},
      {"float", ColumnType::Float},         {"string", ColumnType::String},
      {"boolean", ColumnType::Boolean},     {"address", ColumnType::Address},
      {"time", ColumnType::Time},           {"enum", ColumnType::Enum},
      {"histogram", ColumnType::Histogram}, {"toplist", ColumnType::TopList},
      {"stack", ColumnType::Stack}};
  return types.at(name);
}

Unit unit_of(const std::string& name) {
  return name == "ns" ? Unit::Nanoseconds : Unit::None;
}

std::vector<Column> columns_of(const ParsedJson& input) {
  std::vector<Column> columns;
  for (const ParsedJson& column : input.at("columns")) {
    columns.push_back({.name = column.at("name"),
                       .type = type_of(column.at("type")),
                       .unit = unit_of(column.value("unit", "")),
                       .approximate = column.value("approximate", false),
                       .role = column.value("aggregated", false) ? aggregate::ColumnRole::Aggregate
                                                                 : aggregate::ColumnRole::Plain});
  }
  return columns;
}

// {"quantize": [values]}, {"lquantize": [values], "low": …, "high": …, "step": …}, …
Value histogram_of(const ParsedJson& json) {
  AggregateSpec spec;
  spec.low = json.value("low", 0);
  spec.high = json.value("high", 0);
  spec.step = json.value("step", 1);
  spec.steps = json.value("steps", 10U);
  spec.function = json.contains("quantize")    ? AggregateFunction::Quantize
                  : json.contains("lquantize") ? AggregateFunction::Lquantize
                                               : AggregateFunction::Llquantize;
  std::vector<uint64_t> cell(aggregate::cell_words(spec));
  for (const ParsedJson& value : json.at(name_of(spec.function))) {
    aggregate::add(spec, cell, static_cast<uint64_t>(value.get<int64_t>()));
  }
  return aggregate::finish(spec, cell);
}

Value stack_of(const ParsedJson& json) {
  aggregate::Stack stack;
  for (const ParsedJson& frame : json) {
    stack.frames.push_back({.symbol = frame.value("symbol", ""),
                            .offset = frame.value("offset", uint64_t{0}),
                            .module = frame.value("module", ""),
                            .file = frame.value("file", ""),
                            .line = frame.value("line", 0U),
                            .inlined = frame.value("inlined", false),
                            .address = frame.value("address", uint64_t{0})});
  }
  return stack;
}

Value value_of(const ParsedJson& json, ColumnType type) {
  if (type == ColumnType::Stack && json.is_array()) return stack_of(json);
  if (json.is_null()) return {};
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object()) return histogram_of(json);
  if (json.is_array()) {
    aggregate::TopList list;
    for (const ParsedJson& item : json) {
      const ParsedJson& value = item.at(0);
      const bool is_text = value.is_string();
      list.items.push_back({is_text ? aggregate::Scalar(value.get<std::string>())
                                    : aggregate::Scalar(value.get<int64_t>()),
                            item.at(1)});
    }
    return list;
  }
  if (json.is_boolean()) return json.get<bool>() ? uint64_t{1} : uint64_t{0};
  if (type == ColumnType::Float) return json.get<double>();
  if (type == ColumnType::Integer || type == ColumnType::Time || type == ColumnType::Enum) {
    return json.get<int64_t>();
  }
  return json.get<uint64_t>();
}

collect::Causes causes_of(const ParsedJson& object) {
  collect::Causes causes;
  for (const auto& [cause, count] : object.items())
    causes[cause] = count;
  return causes;
}

collect::Losses losses_of(const ParsedJson& json) {
  collect::Losses losses;
  losses.missed = causes_of(json.value("missed", ParsedJson::object()));
  losses.dropped = causes_of(json.value("dropped", ParsedJson::object()));
  for (const ParsedJson& source : json.value("lost", ParsedJson::array()))
    losses.lost.push_back(source);
  for (const ParsedJson& site : json.value("refused", ParsedJson::array())) {
    losses.refused.push_back({site.at(0), site.at(1), site.at(2)});
  }
  for (const ParsedJson& site : json.value("uprobes", ParsedJson::array()))
    losses.uprobes.push_back({site.at(0), site.at(1), site.at(2)});
  for (const ParsedJson& process : json.value("left_out", ParsedJson::array()))
    losses.left_out.push_back({process.at(0), process.at(1)});
  losses.open.count = json.value("open_calls", uint64_t{0});
  losses.open.oldest_ns = json.value("oldest_ns", uint64_t{0});
  for (const ParsedJson& function : json.value("left_by_jump", ParsedJson::array()))
    losses.left_by_jump.push_back(function);
  losses.causal = causes_of(json.value("by_cause", ParsedJson::object()));
  losses.processes = json.value("processes", uint64_t{0});
  losses.window_ms = json.value("window_ms", 0.0);
  losses.sites = json.value("sites", uint64_t{0});
  losses.attach_ms = json.value("attach_ms", 0.0);
  losses.stopped_ms = json.value("stopped_ms", 0.0);
  return losses;
}

void push_rows(RowSink& sink, const std::vector<Column>& columns, const ParsedJson& rows) {
  for (const ParsedJson& row : rows) {
    CLEW_ASSERT(row.size() == columns.size());
    std::vector<Value> values;
    for (size_t i = 0; i < columns.size(); ++i) {
      values.push_back(value_of(row[i], columns[i].type));
    }
    sink.row(values);
  }
}

std::string output_of(const ParsedJson& input, Format format) {
  StringSink bytes;
  StringSink notes;
  const auto sink = make_sink({.format = format}, bytes, notes);
  const std::vector<Column> columns = columns_of(input);
  const bool stream = input.value("mode", "table") == "stream";
  sink->begin(columns, stream ? RowMode::Stream : RowMode::Table);
  push_rows(*sink, columns, input.value("rows", ParsedJson::array()));
  constexpr int64_t kSecond = 1'000'000'000;
  uint64_t interval = 0;
  for (const ParsedJson& rows : input.value("intervals", ParsedJson::array())) {
    push_rows(*sink, columns, rows);
    ++interval;
    sink->end_interval({.number = interval,
                        .begin_ns = static_cast<int64_t>(interval - 1) * kSecond,
                        .end_ns = static_cast<int64_t>(interval) * kSecond});
  }
  if (input.contains("partial")) {
    push_rows(*sink, columns, input.at("partial"));
    sink->end_interval({.number = ++interval, .partial = true});
  }
  sink->finish(losses_of(input.value("losses", ParsedJson::object())));
  EXPECT_TRUE(sink->close(nullptr));
  return bytes.take() + (notes.text().empty() ? "" : "--- notes ---\n" + notes.text());
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void check_case(const fs::path& input_path) {
  const ParsedJson input = ParsedJson::parse(text_of(input_path));
  const std::map<std::string, Format> written = {
      {".text", Format::Text},   {".jsonl", Format::Json},    {".csv", Format::Csv},
      {".chart", Format::Chart}, {".ndjson", Format::Stream}, {".folded", Format::Folded}};
  for (const auto& [extension, format] : written) {
    const std::vector<Column> columns = columns_of(input);
    if (!check_columns(formats()[static_cast<size_t>(format)], columns)) continue;
    fs::path expected = input_path;
    expected.replace_extension(extension);
    const std::string output = output_of(input, format);
    if (std::getenv("CLEW_GOLDEN_UPDATE") != nullptr) {
      std::ofstream(expected, std::ios::binary) << output;
    }
    EXPECT_EQ(output, text_of(expected)) << expected;
  }
}

TEST(OutputGolden, EveryFormatWritesWhatItsFileSays) {
  setenv("TZ", "UTC", 1);
  size_t cases = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".json") continue;
    check_case(entry.path());
    ++cases;
  }
  EXPECT_GE(cases, 8U) << "golden files are missing in " << kFolder;
}

}  // namespace
}  // namespace clew::output
