// SPDX-License-Identifier: Apache-2.0
// Sends requests of OTLP to a receiver, in a thread of its own: whoever has rows does not wait for
// it. What cannot be sent waits, within a limit, and is counted when it is lost (push_queue.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "metrics/push_place.h"
#include "metrics/push_queue.h"
#include "output/otlp.h"

namespace clew::metrics {

class OtlpPush final : public output::OtlpPlace {
  class Sender;

 public:
  // Of a request, and all of its answer that is needed: a status is enough, if it is there.
  static constexpr int64_t kRequestPatienceNs = 30'000'000'000;

  explicit OtlpPush(PushPlace place, int64_t patience_ns = kRequestPatienceNs);
  ~OtlpPush() override;

  void post(output::OtlpRequest request) override;
  void uncorrected(uint64_t count) override;
  [[nodiscard]] std::optional<uint64_t> done(const std::string& query,
                                             uint64_t revision) const override;
  void forget(const std::string& query) override;
  [[nodiscard]] PushCounts counts() const;
  std::vector<std::string> take_notes();
  // Sends what waits, but not for longer; then nothing is sent any more. Io: something was lost.
  Expected<void> close(int64_t patience_ns);

 private:
  std::string shown_;
  std::unique_ptr<Sender> sender_;
};

}  // namespace clew::metrics
