// SPDX-License-Identifier: Apache-2.0
// What the answers of a receiver of OTLP mean ("OTLP/HTTP Response" of its specification).
#include "metrics/push_queue.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "metrics/push_place.h"

namespace clew::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kQueueSecond = 1'000'000'000;

class Queue : public testing::Test {
 protected:
  void add(const std::string& body, uint64_t points, uint64_t mark = 0) {
    queue_.add({.body = body, .points = points, .query = "q", .revision = 1, .mark = mark});
  }
  [[nodiscard]] std::string next() {
    const auto* const request = queue_.next(now_);
    return request == nullptr ? "" : request->body;
  }
  void answer(const PushAnswer& answer) {
    ASSERT_NE(queue_.next(now_), nullptr);
    queue_.take(answer, now_);
  }
  PushQueue queue_{"http://r/v1/metrics"};
  int64_t now_ = 100 * kQueueSecond;
};

TEST_F(Queue, SendsInOrderWhatIsTaken) {
  add("a", 3, 1);
  add("b", 4, 2);
  EXPECT_EQ(next(), "a");
  EXPECT_EQ(queue_.done("q", 1), std::nullopt);
  answer({.status = 200, .body = "{}"});
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(queue_.done("q", 1), 1U);
  answer({.status = 200, .body = ""});
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_EQ(queue_.counts().sent, 7U);
  EXPECT_EQ(queue_.counts().lost, 0U);
  EXPECT_THAT(queue_.take_notes(), IsEmpty());
}

TEST_F(Queue, TriesAgainLaterAndLaterWhereNobodyAnswers) {
  add("a", 3);
  int64_t waited = PushQueue::kFirstWaitNs;
  for (int i = 0; i < 12; ++i) {
    answer({.status = 0, .problem = "no connection"});
    now_ += waited - 1;
    EXPECT_EQ(next(), "") << i;
    now_ += 1;
    EXPECT_EQ(next(), "a") << i;
    waited = std::min(waited * 2, PushQueue::kWaitMaxNs);
  }
  EXPECT_THAT(queue_.take_notes(), ElementsAre(HasSubstr("no connection; they wait")))
      << "told once";
  answer({.status = 200});
  EXPECT_THAT(queue_.take_notes(), ElementsAre("http://r/v1/metrics takes metrics again"));
  EXPECT_EQ(queue_.counts().sent, 3U);
}

TEST_F(Queue, WaitsAsLongAsItIsAsked) {
  for (const int status : {429, 503}) {
    add("a", 1);
    answer({.status = status, .retry_after = "7"});
    now_ += 7 * kQueueSecond - 1;
    EXPECT_EQ(next(), "") << status;
    now_ += 1;
    EXPECT_EQ(next(), "a") << status;
    answer({.status = 200});
  }
}

TEST_F(Queue, TakesADateToWaitForAsNone) {
  add("a", 1);
  answer({.status = 503, .retry_after = "Wed, 21 Oct 2115 07:28:00 GMT"});
  now_ += PushQueue::kFirstWaitNs;
  EXPECT_EQ(next(), "a");
}

TEST_F(Queue, GivesUpWhatIsRefusedAndTellsWhyOnce) {
  for (int i = 0; i < 3; ++i) {
    add("a", 2, 5);
    answer({.status = 400, .body = R"({"code":3,"message":"no such tenant"})"});
  }
  EXPECT_EQ(queue_.counts().lost, 6U);
  EXPECT_EQ(queue_.done("q", 1), 5U) << "it is counted, and not sent by the next root";
  EXPECT_THAT(queue_.take_notes(),
              ElementsAre("http://r/v1/metrics refuses metrics: status 400: no such tenant"));
  EXPECT_THAT(queue_.first_loss(), HasSubstr("no such tenant"));
}

TEST_F(Queue, ShowsNothingOfAStrangerThatATerminalWouldObey) {
  add("a", 1);
  answer({.status = 403, .body = "no\x1b[2J" + std::string(10'000, 'x')});
  const auto notes = queue_.take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("no\\x1b[2J"));
  EXPECT_LT(notes[0].size(), 500U);
}

TEST_F(Queue, CountsWhatIsNotTakenOfARequest) {
  add("a", 10, 1);
  answer({.status = 200,
          .body = R"({"partialSuccess":{"rejectedDataPoints":"4","errorMessage":"too old"}})"});
  EXPECT_EQ(queue_.counts().sent, 6U);
  EXPECT_EQ(queue_.counts().lost, 4U);
  EXPECT_TRUE(queue_.is_empty()) << "not sent again";
  EXPECT_THAT(queue_.take_notes(), ElementsAre(HasSubstr("has not taken some points: too old")));
}

TEST_F(Queue, BelievesNoReceiverThatRejectsMoreThanItGot) {
  for (const char* body :
       {R"({"partialSuccess":{"rejectedDataPoints":99999}})", "[", "7", "\"",
        R"({"partialSuccess":[]})", R"({"partialSuccess":{"errorMessage":1}})"}) {
    add("a", 1);
    answer({.status = 200, .body = body});
  }
  EXPECT_EQ(queue_.counts().lost, 1U);
  EXPECT_EQ(queue_.counts().sent, 5U);
}

TEST_F(Queue, HasALimitAndLosesTheOldestButTheOneThatIsOnItsWay) {
  const size_t third = PushQueue::kBytesMax / 3;
  add(std::string(third, 'a'), 1, 1);
  ASSERT_EQ(next()[0], 'a');
  add(std::string(third, 'b'), 2, 2);
  add(std::string(third, 'c'), 4, 3);
  add(std::string(third, 'd'), 8, 4);
  EXPECT_EQ(queue_.counts().lost, 2U);
  answer({.status = 200});
  EXPECT_EQ(next()[0], 'c');
  EXPECT_THAT(queue_.take_notes(), Contains(HasSubstr("more wait for http://r/v1/metrics than")));
}

TEST_F(Queue, IsDoneWithNoLessWhenAnOlderRequestGoesBehindANewerOne) {
  const size_t third = PushQueue::kBytesMax / 3;
  add(std::string(third, 'a'), 1, 1);
  ASSERT_EQ(next()[0], 'a');
  add(std::string(third, 'b'), 1, 2);
  add(std::string(third, 'c'), 1, 3);
  add(std::string(third, 'd'), 1, 4);
  ASSERT_EQ(queue_.done("q", 1), 2U) << "lost";
  answer({.status = 200});
  EXPECT_EQ(queue_.done("q", 1), 2U);
}

TEST_F(Queue, IsNotDoneWithWhatHadTheSameNameBefore) {
  add("a", 1, 9);
  answer({.status = 200});
  EXPECT_EQ(queue_.done("q", 2), std::nullopt);
  add("late", 1, 10);
  queue_.add({.body = "b", .points = 1, .query = "q", .revision = 2, .mark = 3});
  answer({.status = 200});
  answer({.status = 200});
  EXPECT_EQ(queue_.done("q", 2), 3U);
}

TEST_F(Queue, ForgetsWhatWaitsButForWhatIsOnItsWay) {
  add("a", 1, 1);
  add("b", 1, 2);
  queue_.add({.body = "other", .points = 1, .query = "p", .mark = 7});
  add("c", 1, 3);
  ASSERT_EQ(next(), "a");
  queue_.forget("q");
  queue_.take({.status = 200}, now_);
  EXPECT_EQ(queue_.done("q", 1), std::nullopt);
  EXPECT_EQ(next(), "other");
  queue_.take({.status = 200}, now_);
  EXPECT_TRUE(queue_.is_empty());
  EXPECT_EQ(queue_.counts().sent, 2U);
  EXPECT_EQ(queue_.counts().lost, 0U);
}

TEST_F(Queue, CountsWhatIsLeftAtTheEnd) {
  add("a", 3);
  answer({.status = 0, .problem = "no answer"});
  add("b", 4);
  queue_.give_up();
  EXPECT_EQ(queue_.counts().lost, 7U);
  EXPECT_EQ(queue_.first_loss(), "it does not take metrics: no answer") << "nobody sends again";
}

// --- places --------------------------------------------------------------------------------------

TEST(PushPlace, IsAnUrlWithTheUsualPortAndPath) {
  for (const auto& [url, shown] :
       {std::pair("http://a", "http://a:4318/v1/metrics"),
        std::pair("https://a:443/", "https://a:443/v1/metrics"),
        std::pair("http://[::1]:4318/otlp", "http://[::1]:4318/otlp/v1/metrics"),
        std::pair("http://[::1]", "http://[::1]:4318/v1/metrics"),
        std::pair("http://a:1/x/v1/metrics", "http://a:1/x/v1/metrics")}) {
    const auto place = parse_push_place(url, {});
    ASSERT_TRUE(place) << url;
    EXPECT_EQ(place->shown(), shown);
  }
}

TEST(PushPlace, IsNothingElse) {
  for (const char* url :
       {"", "a:4318", "ftp://a", "http://", "http://:80", "http://a:0", "http://a:x",
        "http://a:99999", "http://a:", "http://u:p@a", "http://a b"})
    EXPECT_FALSE(parse_push_place(url, {})) << url;
}

TEST(PushPlace, HasHeaders) {
  const auto place = parse_push_place("http://a", {"authorization=Bearer a=b", "x="});
  ASSERT_TRUE(place);
  EXPECT_THAT(place->headers,
              ElementsAre(std::pair("authorization", "Bearer a=b"), std::pair("x", "")));
  for (const char* header : {"", "a", "=b", "a b=c", "a=b\r\nc: d"})
    EXPECT_FALSE(parse_push_place("http://a", {header})) << header;
}

TEST(PushPlace, ReadsHeadersFromFiles) {
  const std::string path = testing::TempDir() + "push_place_" + std::to_string(getpid());
  std::ofstream(path) << "Bearer S3CRET\n";
  const auto place = parse_push_place("http://a", {"authorization=@" + path});
  std::ofstream(path) << "one\ntwo";
  const auto lines = parse_push_place("http://a", {"authorization=@" + path});
  std::filesystem::remove(path);
  const auto missing = parse_push_place("http://a", {"authorization=@" + path});
  ASSERT_TRUE(place);
  EXPECT_THAT(place->headers, ElementsAre(std::pair("authorization", "Bearer S3CRET")));
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().message, "the header 'authorization' has more than one line");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "the file '" + path + "' of the header 'authorization' cannot be read");
  EXPECT_FALSE(parse_push_place("http://a", {"authorization=@/"})) << "a folder";
}

TEST(PushPlace, TakesHeadersOfTheEnvironmentBehindItsOwn) {
  const auto place = parse_push_place("http://a", {"X-Tenant=blue"},
                                      "authorization=Bearer%20a%3Db%2C , x-tenant=red,,y = ");
  ASSERT_FALSE(place) << "a blank in a name";
  const auto taken = parse_push_place("http://a", {"X-Tenant=blue"},
                                      " authorization=Bearer%20a%3Db%2C , x-tenant=red,,y= @z ");
  ASSERT_TRUE(taken);
  EXPECT_THAT(taken->headers,
              ElementsAre(std::pair("X-Tenant", "blue"), std::pair("authorization", "Bearer a=b,"),
                          std::pair("y", "@z")));
  for (const char* text : {"a", "a=%", "a=%2", "a=%zz", "a=%0a", "a=%+1", "=b"})
    EXPECT_FALSE(parse_push_place("http://a", {}, text)) << text;
}

TEST(PushPlace, ShowsNoValuesOfHeadersInErrors) {
  for (const char* text :
       {"authorization: Bearer S3CRET", "authorization Bearer=S3CRET",
        "authorization=S3CRET\r\nx: y", "authorization=S3CRET%zz", "authorization=S3CRET%0Ax"}) {
    const bool is_escaped = std::string(text).find('%') != std::string::npos;
    const auto refused =
        is_escaped ? parse_push_place("http://a", {}, text) : parse_push_place("http://a", {text});
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().message, HasSubstr("'authorization'"));
    EXPECT_THAT(refused.error().message, testing::Not(HasSubstr("S3CRET")));
  }
}

}  // namespace
}  // namespace clew::metrics
