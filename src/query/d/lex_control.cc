// SPDX-License-Identifier: Apache-2.0
// Control lines: a # that is the first thing on its line. #line and `# 12 "file"` (which cpp
// leaves) number what follows; #pragma D sets options; what only Solaris's stability system
// needs (binding) is accepted and has no effect.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "query/d/check_options.h"
#include "query/d/lexer.h"
#include "query/d/stability.h"
#include "query/d/switch_word.h"

namespace clew::query::d {
namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

// Blank-separated; quotes keep blanks and stay.
std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t from = line[0] == '"' ? std::min(line.find('"', 1), line.size()) : 0;
    const size_t end = std::min(line.find_first_of(kBlanks, from), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

bool is_number(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_decimal_digit);
}

std::string join_from(const std::vector<std::string>& words, size_t first) {
  std::string text;
  for (size_t i = first; i < words.size(); ++i)
    text += (text.empty() ? "" : " ") + words[i];
  return text;
}

// What stands behind the name of a pragma; empty when there is none of the name.
std::string_view pragma_form(std::string_view name) {
  if (name == "attributes") return "<attributes> <ident>";
  if (name == "binding") return "\"version\" <ident>";
  if (name == "depends_on") return "<class> <name>";
  return "";
}

bool is_provider_part(std::string_view word) {
  constexpr std::array<std::string_view, 5> kParts = {"provider", "module", "function", "name",
                                                      "args"};
  return std::find(kParts.begin(), kParts.end(), word) != kParts.end();
}

std::string unquoted(std::string_view word) {
  const bool is_quoted = word.size() >= 2 && word.front() == '"' && word.back() == '"';
  return is_quoted ? unescape(word.substr(1, word.size() - 2)) : std::string(word);
}

}  // namespace

bool Lexer::is_control_line(size_t at) const {
  if (text_[at] != '#') return false;
  // Only as far back as there are blanks: this is asked for each # of a text.
  const size_t before = text_.substr(0, at).find_last_not_of(kBlanks);
  return before == std::string_view::npos || text_[before] == '\n';
}

// The number is that of the line after this one.
void Lexer::set_line(std::string_view number) {
  uint32_t line = 0;
  std::from_chars(number.data(), number.data() + number.size(), line);
  line_ = line;
}

Compiled<void> Lexer::control_line() {
  const size_t begin = at_;
  const size_t end = std::min(text_.find('\n', begin), text_.size());
  const std::string_view line = text_.substr(begin + 1, end - begin - 1);
  const bool is_interpreter = line_ == 1 && line.starts_with("!");
  const std::vector<std::string> words = split(line);
  if (end == text_.size() && !is_interpreter) {
    return fail_at(begin, "D_SYNTAX", "end-of-file encountered before end of control line");
  }
  if (is_interpreter || words.empty() || words[0] == "ident") {
    at_ = end;
  } else if (is_number(words[0]) || (words[0] == "line" && words.size() > 1)) {
    const std::string& number = is_number(words[0]) ? words[0] : words[1];
    if (!is_number(number)) {
      return fail_at(begin, "D_PRAGMA_MALFORM", "malformed #line <line> [ [\"file\"] state ]");
    }
    at_ = std::min(end + 1, text_.size());
    set_line(number);
  } else if (words[0] == "pragma") {
    CLEW_TRY(pragma(words, begin));
    at_ = end;
  } else if (words[0] == "error") {
    return fail_at(begin, "D_PRAGERR", fmt::format("#error: {} ", join_from(words, 1)));
  } else {
    return fail_at(begin, "D_PRAGCTL_INVAL",
                   fmt::format("invalid control directive: #{}", words[0]));
  }
  return {};
}

// Pragmas that are not D's belong to some other reader of the text.
Compiled<void> Lexer::pragma(const std::vector<std::string>& words, size_t begin) {
  if (words.size() < 2) return {};
  const bool is_of_d = words[1] == "D";
  const std::string text = join_from(words, 1);
  if (is_of_d && std::count(text.begin(), text.end(), '"') % 2 != 0)
    return fail_at(begin, "D_STR_NL", "newline encountered in string literal");
  if (is_of_d) return pragma_d(words, begin);
  if (words.size() > 1 && words[1] == "error")
    return fail_at(begin, "D_PRAGERR", fmt::format("#error: {} ", join_from(words, 2)));
  return {};
}

Compiled<void> Lexer::pragma_d(const std::vector<std::string>& words, size_t begin) {
  if (words.size() < 3) return {};
  const std::string& name = words[2];
  if (name == "option") return pragma_option(words, begin);
  if (name == "error")
    return fail_at(begin, "D_PRAGERR", fmt::format("#error: {} ", join_from(words, 3)));
  if (name == "line" && words.size() > 3) return {};
  const auto form = pragma_form(name);
  if (form.empty())
    return fail_at(begin, "D_PRAGMA_INVAL", fmt::format("invalid D pragma: {}", name));
  if (words.size() < 5)
    return fail_at(begin, "D_PRAGMA_MALFORM", fmt::format("malformed #pragma {} {}", name, form));
  if (name == "binding" && !version_number(unquoted(words[3]))) {
    return fail_at(begin, "D_PRAGMA_INVAL", "invalid version string specified by #pragma binding");
  }
  static constexpr std::array<std::string_view, 4> kDependencies = {"library", "module", "provider",
                                                                    "class"};
  const bool is_dependency =
      std::find(kDependencies.begin(), kDependencies.end(), words[3]) != kDependencies.end();
  if (name == "depends_on" && !is_dependency) {
    return fail_at(begin, "D_PRAGMA_INVAL",
                   fmt::format("invalid class {} specified by #pragma depends_on", words[3]));
  }
  if (name == "depends_on") dependencies_.push_back({words[3], words[4], line_});
  if (name == "binding") attributes_.push_back({{}, words[4], name, line_});
  return name == "attributes" ? pragma_attributes(words, begin) : Compiled<void>{};
}

Compiled<void> Lexer::pragma_attributes(const std::vector<std::string>& words, size_t begin) {
  const auto stability = parse_stability(words[3]);
  if (!stability) {
    return fail_at(begin, "D_PRAGMA_INVAL", "invalid attributes specified by #pragma attributes");
  }
  if (words[4] != "provider") {
    attributes_.push_back({*stability, words[4], words[2], line_});
    return {};
  }
  const bool is_complete = words.size() == 7 && is_provider_part(words[6]);
  if (is_complete) {
    provider_pragmas_.push_back({*stability, words[5], words[6]});
    return {};
  }
  return fail_at(begin, "D_PRAGMA_MALFORM",
                 "malformed #pragma attributes <attributes> provider <name> "
                 "<provider|module|function|name|args>");
}

Compiled<void> Lexer::pragma_option(const std::vector<std::string>& words, size_t begin) {
  const std::string setting = join_from(words, 3);
  const size_t equals = setting.find('=');
  const std::string name = setting.substr(0, std::min(equals, setting.find_last_not_of(' ') + 1));
  const std::vector<std::string> name_words = split(name);
  if (name_words.size() > 1) {
    return fail_at(begin, "D_PRAGMA_MALFORM", "superfluous arguments specified for #pragma option");
  }
  if (name_words.empty())
    return fail_at(begin, "D_PRAGMA_MALFORM", "malformed #pragma option <option>=<val>");
  PragmaOption option{name_words[0], std::nullopt, line_};
  if (equals != std::string::npos) {
    const std::vector<std::string> values = split(setting.substr(equals + 1));
    if (values.size() > 1) {
      return fail_at(begin, "D_PRAGMA_MALFORM",
                     "superfluous arguments specified for #pragma option");
    }
    option.value = values.empty() ? "" : unquoted(values[0]);
  }
  const bool is_set = is_on(option.value.value_or(""));
  if (option.name == "defaultargs") default_arguments_ = is_set;
  if (option.name == "argref") allow_unused_arguments_ = is_set;
  if (option.name == "errtags") wants_tags_ = is_set;
  pragma_options_.push_back(std::move(option));
  return {};
}

}  // namespace clew::query::d
