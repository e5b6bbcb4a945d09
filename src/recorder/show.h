// SPDX-License-Identifier: Apache-2.0
// Snap -> what each thread ran, as source lines: a line for each stretch of code of one line of one
// function, newest last. Where there is no debug information, a line for each function that was
// entered or returned to, with the offset. What these come from is in history.h and snap_modules.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "recorder/places.h"
#include "recorder/snap.h"
#include "recorder/snap_clock.h"
#include "recorder/streams.h"

namespace clew::recorder {

// A call that moves bytes between processes, at the end of a line.
struct ShownTransfer {
  abi::Transfer transfer = abi::Transfer::None;
  uint32_t descriptor = 0;
  std::optional<int32_t> result{};  // Nothing: it had not come back, or that is not known.
  std::optional<size_t> stream{};   // In Snap::streams.
  std::optional<StreamBytes> bytes{};
  bool is_sure = false;  // Of its bytes: see StreamCall.
};

// A call of a script.
struct ShownScriptCall {
  std::string function;
  std::string file;
  uint32_t line = 0;  // 0: not known.
  bool is_loops_first = false;
  std::optional<std::string> text = std::nullopt;
};

// A thread's script at the moment of the snap.
struct ShownScript {
  std::string interpreter;
  std::vector<ShownScriptCall> calls;  // The innermost first.
  bool is_whole = false;               // Else outer calls are missing.
};

struct ShownLine {
  std::string module;    // Without folders.
  std::string function;  // Without a symbol: module+0x12.
  std::string file;      // Empty where it is not known.
  uint32_t line = 0;
  uint64_t address = 0;  // Of the first instruction, in the module's file.
  int32_t depth = 0;     // Calls in progress, relative to the others of the thread.
  bool is_inlined = false;
  // In front of it something may be missing: see marks in walk.h.
  uint8_t marks = 0;
  SpanNs began{};                          // When it began to run, as far as that is known.
  std::vector<ShownTransfer> transfers{};  // Oldest first.
  // At its end an interpreter runs this call of the thread's only script, and has not come back.
  std::optional<size_t> script_call{};
  std::optional<std::string> text = std::nullopt;  // Of the source, where that is there.
};

struct ShownThread {
  int32_t thread = 0;
  bool is_reason = false;  // It got the signal, or ends the process.
  std::vector<ShownLine> lines;
  // Where it stopped, by its program counter; the last of the lines, if `is_recorded`. Else it is
  // marked as uncertain when it is in a copy, and the records that lead there are lost. Without a
  // module: no code that is known.
  ShownLine stopped;
  bool is_recorded = false;
  std::optional<uint64_t> system_call = std::nullopt;  // In which it waits.
  std::vector<ShownScript> scripts{};
  uint64_t records = 0;
  uint64_t violations = 0;
  uint64_t uncertain = 0;
  uint64_t gaps = 0;
};

struct Shown {
  std::vector<ShownThread> threads;   // The reason's first.
  std::vector<std::string> problems;  // Modules that could not be used, and why; doubtful sources.
};

struct ShowOptions {
  size_t last = 50;    // Lines of each thread.
  int32_t thread = 0;  // This one alone; 0: all.
  std::vector<std::string> source_folders = {};
  std::function<void(std::string_view)> progress = {};
};

// A frame of a place, without address, depth and marks.
ShownLine shown_line(const Place& place, size_t level = 0);
// Without text.
ShownScriptCall shown_call(const Scripts& scripts, const ScriptCall& call);
// The thread got the signal, or ends the process.
bool is_reason(const Snap& snap, const SnapThread& thread);

Expected<Shown> show(const Snap& snap, const ShowOptions& options);

}  // namespace clew::recorder
