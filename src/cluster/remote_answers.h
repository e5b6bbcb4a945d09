// SPDX-License-Identifier: Apache-2.0
// Answers that the root of a cluster reads for us, over the bus.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

  Expected<void> begin();
  // Is told once what is waited for, where a root that is there does not answer.
  void on_wait(std::function<void(const std::string&)> tell) { tell_ = std::move(tell); }
  // Errors of both, beside those of Answers: Io: no root answers; the bus refuses it.
  Expected<std::vector<AnswerSummary>> list() override;
  Expected<AnswerPart> read(const std::string& query, uint64_t first, uint64_t last) override;

 private:
  Expected<Bytes> ask(Read question);
  std::optional<Bytes> wait_for_answer(uint64_t request);
  [[nodiscard]] Expected<bool> may_have_root();
  void tell_wait();

  Bus& bus_;
  const Clock& clock_;
  std::string tenant_;
  std::string url_;
  Subjects subjects_;
  std::string reader_;  // A word that nobody else has.
  uint64_t requests_ = 0;
  std::string stranger_;  // Why a root that answers is not understood.
  std::function<void(const std::string&)> tell_;
};

}  // namespace clew::cluster
