// SPDX-License-Identifier: Apache-2.0
#include "cmd/step_session.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/nearest.h"
#include "cmd/shown_text.h"
#include "recorder/short_name.h"
#include "recorder/side_by_side.h"

namespace clew::cmd {

using recorder::Cursor;
using recorder::Direction;

namespace {

constexpr size_t kListedLines = 10;  // Of source.
constexpr size_t kHitsShownMax = 100;
constexpr size_t kFramesShownMax = 1000;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t from = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(from);
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

Expected<uint64_t> number_in(std::string_view words, std::string_view what) {
  uint64_t number = 0;
  const auto read = std::from_chars(words.data(), words.data() + words.size(), number);
  if (read.ec == std::errc() && read.ptr == words.data() + words.size()) return number;
  return fail(ErrorCode::InvalidQuery, fmt::format("'{}' is no {}", words, what));
}

// As it is written in front of a moment.
std::string number_text(size_t back) {
  return fmt::format("{}{}", back == 0 ? "" : "-", back);
}

Expected<void> need_moments(bool has_moments) {
  if (has_moments) return {};
  return fail(ErrorCode::NotFound, "nothing is recorded of this thread");
}

}  // namespace

StepSession::StepSession(const recorder::Snap& snap, recorder::SnapModules& modules,
                         const std::vector<std::string>& source_folders, size_t thread)
    : snap_(snap), modules_(modules), places_(modules), clock_(snap), sources_(source_folders) {
  look_at(thread);
}

StepSession::View& StepSession::view_of(size_t number) {
  std::unique_ptr<View>& view = views_[number];
  if (view == nullptr)
    view = std::make_unique<View>(modules_, places_, snap_, snap_.threads[number]);
  return *view;
}

void StepSession::look_at(size_t number) {
  thread_ = number;
  view_ = &view_of(number);
}

void StepSession::show() {
  list_from_ = 0;
  if (!view_->cursor) {
    fmt::print("nothing is recorded of thread {}\n", snap_.threads[thread_].thread);
    return show_stop();
  }
  show_moment({view_->cursor->back(), view_->cursor->level()});
  show_source(view_->cursor->frame());
  if (view_->cursor->back() == 0 && !view_->history.stop().is_recorded) show_stop();
}

bool StepSession::run(std::string_view line) {
  line = trimmed(line);
  if (line.empty()) line = last_line_;
  if (line.empty()) return true;
  std::string kept(line);
  const size_t end = std::min(kept.find_first_of(" \t"), kept.size());
  const auto command = find_step_command(std::string_view(kept).substr(0, end));
  if (command && *command == StepCommand::Quit) return false;
  const auto done = command ? perform(*command, trimmed(std::string_view(kept).substr(end)))
                            : Expected<void>(tl::unexpected(command.error()));
  last_line_ = std::move(kept);
  (void)std::fflush(stdout);
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return true;
}

Expected<void> StepSession::perform(StepCommand command, std::string_view words) {
  switch (command) {
    case StepCommand::Step:
      return move(words, [](Cursor& cursor) { return cursor.step(Direction::Forward); });
    case StepCommand::ReverseStep:
      return move(words, [](Cursor& cursor) { return cursor.step(Direction::Backward); });
    case StepCommand::Next:
      return move(words, [](Cursor& cursor) { return cursor.next(Direction::Forward); });
    case StepCommand::ReverseNext:
      return move(words, [](Cursor& cursor) { return cursor.next(Direction::Backward); });
    case StepCommand::Finish:
      return move(words, [](Cursor& cursor) { return cursor.finish(Direction::Forward); });
    case StepCommand::ReverseFinish:
      return move(words, [](Cursor& cursor) { return cursor.finish(Direction::Backward); });
    case StepCommand::Continue:
      return run_to_breakpoint(Direction::Forward, words);
    case StepCommand::ReverseContinue:
      return run_to_breakpoint(Direction::Backward, words);
    case StepCommand::Start:
      return move("", [](Cursor& cursor) { return cursor.go_to_oldest(); });
    case StepCommand::End:
      return go_to("0");
    case StepCommand::Until:
      if (!words.empty()) return advance(words);
      return move(words, [](Cursor& cursor) { return cursor.until(); });
    case StepCommand::Advance:
      return advance(words);
    case StepCommand::Goto:
      return go_to(words);
    case StepCommand::Break:
      return set_breakpoint(words);
    case StepCommand::Delete:
      return delete_breakpoint(words);
    case StepCommand::Hits:
      return hits(words);
    case StepCommand::Others:
      return others();
    case StepCommand::Backtrace:
      return stack(words);
    case StepCommand::List:
      return list(words);
    case StepCommand::Info:
      return info(words);
    case StepCommand::Thread:
      return choose_thread(words);
    case StepCommand::Frame:
      show();
      return {};
    case StepCommand::Print:
      return fail(ErrorCode::NotFound,
                  "values of variables are not recorded, only which lines ran");
    case StepCommand::Help:
      for (const StepCommandRow& row : step_commands())
        fmt::print("{:<26} {:<31} {}\n", row.names, row.arguments, row.help);
      fmt::print("WHERE is FILE:LINE, LINE or FUNCTION. An empty line does the last one again.\n");
      return {};
    case StepCommand::Quit:
      return {};
  }
  return {};
}

// So many times.
Expected<void> StepSession::move(std::string_view words, const Mover& once) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  const uint64_t times = words.empty() ? 1 : CLEW_TRY(number_in(words, "number of times"));
  recorder::Move done;
  for (uint64_t i = 0; i < times && done.end == recorder::MoveEnd::Arrived; ++i) {
    const recorder::Move one = once(*view_->cursor);
    done = {.end = one.end, .passed = static_cast<uint8_t>(done.passed | one.passed)};
  }
  show_end(done);
  return {};
}

Expected<void> StepSession::run_to_breakpoint(Direction way, std::string_view words) {
  std::vector<recorder::Location> locations;
  locations.reserve(breakpoints_.size());
  for (const Breakpoint& one : breakpoints_)
    locations.push_back(one.location);
  return move(words, [&](Cursor& cursor) { return cursor.run(way, locations); });
}

Expected<void> StepSession::advance(std::string_view words) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  show_end(view_->cursor->advance(CLEW_TRY(location_of(words))));
  return {};
}

Expected<void> StepSession::go_to(std::string_view words) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  if (words.starts_with('-')) words.remove_prefix(1);
  const uint64_t number = CLEW_TRY(number_in(words, "number of a moment"));
  if (!view_->cursor->go_to(number)) {
    view_->cursor->go_to_oldest();
    show();
    return fail(ErrorCode::NotFound, "there is no such moment: this is the oldest one");
  }
  show();
  return {};
}

void StepSession::show_end(const recorder::Move& move) {
  if (move.passed != 0) fmt::print("passed{}\n", marks_text(move.passed));
  show();
  switch (move.end) {
    case recorder::MoveEnd::Arrived:
      return;
    case recorder::MoveEnd::Missing:
      return fmt::print("stopped: something may be missing in front of this moment\n");
    case recorder::MoveEnd::Oldest:
      return fmt::print("this is the oldest moment that is recorded\n");
    case recorder::MoveEnd::Outermost:
      return fmt::print("{} is the outermost function: this is where it begins\n",
                        recorder::short_name(view_->cursor->frame().function));
    case recorder::MoveEnd::Newest:
      if (view_->history.stop().is_recorded) fmt::print("here the thread stopped\n");
  }
}

// Behind the last moment.
void StepSession::show_stop() {
  const recorder::Stop& stop = view_->history.stop();
  recorder::ShownLine line = recorder::shown_line(places_[stop.place]);
  line.address = stop.address;
  fmt::print("=>      {:<28} {}: the thread stopped there, {}\n",
             line.module.empty() ? "in no module" : place_text(line),
             recorder::short_name(line.function),
             stop.is_uncertain ? "what leads there is missing" : "not recorded");
}

void StepSession::show_moment(const recorder::Visit& visit) {
  show_moment_of(*view_, visit);
}

void StepSession::show_moment_of(View& view, const recorder::Visit& visit) {
  const auto [back, level] = visit;
  const recorder::Moment moment = *view.history.at(back);
  recorder::ShownLine line = recorder::shown_line(places_[moment.place], level);
  line.address = moment.address;
  const bool is_stop = back == 0 && view.history.stop().is_recorded;
  fmt::print("{}{:>7} {:<26} {}{}{}\n", is_stop ? "=>" : "  ", number_text(back), place_text(line),
             recorder::short_name(line.function), line.is_inlined ? " (inlined)" : "",
             marks_text(moment.marks));
}

void StepSession::show_source(const recorder::Frame& frame) {
  const auto text = sources_.whole_line(frame.file, frame.line);
  if (text) fmt::print("{}\t{}\n", frame.line, *text);
}

Expected<recorder::Location> StepSession::location_of(std::string_view words) {
  if (words.empty()) return fail(ErrorCode::InvalidQuery, "where? FILE:LINE, LINE or FUNCTION");
  const std::string& file = view_->cursor->frame().file;
  const auto location = recorder::parse_location(words, file);
  if (location) return *location;
  return fail(ErrorCode::InvalidQuery,
              fmt::format("line {} of which file? None is known here", words));
}

// For a location that nothing is at: what the user may have meant, of what this thread ran.
std::string StepSession::nearest_recorded(const recorder::Location& location) {
  std::set<std::string_view> names;
  uint32_t near_line = 0;
  for (size_t back = 0; view_->history.at(back); ++back) {
    for (const recorder::Frame& frame : places_[view_->history.at(back)->place].frames) {
      const std::string_view file = frame.file;
      names.insert(location.function.empty() ? file.substr(file.rfind('/') + 1)
                                             : std::string_view(frame.function));
      const recorder::Location here{.function = "", .file = location.file, .line = frame.line};
      if (location.function.empty() && recorder::is_at(frame, here) && frame.line > location.line &&
          (near_line == 0 || frame.line < near_line))
        near_line = frame.line;
    }
  }
  if (near_line != 0) return fmt::format("; the next line that ran is {}", near_line);
  const std::vector<std::string_view> all(names.begin(), names.end());
  return did_you_mean(
      nearest_name(location.function.empty() ? location.file : location.function, all));
}

Expected<void> StepSession::set_breakpoint(std::string_view words) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  std::string text(words);
  if (words.empty()) {
    const recorder::Frame& frame = view_->cursor->frame();
    text = frame.file.empty() ? frame.function : fmt::format("{}:{}", frame.file, frame.line);
  }
  const recorder::Location location = CLEW_TRY(location_of(text));
  const size_t count = view_->cursor->visits(location).size();
  if (count == 0) {
    return fail(ErrorCode::NotFound,
                fmt::format("this thread has not been at '{}', as far as it is "
                            "recorded{}",
                            text, nearest_recorded(location)));
  }
  breakpoints_.push_back(
      {.number = ++breakpoints_made_, .text = std::move(text), .location = location});
  fmt::print("breakpoint {} at {}: {} hit{} in this thread\n", breakpoints_made_,
             breakpoints_.back().text, count, count == 1 ? "" : "s");
  return {};
}

Expected<void> StepSession::delete_breakpoint(std::string_view words) {
  if (words.empty()) {
    breakpoints_.clear();
    return {};
  }
  const uint64_t number = CLEW_TRY(number_in(words, "number of a breakpoint"));
  if (std::erase_if(breakpoints_,
                    [number](const Breakpoint& one) { return one.number == number; }) == 0)
    return fail(ErrorCode::NotFound, fmt::format("there is no breakpoint {}", number));
  return {};
}

Expected<void> StepSession::hits(std::string_view words) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  std::vector<recorder::Location> locations;
  if (!words.empty()) locations.push_back(CLEW_TRY(location_of(words)));
  for (const Breakpoint& one : breakpoints_) {
    if (words.empty()) locations.push_back(one.location);
  }
  if (locations.empty())
    return fail(ErrorCode::InvalidQuery, "hits of what? FILE:LINE, LINE or FUNCTION");
  std::map<size_t, size_t, std::greater<>> found;  // Moments, and the innermost frame of each.
  for (const recorder::Location& one : locations) {
    for (const recorder::Visit& visit : view_->cursor->visits(one)) {
      size_t& level = found.emplace(visit.back, visit.level).first->second;
      level = std::min(level, visit.level);
    }
  }
  if (found.empty() && !words.empty()) {
    return fail(ErrorCode::NotFound,
                fmt::format("no hits of '{}'{}", words, nearest_recorded(locations.front())));
  }
  const size_t hidden = found.size() > kHitsShownMax ? found.size() - kHitsShownMax : 0;
  fmt::print("{} hit{}{}\n", found.size(), found.size() == 1 ? "" : "s",
             hidden == 0 ? "" : fmt::format(", the last {}:", kHitsShownMax));
  for (auto one = std::next(found.begin(), static_cast<ptrdiff_t>(hidden)); one != found.end();
       ++one)
    show_moment({one->first, one->second});
  return {};
}

Expected<void> StepSession::others() {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  const recorder::SpanNs span = clock_.ns_of(view_->history.began(view_->cursor->now().step));
  if (!span.after && !span.before) {
    return fail(ErrorCode::NotFound,
                "when this began is not known: no call in front of it or "
                "behind it has a time");
  }
  const std::optional<int64_t> gap = least_gap({&span, 1});
  fmt::print("began between {} and {}\n", span.after ? time_text(*span.after, gap) : "the start",
             span.before ? time_text(*span.before, gap) : "the end");
  for (size_t i = 0; i < snap_.threads.size(); ++i) {
    if (i != thread_) show_other(i, span);
  }
  return {};
}

// Moments that may have begun meanwhile, the oldest and the newest; else the last one in front.
void StepSession::show_other(size_t thread, const recorder::SpanNs& meanwhile) {
  View& view = view_of(thread);
  const auto began = [&](size_t back) {
    return clock_.ns_of(view.history.began(view.history.at(back)->step));
  };
  size_t newest = 0;
  while (view.history.at(newest) && recorder::is_in_front(meanwhile, began(newest)))
    ++newest;
  size_t behind = newest;  // The oldest.
  while (view.history.at(behind) && !recorder::is_in_front(began(behind), meanwhile))
    ++behind;
  fmt::print("thread {} ({}): ", thread + 1, snap_.threads[thread].thread);
  if (behind != newest) {
    fmt::print("{} moment{} may have begun meanwhile\n", behind - newest,
               behind - newest == 1 ? "" : "s");
    if (behind - newest > 1) show_moment_of(view, {behind - 1, 0});
    show_moment_of(view, {newest, 0});
  } else if (view.history.at(behind)) {
    fmt::print("none began meanwhile; the last one before\n");
    show_moment_of(view, {behind, 0});
  } else {
    fmt::print("nothing is known\n");
  }
}

Expected<void> StepSession::stack(std::string_view words) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  const uint64_t frames_max =
      words.empty() ? kFramesShownMax : CLEW_TRY(number_in(words, "number of frames"));
  const recorder::Stack stack = view_->cursor->stack(frames_max);
  if (view_->cursor->back() == 0 && !view_->history.stop().is_recorded) show_stop();
  const std::vector<recorder::ScriptLoop> loops = script_loops_now();
  size_t script_done = 0;
  bool was_certain = true;
  size_t number = 0;
  for (const recorder::StackFrame& one : stack.frames) {
    const recorder::Moment moment = *view_->history.at(one.back);
    recorder::ShownLine line = recorder::shown_line(places_[moment.place], one.level);
    line.address = moment.address;
    if (std::exchange(was_certain, one.is_certain) != one.is_certain)
      fmt::print("callers unknown; what the records would be of:\n");
    fmt::print("#{:<3}{} {}{} at {} ({})\n", number++, one.is_certain ? "" : "?",
               recorder::short_name(line.function), line.is_inlined ? " (inlined)" : "",
               place_text(line), number_text(one.back));
    for (const recorder::ScriptLoop& loop : loops) {
      if (loop.begin != script_done || !is_in_moment(loop.step, one.back)) continue;
      show_calls(*recorder::script_of(snap_.scripts, snap_.threads[thread_].thread), loop.begin,
                 loop.end);
      script_done = loop.end;
    }
  }
  if (stack.frames.size() == frames_max) return {};
  fmt::print("{}\n", stack.is_whole ? "called by code that is not recorded" : "callers unknown");
  show_other_scripts(script_done);
  return {};
}

// Of a thread's script the calls at its end are known, and no others.
std::vector<recorder::ScriptLoop> StepSession::script_loops_now() {
  if (view_->cursor->back() != 0) return {};
  return recorder::script_loops(modules_, view_->history.walked(), snap_, snap_.threads[thread_]);
}

// The step is of that moment, and of none behind it.
bool StepSession::is_in_moment(size_t step, size_t back) {
  return view_->history.at(back)->step <= step &&
         (back == 0 || view_->history.at(back - 1)->step > step);
}

void StepSession::show_calls(const recorder::ScriptStack& script, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const recorder::ShownScriptCall call = recorder::shown_call(snap_.scripts, script.calls[i]);
    fmt::print("       {} at {}\n", call.function, place_text(call));
  }
}

// What was not shown below its native call: so many of the only script's calls were.
void StepSession::show_other_scripts(size_t done) {
  if (view_->cursor->back() != 0) return;
  for (const recorder::ScriptStack& script : snap_.scripts.stacks) {
    if (script.thread != snap_.threads[thread_].thread || done == script.calls.size()) continue;
    fmt::print("{}{}:\n", snap_.scripts.interpreters[script.interpreter].name,
               done == 0 ? "" : ", further calls");
    show_calls(script, done, script.calls.size());
    if (!script.is_whole) fmt::print("       callers unknown\n");
  }
}

Expected<void> StepSession::list(std::string_view words) {
  CLEW_TRY(need_moments(view_->cursor.has_value()));
  const recorder::Frame& frame = view_->cursor->frame();
  const size_t lines = sources_.count(frame.file);
  if (lines == 0) {
    return fail(ErrorCode::NotFound, frame.file.empty()
                                         ? std::string("without debug information")
                                         : fmt::format("{} is not there", frame.file));
  }
  uint64_t around = frame.line;
  if (!words.empty()) around = CLEW_TRY(number_in(words, "line"));
  uint64_t from = around > kListedLines / 2 ? around - kListedLines / 2 : 1;
  if (words.empty() && list_from_ != 0) from = list_from_;
  if (from > lines)
    return fail(ErrorCode::NotFound, fmt::format("{} has {} lines", frame.file, lines));
  const uint64_t end = std::min<uint64_t>(from + kListedLines, lines + 1);
  for (uint64_t line = from; line < end; ++line) {
    const auto text = sources_.whole_line(frame.file, static_cast<uint32_t>(line));
    fmt::print("{}{}\t{}\n", line == frame.line ? "=>" : "  ", line, text.value_or(""));
  }
  list_from_ = static_cast<uint32_t>(end);
  return {};
}

Expected<void> StepSession::info(std::string_view words) {
  constexpr std::string_view kThreads = "threads";
  constexpr std::string_view kModules = "modules";
  constexpr std::string_view kBreakpoints = "breakpoints";
  if (words.empty() || kThreads.starts_with(words)) {
    show_threads();
  } else if (kModules.starts_with(words) || std::string_view("sharedlibrary").starts_with(words)) {
    show_modules();
  } else if (kBreakpoints.starts_with(words)) {
    show_breakpoints();
  } else {
    const std::vector<std::string_view> all = {kThreads, kModules, kBreakpoints};
    return fail(ErrorCode::InvalidQuery,
                fmt::format("info threads, modules or breakpoints, not '{}'{}", words,
                            did_you_mean(nearest_name(words, all))));
  }
  return {};
}

void StepSession::show_threads() {
  for (size_t i = 0; i < snap_.threads.size(); ++i) {
    const recorder::SnapThread& thread = snap_.threads[i];
    const recorder::Stop stop = recorder::stop_of(modules_, places_, thread);
    recorder::ShownLine line = recorder::shown_line(places_[stop.place]);
    line.address = stop.address;
    fmt::print("{} {:<4} thread {}{}  {}  {}\n", i == thread_ ? "*" : " ", i + 1, thread.thread,
               role_of(snap_, is_reason(snap_, thread)),
               line.module.empty() ? "in no module" : place_text(line),
               recorder::short_name(line.function));
  }
}

void StepSession::show_modules() {
  for (const recorder::ReadModule& module : modules_.all()) {
    fmt::print("{:#014x} {} {}\n", module.described->load_bias,
               module.recorded == nullptr ? "not recorded" : "recorded    ",
               module.described->path);
  }
  for (const std::string& problem : modules_.problems())
    fmt::print("{:<14} not used     {}\n", "", problem);
}

void StepSession::show_breakpoints() {
  if (breakpoints_.empty()) fmt::print("no breakpoints\n");
  for (const Breakpoint& one : breakpoints_)
    fmt::print("{:<4} {}\n", one.number, one.text);
}

Expected<void> StepSession::choose_thread(std::string_view words) {
  if (!words.empty()) {
    const uint64_t number = CLEW_TRY(number_in(words, "number of a thread"));
    const auto& all = snap_.threads;
    const auto named = std::find_if(all.begin(), all.end(), [number](const auto& one) {
      return static_cast<uint64_t>(one.thread) == number;
    });
    const size_t place =
        number - 1 < all.size() ? number - 1 : static_cast<size_t>(named - all.begin());
    if (place == all.size()) {
      return fail(ErrorCode::NotFound,
                  fmt::format("there is no thread {}; info threads lists them", number));
    }
    look_at(place);
  }
  fmt::print("thread {} ({})\n", thread_ + 1, snap_.threads[thread_].thread);
  show();
  return {};
}

}  // namespace clew::cmd
