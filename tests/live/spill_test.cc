// SPDX-License-Identifier: Apache-2.0
// Events through a file: kept while nobody takes the rows, and asked again later.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "live/child.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kKeys = 40'000;
constexpr const char* kEvents =
    "from k in entry(\"keys!take_key\") select new { key = k.arg0, k.tid, k.time }";

// One recording for all tests: the victim calls with each key once, and nobody reads the rows until
// it is done.
class Spill : public testing::Test {
 protected:
  static void SetUpTestSuite() { recording_ = std::make_unique<Recorded>(record()); }
  static void TearDownTestSuite() {
    fs::remove_all(recorded().folder);
    recording_.reset();
  }

  struct Recorded {
    fs::path folder;
    Report report;
    pid_t pid = 0;
  };
  static const Recorded& recorded() { return *recording_; }
  static fs::path file() { return recorded().folder / "events"; }

  static Report ask(const std::string& query, const fs::path& from) {
    return run_clew({"run", query, "--from", from.string(), "--json"});
  }
  // count() of all events of the file, and the keys that they have.
  static Report keys_of(const fs::path& from) {
    return ask(
        "from k in entry(\"keys!take_key\") group by k.arg0 select new { key = k.arg0, n = count() "
        "}",
        from);
  }
  // A copy of the recording after `change`.
  template <typename Change>
  static fs::path damaged(Change change) {
    std::ifstream in(file(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    change(bytes);
    const fs::path copy = recorded().folder / "damaged";
    std::ofstream(copy, std::ios::binary) << bytes;
    return copy;
  }

 private:
  static Recorded record() {
    Recorded result;
    result.folder = fs::temp_directory_path() / ("clew-spill-" + std::to_string(getpid()));
    fs::create_directories(result.folder);
    Victim victim("keys");
    Tracer tracer =
        Tracer::attach(victim.pid(), kEvents, {"--spill", (result.folder / "events").string()});
    victim.ask("paced " + std::to_string(kKeys));
    result.pid = victim.pid();
    result.report = tracer.finish();
    return result;
  }

  static std::unique_ptr<Recorded> recording_;
};

std::unique_ptr<Spill::Recorded> Spill::recording_;

// The pipe of the rows has room for some thousand of them, the ring of the thread for 32,000.
TEST_F(Spill, NothingIsLostWhileNobodyTakesTheRows) {
  const Report& report = recorded().report;
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  ASSERT_EQ(report.rows.size(), kKeys);
  for (uint64_t key = 0; key < kKeys; ++key)
    ASSERT_EQ(report.rows[key].at("key"), key);
}

TEST_F(Spill, TheFileAnswersOtherQueries) {
  const Report grouped = ask(
      "from k in entry(\"keys!take_key\") where k.arg0 < 10 && k.arg0 % 2 == 0 group by k.tid "
      "select new { thread = k.tid, n = count(), most = max(k.arg0), spread = variance(k.arg0) }",
      file());
  ASSERT_EQ(grouped.status, 0) << grouped.error;
  ASSERT_EQ(grouped.rows.size(), 1U);
  EXPECT_EQ(grouped.rows[0], nlohmann::json({{"thread", recorded().pid},
                                             {"n", 5},
                                             {"most", 8},
                                             {"spread", 8.0}}));  // Of 0, 2, 4, 6, 8.
  const Report events = ask(
      "from k in entry(\"keys!take_key\") select new { k.time, double_key = 2 * k.arg0 } take 3",
      file());
  ASSERT_EQ(events.rows.size(), 3U) << events.error;
  EXPECT_EQ(events.rows[2].at("double_key"), 4);
  EXPECT_EQ(events.rows[2].at("time"), recorded().report.rows[2].at("time"));
}

TEST_F(Spill, TheFileAnswersIntoADatabase) {
  const std::string database = (recorded().folder / "keys.sqlite").string();
  const Report report = run_clew({"run", kEvents, "--from", file().string(), "-o", database});
  ASSERT_EQ(report.status, 0) << report.error;
  const Child::End asked =
      Child(
          {.arguments = {"sqlite3", database,
                         "SELECT count(*), min(key), max(key), sum(key), count(DISTINCT time) > 1,"
                         " min(tid) FROM rows; SELECT value FROM meta WHERE name = 'state'"}})
          .wait_for_end();
  EXPECT_EQ(asked.output,
            "40000|0|39999|799980000|1|" + std::to_string(recorded().pid) + "\nanswered\n");
  // A second answer replaces the first.
  EXPECT_EQ(run_clew({"run", kEvents, "--from", file().string(), "-o", database}).status, 0);
}

TEST_F(Spill, WhatTheFileDoesNotHoldIsNamed) {
  const Report field = ask("from k in entry(\"keys!take_key\") select k.arg1", file());
  EXPECT_EQ(field.status, 1);
  EXPECT_THAT(field.error, AllOf(HasSubstr("query:1:41: error:"), HasSubstr("does not hold"),
                                 HasSubstr("arg0"), HasSubstr("did you mean"), HasSubstr("^")));
  const Report source = ask("from k in entry(\"keys!take_kez\") select k.arg0", file());
  EXPECT_EQ(source.status, 1);
  EXPECT_THAT(source.error, AllOf(HasSubstr("query:1:11: error:"), HasSubstr("take_key")));
}

TEST_F(Spill, AFileThatIsCutOffAnswersWithItsWholePart) {
  const Report report =
      keys_of(damaged([](std::string& bytes) { bytes.resize(bytes.size() * 2 / 3); }));
  ASSERT_EQ(report.status, 0) << report.error;
  EXPECT_GT(report.rows.size(), kKeys / 2);
  EXPECT_LT(report.rows.size(), kKeys);
  ASSERT_EQ(report.summary.at("lost").size(), 1U);
  EXPECT_THAT(report.summary.at("lost")[0].get<std::string>(),
              AllOf(HasSubstr("damaged: "), HasSubstr("cut off")));
}

TEST_F(Spill, ADamagedFrameIsLeftOutAndCounted) {
  for (const size_t width : {size_t{1}, size_t{200}}) {  // One byte, and the head of a frame, too.
    const Report report = keys_of(damaged([width](std::string& bytes) {
      const size_t frame = bytes.find("CLWF", bytes.size() / 2);
      for (size_t i = 0; i < width; ++i)
        bytes[frame + 100 - (width > 1 ? 100 : 0) + i] ^= 0x55;
    }));
    ASSERT_EQ(report.status, 0) << report.error;
    EXPECT_GT(report.rows.size(), kKeys / 2);
    EXPECT_LT(report.rows.size(), kKeys);
    EXPECT_EQ(report.summary.at("dropped").value("damaged_frames", 0), 1) << report.summary;
    EXPECT_THAT(report.summary.at("lost")[0].get<std::string>(), HasSubstr("byte "));
  }
}

TEST_F(Spill, WhatCannotBeAskedIsAnError) {
  const Report text = ask(kEvents, "/etc/passwd");
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.error, HasSubstr("not a file of events"));
  Victim victim("keys");
  const Report counts = run_clew({"run", entries_of("keys!take_key"), "-p",
                                  std::to_string(victim.pid()), "--spill", file().string() + "2"});
  EXPECT_EQ(counts.status, 1);
  EXPECT_THAT(counts.error, HasSubstr("--spill keeps events"));
  EXPECT_EQ(run_clew({"run", kEvents, "-p", "1", "--from", file().string()}).status, 2);
}

// What the disk cannot take is counted, and the rest is whole, in the answer and in the file.
TEST_F(Spill, OnAFullDiskSaysWhatIsMissing) {
  const fs::path place = recorded().folder / "small";
  fs::create_directory(place);
  if (mount("none", place.c_str(), "tmpfs", 0, "size=600k") != 0)
    GTEST_SKIP() << "only root can make a small disk";
  const fs::path file = place / "events";
  Victim victim("keys");
  Tracer tracer = Tracer::attach(victim.pid(), kEvents, {"--spill", file.string()});
  victim.ask("paced " + std::to_string(kKeys));
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  const auto dropped_of = [](const Report& said) {
    return said.summary.at("dropped").value("no_room", uint64_t{0});
  };
  EXPECT_GT(dropped_of(report), 0);
  EXPECT_EQ(report.rows.size() + dropped_of(report), kKeys);
  const Report asked = keys_of(file);
  EXPECT_EQ(asked.status, 0) << asked.error;
  // Of the answer's, the last ones may have gone for the file's end.
  EXPECT_EQ(asked.rows.size() + dropped_of(asked), kKeys);
  EXPECT_GE(report.rows.size(), asked.rows.size());
  EXPECT_EQ(umount(place.c_str()), 0);
}

// Of a process in a name space of its own, which has ended when the file is asked.
TEST_F(Spill, KeepsHowTheMachineIsCalledWhereTheProcessIs) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: a name space needs root";
  const std::string path = (recorded().folder / "elsewhere").string();
  {
    Victim victim({.arguments = {"unshare", "--uts", "sh", "-c",
                                 "hostname clew-elsewhere && exec \"$0\"", victim_path("keys")}},
                  Victim::Place::Started);
    Tracer tracer = Tracer::attach(
        victim.pid(), "from k in entry(\"keys!take_key\") select k.nodename", {"--spill", path});
    victim.ask("paced 30");
    EXPECT_EQ(tracer.finish().status, 0);
  }
  const Report report =
      ask("from k in entry(\"keys!take_key\") groupby k.nodename select k.nodename, count() as n",
          path);
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].at("nodename"), "clew-elsewhere");
  EXPECT_EQ(report.rows[0].at("n"), 30);
}

}  // namespace
}  // namespace clew::live
