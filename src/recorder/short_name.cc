// SPDX-License-Identifier: Apache-2.0
#include "recorder/short_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace clew::recorder {
namespace {

constexpr std::string_view kLeftOut = "...";
constexpr size_t kDepthMax = 8;  // What is further in is left out first, all at once.

// Template arguments: where their < and > are, and how many others they are in.
struct Arguments {
  size_t open = 0;
  size_t close = 0;
  size_t depth = 0;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Behind the name of an operator that has such signs, if one begins there; else `at`.
size_t behind_operator(std::string_view name, size_t at) {
  constexpr std::string_view kOperator = "operator";
  constexpr std::array<std::string_view, 11> kSigns = {"<=>", "<<=", ">>=", "->*", "<<", ">>",
                                                       "<=",  ">=",  "->",  "<",   ">"};
  if (!name.substr(at).starts_with(kOperator) || (at != 0 && is_word(name[at - 1]))) return at;
  const std::string_view rest = name.substr(at + kOperator.size());
  for (const std::string_view sign : kSigns) {
    if (rest.starts_with(sign)) return at + kOperator.size() + sign.size();
  }
  return at;
}

// A < or > that has no partner between the same brackets compares, or is part of an arrow.
class Brackets {
 public:
  void meet(char c, size_t at, bool is_arrow) {
    if (c == '<' || c == '(' || c == '{') open(c, at);
    if (c == ')' && round_ != 0) close_to('(');
    if (c == '}' && curly_ != 0) close_to('{');
    if (c != '>' || is_arrow || open_.empty() || open_.back().sign != '<') return;
    found_.push_back({open_.back().at, at, 0});
    open_.pop_back();
  }

  // In the order of their <.
  std::vector<Arguments> found() {
    std::sort(found_.begin(), found_.end(),
              [](const Arguments& a, const Arguments& b) { return a.open < b.open; });
    std::vector<size_t> ends;
    for (Arguments& one : found_) {
      while (!ends.empty() && ends.back() < one.open)
        ends.pop_back();
      one.depth = ends.size();
      ends.push_back(one.close);
    }
    return found_;
  }

 private:
  struct Open {
    char sign;
    size_t at;
  };

  void open(char sign, size_t at) {
    open_.push_back({sign, at});
    round_ += sign == '(' ? 1U : 0U;
    curly_ += sign == '{' ? 1U : 0U;
  }

  // There is one.
  void close_to(char sign) {
    for (char closed = '<'; closed != sign; open_.pop_back()) {
      closed = open_.back().sign;
      round_ -= closed == '(' ? 1U : 0U;
      curly_ -= closed == '{' ? 1U : 0U;
    }
  }

  std::vector<Open> open_;
  size_t round_ = 0;  // Of these.
  size_t curly_ = 0;
  std::vector<Arguments> found_;
};

std::vector<Arguments> arguments_of(std::string_view name) {
  Brackets brackets;
  for (size_t at = 0; at < name.size(); ++at) {
    at = behind_operator(name, at);
    if (at < name.size()) brackets.meet(name[at], at, at != 0 && name[at - 1] == '-');
  }
  return brackets.found();
}

std::string without(std::string_view name, const std::vector<Arguments>& all, size_t depth) {
  std::string text;
  size_t copied = 0;
  for (const Arguments& one : all) {
    const bool is_worth_it = one.close - one.open - 1 > kLeftOut.size();
    if (one.depth != depth || !is_worth_it) continue;
    text += name.substr(copied, one.open + 1 - copied);
    text += kLeftOut;
    copied = one.close;
  }
  text += name.substr(copied);
  return text;
}

}  // namespace

std::string short_name(std::string_view name, size_t width) {
  std::string text(name);
  if (name.size() <= width) return text;
  const std::vector<Arguments> all = arguments_of(name);
  size_t deepest = 0;
  for (const Arguments& one : all)
    deepest = std::max(deepest, one.depth);
  for (size_t depth = std::min(deepest, kDepthMax) + 1; depth-- > 0 && text.size() > width;)
    text = without(name, all, depth);
  return text;
}

bool is_short_name(std::string_view name) {
  return name.find("<...>") != std::string_view::npos;
}

}  // namespace clew::recorder
