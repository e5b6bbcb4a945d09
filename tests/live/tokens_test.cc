// SPDX-License-Identifier: Apache-2.0
// Requests that go to other processes by tokens (clew/cause.h), through what Clew does not follow:
// what is joined is compared with what each message says for the test.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

// Work by whether the request that it is joined with is its own.
constexpr const char* kByOwnRequest =
    "from w in entry(\"tokens!work\") left join r in First(entry(\"tokens!receive\")) on r -> w "
    "groupby r == null as alone, w.arg0 == 0 as outside, r.arg0 == w.arg0 as same "
    "select new { name = alone ? (outside ? \"outside\" : \"unknown\") : same ? \"right\" : "
    "\"wrong\", calls = count() }";

Victim victim_in(const TemporaryFolder& folder) {
  return Victim({.arguments = {victim_path("tokens")}, .environment = {"TOKENS=" + folder.path()}},
                Victim::Place::Started);
}

// Two processes, of the first of which children are followed.
Tracer trace(const Victim& one, const Victim& other, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"-p", std::to_string(other.pid()), "--follow"};
  all.insert(all.end(), more.begin(), more.end());
  return Tracer::attach(one.pid(), kByOwnRequest, all);
}

TEST(Tokens, TakeRequestsToAnotherProcess) {
  constexpr uint64_t kEach = 100;
  constexpr uint64_t kAll = 8 * kEach;  // Four threads, four children.
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.file("fifo").c_str(), 0600), 0);
  Victim sender = victim_in(folder);
  Victim receiver = victim_in(folder);
  Tracer tracer = trace(sender, receiver);
  receiver.tell("listen " + std::to_string(kAll));
  EXPECT_EQ(sender.ask("send " + std::to_string(kEach)).at("sent"), kAll);
  EXPECT_EQ(receiver.answer().at("received"), kAll);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", kAll}})) << report.summary << report.error;
  EXPECT_FALSE(report.summary.at("missed").contains("unknown_token")) << report.summary;
  expect_text_equals_file(sender.pid());
  expect_text_equals_file(receiver.pid());
}

// Each is counted for what it is, and none is taken for the request that it came beside.
TEST(Tokens, ThatAreNoneAreCountedAndHarmless) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(victim.pid(), kByOwnRequest);
  const Numbers told = victim.ask("hostile 20");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(),
            (Numbers{{"right", 20}, {"outside", told.at("bad") + told.at("unknown") + 60}}))
      << report.summary;
  EXPECT_EQ(report.summary.at("missed").at("bad_token"), told.at("bad"));
  EXPECT_EQ(report.summary.at("missed").at("unknown_token"), told.at("unknown"));
  EXPECT_FALSE(report.summary.at("by_cause").contains("received_again"));
}

// Who was given a token can say that it works for that request, so often and no further.
TEST(Tokens, ThatAreReplayedAreOfTheirRequestAndCounted) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(victim.pid(), kByOwnRequest);
  victim.ask("replay 3000");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", 1000}, {"unknown", 2000}})) << report.summary;
  EXPECT_EQ(report.summary.at("missed").at("worn_token"), 2000);
  EXPECT_EQ(report.summary.at("by_cause").at("received_again"), 999);
}

TEST(Tokens, ReachProgramsThatAreExecuted) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(victim.pid(), kByOwnRequest, {"--follow"});
  EXPECT_EQ(victim.ask("execute 5").at("executed"), 5);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", 5}})) << report.summary << report.error;
  EXPECT_GE(report.summary.at("by_cause").at("explicit"), 5) << report.summary;
}

}  // namespace
}  // namespace clew::live
