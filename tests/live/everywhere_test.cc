// SPDX-License-Identifier: Apache-2.0
// Functions of all processes of a machine: of those that have the module, and no others.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

// Victims under a name that no other test's have.
class ManyByModule : public testing::Test {
 protected:
  ManyByModule() : name_("everywhere_" + std::to_string(getpid())) {
    fs::copy_file(fs::path(CLEW_VICTIMS) / "sites", fs::path(CLEW_VICTIMS) / name_);
  }
  ~ManyByModule() override { fs::remove(fs::path(CLEW_VICTIMS) / name_); }

  [[nodiscard]] std::string calls_of(const std::string& scope) const {
    return "from e in " + scope + ".Function(\"" + name_ + "!*\") group by e.pid, e.function " +
           "select new { process = e.pid, name = e.function, calls = count() }";
  }

  static Numbers calls_in(const Report& report, pid_t process) {
    Numbers calls;
    for (const nlohmann::json& row : report.rows) {
      if (row.at("process") == process) calls[row.at("name")] = row.at("calls");
    }
    return calls;
  }

  std::string name_;
};

TEST_F(ManyByModule, AllProcessesThatHaveTheModuleAreTraced) {
  for (const std::string scope : {"machine", "cluster"}) {
    Victim one(name_);
    Victim other(name_);
    Victim stranger("sites");
    Tracer tracer = Tracer::start(calls_of(scope), {"--allow-missing"});
    const Numbers before = one.counts();
    one.run(3);
    other.run(5);
    stranger.run(7);
    const Numbers truth = difference(before, one.counts());
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.summary.at("processes"), 2);
    const Numbers calls = calls_in(report, one.pid());
    const Numbers others = calls_in(report, other.pid());
    size_t compared = 0;
    for (const auto& [name, count] : truth) {
      if (!calls.contains(name)) continue;
      ++compared;
      EXPECT_EQ(calls.at(name), count) << name;
      EXPECT_EQ(3 * others.at(name), 5 * count) << name;
    }
    EXPECT_GT(compared, 10U);
    EXPECT_TRUE(calls_in(report, stranger.pid()).empty());
  }
}

TEST_F(ManyByModule, AFunctionNeedsItsModule) {
  const Report none = run_clew({"run", "from e in machine.Function(\"f\") select count()"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.error, HasSubstr("a function of all processes needs its module"));
  const Report unknown =
      run_clew({"run", "from e in machine.Function(\"nobody_has_it!f\") select count()"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.error, HasSubstr("no process of this machine has 'nobody_has_it' mapped"));
}

// In none of several.
TEST_F(ManyByModule, AFunctionThatNoneHasIsAnErrorWithTheNearestName) {
  const Victim one(name_);
  const Victim other(name_);
  const Report report =
      run_clew({"run", "from e in machine.Function(\"" + name_ + "!no_such\") select count()"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("no function 'no_such' in " + name_));
  EXPECT_THAT(report.error, HasSubstr("nor in the others that are traced"));
}

}  // namespace
}  // namespace clew::live
