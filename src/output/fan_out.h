// SPDX-License-Identifier: Apache-2.0
// One answer for several sinks. Each gets every call, in their order; one whose bytes cannot be
// written takes nothing away from the others.
#pragma once

#include <utility>
#include <vector>

#include "output/row_sink.h"

namespace clew::output {

class FanOut : public RowSink {
 public:
  // Borrowed; none is null. Each is closed by its owner.
  explicit FanOut(std::vector<RowSink*> sinks) : sinks_(std::move(sinks)) {}

  void begin(std::span<const aggregate::Column> columns, RowMode mode) override;
  void row(std::span<const aggregate::Value> values) override;
  void disarmed(const collect::DisarmedProbe& disarmed) override;
  [[nodiscard]] bool wants_losses() const override;
  void losses_so_far(const collect::Losses& losses) override;
  void end_interval(const Interval& interval) override;
  void finish(const collect::Losses& losses) override;
  void flush() override;
  // When all are: rows wait for the slowest.
  [[nodiscard]] bool ready() const override;

 private:
  std::vector<RowSink*> sinks_;
};

}  // namespace clew::output
