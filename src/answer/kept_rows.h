// SPDX-License-Identifier: Apache-2.0
// The end of the operators of a test: keeps the rows.
#pragma once

#include <vector>

#include "aggregate/table.h"
#include "answer/operator.h"

namespace clew::answer {

class KeptRows final : public Operator {
 public:
  void take(RowBatch& batch) override {
    for (size_t i = 0; i < batch.size(); ++i)
      rows.emplace_back(batch.at(i).begin(), batch.at(i).end());
  }
  void finish() override { ++answers; }

  std::vector<aggregate::Row> rows;
  size_t answers = 0;
};

}  // namespace clew::answer
