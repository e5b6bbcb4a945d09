// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "query/d/check_statement.h"
#include "query/d/stability.h"

namespace clew::query::d {
namespace {

enum class Syntax : uint8_t {
  Flag,
  Number,
  Size,
  Rate,
  Text,
  TextOrNone,
  BufferPolicy,
  Resize,
  Assignment,
  VariableName,
  EvaluationTime,
  Lateness,
  LinkMode,
  LinkType,
  Conformance,
  Version,
  Attributes,
};

struct OptionName {
  std::string_view name;
  Syntax syntax;
};

constexpr std::array<OptionName, 99> kOptions = {{
    // What the compiler obeys.
    {"aggpercpu", Syntax::Flag},
    {"amin", Syntax::Attributes},
    {"argref", Syntax::Flag},
    {"core", Syntax::Flag},
    {"cpp", Syntax::Flag},
    {"cppargs", Syntax::Text},
    {"cpphdrs", Syntax::Flag},
    {"cpppath", Syntax::Text},
    {"ctfpath", Syntax::Text},
    {"ctypes", Syntax::Text},
    {"debug", Syntax::TextOrNone},
    {"debugassert", Syntax::TextOrNone},
    {"defaultargs", Syntax::Flag},
    {"define", Syntax::Text},
    {"disasm", Syntax::TextOrNone},
    {"droptags", Syntax::Flag},
    {"dtypes", Syntax::Text},
    {"empty", Syntax::Flag},
    {"errtags", Syntax::Flag},
    {"evaltime", Syntax::EvaluationTime},
    {"incdir", Syntax::Text},
    {"iregs", Syntax::Number},
    {"kdefs", Syntax::Flag},
    {"knodefs", Syntax::Flag},
    {"late", Syntax::Lateness},
    {"lazyload", Syntax::Flag},
    {"ldpath", Syntax::Text},
    {"libdir", Syntax::Text},
    {"linkmode", Syntax::LinkMode},
    {"linknommap", Syntax::Flag},
    {"linkpath", Syntax::Text},
    {"linktype", Syntax::LinkType},
    {"lockmem", Syntax::Text},
    {"maxframes", Syntax::Number},
    {"modpath", Syntax::Text},
    {"nolibs", Syntax::Flag},
    {"objcopypath", Syntax::Text},
    {"pgmax", Syntax::Number},
    {"preallocate", Syntax::Size},
    {"procfspath", Syntax::Text},
    {"pspec", Syntax::Flag},
    {"setenv", Syntax::Assignment},
    {"stdc", Syntax::Conformance},
    {"strip", Syntax::Flag},
    {"syslibdir", Syntax::Text},
    {"tree", Syntax::Number},
    {"tregs", Syntax::Number},
    {"udefs", Syntax::Flag},
    {"undef", Syntax::Text},
    {"unodefs", Syntax::Flag},
    {"unsetenv", Syntax::VariableName},
    {"useruid", Syntax::Number},
    {"useruprobes", Syntax::Flag},
    {"verbose", Syntax::Flag},
    {"version", Syntax::Version},
    {"zdefs", Syntax::Flag},
    // What tracing obeys.
    {"aggrate", Syntax::Rate},
    {"aggsize", Syntax::Size},
    {"bpflog", Syntax::TextOrNone},
    {"bpflogsize", Syntax::Size},
    {"btfpath", Syntax::Text},
    {"bufpolicy", Syntax::BufferPolicy},
    {"bufresize", Syntax::Resize},
    {"bufsize", Syntax::Size},
    {"cleanrate", Syntax::Rate},
    {"cpu", Syntax::Number},
    {"destructive", Syntax::Flag},
    {"dynvarsize", Syntax::Size},
    {"grabanon", Syntax::Flag},
    {"jstackframes", Syntax::Number},
    {"jstackstrsize", Syntax::Size},
    {"noresolve", Syntax::Flag},
    {"nspec", Syntax::Number},
    {"pcapsize", Syntax::Size},
    {"scratchsize", Syntax::Size},
    {"specsize", Syntax::Size},
    {"stackframes", Syntax::Number},
    {"statusrate", Syntax::Rate},
    {"strsize", Syntax::Size},
    {"ustackframes", Syntax::Number},
    // What output obeys.
    {"agghist", Syntax::Flag},
    {"aggpack", Syntax::Flag},
    {"aggsortkey", Syntax::Flag},
    {"aggsortkeypos", Syntax::Number},
    {"aggsortpos", Syntax::Number},
    {"aggsortrev", Syntax::Flag},
    {"aggzoom", Syntax::Flag},
    {"flowindent", Syntax::Flag},
    {"format", Syntax::Text},
    {"json", Syntax::Flag},
    {"oformat", Syntax::Text},
    {"quiet", Syntax::Flag},
    {"printsize", Syntax::Size},
    {"quietresize", Syntax::Flag},
    {"rawbytes", Syntax::Flag},
    {"stackindent", Syntax::Number},
    {"switchrate", Syntax::Rate},
    {"temporal", Syntax::Flag},
    {"ustackindent", Syntax::Number},
}};

std::optional<uint64_t> leading_number(std::string_view& text) {
  uint64_t value = 0;
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const bool is_octal = !is_hex && text.size() > 1 && text[0] == '0' && text[1] >= '0';
  if (is_hex) text.remove_prefix(2);
  const int base = is_hex ? 16 : is_octal ? 8 : 10;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (end.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end.ptr - text.data()));
  return value;
}

bool is_any_number(std::string_view value) {
  return leading_number(value) && value.empty();
}

bool is_any_of(std::string_view value, std::initializer_list<std::string_view> choices) {
  return std::find(choices.begin(), choices.end(), value) != choices.end();
}

// Programs for older versions of the language are compiled as they are.
Expected<void> check_version(std::string_view value) {
  constexpr uint32_t kNewest = 2'000'000;  // 2.0, as -V says.
  const auto number = version_number(value);
  if (!number) {
    return fail(ErrorCode::InvalidQuery, "Version is not properly formatted or is too large");
  }
  if (*number <= kNewest) return {};
  return fail(ErrorCode::InvalidQuery, "Requested version is not supported by compiler");
}

// Where libraries and the preprocessor's files are is decided before a program is read.
bool is_of_command_line(std::string_view name) {
  return is_any_of(name, {"cppargs", "cpphdrs",     "cpppath",  "ctfpath",     "ctypes",
                          "define",  "dtypes",      "incdir",   "iregs",       "ldpath",
                          "libdir",  "linkmode",    "linkpath", "linktype",    "lockmem",
                          "modpath", "objcopypath", "pgmax",    "preallocate", "procfspath",
                          "setenv",  "syslibdir",   "tregs",    "undef",       "unsetenv"});
}

bool fits(Syntax syntax, std::optional<std::string_view> value) {
  switch (syntax) {
    case Syntax::Flag:
      return !value || switch_word(*value);
    case Syntax::Number:
      return value && is_any_number(*value);
    case Syntax::Size:
      return value && option_bytes(*value);
    case Syntax::Rate:
      return value && option_period_ns(*value);
    case Syntax::Text:
      return value.has_value();
    case Syntax::TextOrNone:
      return true;
    case Syntax::Assignment:
      return value && value->find('=') != std::string_view::npos && value->front() != '=';
    case Syntax::VariableName:
      return value && !value->empty() && value->find('=') == std::string_view::npos;
    case Syntax::BufferPolicy:
      return value && is_any_of(*value, {"switch", "ring", "fill"});
    case Syntax::Resize:
      return value && is_any_of(*value, {"auto", "manual"});
    case Syntax::EvaluationTime:
      return value && is_any_of(*value, {"exec", "main", "postinit", "preinit"});
    case Syntax::Lateness:
      return value && is_any_of(*value, {"dynamic", "static"});
    case Syntax::LinkMode:
      return value && is_any_of(*value, {"dynamic", "kernel", "static"});
    case Syntax::LinkType:
      return value && is_any_of(*value, {"dof", "elf"});
    case Syntax::Conformance:
      return value && is_any_of(*value, {"a", "c", "s", "t"});
    case Syntax::Version:
      return value.has_value();
    case Syntax::Attributes:
      return value && parse_stability(*value);
  }
  return false;
}

struct TimeUnit {
  std::string_view name;
  uint64_t ns;
};
constexpr std::array<TimeUnit, 18> kTimeUnits = {{{"ns", 1},
                                                  {"nsec", 1},
                                                  {"us", 1000},
                                                  {"usec", 1000},
                                                  {"ms", 1000000},
                                                  {"msec", 1000000},
                                                  {"s", 1000000000},
                                                  {"sec", 1000000000},
                                                  {"m", 60000000000},
                                                  {"min", 60000000000},
                                                  {"h", 3600000000000},
                                                  {"hour", 3600000000000},
                                                  {"d", 86400000000000},
                                                  {"day", 86400000000000},
                                                  {"secs", 1000000000},
                                                  {"mins", 60000000000},
                                                  {"hours", 3600000000000},
                                                  {"days", 86400000000000}}};
constexpr uint64_t kSecondNs = 1000000000;

}  // namespace

std::optional<uint32_t> version_number(std::string_view value) {
  uint32_t number = 0;
  for (int part = 0; part < 3; ++part) {
    const size_t digits = std::min(value.find_first_not_of("0123456789"), value.size());
    if (digits == 0 || digits > 3) return std::nullopt;
    uint32_t digit_value = 0;
    std::from_chars(value.data(), value.data() + digits, digit_value);
    number = number * 1000 + digit_value;
    value.remove_prefix(digits);
    if (value.empty() && part > 0) return part == 1 ? number * 1000 : number;
    if (!value.starts_with('.')) return std::nullopt;
    value.remove_prefix(1);
  }
  return std::nullopt;
}

std::optional<uint64_t> option_bytes(std::string_view value) {
  const auto number = leading_number(value);
  if (!number) return std::nullopt;
  if (value.empty()) return number;
  constexpr std::string_view kSuffixes = "kmgt";
  const char suffix = static_cast<char>(value[0] | 0x20);
  const size_t power = kSuffixes.find(suffix);
  if (power == std::string_view::npos || value.size() > 1) return std::nullopt;
  const auto shift = static_cast<uint32_t>(10 * (power + 1));
  if (*number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

std::optional<uint64_t> option_period_ns(std::string_view value) {
  const auto number = leading_number(value);
  if (!number) return std::nullopt;
  if (value.empty() || value == "hz") {
    if (*number == 0) return 0;
    return kSecondNs / *number;
  }
  for (const TimeUnit& unit : kTimeUnits) {
    uint64_t period = 0;
    if (unit.name != value) continue;
    if (__builtin_mul_overflow(*number, unit.ns, &period)) return std::nullopt;
    return period;
  }
  return std::nullopt;
}

Expected<void> check_option(std::string_view name, std::optional<std::string_view> value) {
  const auto is_named = [&](const OptionName& option) { return option.name == name; };
  const auto* option = std::find_if(kOptions.begin(), kOptions.end(), is_named);
  if (option == kOptions.end()) return fail(ErrorCode::NotFound, "Invalid option name");
  // Output is text; `clew run` writes JSON.
  if (name == "oformat") return fail(ErrorCode::InvalidQuery, "Option is not supported");
  if (option->syntax == Syntax::Version && value) return check_version(*value);
  const bool is_empty_string = name == "strsize" && value && option_bytes(*value) == uint64_t{0};
  if (fits(option->syntax, value) && !is_empty_string) return {};
  return fail(ErrorCode::InvalidQuery, "Invalid value for specified option");
}

namespace checking {

Compiled<void> apply_option(Context& context, const PragmaOption& option) {
  auto checked = check_option(option.name, option.value);
  if (checked && option.line != 0 && is_of_command_line(option.name)) {
    checked = fail(ErrorCode::InvalidQuery, "Option cannot be used from within a D program");
  }
  if (!checked) {
    const bool is_unknown = checked.error().code == ErrorCode::NotFound;
    const std::string value = option.value ? fmt::format(" to '{}'", *option.value) : "";
    return compile_error(
        is_unknown ? "D_PRAGMA_INVAL" : "D_PRAGMA_OPTSET",
        fmt::format("failed to set option '{}'{}: {}", option.name, value, checked.error().message),
        option.line);
  }
  context.script.options.values[option.name] = option.value.value_or("");
  if (option.name != "strsize") return {};
  const uint64_t bytes = option_bytes(*option.value).value_or(0);
  context.script.string_size_bytes =
      static_cast<uint32_t>(std::min<uint64_t>(bytes, std::numeric_limits<uint32_t>::max()));
  context.types().set_string_size(context.script.string_size_bytes);
  return {};
}

}  // namespace checking
}  // namespace clew::query::d
