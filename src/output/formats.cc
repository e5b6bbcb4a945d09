// SPDX-License-Identifier: Apache-2.0
// The registry of formats.
#include "output/formats.h"

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock_ns.h"
#include "output/cluster_map.h"
#include "output/folding.h"
#include "output/format.h"
#include "output/metric_rows.h"
#include "output/names.h"

namespace clew::output {
namespace {

constexpr std::array kFormats = {
    FormatRow{Format::Text, "text", "txt", "tables, for people", make_text_sink},
    FormatRow{Format::Json, "json", "json", "one JSON object a line", make_json_sink},
    FormatRow{Format::Csv, "csv", "csv", "comma-separated values", make_csv_sink},
    FormatRow{Format::Chart, "chart", "", "rows as bars", make_text_sink},
    FormatRow{Format::Stream, "stream", "ndjson", "the result stream, for programs that read along",
              make_stream_sink, nullptr, false, true},
    FormatRow{Format::Sqlite, "sqlite", "sqlite", "a database of SQLite, with -o", nullptr,
              open_sqlite_sink, false, true},
    FormatRow{Format::Folded, "folded", "folded", "a line for each stack, for flame graphs",
              make_folded_sink, nullptr, true},
    FormatRow{Format::Svg, "svg", "svg", "a flame graph of stacks, or clusters over time",
              make_svg_sink, nullptr, true},
    FormatRow{Format::Metrics, "metrics", "otlp", "metrics of OTLP, a request a line",
              make_otlp_sink, nullptr, false, false, true},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (static_cast<size_t>(kFormats.at(i).format) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

About about_here(std::string query) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)gethostname(host.data(), host.size() - 1);
  return {.query = std::move(query),
          .version = CLEW_VERSION,
          .host = host.data(),
          .started_ns = clock_ns(CLOCK_REALTIME)};
}

std::span<const FormatRow> formats() {
  return kFormats;
}

const FormatRow& row_of(Format format) {
  const auto index = static_cast<size_t>(format);
  CLEW_ASSERT(index < kFormats.size());
  return kFormats.at(index);
}

Expected<void> check_columns(const FormatRow& format, Columns columns) {
  if (format.needs_metrics) return check_metrics(format.name, columns);
  if (!format.needs_stacks || folded_columns(columns)) return {};
  if (format.format == Format::Svg && ClusterMap::can_draw(columns)) return {};
  std::vector<std::string> there;
  for (const aggregate::Column& column : columns) {
    const char* const why = column.approximate ? ", approximate"
                            : column.adds_up   ? ""
                                               : ", whose sum says nothing";
    there.push_back(fmt::format("{} ({}{})", printable(column.name), name_of(column.type), why));
  }
  return fail(ErrorCode::InvalidQuery,
              fmt::format("{} needs a column of stacks, and one of whole numbers that are counted "
                          "exactly and add up, as count() and sum() do; the answer has {}",
                          format.name, fmt::join(there, ", ")));
}

const FormatRow* format_named(std::string_view name) {
  const auto row = std::find_if(kFormats.begin(), kFormats.end(),
                                [&](const FormatRow& one) { return one.name == name; });
  return row == kFormats.end() ? nullptr : &*row;
}

std::string format_names() {
  std::vector<std::string_view> names;
  names.reserve(kFormats.size());
  for (const FormatRow& row : kFormats)
    names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

const FormatRow* format_of_file(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return nullptr;
  const auto row = std::find_if(kFormats.begin(), kFormats.end(), [&](const FormatRow& one) {
    return one.extension == name.substr(dot + 1);
  });
  return row == kFormats.end() ? nullptr : &*row;
}

std::unique_ptr<RowSink> make_sink(const SinkOptions& options, ByteSink& bytes, ByteSink& notes) {
  const FormatRow& row = row_of(options.format);
  CLEW_ASSERT(row.make != nullptr);
  return row.make(options, bytes, notes);
}

}  // namespace clew::output
