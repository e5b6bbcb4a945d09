// SPDX-License-Identifier: Apache-2.0
#include "killed_tracer/target.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sched.h>

namespace clew::killed_tracer {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> command_of(unsigned workers) {
  std::vector<std::string> command = {CLEW_KILLED_VICTIM};
  if (workers != 0) command.push_back(std::to_string(workers));
  return command;
}

// The state letters of all threads that are stopped, by a signal or a tracer.
std::string stopped_threads(pid_t pid) {
  std::string stopped;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= line.size()) continue;
    const char state = line[name_end + 2];
    if (state == 'T' || state == 't') stopped += state;
  }
  return stopped;
}

}  // namespace

Target::Target(unsigned workers) : child_({.arguments = command_of(workers)}) {
  if (child_.read_line() != "ready") throw std::runtime_error("the victim did not start");
  first_ = ask("check");
  state_ = live::ProcessState::of(pid());
}

std::map<std::string, uint64_t> Target::ask(const std::string& command) {
  child_.write_line(command);
  std::map<std::string, uint64_t> answer;
  while (true) {
    const auto line = child_.read_line();
    if (!line) {
      throw std::runtime_error("the victim ended: " + std::to_string(child_.wait_for_end().status));
    }
    if (*line == "end") return answer;
    std::istringstream words(*line);
    std::string name;
    words >> name >> answer[name];
  }
}

// A tracer's end wakes what it had stopped, a moment later.
void Target::expect_running() const {
  constexpr std::chrono::seconds kPatience{5};
  const auto deadline = Clock::now() + kPatience;
  std::string stopped = stopped_threads(pid());
  while (!stopped.empty() && Clock::now() < deadline) {
    sched_yield();
    stopped = stopped_threads(pid());
  }
  EXPECT_EQ(stopped, "") << "threads that are stopped";
}

void Target::expect_unharmed(const std::optional<std::set<pid_t>>& stopping) {
  expect_running();
  const auto now = ask("check");
  EXPECT_EQ(now.at("result"), first_.at("result"));
  EXPECT_EQ(now.at("errors"), 0U);
  const auto waiting = static_cast<pid_t>(now.at("epoll_thread"));
  const bool may_end = !stopping || stopping->find(waiting) != stopping->end();
  EXPECT_LE(now.at("epoll_ended"), first_.at("epoll_ended") + (may_end ? 1 : 0))
      << (may_end ? "one is allowed" : "none is allowed");
  EXPECT_EQ(now.at("wait_ended"), first_.at("wait_ended"));
}

void Target::forget_waits() {
  first_ = ask("check");
}

// A tracer that was killed has left processes that take its uprobes out (src/kernel/attachments.h),
// for which nobody waits: after the kernel's grace periods they are gone.
void Target::await_uprobes_gone() const {
  constexpr std::chrono::seconds kPatience{10};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (live::changed_text_bytes(pid()) != 0 && std::chrono::steady_clock::now() < deadline)
    sched_yield();
}

void Target::expect_clean(size_t sockets_left) {
  await_uprobes_gone();
  live::expect_text_equals_file(pid());
  live::ProcessState now = live::ProcessState::of(pid());
  EXPECT_EQ(now.mappings, state_.mappings);
  EXPECT_EQ(now.thread_count, state_.thread_count);
  EXPECT_EQ(now.signals, state_.signals);
  const auto is_new_socket = [&](const std::string& name) {
    const auto& before = state_.descriptors;
    return name.starts_with("socket:") &&
           std::find(before.begin(), before.end(), name) == before.end();
  };
  std::vector<std::string> descriptors = now.descriptors;
  const auto others = std::erase_if(descriptors, is_new_socket);
  EXPECT_LE(others, sockets_left);
  EXPECT_EQ(descriptors, state_.descriptors);
  state_.descriptors = now.descriptors;  // Known from now on.
  EXPECT_EQ(ask("check").at("semaphore"), 0U);
}

}  // namespace clew::killed_tracer
