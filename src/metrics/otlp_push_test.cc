// SPDX-License-Identifier: Apache-2.0
// OTLP over HTTP against a receiver that refuses, says nothing, closes connections, and takes a
// part. It is made of sockets alone, so that it can do what no decent server does.
#include "metrics/otlp_push.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "base/file_descriptor.h"
#include "metrics/push_place.h"

namespace clew::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kPushSecond = 1'000'000'000;
// Of a tenth of a second, on a machine that is busy; an answer is waited for twice as long.
constexpr int64_t kInTime = 5 * kPushSecond;

std::string answer_text(const std::string& status, const std::string& body,
                        const std::string& headers = "") {
  return "HTTP/1.1 " + status + "\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Gives each request the next of its answers, and closes the connection behind it. An empty answer:
// it closes without a word. Behind the last one it takes everything.
class Receiver {
 public:
  // `pause`: behind each byte of a body.
  explicit Receiver(std::deque<std::string> answers, std::chrono::milliseconds pause = {})
      : pause_(pause), answers_(std::move(answers)) {
    listener_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
    port_ = ntohs(place.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Receiver() { end(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Behind the answer that it is giving.
  void end() {
    is_ending_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Bytes of answers.
  [[nodiscard]] size_t taken() const { return taken_; }
  // Of each request.
  std::vector<std::string> bodies() {
    std::vector<std::string> bodies;
    for (const std::string& request : requests())
      bodies.push_back(request.substr(request.find("\r\n\r\n") + 4));
    return bodies;
  }

 private:
  void serve() {
    while (!is_ending_) {
      pollfd one{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (poll(&one, 1, 20) != 1) continue;
      const FileDescriptor connection(accept(listener_.get(), nullptr, nullptr));
      const std::string request = read_request(connection);
      if (request.empty()) continue;
      const std::string answer = take(request);
      give(connection, answer);
      (void)shutdown(connection.get(), SHUT_RDWR);
    }
  }
  // As much as is taken.
  void give(const FileDescriptor& connection, const std::string& answer) {
    const size_t piece = pause_.count() == 0 ? answer.size() : 1;
    const size_t head = answer.find("\r\n\r\n") + 4;
    for (size_t at = 0; at < answer.size() && !is_ending_;) {
      const size_t size = at < head && head < answer.size() ? head - at : answer.size() - at;
      const ssize_t sent = ::send(connection.get(), answer.data() + at,
                                  at < head ? size : std::min(size, piece), MSG_NOSIGNAL);
      if (sent <= 0) return;
      at += static_cast<size_t>(sent);
      taken_ += static_cast<size_t>(sent);
      pollfd gone{.fd = connection.get(), .events = POLLRDHUP, .revents = 0};
      if (at > head && poll(&gone, 1, static_cast<int>(pause_.count())) == 1) return;
    }
  }
  std::string take(const std::string& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (answers_.empty()) return answer_text("200 OK", "{}", "Connection: close\r\n");
    std::string answer = answers_.front();
    answers_.pop_front();
    return answer;
  }
  // Up to the end of its body.
  std::string read_request(const FileDescriptor& connection) {
    std::string request;
    std::array<char, 4096> buffer{};
    while (!is_whole(request)) {
      pollfd one{.fd = connection.get(), .events = POLLIN, .revents = 0};
      if (poll(&one, 1, 20) != 1) {
        if (is_ending_) return "";
        continue;
      }
      const ssize_t size = read(connection.get(), buffer.data(), buffer.size());
      if (size <= 0) return "";
      request.append(buffer.data(), static_cast<size_t>(size));
    }
    return request;
  }
  static bool is_whole(const std::string& request) {
    const size_t end = request.find("\r\n\r\n");
    const std::string name = "Content-Length: ";
    const size_t at = request.find(name);
    if (end == std::string::npos || at == std::string::npos) return false;
    return request.size() >= end + 4 + std::stoul(request.substr(at + name.size()));
  }

  FileDescriptor listener_;
  int port_ = 0;
  std::thread thread_;
  std::atomic<bool> is_ending_ = false;
  std::atomic<size_t> taken_ = 0;
  std::chrono::milliseconds pause_;
  std::mutex mutex_;
  std::deque<std::string> answers_;
  std::vector<std::string> requests_;
};

PushPlace place_of(const std::string& url, const std::vector<std::string>& headers = {}) {
  return parse_push_place(url, headers).value();
}

TEST(OtlpPush, PostsJsonWithItsHeaders) {
  Receiver receiver({});
  OtlpPush push(place_of(receiver.url(), {"x-tenant=blue", "User-Agent=mine"}));
  push.post({.body = "{\"a\":1}", .points = 3});
  ASSERT_TRUE(push.close(10 * kPushSecond));
  ASSERT_EQ(receiver.requests().size(), 1U);
  const std::string request = receiver.requests()[0];
  EXPECT_THAT(request, testing::StartsWith("POST /v1/metrics HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nx-tenant: blue\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nUser-Agent: mine\r\n"));
  EXPECT_THAT(receiver.bodies(), ElementsAre("{\"a\":1}"));
  EXPECT_EQ(push.counts().sent, 3U);
}

// In their order, and each as it was: who has it already knows it again.
TEST(OtlpPush, SendsAgainWhatWasNotTakenAndNothingElse) {
  Receiver receiver({"", answer_text("503 Busy", "", "Retry-After: 0\r\n"),
                     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", "garbage\r\n\r\n"});
  OtlpPush push(place_of(receiver.url()));
  push.post({.body = "{\"a\":1}", .points = 1});
  push.post({.body = "{\"b\":2}", .points = 1});
  ASSERT_TRUE(push.close(30 * kPushSecond));
  std::vector<std::string> bodies = receiver.bodies();
  const auto second = std::find(bodies.begin(), bodies.end(), "{\"b\":2}");
  EXPECT_EQ(std::count(bodies.begin(), second, "{\"a\":1}"), second - bodies.begin());
  EXPECT_EQ(std::count(second, bodies.end(), "{\"b\":2}"), bodies.end() - second);
  EXPECT_EQ(second - bodies.begin(), 3) << "closed, 503, and a status of 200 with half its body";
  EXPECT_EQ(bodies.end() - second, 2) << "what is no answer, and one";
  EXPECT_EQ(push.counts().sent, 2U);
  EXPECT_EQ(push.counts().lost, 0U);
}

TEST(OtlpPush, TellsWhatItsReceiverRefuses) {
  Receiver receiver({answer_text("401 No", R"({"message":"who are you?"})")});
  OtlpPush push(place_of(receiver.url()));
  push.post({.body = "{}", .points = 7});
  const auto closed = push.close(10 * kPushSecond);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "7 of 7 points were not taken by " + receiver.url() +
                                        "/v1/metrics: " + receiver.url() +
                                        "/v1/metrics refuses metrics: status 401: who are you?");
  EXPECT_EQ(receiver.requests().size(), 1U);
}

TEST(OtlpPush, CountsWhatIsTakenInPart) {
  Receiver receiver({answer_text(
      "200 OK", R"({"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"full"}})")});
  OtlpPush push(place_of(receiver.url()));
  push.post({.body = "{}", .points = 7});
  EXPECT_FALSE(push.close(10 * kPushSecond));
  EXPECT_EQ(push.counts().sent, 5U);
  EXPECT_EQ(push.counts().lost, 2U);
}

TEST(OtlpPush, EndsInTimeWhereNobodyListens) {
  std::string url;
  {
    Receiver gone({});
    url = gone.url();
  }
  OtlpPush push(place_of(url));
  push.post({.body = "{}", .points = 7});
  const int64_t begun = clock_ns(CLOCK_MONOTONIC);
  const auto closed = push.close(kPushSecond / 10);
  EXPECT_LT(clock_ns(CLOCK_MONOTONIC) - begun, kInTime);
  ASSERT_FALSE(closed);
  EXPECT_THAT(closed.error().message, HasSubstr("7 of 7 points were not taken by"));
}

// The connection is there, and no answer comes.
TEST(OtlpPush, EndsInTimeWhereAReceiverSaysNothing) {
  const FileDescriptor silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  ASSERT_EQ(bind(silent.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
  ASSERT_EQ(listen(silent.get(), 1), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  OtlpPush push(place_of("http://127.0.0.1:" + std::to_string(ntohs(place.sin_port))));
  push.post({.body = "{}", .points = 7});
  const int64_t begun = clock_ns(CLOCK_MONOTONIC);
  EXPECT_FALSE(push.close(kPushSecond / 10));
  EXPECT_LT(clock_ns(CLOCK_MONOTONIC) - begun, kInTime);
  EXPECT_EQ(push.counts().lost, 7U);
}

// Each byte is in time, and the whole takes ten seconds.
TEST(OtlpPush, DoesNotWaitForAReceiverThatDrips) {
  Receiver receiver({answer_text("200 OK", std::string(1'000, ' '))},
                    std::chrono::milliseconds(10));
  OtlpPush push(place_of(receiver.url()), kPushSecond / 10);
  push.post({.body = "{\"a\":1}", .points = 1});
  push.post({.body = "{\"b\":2}", .points = 1});
  EXPECT_TRUE(push.close(5 * kPushSecond));
  EXPECT_THAT(receiver.bodies(), ElementsAre("{\"a\":1}", "{\"b\":2}"));
  EXPECT_EQ(push.counts().sent, 2U);
}

// More than what lies in sockets.
TEST(OtlpPush, KeepsNoMoreOfAnAnswerThanItNeeds) {
  constexpr size_t kAnswer = size_t{64} << 20;
  Receiver receiver({answer_text("200 OK", std::string(kAnswer, ' '))});
  OtlpPush push(place_of(receiver.url()));
  push.post({.body = "{}", .points = 1});
  EXPECT_TRUE(push.close(10 * kPushSecond));
  EXPECT_EQ(push.counts().sent, 1U);
  receiver.end();
  EXPECT_GT(receiver.taken(), 0U);
  EXPECT_LT(receiver.taken(), kAnswer / 4 * 3);
}

}  // namespace
}  // namespace clew::metrics
