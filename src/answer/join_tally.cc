// SPDX-License-Identifier: Apache-2.0
#include "answer/join_tally.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <variant>

#include "plan/evaluate.h"

namespace clew::answer {
namespace {

uint64_t bytes_packed(const aggregate::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  return std::holds_alternative<std::monostate>(value) ? 0 : sizeof(uint64_t);
}

}  // namespace

JoinTally::JoinTally(const plan::Joined& joined) : joined_(joined), stages_(joined.stages.size()) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i].streams.resize(joined.stages[i].streams.size());
    stages_[i].dropped.resize(joined.stages[i].rest.where.size());
  }
}

StreamTally& JoinTally::at(Stream stream) {
  return stages_[stream.stage].streams[stream.stream];
}

void JoinTally::enters(Stream stream, const std::optional<causal::Moment>& moment) {
  StreamTally& tally = at(stream);
  ++tally.events;
  if (!moment) ++tally.outside;
}

void JoinTally::keeps(Stream stream, const causal::Moment& moment,
                      std::span<const aggregate::Value> values) {
  const uint64_t bytes =
      std::accumulate(values.begin(), values.end(), uint64_t{0},
                      [](uint64_t sum, const auto& value) { return sum + bytes_packed(value); });
  StreamTally& tally = at(stream);
  ++tally.kept;
  tally.bytes += bytes;
  tally.bytes_max = std::max(tally.bytes_max, bytes);
  Carried& carried = open_[moment.request];
  requests_.tuples_max = std::max(requests_.tuples_max, ++carried.tuples);
  carried.bytes += bytes;
  requests_.bytes_max = std::max(requests_.bytes_max, carried.bytes);
}

void JoinTally::unpacks(Stream stream, size_t rows) {
  at(stream).unpacked += rows;
}

void JoinTally::joins(size_t stage, const std::optional<causal::Moment>& moment, RowBatch& rows) {
  StageTally& tally = stages_[stage];
  if (moment && rows.empty()) ++tally.unjoined;
  tally.joined += rows.size();
  const std::vector<query::Expression>& conditions = joined_.stages[stage].rest.where;
  for (size_t i = 0; i < rows.size(); ++i) {
    bindings_.set(rows.at(i));
    const auto first = std::find_if_not(
        conditions.begin(), conditions.end(), [this](const query::Expression& condition) {
          return plan::is_true(plan::evaluate(condition, bindings_));
        });
    if (first != conditions.end()) ++tally.dropped[static_cast<size_t>(first - conditions.begin())];
  }
}

}  // namespace clew::answer
