// SPDX-License-Identifier: Apache-2.0
// Macro variables: $pid and its kin are numbers, $1 is what stands on the command line (a number,
// a name or a quoted string), $$1 is that as a string.
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <unistd.h>

#include "query/d/lexer.h"

namespace clew::query::d {
namespace {

struct MacroVariable {
  std::string_view name;
  std::string_view type_name;
  uint64_t (*value)(const CompileOptions& options);
};

uint64_t none(const CompileOptions&) {
  return 0;
}

// Of the process that compiles. Linux has no projects and tasks.
constexpr std::array<MacroVariable, 11> kMacroVariables = {{
    {"egid", "gid_t", [](const CompileOptions&) -> uint64_t { return getegid(); }},
    {"euid", "uid_t", [](const CompileOptions&) -> uint64_t { return geteuid(); }},
    {"gid", "gid_t", [](const CompileOptions&) -> uint64_t { return getgid(); }},
    {"pgid", "pid_t", [](const CompileOptions&) { return static_cast<uint64_t>(getpgid(0)); }},
    {"pid", "pid_t", [](const CompileOptions&) { return static_cast<uint64_t>(getpid()); }},
    {"ppid", "pid_t", [](const CompileOptions&) { return static_cast<uint64_t>(getppid()); }},
    {"projid", "projid_t", none},
    {"sid", "pid_t", [](const CompileOptions&) { return static_cast<uint64_t>(getsid(0)); }},
    {"target", "pid_t", [](const CompileOptions& options) { return options.target_pid; }},
    {"taskid", "taskid_t", none},
    {"uid", "uid_t", [](const CompileOptions&) -> uint64_t { return getuid(); }},
}};

const MacroVariable* find_macro(std::string_view name) {
  for (const MacroVariable& variable : kMacroVariables)
    if (variable.name == name) return &variable;
  return nullptr;
}

// "$$name" or "$12": the dollars, then digits or an identifier.
struct MacroName {
  bool as_string = false;
  bool is_argument = false;
  std::string_view name;
  size_t length = 0;
};

MacroName read_macro_name(std::string_view text) {
  MacroName macro;
  macro.as_string = text.starts_with("$$");
  const size_t begin = macro.as_string ? 2 : 1;
  macro.is_argument = begin < text.size() && is_decimal_digit(text[begin]);
  size_t end = begin;
  while (end < text.size() &&
         (macro.is_argument ? is_decimal_digit(text[end]) : is_identifier_part(text[end])))
    ++end;
  macro.name = text.substr(begin, end - begin);
  macro.length = end;
  return macro;
}

uint64_t argument_number(std::string_view digits) {
  uint64_t number = UINT64_MAX;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? number : UINT64_MAX;
}

// Numbers of arguments are of type int.
constexpr uint64_t kArgumentMax = std::numeric_limits<int>::max();

std::string undefined(const MacroName& macro) {
  return macro.is_argument ? fmt::format("macro argument ${} is not defined", macro.name)
                           : fmt::format("macro variable ${} is not defined", macro.name);
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (!is_identifier_start(text[0]) && text[0] != '`')) return false;
  for (const char c : text)
    if (!is_identifier_part(c) && c != '`') return false;
  return text.back() != '`';
}

}  // namespace

bool Lexer::mark_used(uint64_t argument) {
  if (argument >= used_.size()) return false;
  used_[argument] = true;
  return true;
}

Compiled<void> Lexer::check_arguments() const {
  for (size_t i = 1; i < used_.size(); ++i) {
    if (used_[i] || allow_unused_arguments_) continue;
    return compile_error(
        "D_MACRO_UNUSED",
        fmt::format("extraneous argument '{}' (${} is not referenced)", options_.arguments[i], i),
        0);
  }
  return {};
}

Compiled<Token> Lexer::macro() {
  const size_t begin = at_;
  const MacroName macro = read_macro_name(rest());
  if (macro.name.empty())
    return fail_at(begin, "D_SYNTAX", fmt::format("syntax error near \"{}\"", '$'));
  at_ += macro.length;
  if (macro.is_argument)
    return macro_argument(token(TokenKind::Integer, begin), macro.name, macro.as_string);
  const MacroVariable* variable = find_macro(macro.name);
  if (variable == nullptr) return fail_at(begin, "D_MACRO_UNDEF", undefined(macro));
  Token result = token(macro.as_string ? TokenKind::String : TokenKind::Integer, begin);
  result.integer = variable->value(options_);
  result.type_name = variable->type_name;
  result.value = fmt::format("{}", result.integer);
  return result;
}

Compiled<Token> Lexer::macro_argument(Token token, std::string_view digits, bool as_string) {
  const uint64_t number = argument_number(digits);
  if (number > kArgumentMax || !mark_used(number)) {
    if (!default_arguments_) {
      return compile_error("D_MACRO_UNDEF",
                           fmt::format("macro argument ${} is not defined", digits), token.line,
                           token.span);
    }
    token.kind = as_string ? TokenKind::String : TokenKind::Integer;
    token.type_name = "int";
    return token;
  }
  const std::string& argument = options_.arguments[number];
  const bool is_script_name = number == 0;
  if (!as_string && !is_script_name) return argument_token(std::move(token), argument);
  token.kind = TokenKind::String;
  token.value = argument;
  return token;
}

Compiled<Token> Lexer::argument_token(Token token, std::string_view argument) {
  const bool is_quoted = argument.size() >= 2 && argument.front() == '"' && argument.back() == '"';
  if (is_quoted) {
    token.kind = TokenKind::String;
    token.value = unescape(argument.substr(1, argument.size() - 2));
    return token;
  }
  if (is_identifier(argument)) {
    const size_t quote = argument.rfind('`');
    token.kind = TokenKind::Identifier;
    token.text = std::string(argument);
    token.name = token.text;
    if (quote == std::string_view::npos) return token;
    token.module = quote == 0 ? " " : token.text.substr(0, quote);
    token.name = token.text.substr(quote + 1);
    return token;
  }
  const bool is_signed = argument.starts_with("-") || argument.starts_with("+");
  const std::string_view digits = argument.substr(is_signed ? 1 : 0);
  if (integer_length(digits) != digits.size()) {
    return compile_error("D_SYNTAX", fmt::format("syntax error near \"{}\"", argument), token.line,
                         token.span);
  }
  Compiled<IntegerLiteral> parsed = parse_integer(digits, token.line, token.span);
  if (!parsed && parsed.error().tag == "D_INT_OFLOW") {
    return compile_error("D_MACRO_OFLOW",
                         fmt::format("macro argument {} constant {} results in integer overflow",
                                     token.text, digits),
                         token.line, token.span);
  }
  const IntegerLiteral literal = CLEW_TRY(std::move(parsed));
  token.integer = argument.starts_with("-") ? 0 - literal.value : literal.value;
  token.type_name = literal.type_name;
  return token;
}

// --- in probe descriptions -----------------------------------------------------------------------

Compiled<std::string> Lexer::expand_one(std::string_view& text, Span span) {
  const MacroName macro = read_macro_name(text);
  text.remove_prefix(macro.length);
  if (macro.name.empty()) return std::string("$");
  if (!macro.is_argument) {
    const MacroVariable* variable = find_macro(macro.name);
    if (variable == nullptr) return compile_error("D_MACRO_UNDEF", undefined(macro), line_, span);
    return fmt::format("{}", variable->value(options_));
  }
  const uint64_t number = argument_number(macro.name);
  if (mark_used(number)) return options_.arguments[number];
  if (!default_arguments_) return compile_error("D_MACRO_UNDEF", undefined(macro), line_, span);
  return std::string(macro.as_string ? "" : "0");
}

Compiled<std::string> Lexer::expand(std::string_view description, Span span) {
  std::string result;
  while (!description.empty()) {
    const size_t dollar = description.find('$');
    result += description.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    description.remove_prefix(dollar);
    result += CLEW_TRY(expand_one(description, span));
  }
  return result;
}

}  // namespace clew::query::d
