// SPDX-License-Identifier: Apache-2.0
// Answers that the root of a cluster reads for us, over the bus.
#pragma once

#include <cstdint>
#include <string>

#include "cluster/answers.h"
#include "cluster/bus.h"
#include "cluster/chunks.h"
#include "cluster/clock.h"
#include "cluster/subjects.h"

namespace clew::cluster {

class RemoteAnswers final : public Answers {
 public:
  // Both are borrowed. `url`: for messages.
  RemoteAnswers(Bus& bus, const Clock& clock, std::string tenant, std::string url);

  Expected<void> begin() { return bus_.subscribe(subjects_.found(reader_)); }
  // Errors of both, beside those of Answers: Io: no root answers; the bus refuses it.
  Expected<std::vector<AnswerSummary>> list() override;
  Expected<AnswerPart> read(const std::string& query, uint64_t first, uint64_t last) override;

 private:
  Expected<Bytes> ask(Read question);
  std::optional<Bytes> wait_for_answer(uint64_t request);
  [[nodiscard]] bool may_have_root();

  Bus& bus_;
  const Clock& clock_;
  std::string tenant_;
  std::string url_;
  Subjects subjects_;
  std::string reader_;  // A word that nobody else has.
  uint64_t requests_ = 0;
};

}  // namespace clew::cluster
