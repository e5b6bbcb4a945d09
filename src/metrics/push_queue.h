// SPDX-License-Identifier: Apache-2.0
// Requests that are to be sent, and what becomes of them: which answer of a receiver means what
// (OTLP 1.0, "OTLP/HTTP Response"), when it is tried again, and what is lost. It knows no network
// and no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "output/otlp.h"

namespace clew::metrics {

// What came of an attempt.
struct PushAnswer {
  int status = 0;         // Of HTTP; 0: no answer came,
  std::string problem{};  // and why.
  std::string body{};
  std::string retry_after{};  // The header.
};

struct PushCounts {
  uint64_t sent = 0;         // Points that a receiver has taken,
  uint64_t lost = 0;         // that it has not and will not,
  uint64_t uncorrected = 0;  // and values that have changed since (output::MetricRows).
};

class PushQueue {
 public:
  // What waits: oldest requests are given up for newer ones.
  static constexpr size_t kBytesMax = size_t{16} << 20;
  static constexpr int64_t kFirstWaitNs = 500'000'000;
  static constexpr int64_t kWaitMaxNs = 30'000'000'000;

  explicit PushQueue(std::string place) : place_(std::move(place)) {}

  void add(output::OtlpRequest request);
  void add_uncorrected(uint64_t count);
  // The one to be sent, which stays until take(); null: none, or its time has not come.
  [[nodiscard]] const output::OtlpRequest* next(int64_t now_ns);
  // When; none: when one is added.
  [[nodiscard]] std::optional<int64_t> next_ns() const;
  // Of next().
  void take(const PushAnswer& answer, int64_t now_ns);
  // No more time.
  void give_up();

  [[nodiscard]] bool is_empty() const { return waiting_.empty(); }
  [[nodiscard]] const PushCounts& counts() const { return counts_; }
  // OtlpRequest::mark, of what waits no more.
  [[nodiscard]] std::optional<uint64_t> done(const std::string& query, uint64_t revision) const;
  // What waits of it is not sent, but for what is on its way; nor is anything of it done.
  void forget(const std::string& query);
  // Why something was lost, first of all.
  [[nodiscard]] const std::string& first_loss() const { return first_loss_; }
  // What happened, in words, since the last time: each thing once until it changes.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  void pop(const std::deque<output::OtlpRequest>::iterator& request);
  void lose(uint64_t points, const std::string& why);
  void accept(const PushAnswer& answer);
  void note(std::string text);

  std::string place_;
  std::deque<output::OtlpRequest> waiting_;
  size_t bytes_ = 0;
  bool is_sending_ = false;  // The first one is on its way, and stays.
  int64_t not_before_ns_ = 0;
  int64_t wait_ns_ = kFirstWaitNs;
  PushCounts counts_;
  struct Done {
    uint64_t revision = 0;
    uint64_t mark = 0;
  };
  std::map<std::string, Done> done_;  // By query.
  std::string first_loss_;
  std::string waits_for_;  // Why the last attempt has failed; empty: it has not.
  std::string told_;
  std::vector<std::string> notes_;
};

}  // namespace clew::metrics
