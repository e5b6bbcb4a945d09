// SPDX-License-Identifier: Apache-2.0
#include "cmd/answer_here.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>

#include "cmd/console.h"
#include "cmd/type_name.h"
#include "engine/recording/ask_recording.h"
#include "engine/replay.h"
#include "output/fan_out.h"

namespace clew::cmd {
namespace {

// How the command ended, unless it was well; or that it goes on.
void report_command(const engine::Outcome& outcome, engine::Notices& notices) {
  if (!outcome.command) return;
  if (!outcome.command_status) {
    notices.warning(fmt::format("the command goes on as process {}", *outcome.command));
  } else if (WIFSIGNALED(*outcome.command_status)) {
    const int signal = WTERMSIG(*outcome.command_status);
    const char* name = sigabbrev_np(signal);
    notices.warning(fmt::format("the command was killed by signal {} ({})", signal,
                                name == nullptr ? "?" : name));
  } else if (WEXITSTATUS(*outcome.command_status) != 0) {
    notices.warning(
        fmt::format("the command exited with status {}", WEXITSTATUS(*outcome.command_status)));
  }
}

// Whether there was anything to see; and readable names of types.
class SeenRows final : public output::FanOut {
 public:
  SeenRows(output::RowSink& sink, std::string demangled)
      : FanOut({&sink}), demangled_(std::move(demangled)) {}

  void begin(std::span<const aggregate::Column> columns, output::RowMode mode) override {
    const auto found =
        std::find_if(columns.begin(), columns.end(),
                     [this](const aggregate::Column& column) { return column.name == demangled_; });
    if (found != columns.end()) column_ = static_cast<size_t>(found - columns.begin());
    FanOut::begin(columns, mode);
  }

  void row(std::span<const aggregate::Value> values) override {
    has_some_ = true;
    if (!column_) return FanOut::row(values);
    std::vector<aggregate::Value> readable(values.begin(), values.end());
    if (auto* const name = std::get_if<std::string>(&readable[*column_]))
      *name = readable_type(*name);
    FanOut::row(readable);
  }

  [[nodiscard]] bool has_some() const { return has_some_; }

 private:
  std::string demangled_;
  std::optional<size_t> column_;
  bool has_some_ = false;
};

}  // namespace

output::About about(const engine::Request& request, const std::string& command) {
  output::About about = output::about_here(request.text.text);
  const engine::Chosen& processes = request.processes;
  for (const pid_t pid : processes.pids)
    about.targets.emplace_back("pid", std::to_string(pid));
  const auto add = [&about](const char* kind, const std::vector<std::string>& names) {
    for (const std::string& name : names)
      about.targets.emplace_back(kind, name);
  };
  add("name", processes.name_patterns);
  add("newest", processes.newest_names);
  add("container", processes.whose.containers);
  add("unit", processes.whose.units);
  add("cgroup", processes.whose.cgroups);
  add("user", processes.whose.users);
  add("command line", processes.whose.command_lines);
  if (!command.empty()) about.targets.emplace_back("command", command);
  if (!request.from_path.empty()) about.targets.emplace_back("file", request.from_path);
  return about;
}

Expected<void> answer_here(const engine::Request& request, const AnswerOptions& options,
                           Outputs& outputs) {
  const FileDescriptor stop =
      CLEW_TRY(signals_as_descriptor(outputs.size() > 1 ? ReaderGone::GoesOn : ReaderGone::Ends));
  SeenRows seen(outputs.sink(), options.demangled);
  if (!request.from_path.empty()) return engine::replay(request, stop.get(), seen);
  Console console(options.is_quiet);
  if (engine::asks_recording(request.text))
    return engine::ask_recording(request, stop.get(), seen, console);
  report_command(CLEW_TRY(engine::run(request, stop.get(), seen, console)), console);
  seen.flush();
  if (!seen.has_some() && !options.nothing.empty()) console.made(options.nothing);
  return {};
}

}  // namespace clew::cmd
