// SPDX-License-Identifier: Apache-2.0
#include "query/recording_fields.h"

#include <array>

#include "query/arithmetic.h"
#include "query/fields.h"
#include "query/token.h"

namespace clew::query {
namespace {

constexpr uint32_t bit(RecordedKind kind) {
  return 1U << static_cast<unsigned>(kind);
}

constexpr uint32_t kAll = ~0U;
constexpr uint32_t kCalls = bit(RecordedKind::Call) | bit(RecordedKind::Return);
constexpr uint32_t kSignal = bit(RecordedKind::Signal);

constexpr Type kLineNumber{.size_bytes = 4, .is_signed = false};
constexpr Type kNumber{.is_signed = false};
constexpr Type kCodePlace{.is_signed = false, .unit = Unit::Address};
constexpr Type kRelativeTime{.unit = Unit::Nanoseconds};
constexpr Type kText{.kind = TypeKind::String,
                     .size_bytes = 0,
                     .is_signed = false,
                     .capacity_bytes = kKeyStringMaxBytes};

constexpr std::array<RecordingFieldInfo, 11> kRecordingFields = {{
    {"file", RecordingField::File, kText, kAll, "the source file; empty where it is not known"},
    {"line", RecordingField::Line, kLineNumber, kAll, "the line in it, or 0"},
    {"address", RecordingField::Address, kCodePlace, kAll,
     "of the first instruction, in the module's file"},
    {"depth", RecordingField::Depth, kInt32, kAll,
     "calls in progress, relative to the others of the thread"},
    {"order", RecordingField::Order, kNumber, kAll,
     "which block of the thread it was, or was in: 1 is the oldest one that is known"},
    {"inlined", RecordingField::Inlined, kInt32, kAll, "1 in a function that was inlined"},
    {"uncertain", RecordingField::Uncertain, kInt32, kAll,
     "1 where blocks or callers may be missing in front of it"},
    {"caller", RecordingField::Caller, kText, kCalls,
     "the function that called; empty where it is not known"},
    {"signal", RecordingField::Signal, kText, kSignal, "its name"},
    {"after", RecordingField::After, kRelativeTime, kAll,
     "it began behind this moment, relative to the snap; null where that is not known"},
    {"before", RecordingField::Before, kRelativeTime, kAll,
     "it began in front of this moment, relative to the snap; null where that is not known"},
}};

constexpr std::array<RecordedKindInfo, 6> kKinds = {{
    {"block", RecordedKind::Block, "a basic block ran"},
    {"line", RecordedKind::Line, "a stretch of code of one line of one function ran"},
    {"call", RecordedKind::Call, "a function was entered"},
    {"return", RecordedKind::Return, "a function returned"},
    {"exception", RecordedKind::Exception,
     "control came back without a return: to a handler of exceptions, or by longjmp"},
    {"signal", RecordedKind::Signal, "the signal for which the recording was taken"},
}};

constexpr std::array<Field, 6> kPlain = {Field::Pid,      Field::Tid,    Field::ProcName,
                                         Field::Function, Field::Module, Field::Probe};

}  // namespace

std::span<const RecordingFieldInfo> recording_fields() {
  return kRecordingFields;
}

const RecordingFieldInfo* find_recording_field(RecordedKind kind, std::string_view name) {
  for (const RecordingFieldInfo& candidate : kRecordingFields) {
    const bool is_there = (candidate.kinds & bit(kind)) != 0;
    if (is_there && same_word(candidate.name, name)) return &candidate;
  }
  return nullptr;
}

std::span<const Field> plain_recording_fields() {
  return kPlain;
}

bool is_of_all_recorded(const RecordingFieldInfo& field) {
  return field.kinds == kAll;
}

std::vector<std::string> recording_names(RecordedKind kind) {
  std::vector<std::string> names;
  names.reserve(kPlain.size() + kRecordingFields.size());
  for (const Field field : kPlain)
    names.emplace_back(info(field).name);
  for (const RecordingFieldInfo& candidate : kRecordingFields) {
    if ((candidate.kinds & bit(kind)) != 0) names.emplace_back(candidate.name);
  }
  return names;
}

std::span<const RecordedKindInfo> recorded_kinds() {
  return kKinds;
}

std::string_view name_of(RecordedKind kind) {
  return kKinds[static_cast<size_t>(kind)].name;
}

}  // namespace clew::query
