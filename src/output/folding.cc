// SPDX-License-Identifier: Apache-2.0
#include "output/folding.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "output/format.h"

namespace clew::output {

using aggregate::Column;
using aggregate::ColumnRole;
using aggregate::ColumnType;
using aggregate::Value;

namespace {

bool is_whole_number(const Column& column) {
  const bool is_whole = column.type == ColumnType::Unsigned || column.type == ColumnType::Integer;
  return is_whole && !column.approximate;
}

bool is_event(Columns columns) {
  return std::all_of(columns.begin(), columns.end(),
                     [](const Column& column) { return column.role == ColumnRole::Plain; });
}

std::optional<size_t> number_of(Columns columns) {
  const bool is_one_event = is_event(columns);
  std::optional<size_t> number;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!is_whole_number(columns[i])) continue;
    if (columns[i].role == ColumnRole::Aggregate && columns[i].adds_up) return i;
    if (is_one_event) number = i;
  }
  return number;
}

// A number needs its name to say something.
std::string frame_of(const Value& value, const Column& column) {
  const bool is_text = column.type == ColumnType::String || column.type == ColumnType::Enum;
  const std::string text = format_value(value, column);
  return folded_text(is_text ? text : fmt::format("{} {}", printable(column.name), text));
}

// Nothing when it counts nothing that can be drawn.
std::optional<uint64_t> weight_of(const Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number;
  const auto* number = std::get_if<int64_t>(&value);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

size_t bytes_of(const std::vector<std::string>& frames) {
  size_t bytes = 0;
  for (const std::string& frame : frames)
    bytes += sizeof(std::string) + frame.capacity();
  return bytes;
}

uint64_t saturated(uint64_t one, uint64_t other) {
  return one > UINT64_MAX - other ? UINT64_MAX : one + other;
}

}  // namespace

std::optional<FoldedColumns> folded_columns(Columns columns) {
  FoldedColumns which;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].type == ColumnType::Stack) {
      which.stacks.push_back(i);
    } else if (columns[i].role == ColumnRole::Key) {
      which.keys.push_back(i);
    }
  }
  std::stable_partition(which.stacks.begin(), which.stacks.end(),
                        [&](size_t index) { return !columns[index].of_kernel; });
  const std::optional<size_t> number = number_of(columns);
  if (which.stacks.empty() || !number) return std::nullopt;
  which.number = *number;
  return which;
}

void Folding::begin(Columns columns) {
  std::optional<FoldedColumns> which = folded_columns(columns);
  CLEW_ASSERT(which.has_value());
  which_ = std::move(*which);
  columns_.assign(columns.begin(), columns.end());
}

void Folding::add(std::span<const Value> values) {
  CLEW_ASSERT(values.size() == columns_.size());
  CLEW_ASSERT(which_.number < values.size());
  const std::optional<uint64_t> weight = weight_of(values[which_.number]);
  if (!weight) ++left_out_;
  if (weight.value_or(0) == 0) return;
  std::vector<std::string> frames;
  frames.reserve(which_.keys.size());
  for (const size_t key : which_.keys)
    frames.push_back(frame_of(values[key], columns_[key]));
  const size_t begin = frames.size();
  for (const size_t index : which_.stacks) {
    const auto* const stack = std::get_if<aggregate::Stack>(&values[index]);
    if (stack == nullptr) continue;
    std::transform(stack->frames.rbegin(), stack->frames.rend(), std::back_inserter(frames),
                   folded_name);
  }
  if (frames.size() == begin) frames.emplace_back(kNoStack);
  const bool is_full = stacks_.size() >= stacks_max_ || bytes_ >= bytes_max_;
  if (is_full && !stacks_.contains(frames)) frames = {kOthers};
  if (!stacks_.contains(frames)) bytes_ += bytes_of(frames);
  uint64_t& sum = stacks_[std::move(frames)];
  sum = saturated(sum, *weight);
  total_ = saturated(total_, *weight);
}

std::string Folding::left_out() const {
  if (left_out_ == 0) return {};
  return fmt::format("left out: {} {} whose {} is no number from 0 on\n", left_out_,
                     left_out_ == 1 ? "row" : "rows", printable(number().name));
}

}  // namespace clew::output
