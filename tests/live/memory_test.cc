// SPDX-License-Identifier: Apache-2.0
// Processes in a control group that has little memory left: a session whose counts might be what
// they are killed for is refused before anything is touched.
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

constexpr uint64_t kKibi = 1024;
constexpr uint64_t kMebi = uint64_t{1} << 20;
const std::string kCallsByKey =
    "from e in entry(\"painted!touched\") group by e.arg0 select count()";

// Of version 1 or 2, whichever has the limit here.
class ControlGroup {
 public:
  struct Kind {
    const char* hierarchy;
    const char* limit;
  };
  static constexpr Kind kMemory[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                     {"/sys/fs/cgroup", "memory.max"}};
  static constexpr Kind kProcesses[] = {{"/sys/fs/cgroup/pids", "pids.max"},
                                        {"/sys/fs/cgroup", "pids.max"}};
  static std::optional<ControlGroup> make(std::span<const Kind> kinds, uint64_t most) {
    for (const auto& [hierarchy, limit] : kinds) {
      ControlGroup group(fmt::format("{}/clew-test-{}", hierarchy, getpid()));
      std::error_code error;
      if (!std::filesystem::create_directory(group.directory_, error)) continue;
      if (group.write(limit, most)) return group;
    }
    return std::nullopt;
  }
  explicit ControlGroup(std::string directory) : directory_(std::move(directory)) {}
  ControlGroup(ControlGroup&& other) noexcept : directory_(std::move(other.directory_)) {
    other.directory_.clear();
  }
  ControlGroup& operator=(ControlGroup&&) = delete;
  ~ControlGroup() {
    if (!directory_.empty()) rmdir(directory_.c_str());
  }

  [[nodiscard]] bool take(pid_t pid) const {
    return write("cgroup.procs", static_cast<uint64_t>(pid));
  }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  [[nodiscard]] bool write(const std::string& name, uint64_t value) const {
    const std::string path = directory_ + "/" + name;
    if (!std::filesystem::exists(path)) return false;
    std::ofstream file(path);
    file << value << std::flush;
    return file.good();
  }

  std::string directory_;
};

#define CLEW_LIMIT_OR_SKIP(group, kind, most)                               \
  const std::optional<ControlGroup> group = ControlGroup::make(kind, most); \
  if (!(group)) GTEST_SKIP() << "no control group with this limit can be made here"

TEST(Memory, ASessionThatMightTakeAllOfItIsRefused) {
  CLEW_LIMIT_OR_SKIP(group, ControlGroup::kMemory, 1280 * kKibi);
  Victim victim("painted");
  ASSERT_TRUE(group->take(victim.pid()));
  const ProcessState before = ProcessState::of(victim.pid());
  const Report report = run_clew({"run", "-p", std::to_string(victim.pid()), kCallsByKey});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, HasSubstr("might be killed for want of memory"));
  EXPECT_THAT(report.error, HasSubstr(group->directory()));
  EXPECT_THAT(report.error, HasSubstr("in each of 1 threads) [memory]; -y traces it all the same"));
  expect_no_residue(before, victim.pid());
  Tracer sure = Tracer::attach(victim.pid(), kCallsByKey, {"-y"});
  victim.run(100);
  EXPECT_EQ(sure.finish().status, 0);
}

TEST(Memory, ASessionThatHasItIsNot) {
  CLEW_LIMIT_OR_SKIP(group, ControlGroup::kMemory, 64 * kMebi);
  Victim victim("painted");
  ASSERT_TRUE(group->take(victim.pid()));
  Tracer tracer = Tracer::attach(victim.pid(), kCallsByKey);
  victim.run(100);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
}

// A process that may have no more threads needs none for a session.
TEST(Memory, AGroupThatMayHaveNoMoreProcessesIsTraced) {
  CLEW_LIMIT_OR_SKIP(group, ControlGroup::kProcesses, 1);
  Victim victim("painted");
  ASSERT_TRUE(group->take(victim.pid()));
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer =
      Tracer::attach(victim.pid(), "from e in entry(\"painted!touched\") select n = count()");
  victim.run(100);
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("n"), 100);
  expect_no_residue(before, victim.pid());
}

TEST(Memory, DoctorSaysWhatIsLeft) {
  CLEW_LIMIT_OR_SKIP(group, ControlGroup::kMemory, 2 * kMebi);
  Victim victim("painted");
  ASSERT_TRUE(group->take(victim.pid()));
  const Child::End end =
      Child({.arguments = {CLEW_COMMAND, "doctor", "-p", std::to_string(victim.pid())}})
          .wait_for_end();
  EXPECT_THAT(end.output, HasSubstr("2 are left in its control group " + group->directory()));
}

}  // namespace
}  // namespace clew::live
