// SPDX-License-Identifier: Apache-2.0
// clew record and clew show; snap_verb.cc has clew snap.
#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cmd/console.h"
#include "cmd/line_reader.h"
#include "cmd/parse_arguments.h"
#include "cmd/show_across.h"
#include "cmd/shown_lines.h"
#include "cmd/shown_text.h"
#include "cmd/step_session.h"
#include "cmd/verbs.h"
#include "cmd/write_bundle.h"
#include "engine/kernel/system_call_name.h"
#include "engine/record/record.h"
#include "output/format.h"
#include "recorder/debugger_files.h"
#include "recorder/policy.h"
#include "recorder/short_name.h"
#include "recorder/show.h"
#include "recorder/side_by_side.h"
#include "recorder/snap.h"
#include "recorder/walk.h"
#include "target/catalog.h"

namespace clew::cmd {
namespace {

enum class ShownForm : uint8_t { Threads, Together, Json };

// As the command ended, so do we.
int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const struct rlimit none {};
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)std::signal(WTERMSIG(status), SIG_DFL);
  sigset_t signals{};
  (void)sigaddset(&signals, WTERMSIG(status));
  (void)pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (void)raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}

// "futex", or "system call 600"
std::string name_of_call(uint64_t number) {
  const std::string_view name = engine::system_call_name(number);
  return name.empty() ? fmt::format("system call {}", number) : std::string(name);
}

// A line of the text, and the source beside it.
TextLine text_of_stop(const recorder::ShownThread& thread) {
  const recorder::ShownLine& stop = thread.stopped;
  if (stop.module.empty())
    return {fmt::format("=> {:<28} in no module", recorder::short_name(stop.function)), {}};
  return {fmt::format("=> {:<28} {}{}{}", place_text(stop), recorder::short_name(stop.function),
                      thread.system_call ? ", in " + name_of_call(*thread.system_call) : "",
                      stop.marks == 0 ? " (not recorded)" : marks_text(stop.marks)),
          stop.text};
}

// A moment that is known stands in front of it.
bool is_stamped(const recorder::ShownThread& thread, size_t number) {
  return number != 0 && thread.lines[number].began.after &&
         thread.lines[number].began.after != thread.lines[number - 1].began.after;
}

template <typename Shown>
std::vector<recorder::SpanNs> spans_of(const std::vector<Shown>& all, recorder::SpanNs Shown::*of) {
  std::vector<recorder::SpanNs> spans;
  spans.reserve(all.size());
  for (const Shown& one : all)
    spans.push_back(one.*of);
  return spans;
}

// Times stand where they are known, and have a column if any are.
std::vector<TextLine> text_lines(const recorder::Snap& snap, const recorder::ShownThread& thread) {
  constexpr size_t kTimeColumn = 12;
  std::vector<TextLine> text;
  const int32_t least = least_depth(thread);
  bool has_times = false;
  for (size_t i = 0; i < thread.lines.size(); ++i) {
    text.push_back(text_of_line(snap, thread, i, least));
    has_times = has_times || is_stamped(thread, i);
  }
  if (!thread.is_recorded) text.push_back(text_of_stop(thread));
  if (!has_times) return text;
  std::vector<std::string> times(text.size());
  size_t column = kTimeColumn;
  const std::optional<int64_t> gap = least_gap(spans_of(thread.lines, &recorder::ShownLine::began));
  for (size_t i = 0; i < thread.lines.size(); ++i) {
    if (is_stamped(thread, i)) times[i] = time_text(*thread.lines[i].began.after, gap);
    column = std::max(column, times[i].size());
  }
  for (size_t i = 0; i < text.size(); ++i)
    text[i].left = fmt::format("{:>{}} {}", times[i], column, text[i].left);
  return text;
}

void print_scripts(const recorder::ShownThread& thread, size_t calls_max) {
  for (const recorder::ShownScript& script : thread.scripts)
    print_lines(text_of_script(script, calls_max));
}

std::string thread_text(const recorder::Snap& snap, const recorder::ShownThread& thread) {
  return fmt::format("thread {}{}", thread.thread, role_of(snap, thread.is_reason));
}

void print_thread(const recorder::Snap& snap, const recorder::ShownThread& thread,
                  size_t calls_max) {
  fmt::print("\n{}: {} records\n", thread_text(snap, thread), thread.records);
  print_lines(text_lines(snap, thread));
  if (thread.violations != 0 || thread.gaps != 0) {
    fmt::print("   {} records fit no path, {} gaps\n", thread.violations, thread.gaps);
  }
  print_scripts(thread, calls_max);
}

// A fault is the kernel's; other signals are sent, and then siginfo_t has the sender in its place.
bool has_address(const recorder::SnapReason& reason) {
  const bool is_fault = reason.signal == SIGSEGV || reason.signal == SIGBUS;
  return is_fault && reason.code > 0 && reason.code != SI_KERNEL;
}

std::string text_of(const recorder::SnapReason& reason, int32_t process) {
  switch (reason.trigger) {
    case recorder::SnapTrigger::Event:
      if (reason.signal == 0) return ": taken while it ran";
      break;
    case recorder::SnapTrigger::Exit:
      return fmt::format(": exits with status {} in thread {}", reason.code, reason.thread);
    case recorder::SnapTrigger::Heartbeat:
      return fmt::format(": had recorded nothing for {:.1f} s", reason.code / 1e3);
  }
  std::string text = fmt::format(": {}", recorder::signal_name(reason.signal));
  if (has_address(reason)) text += fmt::format(" at address {:#x}", reason.address);
  const auto sender = static_cast<int32_t>(reason.address);
  if (reason.code <= 0 && sender != process) text += fmt::format(", sent by process {}", sender);
  return text + fmt::format(" in thread {}", reason.thread);
}

// In one line, whatever its text has.
std::string text_of_condition(const recorder::Snap& snap) {
  std::string query = snap.condition;
  std::replace(query.begin(), query.end(), '\n', ' ');
  query = output::printable(query);
  const int32_t thread = snap.reason.thread;
  return fmt::format(": taken while it ran{}, for the query {}",
                     thread == 0 ? "" : fmt::format(", after thread {} had met it", thread), query);
}

// Names of files without folders; empty where copies record.
std::vector<std::string> recorded_by_guards(const recorder::Snap& snap) {
  std::vector<std::string> names;
  for (const recorder::SnapModule& module : snap.modules) {
    if (module.recipe.front_end == recorder::FrontEnd::Guards)
      names.emplace_back(recorder::file_of(module.path));
  }
  return names;
}

void print_command(const recorder::Snap& snap) {
  fmt::print("{} (process {}){}\n", fmt::join(snap.command, " "), snap.pid,
             snap.condition.empty() ? text_of(snap.reason, snap.pid) : text_of_condition(snap));
  const std::vector<std::string> guarded = recorded_by_guards(snap);
  if (!guarded.empty()) fmt::print("recorded by the guards of {}\n", fmt::join(guarded, ", "));
  for (const recorder::Interpreter& one : snap.scripts.interpreters) {
    if (const std::string problem = text_of_problem(one); !problem.empty())
      fmt::print("{}\n", problem);
  }
}

// "from -1.204 ms to -1.190 ms, thread 12, concurrent with 13 and 14"
std::string text_of_stretch(const recorder::Snap& snap, const recorder::Shown& shown,
                            const recorder::Stretch& stretch, std::optional<int64_t> gap) {
  std::string text = stretch.span.after ? "from " + time_text(*stretch.span.after, gap)
                                        : std::string("from the start");
  text += stretch.span.before ? " to " + time_text(*stretch.span.before, gap) : " to the end";
  text += ", " + thread_text(snap, shown.threads[stretch.thread]);
  for (size_t i = 0; i < stretch.concurrent.size(); ++i) {
    const bool is_last = i + 1 == stretch.concurrent.size();
    const char* const link = i == 0 ? ", concurrent with " : is_last ? " and " : ", ";
    text += fmt::format("{}{}", link, shown.threads[stretch.concurrent[i]].thread);
  }
  return text;
}

void print_together(const recorder::Snap& snap, const recorder::Shown& shown, size_t calls_max) {
  print_command(snap);
  const std::vector<recorder::Stretch> all = recorder::side_by_side(shown);
  const std::optional<int64_t> gap = least_gap(spans_of(all, &recorder::Stretch::span));
  for (const recorder::Stretch& stretch : all) {
    const recorder::ShownThread& thread = shown.threads[stretch.thread];
    fmt::print("\n{}\n", text_of_stretch(snap, shown, stretch, gap));
    const int32_t least = least_depth(thread);
    std::vector<TextLine> text;
    for (size_t i = stretch.begin; i < stretch.end; ++i)
      text.push_back(text_of_line(snap, thread, i, least));
    print_lines(text);
  }
  for (const recorder::ShownThread& thread : shown.threads) {
    if (thread.is_recorded && thread.scripts.empty()) continue;
    fmt::print("\n{} stopped\n", thread_text(snap, thread));
    if (!thread.is_recorded) print_lines({text_of_stop(thread)});
    print_scripts(thread, calls_max);
  }
}

void print_shown(const recorder::Snap& snap, const recorder::Shown& shown, size_t calls_max) {
  print_command(snap);
  for (const recorder::ShownThread& thread : shown.threads)
    print_thread(snap, thread, calls_max);
}

nlohmann::ordered_json json_of(const recorder::Snap& snap, const recorder::ShownThread& thread) {
  nlohmann::ordered_json one;
  one["thread"] = thread.thread;
  one["got_signal"] = thread.is_reason && snap.reason.signal != 0;
  one["records"] = thread.records;
  one["violations"] = thread.violations;
  one["uncertain"] = thread.uncertain;
  one["gaps"] = thread.gaps;
  one["lines"] = nlohmann::ordered_json::array();
  for (const recorder::ShownLine& line : thread.lines)
    one["lines"].push_back(json_of_line(snap, line));
  one["stopped"] = json_of_line(snap, thread.stopped);
  one["stopped"]["recorded"] = thread.is_recorded;
  one["stopped"]["system_call"] = nullptr;
  if (thread.system_call) one["stopped"]["system_call"] = name_of_call(*thread.system_call);
  one["scripts"] = nlohmann::ordered_json::array();
  for (const recorder::ShownScript& script : thread.scripts) {
    nlohmann::ordered_json shown = {{"interpreter", script.interpreter},
                                    {"whole", script.is_whole}};
    shown["calls"] = nlohmann::ordered_json::array();
    for (const recorder::ShownScriptCall& call : script.calls)
      shown["calls"].push_back(json_of_call(call));
    one["scripts"].push_back(std::move(shown));
  }
  return one;
}

std::string_view reason_name(const recorder::Snap& snap) {
  if (!snap.condition.empty()) return "query";
  switch (snap.reason.trigger) {
    case recorder::SnapTrigger::Event:
      break;
    case recorder::SnapTrigger::Exit:
      return "exit";
    case recorder::SnapTrigger::Heartbeat:
      return "heartbeat";
  }
  return snap.reason.signal == 0 ? "asked" : "signal";
}

void print_json(const recorder::Snap& snap, const recorder::Shown& shown) {
  nlohmann::ordered_json all;
  all["command"] = snap.command;
  all["process"] = snap.pid;
  all["guards"] = recorded_by_guards(snap);
  all["reason"] = reason_name(snap);
  all["query"] = nullptr;
  if (!snap.condition.empty()) all["query"] = snap.condition;
  all["thread"] = nullptr;
  if (snap.reason.thread != 0) all["thread"] = snap.reason.thread;
  all["signal"] = snap.reason.signal;
  all["code"] = snap.reason.code;
  all["address"] = nullptr;
  if (has_address(snap.reason)) all["address"] = snap.reason.address;
  all["time_ns"] = snap.reason.time_ns;
  all["taken_ns"] = nullptr;
  if (snap.taken.ticks != 0) all["taken_ns"] = snap.taken.time_ns;
  all["problems"] = shown.problems;
  all["interpreters"] = nlohmann::ordered_json::array();
  for (const recorder::Interpreter& interpreter : snap.scripts.interpreters) {
    nlohmann::ordered_json one = {{"name", interpreter.name}, {"problem", nullptr}};
    if (!interpreter.problem.empty()) one["problem"] = interpreter.problem;
    all["interpreters"].push_back(std::move(one));
  }
  all["threads"] = nlohmann::ordered_json::array();
  for (const recorder::ShownThread& thread : shown.threads)
    all["threads"].push_back(json_of(snap, thread));
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::vector<std::string> source_folders_of(const recorder::Snap& snap,
                                           const recorder::ShowOptions& options) {
  std::vector<std::string> folders = options.source_folders;
  if (!snap.files.empty()) folders.push_back(snap.files);
  return folders;
}

Expected<void> show_snap(const std::string& path, const recorder::ShowOptions& wanted,
                         ShownForm form) {
  const recorder::Snap snap = CLEW_TRY(recorder::read_snap(path));
  Console console(false);
  recorder::ShowOptions options = wanted;
  options.source_folders = source_folders_of(snap, wanted);
  options.progress = [&console](std::string_view text) { console.progress(text); };
  const recorder::Shown shown = CLEW_TRY(recorder::show(snap, options));
  for (const std::string& problem : shown.problems)
    console.warning(problem);
  switch (form) {
    case ShownForm::Threads:
      print_shown(snap, shown, options.last);
      break;
    case ShownForm::Together:
      print_together(snap, shown, options.last);
      break;
    case ShownForm::Json:
      print_json(snap, shown);
      break;
  }
  return {};
}

// The thread that is wanted; else the one that got the signal or met the query, else the first. A
// place in Snap::threads.
Expected<size_t> thread_of(const recorder::Snap& snap, int32_t wanted) {
  for (size_t i = 0; i < snap.threads.size(); ++i) {
    const recorder::SnapThread& one = snap.threads[i];
    if (one.thread == (wanted == 0 ? snap.reason.thread : wanted)) return i;
  }
  if (wanted == 0 && !snap.threads.empty()) return size_t{0};
  return fail(ErrorCode::NotFound, wanted == 0 ? std::string("the snap has no threads")
                                               : fmt::format("the snap has no thread {}", wanted));
}

Expected<void> step_through(const std::string& path, const recorder::ShowOptions& options) {
  const recorder::Snap snap = CLEW_TRY(recorder::read_snap(path));
  const size_t first = CLEW_TRY(thread_of(snap, options.thread));
  Console console(false);
  recorder::SnapModules modules(snap,
                                [&console](std::string_view text) { console.progress(text); });
  for (const std::string& problem : modules.problems())
    console.warning(problem);
  print_command(snap);
  StepSession session(snap, modules, source_folders_of(snap, options), first);
  session.show();
  LineReader reader = CLEW_TRY(LineReader::open("(clew) "));
  while (true) {
    const auto line = CLEW_TRY(reader.next());
    if (!line || !session.run(*line)) return {};
  }
}

Expected<void> bundle_snap(const std::string& path, const std::string& folder,
                           const recorder::ShowOptions& options) {
  Console console(false);
  return write_bundle(
      {.snap = path, .folder = folder, .source_folders = options.source_folders, .progress = {}},
      console);
}

Expected<void> write_for_gdb(const std::string& path, const std::string& folder) {
  Console console(false);
  const recorder::DebuggerFiles files = CLEW_TRY(recorder::write_for_debugger(
      {.snap = path, .folder = folder, .progress = [&console](std::string_view text) {
         console.progress(text);
       }}));
  for (const std::string& problem : files.problems)
    console.warning(problem);
  console.made(fmt::format("written: {} (modules: {}, functions: {}); gdb reads it by -x",
                           files.script, files.modules, files.functions));
  return {};
}

// What the policy says, and then what the command line does.
struct RecordOptions {
  std::optional<pid_t> process;
  std::optional<std::string> policy;
  std::optional<std::string> folder;
  std::optional<std::string> group;
  bool each_iteration = false;
  bool by_guards = false;
  bool leaves_children = false;
  bool uses_no_cache = false;
  bool is_quiet = false;
};

void add_options(CLI::App& app, RecordOptions& options) {
  app.add_option("-p,--pid", options.process, "record this process")->check(whole_number(1));
  app.add_option("--policy", options.policy,
                 "a file that says what to record, and how many snaps to keep");
  app.add_option("-o,--output", options.folder, "the folder for snaps; else the current one");
  app.add_option("--group", options.group,
                 "a name by which clew snap --group takes it with others");
  app.add_flag("--each", options.each_iteration,
               "also record each iteration of loops that decide nothing");
  app.add_flag("--guards", options.by_guards,
               "programs and libraries that were compiled with guards, by these, and no others");
  app.add_flag("--no-follow", options.leaves_children, "not what it and its children execute");
  app.add_flag("--no-cache", options.uses_no_cache,
               "analyse each file anew, and keep nothing for the next time");
  app.add_flag("-q,--quiet", options.is_quiet, "only errors and what the command prints");
}

std::string what_is_wrong(const RecordOptions& options, const std::vector<std::string>& command) {
  if (options.process && !command.empty()) {
    return "a process and a command: clew record -p PID, or clew record -- COMMAND ARGUMENT...";
  }
  if (!options.process && command.empty()) {
    return "what to run is missing: clew record -- COMMAND ARGUMENT..., or clew record -p PID";
  }
  return "";
}

Expected<engine::RecordRequest> request_of(const RecordOptions& options) {
  recorder::Policy policy;
  if (options.policy) policy = CLEW_TRY(recorder::read_policy(*options.policy));
  if (options.group) CLEW_TRY(recorder::check_group(*options.group));
  engine::RecordRequest request;
  request.process = options.process.value_or(0);
  request.directory = options.folder.value_or(policy.folder);
  request.each_iteration = policy.each_iteration || options.each_iteration;
  request.by_guards = options.by_guards;
  request.follows = policy.follows && !options.leaves_children;
  if (policy.caches && !options.uses_no_cache)
    request.cache_directory = target::default_catalog_options().read.cache_directory;
  request.group = options.group.value_or(policy.group);
  request.signals = policy.signals;
  request.exits = policy.exits;
  request.heartbeat_ns = policy.heartbeat_ns;
  request.limits = policy.limits;
  request.conditions = std::move(policy.conditions);
  return request;
}

}  // namespace

int record_verb(int argument_count, const char* const* arguments) {
  RecordOptions options;
  CLI::App app(
      "Runs a command, or lets a process run on, that records its control flow, for the moment "
      "when it crashes.",
      "clew record");
  add_options(app, options);
  // The words of a command are nobody's but its own: CLI11 would take "[a]" for a list.
  app.prefix_command();
  app.footer("clew record [OPTION...] [--] COMMAND [ARGUMENT...]\nclew record [OPTION...] -p PID");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  std::vector<std::string> command = app.remaining();
  const bool is_marked = !command.empty() && command.front() == "--";
  if (is_marked) command.erase(command.begin());
  const bool is_option = !is_marked && !command.empty() && command.front().starts_with('-');
  if (is_option) return unknown_option(app, command.front());
  if (const std::string wrong = what_is_wrong(options, command); !wrong.empty()) {
    return wrong_usage(app, wrong);
  }
  auto request = request_of(options);
  if (!request) return report(request.error());
  request->command = std::move(command);
  Console console(options.is_quiet);
  const auto status = engine::record(*request, console);
  if (status) return options.process ? kExitAnswered : end_as(*status);
  const int failed = report(status.error().error);
  return status.error().status ? end_as(*status.error().status) : failed;
}

int show_verb(int argument_count, const char* const* arguments) {
  std::vector<std::string> paths;
  recorder::ShowOptions options;
  bool wants_json = false;
  bool is_together = false;
  bool wants_steps = false;
  CLI::App app("Shows what a recorded process ran before its end, or before it was asked.",
               "clew show");
  app.add_option("snap", paths, "the file that clew record wrote, or a bundle's folder")
      ->required();
  auto* const last = app.add_option("--last", options.last, "so many lines of each thread; else 50")
                         ->check(whole_number(1));
  app.add_option("--thread", options.thread, "this thread alone")->check(whole_number(1));
  app.add_option("--source", options.source_folders,
                 "a folder with the sources; may be given several times")
      ->allow_extra_args(false);
  auto* const json = app.add_flag("--json", wants_json, "as JSON");
  auto* const together = app.add_flag("--together", is_together,
                                      "all threads' lines in one order, as far as it is known")
                             ->excludes(json);
  bool is_across = false;
  auto* const across =
      app.add_flag(
             "--across", is_across,
             "of several snaps: what led to the end of the first one, also in other processes")
          ->excludes(together);
  auto* const steps = app.add_flag("-i,--interactive", wants_steps,
                                   "step through it, both ways, with gdb's commands")
                          ->excludes(last)
                          ->excludes(json)
                          ->excludes(together)
                          ->excludes(across);
  std::string bundle;
  app.add_option("--bundle", bundle, "a folder to make that shows the same on other machines")
      ->excludes(last)
      ->excludes(json)
      ->excludes(together)
      ->excludes(across)
      ->excludes(steps);
  std::string gdb;
  app.add_option("--gdb", gdb, "a folder to make with what gdb must know of the copies")
      ->excludes("--last")
      ->excludes(json)
      ->excludes(together)
      ->excludes(across)
      ->excludes(steps)
      ->excludes("--bundle");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  if (paths.size() > 1 && !is_across) {
    return wrong_usage(
        app, fmt::format("'{}' is one snap too many; several are shown by --across", paths[1]));
  }
  if (is_across) {
    const auto shown = show_across(paths, options, wants_json);
    return shown ? kExitAnswered : report(shown.error());
  }
  const std::string& path = paths.front();
  if (!bundle.empty()) {
    const auto bundled = bundle_snap(path, bundle, options);
    return bundled ? kExitAnswered : report(bundled.error());
  }
  if (!gdb.empty()) {
    const auto written = write_for_gdb(path, gdb);
    return written ? kExitAnswered : report(written.error());
  }
  const ShownForm form = wants_json    ? ShownForm::Json
                         : is_together ? ShownForm::Together
                                       : ShownForm::Threads;
  const auto shown = wants_steps ? step_through(path, options) : show_snap(path, options, form);
  return shown ? kExitAnswered : report(shown.error());
}

}  // namespace clew::cmd
