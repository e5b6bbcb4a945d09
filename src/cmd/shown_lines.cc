// SPDX-License-Identifier: Apache-2.0
#include "cmd/shown_lines.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/shown_text.h"
#include "recorder/short_name.h"
#include "recorder/transfers.h"
#include "recorder/walk.h"

namespace clew::cmd {

namespace {

// " (sends 12 bytes to 127.0.0.1:6379)"; descriptors where the other end is not known.
std::string text_of(const recorder::Snap& snap, const recorder::ShownTransfer& transfer) {
  const bool sends = recorder::is_sending(transfer.transfer);
  const bool says_how_many =
      transfer.transfer == abi::Transfer::Sends || transfer.transfer == abi::Transfer::Receives;
  const bool peeks = transfer.transfer == abi::Transfer::Peeks;
  std::string text = sends ? " (sends " : peeks ? " (peeks at " : " (receives ";
  if (!transfer.result || !(says_how_many || peeks)) {
    text.pop_back();
  } else if (*transfer.result < -1) {  // More than a note can say.
    text += "many bytes";
  } else if (*transfer.result < 0) {
    text += "nothing";
  } else {
    text += fmt::format("{} byte{}", *transfer.result, *transfer.result == 1 ? "" : "s");
  }
  const std::string other = transfer.stream ? snap.streams[*transfer.stream].peer
                                            : fmt::format("descriptor {}", transfer.descriptor);
  return text + fmt::format(" {} {})", sends ? "to" : "from", other);
}

nlohmann::ordered_json names_of(uint8_t marks) {
  auto names = nlohmann::ordered_json::array();
  if ((marks & recorder::kGap) != 0) names.push_back("gap");
  if ((marks & recorder::kViolation) != 0) names.push_back("violation");
  if ((marks & recorder::kUncertain) != 0) names.push_back("uncertain");
  if ((marks & recorder::kUnwound) != 0) names.push_back("unwound");
  if ((marks & recorder::kHandler) != 0) names.push_back("handler");
  return names;
}

nlohmann::ordered_json number_or_null(std::optional<int64_t> number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of(const recorder::Snap& snap,
                               const recorder::ShownTransfer& transfer) {
  nlohmann::ordered_json one = {
      {"direction", recorder::is_sending(transfer.transfer) ? "send" : "receive"},
      {"descriptor", transfer.descriptor}};
  one["result"] = nullptr;
  if (transfer.result) one["result"] = *transfer.result;
  one["peer"] = nullptr;
  if (transfer.stream) one["peer"] = snap.streams[*transfer.stream].peer;
  one["begin"] = nullptr;
  one["end"] = nullptr;
  if (transfer.bytes) {
    one["begin"] = transfer.bytes->begin;
    one["end"] = transfer.bytes->end;
  }
  return one;
}

}  // namespace

int32_t least_depth(const recorder::ShownThread& thread) {
  int32_t least = INT32_MAX;
  for (const recorder::ShownLine& line : thread.lines)
    least = std::min(least, line.depth);
  return least;
}

TextLine text_of_line(const recorder::Snap& snap, const recorder::ShownThread& thread,
                      size_t number, int32_t least) {
  const recorder::ShownLine& line = thread.lines[number];
  const bool is_last = number + 1 == thread.lines.size() && thread.is_recorded;
  // A loop of one line is one line: the last two of what it moves, as the others are in the JSON.
  constexpr size_t kTransfersMax = 2;
  const size_t count = line.transfers.size();
  const size_t left_out = count - std::min(count, kTransfersMax);
  std::string transfers = left_out == 0 ? "" : fmt::format(" ({} calls before)", left_out);
  for (size_t i = left_out; i < count; ++i)
    transfers += text_of(snap, line.transfers[i]);
  std::string script;
  if (line.script_call) {
    const recorder::ShownScriptCall& call = thread.scripts.front().calls[*line.script_call];
    script = fmt::format(" (runs {} at {})", call.function, place_text(call));
  }
  const auto indent = static_cast<int>(std::min(line.depth - least, 30));
  return {
      fmt::format("{} {:<28} {:{}}{}{}{}{}{}", is_last ? "=>" : "  ", place_text(line), "",
                  indent * 2, recorder::short_name(line.function),
                  line.is_inlined ? " (inlined)" : "", transfers, script, marks_text(line.marks)),
      line.text};
}

std::vector<TextLine> text_of_script(const recorder::ShownScript& script, size_t calls_max) {
  std::vector<TextLine> text = {
      {fmt::format("   {}, the innermost call first:", script.interpreter), {}}};
  const size_t count = std::min(script.calls.size(), calls_max);
  for (size_t i = 0; i < count; ++i) {
    const recorder::ShownScriptCall& call = script.calls[i];
    text.push_back(
        {fmt::format("   #{:<3} {:<23} {}", i, place_text(call), call.function), call.text});
  }
  const size_t left_out = script.calls.size() - count;
  if (left_out != 0) text.push_back({fmt::format("   and {} more", left_out), {}});
  if (!script.is_whole) text.push_back({"   callers unknown", {}});
  return text;
}

std::string text_of_problem(const recorder::Interpreter& interpreter) {
  if (interpreter.problem.empty()) return {};
  return fmt::format("calls of {} are not known: {}", interpreter.name, interpreter.problem);
}

void print_lines(const std::vector<TextLine>& lines) {
  constexpr size_t kColumnMax = 72;
  size_t column = 0;
  for (const TextLine& line : lines) {
    if (line.source) column = std::max(column, std::min(line.left.size(), kColumnMax));
  }
  for (const TextLine& line : lines) {
    if (line.source && !line.source->empty()) {
      fmt::print("{:<{}}  {}\n", line.left, column, *line.source);
    } else {
      fmt::print("{}\n", line.left);
    }
  }
}

nlohmann::ordered_json json_of_call(const recorder::ShownScriptCall& call) {
  nlohmann::ordered_json one = {
      {"function", call.function}, {"file", call.file}, {"line", nullptr}};
  if (call.line != 0) one["line"] = call.line;
  one["native"] = call.is_loops_first;
  one["text"] = nullptr;
  if (call.text) one["text"] = *call.text;
  return one;
}

nlohmann::ordered_json json_of_line(const recorder::Snap& snap, const recorder::ShownLine& line) {
  nlohmann::ordered_json one = {{"module", line.module},      {"function", line.function},
                                {"file", line.file},          {"line", line.line},
                                {"address", line.address},    {"depth", line.depth},
                                {"inlined", line.is_inlined}, {"marks", names_of(line.marks)}};
  one["after_ns"] = number_or_null(line.began.after);
  one["before_ns"] = number_or_null(line.began.before);
  one["transfers"] = nlohmann::ordered_json::array();
  for (const recorder::ShownTransfer& transfer : line.transfers)
    one["transfers"].push_back(json_of(snap, transfer));
  one["script_call"] = nullptr;
  if (line.script_call) one["script_call"] = *line.script_call;
  one["text"] = nullptr;
  if (line.text) one["text"] = *line.text;
  return one;
}

}  // namespace clew::cmd
