// SPDX-License-Identifier: Apache-2.0
#include "cmd/show_across.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/console.h"
#include "cmd/shown_lines.h"
#include "recorder/across.h"
#include "recorder/snap.h"

namespace clew::cmd {

namespace {

// Of each thread; a lobe has some three lines a record. Of all of them a few hundred MB.
constexpr size_t kLinesMax = size_t{3} * abi::kLobeWords;
constexpr size_t kAllLinesMax = 1'000'000;

Expected<recorder::ShownSnap> read(const std::string& path, recorder::ShowOptions options,
                                   Console& console) {
  recorder::ShownSnap read{.snap = CLEW_TRY(recorder::read_snap(path)), .shown = {}};
  if (!read.snap.files.empty()) options.source_folders.push_back(read.snap.files);
  options.progress = [&console](std::string_view text) { console.progress(text); };
  options.last = std::min(kLinesMax, kAllLinesMax / (read.snap.threads.size() + 1) + 1);
  read.shown = CLEW_TRY(recorder::show(read.snap, options));
  for (const std::string& problem : read.shown.problems)
    console.warning(problem);
  return read;
}

void print_leg(const recorder::ShownSnap& snap, const recorder::Leg& leg) {
  const recorder::ShownThread& thread = snap.shown.threads[leg.thread];
  fmt::print("\n{} (process {}), thread {}{}\n", fmt::join(snap.snap.command, " "), snap.snap.pid,
             thread.thread, leg.is_sure ? "" : " [sends what follows, if no call is missing]");
  const int32_t least = least_depth(thread);
  std::vector<TextLine> text;
  for (size_t i = leg.begin; i < leg.end; ++i)
    text.push_back(text_of_line(snap.snap, thread, i, least));
  print_lines(text);
}

nlohmann::ordered_json json_of(const recorder::ShownSnap& snap, const std::string& path,
                               const recorder::Leg& leg) {
  const recorder::ShownThread& thread = snap.shown.threads[leg.thread];
  nlohmann::ordered_json one = {{"snap", path},
                                {"command", snap.snap.command},
                                {"process", snap.snap.pid},
                                {"thread", thread.thread},
                                {"sure", leg.is_sure}};
  one["lines"] = nlohmann::ordered_json::array();
  for (size_t i = leg.begin; i < leg.end; ++i)
    one["lines"].push_back(json_of_line(snap.snap, thread.lines[i]));
  return one;
}

}  // namespace

Expected<void> show_across(const std::vector<std::string>& paths,
                           const recorder::ShowOptions& options, bool as_json) {
  Console console(false);
  recorder::ShowOptions whole = options;
  std::vector<recorder::ShownSnap> snaps;
  for (const std::string& path : paths) {
    snaps.push_back(CLEW_TRY(read(path, whole, console)));
    whole.thread = 0;  // Who has sent something may be any.
  }
  if (snaps.front().shown.threads.empty())
    return fail(ErrorCode::NotFound, fmt::format("{} has no threads", paths.front()));
  const std::vector<recorder::Leg> legs = recorder::across(snaps, 0, options.last);
  if (!as_json) {
    for (const recorder::Leg& leg : legs)
      print_leg(snaps[leg.snap], leg);
    return {};
  }
  nlohmann::ordered_json all;
  all["legs"] = nlohmann::ordered_json::array();
  for (const recorder::Leg& leg : legs)
    all["legs"].push_back(json_of(snaps[leg.snap], paths[leg.snap], leg));
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return {};
}

}  // namespace clew::cmd
