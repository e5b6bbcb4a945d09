// SPDX-License-Identifier: Apache-2.0
// clew show -i: carries out commands, and writes what they lead to on standard output; what is
// wrong with them is on standard error. A thread's history is made when it is first looked at.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/step_commands.h"
#include "recorder/history.h"
#include "recorder/script_loops.h"
#include "recorder/snap.h"
#include "recorder/snap_clock.h"
#include "recorder/snap_modules.h"
#include "recorder/source_text.h"
#include "recorder/step.h"

namespace clew::cmd {

class StepSession {
 public:
  // Begins at the end of that thread, a place in Snap::threads. All are borrowed.
  StepSession(const recorder::Snap& snap, recorder::SnapModules& modules,
              const std::vector<std::string>& source_folders, size_t thread);

  // Where it is.
  void show();
  // Carries out a line; an empty one is the last one again. False: that was the last command.
  bool run(std::string_view line);

 private:
  struct View {
    View(recorder::SnapModules& modules, recorder::Places& places, const recorder::Snap& snap,
         const recorder::SnapThread& thread)
        : history(modules, places, snap, thread) {
      if (history.at(0)) cursor.emplace(history);
    }

    recorder::History history;
    std::optional<recorder::Cursor> cursor;  // Without moments there is none.
  };
  struct Breakpoint {
    size_t number = 0;
    std::string text;
    recorder::Location location;
  };

  Expected<void> perform(StepCommand command, std::string_view words);
  using Mover = std::function<recorder::Move(recorder::Cursor&)>;

  Expected<void> move(std::string_view words, const Mover& once);
  Expected<void> run_to_breakpoint(recorder::Direction way, std::string_view words);
  Expected<void> advance(std::string_view words);
  Expected<void> set_breakpoint(std::string_view words);
  Expected<void> delete_breakpoint(std::string_view words);
  Expected<void> hits(std::string_view words);
  Expected<void> others();
  void show_other(size_t thread, const recorder::SpanNs& meanwhile);
  Expected<void> stack(std::string_view words);
  Expected<void> list(std::string_view words);
  Expected<void> info(std::string_view words);
  Expected<void> choose_thread(std::string_view words);
  Expected<void> go_to(std::string_view words);

  Expected<recorder::Location> location_of(std::string_view words);
  [[nodiscard]] std::string nearest_recorded(const recorder::Location& location);
  void show_moment(const recorder::Visit& visit);
  void show_moment_of(View& view, const recorder::Visit& visit);
  void show_source(const recorder::Frame& frame);
  void show_end(const recorder::Move& move);
  std::vector<recorder::ScriptLoop> script_loops_now();
  bool is_in_moment(size_t step, size_t back);
  void show_calls(const recorder::ScriptStack& script, size_t begin, size_t end);
  void show_other_scripts(size_t done);
  void show_stop();
  View& view_of(size_t thread);
  void look_at(size_t thread);
  void show_threads();
  void show_modules();
  void show_breakpoints();

  const recorder::Snap& snap_;
  recorder::SnapModules& modules_;
  recorder::Places places_;
  recorder::SnapClock clock_;
  std::map<size_t, std::unique_ptr<View>> views_;  // By thread.
  size_t thread_ = 0;
  View* view_ = nullptr;
  std::vector<Breakpoint> breakpoints_;
  size_t breakpoints_made_ = 0;
  recorder::SourceText sources_;
  uint32_t list_from_ = 0;  // 0: around where it is.
  std::string last_line_;
};

}  // namespace clew::cmd
