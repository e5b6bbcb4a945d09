// SPDX-License-Identifier: Apache-2.0
#include "recorder/show.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "recorder/bundle.h"
#include "recorder/history.h"
#include "recorder/script_loops.h"
#include "recorder/source_text.h"

namespace clew::recorder {

namespace {

ShownLine line_of(const History& history, const Moment& moment) {
  ShownLine line = shown_line(history.place(moment.place));
  line.address = moment.address;
  line.depth = moment.depth;
  line.marks = moment.marks;
  return line;
}

// A call is the last that its step does, so that it is in the last line that begins there or in
// front of it. Null: it is in front of all. `steps`: in which the lines begin.
ShownLine* line_at_end_of(size_t step, const std::vector<size_t>& steps,
                          std::vector<ShownLine>& lines) {
  const auto behind = std::upper_bound(steps.begin(), steps.end(), step);
  return behind == steps.begin() ? nullptr
                                 : &lines[static_cast<size_t>(behind - steps.begin()) - 1];
}

void add_transfers(const History& history, std::span<const StreamCall> calls,
                   const std::vector<size_t>& steps, std::vector<ShownLine>& lines) {
  for (const StreamCall& one : calls) {
    if (!moves_bytes(one.call.transfer)) continue;
    const size_t behind = history.walked().step_behind(one.call.record);
    ShownLine* const line = behind == 0 ? nullptr : line_at_end_of(behind - 1, steps, lines);
    if (line == nullptr) continue;
    line->transfers.push_back({one.call.transfer, one.call.descriptor, one.call.result, one.stream,
                               one.bytes, one.is_sure});
  }
}

std::vector<ShownScript> scripts_of(const Scripts& scripts, int32_t thread) {
  std::vector<ShownScript> all;
  for (const ScriptStack& stack : scripts.stacks) {
    if (stack.thread != thread) continue;
    ShownScript& shown = all.emplace_back();
    shown.interpreter = scripts.interpreters[stack.interpreter].name;
    shown.is_whole = stack.is_whole;
    for (const ScriptCall& call : stack.calls) {
      shown.calls.push_back(shown_call(scripts, call));
    }
  }
  return all;
}

ShownThread show_thread(History& history, const SnapClock& clock, size_t last,
                        std::span<const StreamCall> calls, std::span<const ScriptLoop> loops) {
  ShownThread shown;
  std::vector<size_t> steps;
  for (size_t back = 0; back < last; ++back) {
    const auto moment = history.at(back);
    if (!moment) break;
    shown.lines.push_back(line_of(history, *moment));
    shown.lines.back().began = clock.ns_of(history.began(moment->step));
    steps.push_back(moment->step);
  }
  std::reverse(shown.lines.begin(), shown.lines.end());
  std::reverse(steps.begin(), steps.end());
  add_transfers(history, calls, steps, shown.lines);
  for (const ScriptLoop& loop : loops) {
    if (ShownLine* const line = line_at_end_of(loop.step, steps, shown.lines))
      line->script_call = loop.begin;
  }
  const Stop& stop = history.stop();
  shown.is_recorded = stop.is_recorded;
  if (stop.is_recorded && last != 0) {
    shown.stopped = shown.lines.back();
  } else {
    shown.stopped = shown_line(history.place(stop.place));
    shown.stopped.address = stop.address;
    shown.stopped.marks = stop.is_uncertain ? kUncertain : uint8_t{0};
  }
  shown.records = history.walked().records;
  shown.violations = history.walked().violations;
  shown.uncertain = history.walked().uncertain;
  shown.gaps = history.walked().gaps;
  return shown;
}

// When the modules' files were written, by name.
std::map<std::string, int64_t> times_of(const Snap& snap) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::map<std::string, int64_t> times;
  for (const SnapModule& module : snap.modules) {
    struct stat status {};
    if (stat(file_in_bundle(snap, module.path).c_str(), &status) != 0) continue;
    times[std::string(file_of(module.path))] =
        status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec;
  }
  return times;
}

// What a script has run is what its file was when it was read: at some moment of the recording.
void add_script_text(const Snap& snap, SourceText& sources, Shown& shown) {
  const uint64_t known_from = snap.began.time_ns != 0 ? snap.began.time_ns : snap.reason.time_ns;
  std::set<std::string> newer;
  const auto add = [&](ShownScriptCall& call) {
    call.text = sources.line(call.file, call.line);
    const auto written = call.text ? sources.written_at(call.file) : std::nullopt;
    if (!written || static_cast<uint64_t>(*written) <= known_from) return;
    if (!newer.insert(call.file).second) return;
    shown.problems.push_back(
        fmt::format("{} was written after the recording began, so its lines may be others",
                    file_of(call.file)));
  };
  for (ShownThread& thread : shown.threads) {
    for (ShownScript& script : thread.scripts)
      std::for_each(script.calls.begin(), script.calls.end(), add);
  }
}

// A file that was written after the module may have other lines where the module's were.
void add_source_text(const Snap& snap, const std::vector<std::string>& folders, Shown& shown) {
  SourceText sources(folders);
  const auto times = times_of(snap);
  std::set<std::string> newer;
  const auto add = [&](ShownLine& line) {
    if (line.file.empty()) return;
    line.text = sources.line(line.file, line.line);
    const auto module = times.find(line.module);
    if (!line.text || module == times.end()) return;
    if (sources.written_at(line.file) <= module->second || !newer.insert(line.file).second) return;
    shown.problems.push_back(fmt::format("{} is newer than {}, so its lines may be others",
                                         file_of(line.file), line.module));
  };
  for (ShownThread& thread : shown.threads) {
    std::for_each(thread.lines.begin(), thread.lines.end(), add);
    add(thread.stopped);
  }
  add_script_text(snap, sources, shown);
}

}  // namespace

ShownLine shown_line(const Place& place, size_t level) {
  const Frame& frame = place.frames[level];
  return {.module = place.module,
          .function = frame.function,
          .file = frame.file,
          .line = frame.line,
          .is_inlined = frame.is_inlined};
}

ShownScriptCall shown_call(const Scripts& scripts, const ScriptCall& call) {
  const ScriptFunction& function = scripts.functions[call.function];
  return {.function = function.name,
          .file = function.file,
          .line = call.line,
          .is_loops_first = call.is_loops_first};
}

bool is_reason(const Snap& snap, const SnapThread& thread) {
  return thread.thread == snap.reason.thread &&
         (snap.reason.signal != 0 || snap.reason.trigger == SnapTrigger::Exit);
}

Expected<Shown> show(const Snap& snap, const ShowOptions& options) {
  SnapModules modules(snap, options.progress);
  Places places(modules);
  const SnapClock clock(snap);
  Shown shown;
  shown.problems = modules.problems();
  std::vector<std::vector<StreamCall>> calls(snap.threads.size());
  for (const StreamCall& one : stream_calls(modules, snap))
    calls[one.thread].push_back(one);
  for (size_t i = 0; i < snap.threads.size(); ++i) {
    const SnapThread& thread = snap.threads[i];
    if (options.thread != 0 && thread.thread != options.thread) continue;
    History history(modules, places, snap, thread);
    const auto loops = script_loops(modules, history.walked(), snap, thread);
    shown.threads.push_back(show_thread(history, clock, options.last, calls[i], loops));
    shown.threads.back().thread = thread.thread;
    shown.threads.back().scripts = scripts_of(snap.scripts, thread.thread);
    shown.threads.back().is_reason = is_reason(snap, thread);
    const auto call = static_cast<int64_t>(thread.registers.orig_rax);
    if (call >= 0 && !is_reason(snap, thread))
      shown.threads.back().system_call = static_cast<uint64_t>(call);
  }
  if (options.thread != 0 && shown.threads.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("the snap has no thread {}", options.thread));
  }
  add_source_text(snap, options.source_folders, shown);
  return shown;
}

}  // namespace clew::recorder
