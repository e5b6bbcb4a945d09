// SPDX-License-Identifier: Apache-2.0
#include "output/text_table.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/format.h"
#include "output/screen.h"

namespace clew::output {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Histogram;
using aggregate::Value;

namespace {

constexpr size_t kGap = 2;

void append_padded(std::string& line, std::string_view text, size_t width, bool right) {
  const size_t own = display_width(text);
  const std::string blanks(width > own ? width - own : 0, ' ');
  if (right) {
    line += blanks;
    line += text;
  } else {
    line += text;
    line += blanks;
  }
}

// The part of a cell that stands in one line of its row.
std::string_view line_of(std::string_view cell, size_t number) {
  for (; number > 0 && !cell.empty(); --number) {
    const size_t end = cell.find('\n');
    cell = end == std::string_view::npos ? std::string_view() : cell.substr(end + 1);
  }
  return cell.substr(0, cell.find('\n'));
}

size_t lines_of(std::string_view cell) {
  return static_cast<size_t>(std::count(cell.begin(), cell.end(), '\n')) + 1;
}

// Of its longest line.
size_t width_of(std::string_view cell) {
  size_t width = 0;
  for (size_t i = 0; i < lines_of(cell); ++i)
    width = std::max(width, display_width(line_of(cell, i)));
  return width;
}

// Its further lines under the first.
std::string indented(std::string_view cell, size_t indent) {
  std::string text(line_of(cell, 0));
  for (size_t i = 1; i < lines_of(cell); ++i) {
    text += '\n' + std::string(indent, ' ');
    text += line_of(cell, i);
  }
  return text;
}

std::string format_block(std::span<const Column> columns, const std::vector<Value>& row) {
  CLEW_ASSERT(row.size() == columns.size());
  std::string scalars;
  std::string drawings;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (const auto* histogram = std::get_if<Histogram>(&row[i])) {
      drawings += fmt::format("\n{}", printable(columns[i].name));
      drawings += format_histogram(*histogram);
    } else {
      scalars += fmt::format("{}{} = {}", scalars.empty() ? "" : ", ", printable(columns[i].name),
                             indented(format_value(row[i], columns[i]), kGap));
    }
  }
  if (!scalars.empty()) scalars += '\n';
  return scalars + drawings;
}

}  // namespace

bool is_right_aligned(const Column& column) {
  switch (column.type) {
    case ColumnType::Integer:
    case ColumnType::Unsigned:
    case ColumnType::Float:
    case ColumnType::Address:
    case ColumnType::Time:
      return true;
    case ColumnType::String:
    case ColumnType::Boolean:
    case ColumnType::Enum:
    case ColumnType::Histogram:
    case ColumnType::TopList:
    case ColumnType::Stack:
    case ColumnType::Record:
      return false;
  }
  CLEW_ASSERT(false);
  return false;
}

bool has_histogram(std::span<const Column> columns) {
  return std::any_of(columns.begin(), columns.end(),
                     [](const Column& column) { return column.type == ColumnType::Histogram; });
}

Cells format_cells(std::span<const Column> columns, std::span<const Value> values) {
  CLEW_ASSERT(columns.size() == values.size());
  Cells cells;
  for (size_t i = 0; i < columns.size(); ++i)
    cells.push_back(format_value(values[i], columns[i]));
  return cells;
}

TextTable::TextTable(std::span<const Column> columns) : columns_(columns.begin(), columns.end()) {
  for (const Column& column : columns_)
    widths_.push_back(display_width(printable(column.name)));
}

void TextTable::fit(const Cells& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    widths_[i] = std::max(widths_[i], width_of(cells[i]));
  }
}

size_t TextTable::width() const {
  size_t width = widths_.empty() ? 0 : kGap * (widths_.size() - 1);
  for (const size_t column : widths_)
    width += column;
  return width;
}

std::string TextTable::header() const {
  Cells names;
  for (const Column& column : columns_)
    names.push_back(printable(column.name));
  return line(names);
}

std::string TextTable::line(const Cells& cells) const {
  size_t lines = 1;
  for (const std::string& cell : cells)
    lines = std::max(lines, lines_of(cell));
  std::string result;
  for (size_t number = 0; number < lines; ++number) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      append_padded(line, line_of(cells[i], number), widths_[i], is_right_aligned(columns_[i]));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  }
  return result;
}

namespace {

std::string format_records(std::span<const Column> columns, const std::vector<Cells>& lines) {
  size_t name_width = 0;
  for (const Column& column : columns)
    name_width = std::max(name_width, display_width(printable(column.name)));
  std::string text;
  for (size_t row = 0; row < lines.size(); ++row) {
    text += fmt::format("{}row {}\n", row == 0 ? "" : "\n", row + 1);
    for (size_t i = 0; i < columns.size(); ++i) {
      text.append(kGap, ' ');
      append_padded(text, printable(columns[i].name), name_width + kGap, false);
      text += indented(lines[row][i], name_width + 2 * kGap) + '\n';
    }
  }
  return text;
}

}  // namespace

namespace {

std::string cut_cell(std::string_view cell, size_t width) {
  std::string result;
  for (size_t i = 0; i < lines_of(cell); ++i) {
    const std::string_view line = line_of(cell, i);
    if (i > 0) result += '\n';
    const bool fits = display_width(line) <= width;
    result += fits ? line : first_columns(line, width - 1);
    if (!fits) result += "\u2026";
  }
  return result;
}

// The column of texts that takes most room, if it can give some away; else as many as there are.
size_t widest_text(std::span<const Column> columns, const std::vector<size_t>& widths,
                   size_t least) {
  size_t widest = columns.size();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (is_right_aligned(columns[i]) || widths[i] <= least) continue;
    if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
  }
  return widest;
}

// A column's name is never cut.
void cut_cells(std::span<const Column> columns, std::vector<Cells>& lines, size_t width_max) {
  constexpr size_t kTextLeast = 12;
  std::vector<size_t> widths;
  size_t width = columns.empty() ? 0 : kGap * (columns.size() - 1);
  for (size_t i = 0; i < columns.size(); ++i) {
    widths.push_back(display_width(printable(columns[i].name)));
    for (const Cells& cells : lines)
      widths[i] = std::max(widths[i], width_of(cells[i]));
    width += widths[i];
  }
  while (width > width_max) {
    const size_t at = widest_text(columns, widths, kTextLeast);
    if (at == columns.size()) return;
    const size_t excess = std::min(width - width_max, widths[at] - kTextLeast);
    widths[at] -= excess;
    width -= excess;
    for (Cells& cells : lines)
      cells[at] = cut_cell(cells[at], widths[at]);
  }
}

std::string format_lines(std::span<const Column> columns, const std::vector<Cells>& lines) {
  TextTable table(columns);
  for (const Cells& cells : lines)
    table.fit(cells);
  std::string text = table.header();
  for (const Cells& cells : lines)
    text += table.line(cells);
  return text;
}

}  // namespace

std::string format_cut_table(std::span<const Column> columns,
                             std::span<const std::vector<Value>> rows, size_t width_max) {
  if (has_histogram(columns)) return format_table(columns, rows, width_max);
  std::vector<Cells> lines;
  for (const auto& row : rows)
    lines.push_back(format_cells(columns, row));
  cut_cells(columns, lines, width_max);
  return format_lines(columns, lines);
}

std::string format_table(std::span<const Column> columns, std::span<const std::vector<Value>> rows,
                         size_t width_max) {
  std::string text;
  if (has_histogram(columns)) {
    for (const auto& row : rows) {
      if (!text.empty()) text += '\n';
      text += format_block(columns, row);
    }
    return text;
  }
  TextTable table(columns);
  std::vector<Cells> lines;
  for (const auto& row : rows) {
    lines.push_back(format_cells(columns, row));
    table.fit(lines.back());
  }
  if (table.width() > width_max && !lines.empty()) return format_records(columns, lines);
  return format_lines(columns, lines);
}

}  // namespace clew::output
