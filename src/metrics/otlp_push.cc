// SPDX-License-Identifier: Apache-2.0
#include "metrics/otlp_push.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

#include "base/clock_ns.h"
#include "metrics/threads.h"

namespace clew::metrics {
namespace {

constexpr std::chrono::seconds kConnectPatience{5};
constexpr std::chrono::seconds kAnswerPatience{10};  // Of each read and write.
constexpr size_t kAnswerMax = size_t{64} << 10;

int64_t now_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

// As a sentence goes on: "it does not take metrics now: no connection".
std::string text_of(httplib::Error error) {
  using httplib::Error;
  if (error == Error::Connection || error == Error::ConnectionTimeout) return "no connection";
  if (error == Error::Read) return "no answer";
  if (error == Error::Write) return "the connection was closed";
  if (error == Error::SSLConnection) return "no connection by TLS";
  if (error == Error::SSLServerVerification)
    return "its certificate is not trusted (SSL_CERT_FILE names who is)";
  return httplib::to_string(error);
}

}  // namespace

// The thread and its owner meet under the lock.
class OtlpPush::Sender {
 public:
  Sender(PushPlace place, int64_t patience_ns)
      : place_(std::move(place)),
        patience_ns_(patience_ns),
        client_(place_.server),
        queue_(place_.shown()) {
    client_.set_keep_alive(true);
    client_.set_tcp_nodelay(true);
    client_.set_connection_timeout(kConnectPatience);
    client_.set_read_timeout(kAnswerPatience);
    client_.set_write_timeout(kAnswerPatience);
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  ~Sender() { end(0); }

  // What it does to the queue; the thread looks at it then.
  template <typename Change>
  auto change(const Change& change) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
    return change(queue_);
  }

  void end(int64_t patience_ns) {
    {
      std::unique_lock lock(mutex_);
      end_ns_ = std::min(end_ns_.value_or(INT64_MAX), now_ns() + patience_ns);
      changed_.notify_all();
      (void)changed_.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                              [this] { return is_done_; });
    }
    if (!thread_.joinable()) return;
    client_.stop();
    thread_.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!end_ns_ || (!queue_.is_empty() && now_ns() < *end_ns_)) {
      const output::OtlpRequest* const request = queue_.next(now_ns());
      if (request == nullptr) {
        wait(lock);
        continue;
      }
      const std::string body = request->body;
      lock.unlock();
      const PushAnswer answer = send(body);
      lock.lock();
      queue_.take(answer, now_ns());
    }
    queue_.give_up();
    is_done_ = true;
    changed_.notify_all();
  }

  void wait(std::unique_lock<std::mutex>& lock) {
    const int64_t until =
        std::min(queue_.next_ns().value_or(INT64_MAX), end_ns_.value_or(INT64_MAX));
    if (until == INT64_MAX) {
      changed_.wait(lock);
    } else {
      (void)changed_.wait_for(lock,
                              std::chrono::nanoseconds(std::max<int64_t>(until - now_ns(), 0)));
    }
  }

  // A request that has begun then: a receiver that drips is in time with each byte.
  bool is_late(int64_t begun_ns) {
    const std::lock_guard lock(mutex_);
    const int64_t now = now_ns();
    return now - begun_ns > patience_ns_ || (end_ns_ && now > *end_ns_);
  }

  // Of an answer that is too long the begin is enough.
  PushAnswer send(const std::string& body) {
    PushAnswer answer;
    const int64_t begun_ns = now_ns();
    httplib::Request request;
    request.method = "POST";
    request.path = place_.path;
    request.body = body;
    request.set_header("Content-Type", "application/json");
    request.set_header("User-Agent", "clew");
    for (const auto& [name, value] : place_.headers) {
      request.headers.erase(name);
      request.set_header(name, value);
    }
    request.response_handler = [&](const httplib::Response& response) {
      answer.status = response.status;
      answer.retry_after = response.get_header_value("Retry-After");
      return !is_late(begun_ns);
    };
    request.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      answer.body.append(data, std::min(size, kAnswerMax - answer.body.size()));
      return answer.body.size() < kAnswerMax && !is_late(begun_ns);
    };
    const httplib::Result result = client_.send(request);
    if (!result && answer.status == 0) answer.problem = text_of(result.error());
    return answer;
  }

  PushPlace place_;
  int64_t patience_ns_;
  httplib::Client client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  PushQueue queue_;
  std::optional<int64_t> end_ns_;
  bool is_done_ = false;
  std::thread thread_;
};

OtlpPush::OtlpPush(PushPlace place, int64_t patience_ns)
    : shown_(place.shown()), sender_(std::make_unique<Sender>(std::move(place), patience_ns)) {}
OtlpPush::~OtlpPush() = default;

void OtlpPush::post(output::OtlpRequest request) {
  sender_->change([&request](PushQueue& queue) { queue.add(std::move(request)); });
}

void OtlpPush::uncorrected(uint64_t count) {
  sender_->change([count](PushQueue& queue) { queue.add_uncorrected(count); });
}

std::optional<uint64_t> OtlpPush::done(const std::string& query, uint64_t revision) const {
  return sender_->change([&](const PushQueue& queue) { return queue.done(query, revision); });
}

void OtlpPush::forget(const std::string& query) {
  sender_->change([&query](PushQueue& queue) { queue.forget(query); });
}

PushCounts OtlpPush::counts() const {
  return sender_->change([](const PushQueue& queue) { return queue.counts(); });
}

std::vector<std::string> OtlpPush::take_notes() {
  return sender_->change([](PushQueue& queue) { return queue.take_notes(); });
}

Expected<void> OtlpPush::close(int64_t patience_ns) {
  sender_->end(patience_ns);
  const PushCounts all = counts();
  if (all.lost == 0) return {};
  const std::string why =
      sender_->change([](const PushQueue& queue) { return queue.first_loss(); });
  return fail(ErrorCode::Io, fmt::format("{} of {} points were not taken by {}: {}", all.lost,
                                         all.lost + all.sent, shown_, why));
}

}  // namespace clew::metrics
