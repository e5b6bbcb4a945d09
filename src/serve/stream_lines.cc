// SPDX-License-Identifier: Apache-2.0
#include "serve/stream_lines.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace clew::serve {
namespace {

constexpr std::array<std::pair<std::string_view, LineWord>, 4> kWords = {{
    {"session", LineWord::Session},
    {"columns", LineWord::Columns},
    {"losses", LineWord::Losses},
    {"end", LineWord::End},
}};

// The second member's name, behind {"seq":N,".
LineWord word_of(std::string_view line) {
  constexpr std::string_view kBegin = "{\"seq\":";
  if (!line.starts_with(kBegin)) return LineWord::Other;
  line.remove_prefix(std::min(line.find_first_not_of("0123456789", kBegin.size()), line.size()));
  if (!line.starts_with(",\"")) return LineWord::Other;
  line = line.substr(2, line.find('"', 2) - 2);
  for (const auto& [name, word] : kWords)
    if (line == name) return word;
  return LineWord::Other;
}

StreamLine line_of(std::string_view text) {
  const bool is_whole = text.starts_with('{') && nlohmann::json::accept(text);
  return is_whole ? StreamLine{word_of(text), text} : StreamLine{LineWord::Broken};
}

}  // namespace

void StreamLines::add(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return add_part(bytes);
    if (begun_.empty() && !is_too_long_) {
      take(line_of(bytes.substr(0, end)));
    } else {
      add_part(bytes.substr(0, end));
      finish(take);
    }
    bytes.remove_prefix(end + 1);
  }
}

void StreamLines::finish(const Take& take) {
  const bool is_too_long = std::exchange(is_too_long_, false);
  if (is_too_long) take({LineWord::Broken});
  if (!is_too_long && !begun_.empty()) take(line_of(begun_));
  begun_.clear();
  begun_.shrink_to_fit();
}

void StreamLines::add_part(std::string_view part) {
  is_too_long_ |= begun_.size() + part.size() > kLineBytesMax;
  if (is_too_long_) {
    begun_.clear();
  } else {
    begun_ += part;
  }
}

}  // namespace clew::serve
