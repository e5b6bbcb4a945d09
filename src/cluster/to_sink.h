// SPDX-License-Identifier: Apache-2.0
// The last operator of an answer: gives rows to a sink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "answer/operator.h"
#include "answer/row_batch.h"
#include "output/row_sink.h"

namespace clew::cluster {

// Rows have the version of their window, where there are windows.
class ToSink final : public answer::Operator {
 public:
  explicit ToSink(output::RowSink& sink) : sink_(sink) {}
  void set_version(uint64_t version) { version_ = static_cast<int64_t>(version); }
  void forget_version() { version_.reset(); }

  void take(answer::RowBatch& rows) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::span<aggregate::Value> row = rows.at(i);
      row_.assign(row.begin(), row.end());
      if (version_) row_.emplace_back(*version_);
      sink_.row(row_);
    }
  }
  void finish() override {}

 private:
  output::RowSink& sink_;
  std::optional<int64_t> version_;
  std::vector<aggregate::Value> row_;
};

}  // namespace clew::cluster
