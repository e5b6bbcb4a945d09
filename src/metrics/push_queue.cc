// SPDX-License-Identifier: Apache-2.0
#include "metrics/push_queue.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "output/format.h"

namespace clew::metrics {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kTextMax = 300;
// Of a receiver that knows no better: a day.
constexpr int64_t kRetryAfterMax = 86'400;

bool is_taken(int status) {
  return status >= 200 && status < 300;
}

// "Retryable Response Codes", and no answer at all.
bool is_tried_again(int status) {
  return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

// A date, which it may be, too, is nothing that we wait for.
std::optional<int64_t> seconds_in(const std::string& text) {
  int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (read.ec != std::errc{} || seconds < 0) return std::nullopt;
  return std::min(seconds, kRetryAfterMax);
}

std::string shortened(const std::string& text) {
  return output::printable(text.substr(0, kTextMax));
}

// An int64, which JSON of protobuf has in quotes.
uint64_t number_in(const Json& json) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  uint64_t number = 0;
  if (!json.is_string()) return 0;
  const auto& text = json.get_ref<const std::string&>();
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string text_in(const Json& json, const char* name) {
  if (!json.is_object()) return "";
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// google.rpc.Status, or what a proxy says.
std::string message_in(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  const std::string message = text_in(json, "message");
  return shortened(message.empty() ? body : message);
}

}  // namespace

void PushQueue::add(output::OtlpRequest request) {
  bytes_ += request.body.size();
  waiting_.push_back(std::move(request));
  const size_t first = is_sending_ ? 1 : 0;
  while (bytes_ > kBytesMax && waiting_.size() > first + 1) {
    const auto oldest = waiting_.begin() + static_cast<ptrdiff_t>(first);
    lose(oldest->points, fmt::format("more wait for {} than there is room for", place_));
    note("metrics are lost: " + first_loss_);
    pop(oldest);
  }
}

void PushQueue::add_uncorrected(uint64_t count) {
  if (counts_.uncorrected == 0 && count != 0) {
    notes_.emplace_back(
        "an interval has changed after it was sent: what does not add up (a maximum, a quantile) "
        "stays as it was there");
  }
  counts_.uncorrected += count;
}

const output::OtlpRequest* PushQueue::next(int64_t now_ns) {
  is_sending_ = !waiting_.empty() && now_ns >= not_before_ns_;
  return is_sending_ ? &waiting_.front() : nullptr;
}

std::optional<int64_t> PushQueue::next_ns() const {
  if (waiting_.empty()) return std::nullopt;
  return not_before_ns_;
}

void PushQueue::take(const PushAnswer& answer, int64_t now_ns) {
  if (!std::exchange(is_sending_, false)) return;
  if (is_tried_again(answer.status)) {
    const std::string why =
        answer.status == 0 ? answer.problem
                           : fmt::format("status {}{}{}", answer.status,
                                         answer.body.empty() ? "" : ": ", message_in(answer.body));
    const auto asked = seconds_in(answer.retry_after);
    waits_for_ = fmt::format("it does not take metrics: {}", why);
    note(
        fmt::format("{} does not take metrics now: {}; they wait and are sent again", place_, why));
    not_before_ns_ = now_ns + (asked ? *asked * kSecondNs : wait_ns_);
    wait_ns_ = std::min(wait_ns_ * 2, kWaitMaxNs);
    return;
  }
  wait_ns_ = kFirstWaitNs;
  not_before_ns_ = 0;
  waits_for_.clear();
  if (is_taken(answer.status)) {
    accept(answer);
  } else {
    const std::string why = fmt::format("{} refuses metrics: status {}{}{}", place_, answer.status,
                                        answer.body.empty() ? "" : ": ", message_in(answer.body));
    note(why);
    lose(waiting_.front().points, why);
  }
  pop(waiting_.begin());
}

// Also in part: that is told, and not sent again.
void PushQueue::accept(const PushAnswer& answer) {
  const uint64_t points = waiting_.front().points;
  const Json json = Json::parse(answer.body, nullptr, false);
  uint64_t rejected = 0;
  std::string message;
  if (json.is_object() && json.contains("partialSuccess")) {
    const Json& partial = json["partialSuccess"];
    if (partial.is_object() && partial.contains("rejectedDataPoints"))
      rejected = std::min(number_in(partial["rejectedDataPoints"]), points);
    message = shortened(text_in(partial, "errorMessage"));
  }
  counts_.sent += points - rejected;
  if (rejected != 0) {
    const std::string why = fmt::format("{} has not taken some points: {}", place_,
                                        message.empty() ? "it does not say why" : message);
    note(why);
    lose(rejected, why);
  } else if (!message.empty()) {
    note(fmt::format("{} says: {}", place_, message));
  } else if (!std::exchange(told_, {}).empty()) {
    notes_.push_back(fmt::format("{} takes metrics again", place_));
  }
}

void PushQueue::give_up() {
  uint64_t points = 0;
  for (const output::OtlpRequest& request : waiting_)
    points += request.points;
  const std::string why = waits_for_.empty() ? "there was no time left to send them" : waits_for_;
  if (points != 0) lose(points, why);
  waiting_.clear();
  bytes_ = 0;
}

void PushQueue::pop(const std::deque<output::OtlpRequest>::iterator& request) {
  bytes_ -= request->body.size();
  if (request->mark != 0) {
    Done& done = done_[request->query];
    if (request->revision > done.revision) done = {.revision = request->revision};
    // One behind another may be lost before it.
    if (request->revision == done.revision) done.mark = std::max(done.mark, request->mark);
  }
  waiting_.erase(request);
}

std::optional<uint64_t> PushQueue::done(const std::string& query, uint64_t revision) const {
  const auto found = done_.find(query);
  if (found == done_.end() || found->second.revision != revision) return std::nullopt;
  return found->second.mark;
}

void PushQueue::forget(const std::string& query) {
  done_.erase(query);
  size_t kept = 0;
  if (is_sending_) {
    if (waiting_.front().query == query) waiting_.front().mark = 0;
    kept = 1;
  }
  const auto first = waiting_.begin() + static_cast<ptrdiff_t>(kept);
  waiting_.erase(std::remove_if(first, waiting_.end(),
                                [&](const output::OtlpRequest& each) {
                                  if (each.query != query) return false;
                                  bytes_ -= each.body.size();
                                  return true;
                                }),
                 waiting_.end());
}

void PushQueue::lose(uint64_t points, const std::string& why) {
  if (counts_.lost == 0) first_loss_ = why;
  counts_.lost += points;
}

void PushQueue::note(std::string text) {
  if (text == told_) return;
  told_ = text;
  notes_.push_back(std::move(text));
}

}  // namespace clew::metrics
