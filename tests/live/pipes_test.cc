// SPDX-License-Identifier: Apache-2.0
// Joins by cause whose requests travel by pipes, between processes that know the request's number
// from the bytes alone.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uint64_t kOfEachFront = 100;  // Of each of three threads in front.

class Pipes : public testing::Test {
 protected:
  Pipes() : path_(fs::path(testing::TempDir()) / ("piper." + std::to_string(getpid()) + ".toml")) {
    say("pipes = \"followed\"");
  }
  ~Pipes() override { fs::remove(path_); }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "the kernel tells root alone who writes what";
  }

  // What is said of the victim.
  void say(const std::string& more) const {
    std::ofstream(path_) << "[[program]]\nname = \"piper\"\nonward = \"blocking\"\n"
                         << more
                         << "\n[[tracepoint]]\nname = \"piper.request\"\n"
                            "function = \"piper!front_request\"\ncause = \"begin\"\n";
  }

  // Work of `of`, by whether the first work of its request in front was for the same.
  static std::string by_front(const std::string& of) {
    return "from b in entry(\"piper!" + of +
           "\") join f in First(entry(\"piper!front_request\")) on f -> b "
           "select new { name = f.arg0 == b.arg0 ? \"right\" : \"wrong\", calls = count() }";
  }
  static std::string answer_by_back() {
    return "from a in entry(\"piper!front_answer\") join b in "
           "MostRecent(entry(\"piper!back_request\")) on b -> a select new { name = b.arg0 == "
           "a.arg0 ? \"right\" : \"wrong\", calls = count() }";
  }

  // Bytes that travel so, between processes that begin while they are traced.
  [[nodiscard]] Report trace(uint64_t how, const std::string& query) const {
    Victim victim("piper");
    victim.ask("how " + std::to_string(how));
    Tracer tracer =
        Tracer::attach(victim.pid(), query, {"--vocabulary", path_.string(), "--follow"});
    victim.run(kOfEachFront);
    Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_FALSE(report.calls().contains("wrong")) << report.summary;
    return report;
  }

  static uint64_t right(const Report& report) {
    const Numbers calls = report.calls();
    return calls.contains("right") ? calls.at("right") : 0;
  }

  fs::path path_;
};

class PipesOf : public Pipes, public testing::WithParamInterface<uint64_t> {};

// A call that is seen behind the read of its bytes may be unknown.
constexpr uint64_t kNearlyAll = 3 * kOfEachFront - 3 * kOfEachFront / 50;

TEST_P(PipesOf, BringTheRequestThere) {
  const Report report = trace(GetParam(), by_front("back_request"));
  EXPECT_GE(right(report), kNearlyAll) << report.summary;
}

TEST_P(PipesOf, BringItBackWithTheAnswer) {
  const Report report = trace(GetParam(), answer_by_back());
  EXPECT_GE(right(report), kNearlyAll) << report.summary;
}

// As the victim's `how` says: whole, in parts, in vectors, of given pages, with a name, as packets,
// and some of these together.
INSTANTIATE_TEST_SUITE_P(Pipes, PipesOf,
                         testing::Values(0, 1, 2, 4, 8, 16, 1 | 2, 8 | 1, 16 | 2, 8 | 4));

// Whose bytes nobody can tell: several processes wait for one pipe; a byte only wakes a thread, and
// what it goes on with is in memory; what is moved from pipe to pipe was seen by nobody.
TEST_F(Pipes, OfWhichNobodyKnowsWhoseTheyAreAreMissingAndNotWrong) {
  for (const uint64_t how : {32, 64, 64 | 1, 128, 256, 128 | 256}) {
    const Report report = trace(how, by_front("back_request"));
    EXPECT_LT(right(report), kNearlyAll) << how << report.summary;
  }
}

// All children write into one pipe, and what has come meanwhile is read at once.
TEST_F(Pipes, OfSeveralWritersAreRightOrMissing) {
  const Report report = trace(0, by_front("logged"));
  EXPECT_GT(right(report), 0) << report.summary;
}

TEST_F(Pipes, AreIgnoredWhereNobodySaysThatTheyAreFollowed) {
  say("");
  EXPECT_EQ(right(trace(0, by_front("back_request"))), 0);
  say("pipes = \"ignored\"");
  EXPECT_EQ(right(trace(0, by_front("back_request"))), 0);
}

TEST_F(Pipes, AreExplained) {
  const Victim victim("piper");
  const auto explained = [&] {
    return clew({"explain", "--vocabulary", path_.string(), by_front("back_request"), "-p",
                 std::to_string(victim.pid())})
        .output;
  };
  const std::string followed = explained();
  EXPECT_THAT(followed, HasSubstr("tracepoint(\"pipe:read.0\") takes the request over that the "
                                  "bytes are of, of pipes (the class is its program's)\n"));
  EXPECT_THAT(followed, HasSubstr("tracepoint(\"pipe:write.0\") hands the request over with its "
                                  "bytes, of pipes\n"));
  EXPECT_THAT(followed, HasSubstr(": writes onward for the message read last, also when it has "
                                  "waited, and reads requests from pipes (recipe)\n"));
  say("");
  EXPECT_EQ(explained().find("pipe:"), std::string::npos) << "nobody pays for them";
}

}  // namespace
}  // namespace clew::live
