// SPDX-License-Identifier: Apache-2.0
#include "answer/outstanding.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"
#include "plan/evaluate.h"

namespace clew::answer {

using aggregate::Value;
using plan::Joined;

namespace {

// Rows are selected so many at a time.
constexpr size_t kRowsAtOnce = 256;

std::vector<size_t> columns_to_hold(const plan::JoinStage& stage) {
  std::vector<size_t> columns;
  for (const size_t column : stage.streams[0].columns) {
    if (column != Joined::kTime) columns.push_back(column);
  }
  return columns;
}

int64_t earlier(int64_t time, int64_t by) {
  int64_t result = 0;
  return __builtin_sub_overflow(time, by, &result) ? std::numeric_limits<int64_t>::min() : result;
}

// A pointer, however it was converted.
bool is_pointer(const query::Expression& key) {
  if (key.type.unit == query::Unit::Address) return true;
  return key.kind == query::ExpressionKind::Convert && is_pointer(key.operands[0]);
}

}  // namespace

Outstanding::Outstanding(const Joined& joined, OutstandingLimits limits)
    : joined_(joined),
      stage_(joined.stages[0]),
      within_(*joined.stages[0].joins[0].within),
      limits_(limits),
      held_columns_(columns_to_hold(stage_)),
      rows_({.keys = within_.other.size(), .width = held_columns_.size()}, limits.rows),
      rest_(stage_.rest, true),
      made_(stage_.width),
      key_(within_.other.size()),
      held_(held_columns_.size()) {}

// --- events --------------------------------------------------------------------------------------

size_t Outstanding::take(RowBatch& events, Part part, RowBatch& /*rows*/) {
  for (size_t i = part.begin; i < part.end; ++i)
    take_event(events.at(i));
  rows_.pass(earlier(std::min(latest_, now_), limits_.slack_ns));
  return part.end;
}

// Who ends something and begins it at one hit does so in this order: it ends what began before.
void Outstanding::take_event(Values event) {
  const uint64_t source = plan::bits_of(event[Joined::kSource]);
  if (source >= joined_.roles.size()) return;  // A recording can say anything.
  const auto time = static_cast<int64_t>(plan::bits_of(event[Joined::kTime]));
  latest_ = std::max(latest_, std::min(time, now_));
  const std::vector<plan::JoinRole>& roles = joined_.roles[source];
  const auto has = [&roles](uint16_t stream) {
    return std::any_of(roles.begin(), roles.end(),
                       [stream](const plan::JoinRole& role) { return role.stream == stream; });
  };
  if (has(1)) end(event, has(0) ? earlier(time, 1) : time);
  if (has(0)) begin(event, time);
}

void Outstanding::gather(const std::vector<size_t>& columns, Values event) {
  values_.resize(columns.size());
  for (size_t i = 0; i < columns.size(); ++i)
    values_[i] = event[columns[i]];
}

void Outstanding::begin(Values event, int64_t time_ns) {
  gather(stage_.streams[0].columns, event);
  compute(within_.other, values_);
  if (is_of_failure()) return;
  for (size_t i = 0; i < held_columns_.size(); ++i)
    held_[i] = event[held_columns_[i]];
  rows_.begin(key_, time_ns, held_);
}

void Outstanding::end(Values event, int64_t time_ns) {
  gather(stage_.streams[1].columns, event);
  compute(within_.joined, values_);
  if (!is_of_failure()) rows_.end(key_, time_ns);
}

// In one form, whatever the form of the values that it is computed from.
void Outstanding::compute(const std::vector<query::Expression>& keys, Values row) {
  bindings_.set(row);
  for (size_t i = 0; i < keys.size(); ++i) {
    bindings_.evaluate(keys[i], key_[i]);
    const bool is_number = keys[i].type.kind == query::TypeKind::Integer;
    if (is_number && !std::holds_alternative<std::monostate>(key_[i]))
      key_[i] = plan::bits_of(key_[i]);
  }
}

// free(0) ends nothing, either.
bool Outstanding::is_of_failure() const {
  constexpr int64_t kErrorsMax = 4095;
  for (size_t i = 0; i < key_.size(); ++i) {
    const auto* const word = std::get_if<uint64_t>(&key_[i]);
    if (word == nullptr) continue;
    const bool points = is_pointer(within_.other[i]) || is_pointer(within_.joined[i]);
    const auto number = static_cast<int64_t>(*word);
    const bool is_error = number < 0 && number >= -kErrorsMax;
    const bool may_fail = points || within_.other[i].type.is_signed;
    if ((points && number == 0) || (may_fail && is_error)) return true;
  }
  return false;
}

// --- rows ----------------------------------------------------------------------------------------

void Outstanding::ask(int64_t at_ns) {
  asked_ = at_ns;
  asked_rows_ = rows_.begun_until(at_ns);
  given_ = 0;
}

bool Outstanding::give(RowBatch& rows) {
  const std::vector<size_t>& begun = stage_.streams[0].columns;
  const plan::JoinStage::Stream& ended = stage_.streams[1];
  while (given_ < asked_rows_.size() && rows.size() < limits_.batch) {
    const uint32_t place = asked_rows_[given_++];
    rows_.read(place, held_);
    const std::span<Value> row = made_.add();
    for (size_t i = 0, next = 0; i < begun.size(); ++i) {
      if (begun[i] == Joined::kTime) {
        row[i] = rows_.time_of(place);
      } else {
        row[i] = held_[next++];
      }
    }
    for (size_t i = 0; i < ended.columns.size(); ++i) {
      Value& value = row[ended.begin + i];
      if (ended.columns[i] == Joined::kTime) {
        value = asked_;
      } else {
        value = std::monostate{};
      }
    }
    if (made_.size() < kRowsAtOnce) continue;
    rest_.take(made_, rows);
    made_.clear();
  }
  if (!made_.empty()) rest_.take(made_, rows);
  made_.clear();
  return given_ == asked_rows_.size();
}

}  // namespace clew::answer
