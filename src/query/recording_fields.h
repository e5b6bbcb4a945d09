// SPDX-License-Identifier: Apache-2.0
// What events of a recording export beside the thread and the function: the one table of it. Plans
// know no further fields: each is an argument by its number, with its own type, that only
// engine/recording can compute.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "query/query.h"

namespace clew::query {

// Numbers of arguments.
enum class RecordingField : uint16_t {
  File,
  Line,
  Address,
  Depth,
  Order,
  Inlined,
  Uncertain,
  Caller,
  Signal,
  After,
  Before,
};

struct RecordingFieldInfo {
  std::string_view name;
  RecordingField field;
  Type type;
  uint32_t kinds;  // Bit n: RecordedKind n has it.
  std::string_view meaning;
};

std::span<const RecordingFieldInfo> recording_fields();
// Not counting case; null when such events have none of that name.
const RecordingFieldInfo* find_recording_field(RecordedKind kind, std::string_view name);
// Those of Field that all of them have.
std::span<const Field> plain_recording_fields();
// Events of all kinds have it.
bool is_of_all_recorded(const RecordingFieldInfo& field);
// All names that such events export.
std::vector<std::string> recording_names(RecordedKind kind);

struct RecordedKindInfo {
  std::string_view name;
  RecordedKind kind;
  std::string_view meaning;
};
std::span<const RecordedKindInfo> recorded_kinds();
std::string_view name_of(RecordedKind kind);

}  // namespace clew::query
