// SPDX-License-Identifier: Apache-2.0
// For who runs a query and shows nothing of it: rows are the root's to make, or a reader's.
#pragma once

#include <span>

#include "output/row_sink.h"

namespace clew::cluster {

class NoRows final : public output::RowSink {
 public:
  void begin(std::span<const aggregate::Column>, output::RowMode) override {}
  void row(std::span<const aggregate::Value>) override {}
  void end_interval(const output::Interval&) override {}
  void finish(const collect::Losses&) override {}
};

}  // namespace clew::cluster
