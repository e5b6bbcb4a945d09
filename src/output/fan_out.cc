// SPDX-License-Identifier: Apache-2.0
#include "output/fan_out.h"

#include <algorithm>

namespace clew::output {

void FanOut::begin(std::span<const aggregate::Column> columns, RowMode mode) {
  for (RowSink* const sink : sinks_)
    sink->begin(columns, mode);
}

void FanOut::row(std::span<const aggregate::Value> values) {
  for (RowSink* const sink : sinks_)
    sink->row(values);
}

void FanOut::disarmed(const collect::DisarmedProbe& disarmed) {
  for (RowSink* const sink : sinks_)
    sink->disarmed(disarmed);
}

bool FanOut::wants_losses() const {
  return std::any_of(sinks_.begin(), sinks_.end(),
                     [](const RowSink* sink) { return sink->wants_losses(); });
}

void FanOut::losses_so_far(const collect::Losses& losses) {
  for (RowSink* const sink : sinks_) {
    if (sink->wants_losses()) sink->losses_so_far(losses);
  }
}

void FanOut::end_interval(const Interval& interval) {
  for (RowSink* const sink : sinks_)
    sink->end_interval(interval);
}

void FanOut::finish(const collect::Losses& losses) {
  for (RowSink* const sink : sinks_)
    sink->finish(losses);
}

void FanOut::flush() {
  for (RowSink* const sink : sinks_)
    sink->flush();
}

bool FanOut::ready() const {
  return std::all_of(sinks_.begin(), sinks_.end(),
                     [](const RowSink* sink) { return sink->ready(); });
}

}  // namespace clew::output
