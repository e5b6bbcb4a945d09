// SPDX-License-Identifier: Apache-2.0
// clew cluster try: a cluster on this machine, for a look: asked, damaged, asked further, gone.
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "cmd/console.h"
#include "cmd/parse_arguments.h"
#include "cmd/trial_cluster.h"
#include "cmd/verbs.h"

namespace clew::cmd {
namespace {

constexpr int kMachines = 5;
constexpr size_t kKilled = 2;                    // Of them: n3,
constexpr size_t kCut = 4;                       // and n5.
constexpr int64_t kStepNs = 20'000'000'000;      // What each step may take at most.
constexpr const char* kClew = "/proc/self/exe";  // Ours, also where it is not installed.

// What is traced: reads a few bytes a thousand times a second; on n2, many.
constexpr std::string_view kShop =
    R"($0 = "shopd"; open my $in, "<", "/dev/zero"; my $most = )"
    R"(`uname -n` =~ /n2/ ? 2000000 : 100000;)"
    R"(while (1) { sysread $in, my $bytes, 1 + rand $most; select undef, undef, undef, 0.001 })";

constexpr std::string_view kQuestion =
    R"(from e in cluster.Return("libc.so.6!read") group by e.host )"
    "select new { host = e.host, reads = count(), p99 = p99(e.elapsed) } every 1s";

// Where nobody reads any more, the world ends.
void say(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  (void)std::fwrite(line.data(), 1, line.size(), stdout);
  if (std::fflush(stdout) != 0) _exit(kExitError);
}

void say_command(std::string_view text) {
  say(fmt::format("  # {}", text));
}

// Which machines each interval has rows of, as the lines of the answer tell it.
class Seen {
 public:
  void line(const std::string& text) {
    constexpr std::string_view kHead = "interval ";
    if (text.rfind(kHead, 0) == 0) {
      number_ = 0;
      (void)std::from_chars(text.data() + kHead.size(), text.data() + text.size(), number_);
      is_again_ = hosts_.count(number_) != 0;
      current_.clear();
    }
    if (text.size() > 2 && text[0] == 'n' && text[2] == ' ') current_.insert(text.substr(0, 2));
    if (!text.empty() || number_ == 0) return;
    if (is_again_ && current_ != hosts_[number_]) corrected_.insert(number_);
    hosts_[number_] = current_;
    number_ = 0;
  }
  // The newest interval has rows of so many.
  [[nodiscard]] size_t newest() const {
    return hosts_.empty() ? 0 : hosts_.rbegin()->second.size();
  }
  [[nodiscard]] size_t count() const { return hosts_.size(); }
  // Intervals that were given once more, with more in them.
  [[nodiscard]] const std::set<int>& corrected() const { return corrected_; }
  [[nodiscard]] std::vector<int> without(const std::string& host) const {
    std::vector<int> numbers;
    for (const auto& [number, hosts] : hosts_) {
      if (hosts.count(host) == 0) numbers.push_back(number);
    }
    return numbers;
  }

 private:
  std::map<int, std::set<std::string>> hosts_;
  std::set<int> corrected_;
  int number_ = 0;
  bool is_again_ = false;
  std::set<std::string> current_;
};

class Trial {
 public:
  Expected<void> run();

 private:
  Expected<void> begin_machines();
  Expected<void> begin_node(size_t machine);
  Expected<void> ask();
  Expected<void> damage();
  Expected<void> repair();
  Expected<void> end();
  // Shows what comes until `is_done`.
  Expected<void> show_until(const std::function<bool()>& is_done, std::string_view what);

  std::optional<TrialProgram> server_;
  std::vector<std::unique_ptr<TrialMachine>> machines_;
  std::vector<TrialProgram> shops_;
  std::map<size_t, TrialProgram> nodes_;
  std::optional<TrialProgram> asker_;
  Seen seen_;
};

Expected<void> Trial::run() {
  CLEW_TRY(begin_machines());
  CLEW_TRY(ask());
  CLEW_TRY(damage());
  CLEW_TRY(repair());
  return end();
}

Expected<void> Trial::begin_machines() {
  say(fmt::format(
      "{} machines (namespaces of this one: each has a name, processes and a network of its own)\n"
      "run a program, shopd, and a node of the cluster. They reach a server of NATS:",
      kMachines));
  say_command("nats-server -js");
  say_command(fmt::format("clew node --cluster {}        on each machine", trial_url()));
  server_.emplace(CLEW_TRY(start_trial_server()));
  for (int number = 1; number <= kMachines; ++number) {
    machines_.push_back(CLEW_TRY(TrialMachine::begin(number)));
    shops_.push_back(
        CLEW_TRY(machines_.back()->start({"/usr/bin/perl", "-e", std::string(kShop)})));
  }
  for (size_t machine = 0; machine < machines_.size(); ++machine)
    CLEW_TRY(begin_node(machine));
  return {};
}

Expected<void> Trial::begin_node(size_t machine) {
  nodes_.erase(machine);
  TrialProgram node =
      CLEW_TRY(machines_[machine]->start({kClew, "node", "--cluster", trial_url()}));
  CLEW_TRY(node.wait_for("is there", clock_ns(CLOCK_MONOTONIC) + kStepNs));
  nodes_.emplace(machine, std::move(node));
  return {};
}

Expected<void> Trial::show_until(const std::function<bool()>& is_done, std::string_view what) {
  const int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + kStepNs;
  while (!is_done()) {
    const std::optional<std::string> line = asker_->line(until_ns);
    if (!line) return fail(ErrorCode::Io, fmt::format("this did not come: {}", what));
    say(line->empty() ? "" : "    " + *line);
    seen_.line(*line);
  }
  return {};
}

Expected<void> Trial::ask() {
  say("\nAll of them are asked at once how long shopd's reads take, second by second. On n2 it "
      "reads\n"
      "more than elsewhere:");
  say_command(fmt::format("clew run --cluster {} -n shopd \\\n      '{}'", trial_url(), kQuestion));
  asker_.emplace(CLEW_TRY(
      start_here({kClew, "run", "--cluster", trial_url(), "-n", "shopd", std::string(kQuestion)})));
  return show_until(
      [this] { return seen_.count() >= 3 && seen_.newest() == static_cast<size_t>(kMachines); },
      "rows of all machines");
}

Expected<void> Trial::damage() {
  const std::string& killed = machines_[kKilled]->name();
  const std::string& cut = machines_[kCut]->name();
  say(fmt::format("Now the node of {} is killed, and the network cable of {} pulled:", killed,
                  cut));
  say_command(fmt::format("pkill -9 clew                  on {}", killed));
  say_command(fmt::format("ip link set {} down", cut));
  nodes_.at(kKilled).signal(SIGKILL);
  CLEW_TRY(machines_[kCut]->plug(false));
  return show_until([this] { return seen_.newest() == static_cast<size_t>(kMachines) - 2; },
                    "rows without them");
}

Expected<void> Trial::repair() {
  const std::string& killed = machines_[kKilled]->name();
  const std::string& cut = machines_[kCut]->name();
  say(fmt::format(
      "The others are answered. Now {} gets a node again, and {} its cable. What {} has\n"
      "counted meanwhile comes late, and corrects what was answered:",
      killed, cut, cut));
  say_command(fmt::format("clew node --cluster {}        on {}", trial_url(), killed));
  say_command(fmt::format("ip link set {} up", cut));
  CLEW_TRY(machines_[kCut]->plug(true));
  CLEW_TRY(begin_node(kKilled));
  return show_until(
      [this] {
        return !seen_.corrected().empty() && seen_.without(machines_[kCut]->name()).empty() &&
               seen_.newest() == static_cast<size_t>(kMachines);
      },
      "corrected rows");
}

Expected<void> Trial::end() {
  say("Ctrl-C ends the question. Probes go, shopd runs on as before:");
  asker_->signal(SIGINT);
  const int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + kStepNs;
  while (const std::optional<std::string> line = asker_->line(until_ns)) {
    say(line->empty() ? "" : "    " + *line);
    seen_.line(*line);
  }
  if (asker_->wait() != 0) return fail(ErrorCode::Io, "the question ended with an error");
  const std::vector<int> missing = seen_.without(machines_[kKilled]->name());
  say(fmt::format(
      "{}'s counts are missing in interval{} {}: a killed node takes its open interval with it, "
      "and\n"
      "nobody counts until there is a new one. {} was cut off as long and misses none: interval{} "
      "{}\n"
      "{} given once more, whole. All of it is gone now: processes, networks, files.",
      machines_[kKilled]->name(), missing.size() == 1 ? "" : "s", fmt::join(missing, ", "),
      machines_[kCut]->name(), seen_.corrected().size() == 1 ? "" : "s",
      fmt::join(seen_.corrected(), ", "), seen_.corrected().size() == 1 ? "was" : "were"));
  return {};
}

Expected<int> try_cluster() {
  CLEW_TRY(check_trial());
  return in_trial_world([] {
    Trial trial;
    const Expected<void> done = trial.run();
    return done ? kExitAnswered : report(done.error());
  });
}

}  // namespace

int cluster_verb(int argument_count, const char* const* arguments) {
  CLI::App app("Clusters. 'clew cluster try' begins one on this machine, asks it, damages it.",
               "clew cluster");
  std::string what;
  app.add_option("what", what, "try: five machines in namespaces of this one, for a look")
      ->required()
      ->check(CLI::IsMember({"try"}).description(""));
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<int> status = try_cluster();
  return status ? *status : report(status.error());
}

}  // namespace clew::cmd
