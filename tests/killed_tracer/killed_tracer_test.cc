// SPDX-License-Identifier: Apache-2.0
// A tracer that is killed leaves a process that runs as without it, and the next session takes out
// what it left. Tried at each of its system calls that change something, before and after; some
// instructions behind them; and at random moments.
//
//     killed_tracer_test [--all] [--behind N] [--moments N] [--seed N] [--point N [--steps N]]
//
// Without options a part of the points is tried, always the same. --point tries that one alone;
// --gtest_filter says of which case.
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "killed_tracer/killed_run.h"
#include "killed_tracer/target.h"
#include "live/tracer.h"

namespace clew::killed_tracer {
namespace {

struct Options {
  bool all = false;
  uint64_t steps_count = 1;  // Kills behind a point, for each case.
  uint64_t moments = 2;      // Kills at random moments, for each case.
  uint64_t seed = 1;
  std::optional<uint64_t> point = {};
  uint32_t steps = 0;
};

Options& options() {
  static Options the_options;
  return the_options;
}

constexpr uint64_t kPointsMax = 100'000;
constexpr int kFailuresMax = 10;  // Of a case; then it ends.
constexpr uint32_t kStepsLog2Max = 15;

enum class Way : uint8_t {
  Session,  // A whole session is killed: attaching, running, detaching.
  Cleanup,  // `clew detach` is killed while it takes out a dead session.
  Second,   // A session is killed while another one, which lives, has probes at the same functions.
};

struct Case {
  std::string_view name;
  Way way = Way::Session;
  unsigned workers = 0;
  bool is_d = false;
  bool is_missing_allowed = false;  // The text names a library that may come.
  std::string_view text;
  uint64_t stride = 1;  // Of points, when not all are tried.
};

constexpr std::string_view kEntries =
    "from e in entry(\"killed_victim!part_*\") group by e.function "
    "select new { name = e.function, calls = count() }";
constexpr std::string_view kReturns =
    "from r in return(\"killed_victim!part_*\") group by r.function "
    "select new { name = r.function, calls = count(), time = sum(r.elapsed) }";
constexpr std::string_view kLoader =  // With a probe at the loader's notice of changes.
    "from e in entry(\"killed_victim!part_*\"), entry(\"libm.so.6!sqrt\") group by e.function "
    "select new { name = e.function, calls = count() }";
constexpr std::string_view kPart0 =
    "from e in entry(\"killed_victim!part_0\") select calls = count()";
constexpr std::string_view kScript =
    "pid$target:killed_victim:part_*:entry { @calls[probefunc] = count(); self->begin = "
    "vtimestamp; } "
    "pid$target:killed_victim:part_*:return { @values[probefunc] = sum(arg1); } "
    "killed_victim$target:::told { @told = sum(arg0); }";

// Figures of a case, for whoever reads the output.
struct Tried {
  uint64_t points = 0;  // That there are.
  uint64_t at_points = 0;
  uint64_t behind_points = 0;
  uint64_t at_moments = 0;
};

void PrintTo(const Case& what, std::ostream* out) {
  *out << what.name;
}

class KilledTracer : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Kills the tracer there, and looks at what it leaves. False when it ended before.
  bool kill_once(const KillAt& at);
  void try_points();
  void try_steps(uint64_t count);
  void try_moments(uint64_t count);
  [[nodiscard]] bool goes_on() const { return failed_ < kFailuresMax; }

  Tried tried_;

 private:
  bool one_in(uint32_t count) { return random_() / 256 % count == 0; }
  [[nodiscard]] std::string pid() const { return std::to_string(target_->pid()); }
  [[nodiscard]] std::vector<std::string> session() const;
  [[nodiscard]] static std::vector<std::string> flags();
  [[nodiscard]] std::vector<std::string> detach() const { return {CLEW_COMMAND, "detach", pid()}; }
  [[nodiscard]] std::vector<std::string> command() const;
  void prepare();
  void leave_residue();
  void start_other();
  void end_other();
  void look_at(KilledRun run);
  void clean_up();
  void start_anew();

  std::unique_ptr<Target> target_;
  std::optional<live::Tracer> other_;  // Way::Second: the session that lives,
  uint64_t calls_before_ = 0;          // and the calls before it was there.
  std::minstd_rand random_{static_cast<uint32_t>(options().seed)};
  std::string next_said_;  // What took out the last dead session.
  uint64_t kills_ = 0;
  int failed_ = 0;
  std::chrono::microseconds time_{0};  // That a tracer takes which nobody kills.
};

void KilledTracer::SetUp() {
  if (GetParam().is_d && geteuid() != 0) GTEST_SKIP() << "inline probes of D need root";
  start_anew();
}

void KilledTracer::TearDown() {
  if (other_ && goes_on()) end_other();
  fmt::print(
      "{}: {} points; killed at {} of them, {} times behind one, at {} random moments; {} wrong\n",
      GetParam().name, tried_.points, tried_.at_points, tried_.behind_points, tried_.at_moments,
      failed_);
  (void)std::fflush(stdout);
}

void KilledTracer::start_anew() {
  other_.reset();
  target_ = std::make_unique<Target>(GetParam().workers);
}

std::vector<std::string> KilledTracer::session() const {
  const std::string text(GetParam().text);
  if (GetParam().is_d) {
    return {CLEW_COMMAND, "dtrace", "-q", "-p", pid(), "-n", text + " tick-20ms { exit(0); }"};
  }
  std::vector<std::string> words = {CLEW_COMMAND, "run", text, "-p", pid(), "-q", "--for", "20ms"};
  for (const std::string& flag : flags())
    words.push_back(flag);
  return words;
}

std::vector<std::string> KilledTracer::flags() {
  return GetParam().is_missing_allowed ? std::vector<std::string>{"--allow-missing"}
                                       : std::vector<std::string>{};
}

std::vector<std::string> KilledTracer::command() const {
  return GetParam().way == Way::Cleanup ? detach() : session();
}

// A session that is armed, and is killed then.
void KilledTracer::leave_residue() {
  if (!GetParam().is_d) {
    live::Tracer tracer =
        live::Tracer::attach(target_->pid(), std::string(GetParam().text), flags());
    tracer.child().signal(SIGKILL);
    (void)tracer.child().wait_for_end();
    return;
  }
  const std::string text = "BEGIN { printf(\"armed\\n\"); } " + std::string(GetParam().text);
  live::Child tracer({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", pid(), "-n", text}});
  while (true) {
    const auto line = tracer.read_line();
    if (!line) throw std::runtime_error("clew ended: " + tracer.wait_for_end().error);
    if (*line == "armed") return;
  }
}

void KilledTracer::start_other() {
  (void)target_->ask("calm");
  calls_before_ = target_->ask("counts").at("part_0");
  other_.emplace(live::Tracer::attach(target_->pid(), std::string(kPart0)));
  (void)target_->ask("storm");
}

// It has counted what there was, whoever came and went.
void KilledTracer::end_other() {
  (void)target_->ask("calm");
  const uint64_t calls = target_->ask("counts").at("part_0") - calls_before_;
  const live::Report report = other_->finish();
  other_.reset();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("calls").get<uint64_t>() + report.lost(), calls) << report.summary;
  (void)target_->ask("storm");
  target_->expect_clean(0);
}

// What must be there before the tracer that is killed starts.
void KilledTracer::prepare() {
  switch (GetParam().way) {
    case Way::Session:
      return;
    case Way::Cleanup:
      return leave_residue();
    case Way::Second:
      if (!other_) start_other();
      return;
  }
}

// The command for it, or whatever session comes next.
void KilledTracer::clean_up() {
  // While a session lives, the command has nothing to do if the dead one had not come far.
  const bool by_session = GetParam().way == Way::Second || one_in(2);
  KilledRun run = run_and_kill(by_session ? session() : detach(), {});
  EXPECT_EQ(run.tracer.bury(), 0) << "the next session: " << run.read_output();
  next_said_ = fmt::format("the next {} said: {}", by_session ? "session" : "clew detach",
                           run.read_output());
}

void KilledTracer::look_at(KilledRun run) {
  constexpr uint64_t kKillsOfOneOther = 20;
  const bool was_killed = run.was_killed;
  const bool may_leave_pair =
      GetParam().is_d && (!run.stopping || run.call_of_target == SYS_socketpair);
  target_->expect_unharmed(run.stopping);
  if (!was_killed || !one_in(3)) {
    const int status = run.tracer.bury();
    EXPECT_TRUE(was_killed || status == 0) << run.read_output();
  }
  clean_up();
  if (GetParam().way == Way::Second && (!was_killed || kills_ % kKillsOfOneOther == 0)) end_other();
  const testing::ScopedTrace trace(__FILE__, __LINE__, next_said_);
  if (!other_) target_->expect_clean(may_leave_pair ? 2 : 0);
  // It may take its time until it notices that a wait has ended.
  target_->expect_unharmed(run.stopping);
  target_->forget_waits();
}

std::string description_of(const KillAt& at, const KilledRun& run) {
  if (!run.was_killed) return "behind the end";
  if (at.time) return fmt::format("after {} us", at.time->count());
  const std::string steps = at.steps == 0 ? "" : fmt::format(", {} steps behind the", at.steps);
  return fmt::format("at point {}{}: {}", at.point.value_or(0), steps, run.place);
}

bool KilledTracer::kill_once(const KillAt& at) {
  const auto result = [] {
    return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  };
  const int before = result();
  bool was_killed = true;
  ++kills_;
  try {
    prepare();
    KilledRun run = run_and_kill(command(), at);
    was_killed = run.was_killed;
    if (!was_killed && at.point) tried_.points = run.points;
    const std::string where = description_of(at, run);
    if (options().point) fmt::print("killed {}\n", where);
    const testing::ScopedTrace trace(__FILE__, __LINE__, where);
    look_at(std::move(run));
  } catch (const std::exception& error) {
    ADD_FAILURE() << "point " << at.point.value_or(0) << ", " << at.steps
                  << " steps: " << error.what();
  }
  if (result() == before) return was_killed;
  ++failed_;
  start_anew();
  return was_killed;
}

void KilledTracer::try_points() {
  const uint64_t stride = options().all ? 1 : GetParam().stride;
  for (uint64_t point = 1; point < kPointsMax && goes_on(); point += stride) {
    if (!kill_once({.point = point})) return;
    ++tried_.at_points;
  }
}

void KilledTracer::try_steps(uint64_t count) {
  for (uint64_t i = 0; i < count && goes_on(); ++i) {
    const uint64_t point = random_() % tried_.points + 1;
    const auto steps = static_cast<uint32_t>(random_() % (2U << random_() % kStepsLog2Max) + 1);
    if (kill_once({.point = point, .steps = steps})) ++tried_.behind_points;
  }
}

void KilledTracer::try_moments(uint64_t count) {
  prepare();
  time_ = run_and_kill(command(), {.time = std::chrono::seconds(1)}).time;
  for (uint64_t i = 0; i < count && goes_on(); ++i) {
    const std::chrono::microseconds time(random_() % static_cast<uint64_t>(time_.count()));
    if (kill_once({.time = time})) ++tried_.at_moments;
  }
}

TEST_P(KilledTracer, LeavesAProcessThatRunsOnAndIsCleanedByTheNextSession) {
  if (options().point) {
    kill_once({.point = options().point, .steps = options().steps});
    return;
  }
  try_points();
  if (goes_on()) try_steps(options().steps_count);
  if (goes_on()) try_moments(options().moments);
}

constexpr Case kCases[] = {
    {.name = "Entries", .text = kEntries, .stride = 53},
    {.name = "EntriesOfThreads", .workers = 2, .text = kEntries, .stride = 59},
    {.name = "Returns", .text = kReturns, .stride = 67},
    {.name = "ReturnsOfThreads", .workers = 2, .text = kReturns, .stride = 61},
    {.name = "Loader", .workers = 1, .is_missing_allowed = true, .text = kLoader, .stride = 79},
    {.name = "Script", .is_d = true, .text = kScript, .stride = 79},
    {.name = "ScriptOfThreads", .workers = 2, .is_d = true, .text = kScript, .stride = 79},
    {.name = "Cleanup", .way = Way::Cleanup, .text = kReturns, .stride = 19},
    {.name = "CleanupOfThreads", .way = Way::Cleanup, .workers = 2, .text = kReturns, .stride = 23},
    {.name = "CleanupOfTheLoader",
     .way = Way::Cleanup,
     .is_missing_allowed = true,
     .text = kLoader,
     .stride = 37},
    {.name = "CleanupOfAScript",
     .way = Way::Cleanup,
     .workers = 2,
     .is_d = true,
     .text = kScript,
     .stride = 37},
    {.name = "Second", .way = Way::Second, .text = kReturns, .stride = 47},
    {.name = "SecondOfThreads", .way = Way::Second, .workers = 2, .text = kEntries, .stride = 59},
};

INSTANTIATE_TEST_SUITE_P(All, KilledTracer, testing::ValuesIn(kCases),
                         [](const auto& of) { return std::string(of.param.name); });

// --- commands that Clew starts
// --------------------------------------------------------------------

const std::string kCommand = CLEW_KILLED_VICTIM " once 300";

std::vector<std::string> launch() {
  return {CLEW_COMMAND, "run", std::string(kEntries), "-q", "-c", kCommand};
}

std::string result_in(const std::string& output) {
  const size_t begin = output.find("result ");
  return begin == std::string::npos ? "" : output.substr(begin, output.find('\n', begin) - begin);
}

// The status of the command, which is ours since its parent was killed. It may have ended before.
// What holds the tracer's links is ours, too, and ends with 0.
std::optional<int> orphan_status() {
  constexpr unsigned kPatienceSeconds = 30;
  std::optional<int> result;
  alarm(kPatienceSeconds);  // Its handler ends waits.
  while (true) {
    int status = 0;
    const pid_t orphan = waitpid(-1, &status, __WALL);
    const bool hangs = orphan < 0 && errno == EINTR;
    EXPECT_FALSE(hangs) << "the command neither runs nor ends";
    if (orphan < 0) break;
    if (!result || status != 0) result = status;
  }
  alarm(0);
  return result;
}

TEST(KilledLauncher, LeavesACommandThatEndsRightOrNeverRan) {
  constexpr uint64_t kStride = 23;
  constexpr uint64_t kClose = 16;
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  KilledRun whole = run_and_kill(launch(), {});
  const std::string expected = result_in(whole.read_output());
  ASSERT_NE(expected, "") << whole.read_output();
  ASSERT_EQ(whole.tracer.bury(), 0);
  uint64_t tried = 0;
  uint64_t never_ran = 0;
  const uint64_t first = options().point.value_or(1);
  // Near its end the command begins to run.
  const uint64_t close = whole.points - std::min(whole.points, kClose);
  for (uint64_t point = first; point < kPointsMax;
       point += options().all || point >= close ? 1 : kStride) {
    KilledRun run = run_and_kill(launch(), {.point = point, .steps = options().steps});
    if (!run.was_killed) break;
    const testing::ScopedTrace trace(__FILE__, __LINE__,
                                     fmt::format("killed at point {}: {}", point, run.place));
    (void)run.tracer.bury();
    const std::optional<int> status = orphan_status();
    const std::string result = result_in(run.read_output());
    ++tried;
    if (result.empty()) {
      ++never_ran;
      EXPECT_TRUE(!status || *status != 0) << "it ran and printed nothing";
    } else {
      EXPECT_EQ(result, expected);
      EXPECT_EQ(status.value_or(0), 0);
    }
    if (options().point || HasFailure()) break;
  }
  fmt::print("Launch: {} points; killed at {} of them; the command never ran after {}\n",
             whole.points, tried, never_ran);
}

// --- tracers that live
// ----------------------------------------------------------------------------

TEST(LivingTracer, OfAnotherUserIsNotTakenForDead) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, and a user who is not";
  live::Child victim({.arguments = {CLEW_KILLED_VICTIM}, .as_nobody = true});
  if (victim.read_line() != "ready") GTEST_SKIP() << "nobody may not run what was built here";
  live::Tracer tracer = live::Tracer::attach(victim.pid(), std::string(kPart0));
  live::Child detach(
      {.arguments = {CLEW_COMMAND, "detach", std::to_string(victim.pid())}, .as_nobody = true});
  const live::Child::End end = detach.wait_for_end();
  EXPECT_NE(end.status, 0) << end.output;
  EXPECT_NE(end.error.find("is alive"), std::string::npos) << end.error;
  const live::Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
}

}  // namespace

// False when the word is no option, or its value no number.
bool take_option(std::string_view name, const char* value) {
  if (name == "--all") {
    options().all = true;
    return true;
  }
  const std::string_view text = value == nullptr ? "" : value;
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || parsed.ptr != text.data() + text.size()) return false;
  if (name == "--moments") options().moments = number;
  if (name == "--behind") options().steps_count = number;
  if (name == "--seed") options().seed = number;
  if (name == "--point") options().point = number;
  if (name == "--steps") options().steps = static_cast<uint32_t>(number);
  return true;
}

}  // namespace clew::killed_tracer

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (!clew::killed_tracer::take_option(name, i + 1 < argc ? argv[i + 1] : nullptr)) {
      fmt::print(stderr, "{}: not understood\n", name);
      return 2;
    }
    if (name != "--all") ++i;
  }
  struct sigaction wake = {};
  wake.sa_handler = [](int) {};
  (void)sigaction(SIGALRM, &wake, nullptr);
  return RUN_ALL_TESTS();
}
