// SPDX-License-Identifier: Apache-2.0
// The answers in a root's store, also beside the root that writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/answers.h"
#include "cluster/store.h"

namespace clew::cluster {

class StoreAnswers final : public Answers {
 public:
  // Borrowed.
  explicit StoreAnswers(Store& store) : store_(store) {}

  Expected<std::vector<AnswerSummary>> list() override { return store_.list(); }
  Expected<AnswerPart> read(const std::string& query, uint64_t first, uint64_t last) override;

 private:
  Expected<std::vector<NodeGap>> gaps_of(const StoredAnswer& head, Pane first);

  Store& store_;
};

}  // namespace clew::cluster
