// SPDX-License-Identifier: Apache-2.0
#include "live/stacks.h"

#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "live/child.h"
#include "live/thread_begins.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

// Where the kernel begins a program: the first instruction of the loader, within its page.
uint64_t begin_of_loader() {
  const std::string header = output_of_readelf("-h", "/lib64/ld-linux-x86-64.so.2");
  const std::string label = "Entry point address:";
  return std::stoull(header.substr(header.find(label) + label.size()), nullptr, 16) % 4096;
}

bool is_begin_without_a_name(const std::string& frame) {
  static const uint64_t loader = begin_of_loader();
  static const std::string in_loader = "ld-linux-x86-64.so.2`0x";
  if (frame.starts_with(in_loader)) {
    // Behind its `mov rdi, rsp; call _dl_start`, which are eight bytes.
    return std::stoull(frame.substr(in_loader.size()), nullptr, 16) % 4096 == loader + 8;
  }
  const size_t begin = frame.find('`') + 1;
  return begins_of_threads().contains(frame.substr(begin, frame.rfind('+') - begin));
}

}  // namespace

Frames Stack::functions(const std::string& module) const {
  Frames names;
  for (const std::string& frame : frames) {
    if (!frame.starts_with(module + "`")) continue;
    names.push_back(frame.substr(module.size() + 1, frame.find('+') - module.size() - 1));
  }
  return names;
}

bool Stack::is_whole() const {
  const auto is_of = [](const std::string& frame, const char* name) {
    return frame.find(std::string("`") + name + "+") != std::string::npos;
  };
  const std::string& last = frames.back();
  const std::string& caller = frames.size() < 2 ? last : frames[frames.size() - 2];
  return is_of(last, "_start") || is_of(last, "clone3") || is_of(last, "clone") ||
         is_of(caller, "__libc_start_main") || is_of(caller, "_dl_start") ||
         is_begin_without_a_name(last);
}

std::vector<Stack> parse_stacks(const std::string& output) {
  std::vector<Stack> stacks;
  std::istringstream lines(output);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) {
      is_inside = false;
      continue;
    }
    const std::string text = line.substr(begin);
    const bool is_frame = text.find('`') != std::string::npos || text.starts_with("0x");
    if (is_frame && !is_inside) stacks.emplace_back();
    if (is_frame) stacks.back().frames.push_back(text);
    if (!is_frame && is_inside) stacks.back().count = std::stoull(text);
    is_inside = is_frame;
  }
  return stacks;
}

std::vector<Stack> stacks_of(const std::string& script, const std::vector<std::string>& more) {
  ChildOptions options{.arguments = {CLEW_COMMAND, "dtrace", "-q", "-n", script}};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  Child command(options);
  const Child::End end = command.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  return parse_stacks(end.output);
}

std::string frame_of(const nlohmann::json& frame) {
  const std::string symbol = frame.value("symbol", "");
  const auto offset = frame.value("offset", uint64_t{0});
  const auto address = frame.value("address", uint64_t{0});
  std::string text = frame.value("module", "");
  text += symbol.empty() ? fmt::format("`{:#x}", address) : "`" + symbol;
  return symbol.empty() || offset == 0 ? text : text + fmt::format("+{:#x}", offset);
}

std::vector<Stack> queried_stacks(const std::string& query, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back(query);
  const Report report = run_clew(arguments);
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0U) << report.summary;
  std::vector<Stack> stacks;
  for (const nlohmann::json& row : report.rows) {
    Stack& stack = stacks.emplace_back();
    stack.count = row.value("count", uint64_t{1});
    for (const nlohmann::json& frame : row.at("stack"))
      stack.frames.push_back(frame_of(frame));
  }
  return stacks;
}

}  // namespace clew::live
