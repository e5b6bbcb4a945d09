// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/commands.h"

#include <cerrno>
#include <chrono>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "engine/stop_signal.h"
#include "target/end_status.h"

namespace clew::engine {
namespace {

// A command line in words, as a shell without expansions would see it.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  bool is_inside = false;
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool is_blank = quote == 0 && (c == ' ' || c == '\t' || c == '\n');
    if (is_blank) {
      is_inside = false;
      continue;
    }
    if (!is_inside) words.emplace_back();
    is_inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      words.back() += command[++i];
    } else {
      words.back() += c;
    }
  }
  return words;
}

// Constructors have run when main() begins.
inline_::LaunchPoint point_of(std::string_view evaltime) {
  if (evaltime == "exec") return inline_::LaunchPoint::Exec;
  return evaltime == "preinit" ? inline_::LaunchPoint::Loaded : inline_::LaunchPoint::Main;
}

// The command line alone can say: the script is compiled with the types of what was started.
inline_::LaunchOptions launch_options(const DtraceRequest& request) {
  inline_::LaunchOptions result;
  for (const auto& [name, value] : request.options) {
    if (name == "evaltime") result.point = point_of(value);
    if (name == "setenv" || name == "unsetenv") result.environment.push_back(value);
  }
  return result;
}

}  // namespace

Expected<void> Commands::add(pid_t pid) {
  FileDescriptor descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!descriptor.valid()) {
    return fail(ErrorCode::NotFound,
                fmt::format("failed to grab pid {}: {}", pid, error_text(errno)));
  }
  pids_.push_back(pid);
  descriptors_.push_back(std::move(descriptor));
  return {};
}

Expected<void> Commands::start(const DtraceRequest& request) {
  inline_::LaunchOptions options = launch_options(request);
  for (const std::string& command : request.commands) {
    options.command = words_of(command);
    if (options.command.empty()) return fail(ErrorCode::NotFound, "failed to create process: ''");
    auto launched = inline_::Launched::start(options);
    if (!launched) {
      return fail(launched.error().code,
                  fmt::format("failed to execute {}: {}", command, launched.error().message));
    }
    CLEW_TRY(add(launched->pid()));
    launched_.push_back(std::move(*launched));
  }
  return {};
}

Expected<void> Commands::watch(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    CLEW_TRY(add(pid));
  }
  return {};
}

void Commands::resume() {
  if (resumed_) return;
  resumed_ = true;
  for (inline_::Launched& launched : launched_) {
    (void)launched.resume();
  }
}

void Commands::pass_on_signal(int stop_descriptor) {
  constexpr std::chrono::milliseconds kEndTimeout{2000};
  std::vector<pid_t> running;
  // Commands come before other processes. One whose end was noted may be another process by now.
  for (size_t i = 0; i < launched_.size(); ++i) {
    if (descriptors_[i].valid()) running.push_back(launched_[i].pid());
  }
  if (running.empty() || !engine::pass_on_signal(stop_descriptor, running)) return;
  for (size_t i = 0; i < launched_.size(); ++i) {
    if (descriptors_[i].valid()) (void)launched_[i].exit_status(kEndTimeout);
  }
}

void Commands::add_descriptors(std::vector<pollfd>& descriptors) {
  for (const FileDescriptor& descriptor : descriptors_) {  // poll(2) leaves out -1.
    descriptors.push_back({.fd = descriptor.get(), .events = POLLIN, .revents = 0});
  }
}

// Commands come before other processes.
std::optional<int> Commands::status_of(size_t index) const {
  constexpr std::chrono::milliseconds kNow{0};
  if (index < launched_.size()) return launched_[index].exit_status(kNow);
  return target::end_status(descriptors_[index].get(), pids_[index]);
}

Expected<void> Commands::turn() {
  std::vector<pollfd> polled;
  add_descriptors(polled);
  if (poll(polled.data(), polled.size(), 0) <= 0) return {};
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    untold_.push_back({pids_[i], status_of(i)});
    descriptors_[i] = FileDescriptor();
    ++ended_;
  }
  return {};
}

}  // namespace clew::engine
