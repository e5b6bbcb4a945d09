// SPDX-License-Identifier: Apache-2.0
#include "cmd/verb_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>

#include "cmd/duration.h"
#include "cmd/installed.h"

namespace clew::cmd {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFileBytesMax = uint64_t{64} << 10;
constexpr size_t kVerbsMax = 256;

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// The next word, which is taken away from `rest`.
std::string take_word(std::string_view& rest) {
  rest = without_blanks(rest);
  const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  std::string word(rest.substr(0, end));
  rest = without_blanks(rest.substr(end));
  return word;
}

bool is_word(std::string_view text) {
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_part);
}

// What a line of a comment says, or nothing where the comment is over.
std::optional<std::string_view> comment_in(std::string_view line) {
  line = without_blanks(line);
  for (const std::string_view mark : {"//", "/*", "*/", "*"}) {
    if (line.starts_with(mark)) return without_blanks(line.substr(mark.size()));
  }
  return line.starts_with("#!") ? std::optional<std::string_view>("") : std::nullopt;
}

std::vector<std::string> words_between(std::string_view text, char mark) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(mark), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

Expected<VerbParameter> parameter_of(std::string_view words) {
  constexpr std::array<std::string_view, 3> kKinds = {"duration", "number", "text"};
  VerbParameter parameter;
  parameter.name = take_word(words);
  std::string kind = take_word(words);
  if (kind.find('|') != std::string::npos)
    parameter.choices = words_between(std::exchange(kind, "text"), '|');
  parameter.value = take_word(words);
  parameter.words = words;
  const auto* const found = std::find(kKinds.begin(), kKinds.end(), kind);
  if (!is_word(parameter.name) || found == kKinds.end() || words.empty()) {
    return fail(ErrorCode::InvalidQuery,
                "a parameter is NAME KIND DEFAULT and what it is, KIND one of duration, number and "
                "text, or its values with | between them");
  }
  parameter.kind = static_cast<VerbParameter::Kind>(found - kKinds.begin());
  if (parameter.value == "-") parameter.value.clear();
  return parameter;
}

Expected<VerbCondition> condition_of(std::string_view words) {
  constexpr std::array<std::string_view, 6> kKinds = {"",       "program", "library",
                                                      "format", "given",   "several"};
  const std::string kind = take_word(words);
  const auto* const found = std::find(kKinds.begin() + 1, kKinds.end(), kind);
  if (found == kKinds.end() || words.empty()) {
    return fail(ErrorCode::InvalidQuery,
                "a variant is for a program PATTERN, a library PATTERN, format NAMES, given "
                "PARAMETER, or several processes");
  }
  return VerbCondition{.kind = static_cast<VerbCondition::Kind>(found - kKinds.begin()),
                       .words = std::string(words)};
}

// A variant may need less than the verb, and never another thing.
Expected<void> take_needs(std::string_view words, NamedVerb& verb, VerbText& text) {
  text.needs_root = false;
  while (!words.empty()) {
    std::string word = take_word(words);
    if (word.ends_with(',')) word.pop_back();
    if (word == "root") {
      text.needs_root = true;
    } else if (word == "process") {
      verb.needs_process = verb.needs_process || text.variant.empty();
    } else {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("'{}' is nothing that a verb needs: root, process", word));
    }
  }
  return {};
}

// One line of a header. What it does not know is for people.
Expected<void> take_line(std::string_view line, NamedVerb& verb, VerbText& text) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view key = line.substr(0, colon);
  const std::string_view words = without_blanks(line.substr(colon + 1));
  const std::map<std::string_view, std::string*> texts = {
      {"help", &verb.help},          {"form", &verb.form},           {"every", &verb.every},
      {"nothing", &verb.nothing},    {"extension", &verb.extension}, {"demangled", &verb.demangled},
      {"otherwise", &verb.otherwise}};
  if (const auto found = texts.find(key); found != texts.end()) *found->second = words;
  if (key == "needs") return take_needs(words, verb, text);
  if (key == "parameter") verb.parameters.push_back(CLEW_TRY(parameter_of(words)));
  if (key == "when") text.when = CLEW_TRY(condition_of(words));
  return {};
}

Expected<void> read_header(NamedVerb& verb, VerbText& text) {
  std::string_view rest = text.text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto line = comment_in(rest.substr(0, end));
    if (!line) return {};
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (auto taken = take_line(*line, verb, text); !taken) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("{}:{}: error: {}", text.path, number, taken.error().message));
    }
  }
  return {};
}

Expected<std::string> verb_content(const fs::path& path) {
  std::error_code problem;
  const uint64_t size = fs::file_size(path, problem);
  if (!problem && size > kFileBytesMax) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: a verb has at most {} KiB", path.string(), kFileBytesMax / 1024));
  }
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (problem || !file) {
    return fail(ErrorCode::Io, fmt::format("cannot read {}", path.string()));
  }
  if (!content.ends_with('\n')) content += '\n';  // More lines are put behind it.
  return content;
}

// "sql.sqlite.text.d" -> sql, sqlite, is_tail.
struct FileName {
  std::string verb;
  std::string variant{};
  bool is_tail = false;
  VerbLanguage language = VerbLanguage::Query;
};

std::optional<FileName> verb_name_of(const fs::path& path) {
  constexpr std::string_view kTail = ".text";
  const std::string extension = path.extension().string();
  if (extension != ".clew" && extension != ".d") return std::nullopt;
  std::string stem = path.stem().string();
  const bool is_script = extension == ".d";
  const bool is_tail = is_script && stem.ends_with(kTail);
  if (is_tail) stem.resize(stem.size() - kTail.size());
  const size_t dot = std::min(stem.find('.'), stem.size());
  FileName name{.verb = stem.substr(0, dot),
                .variant = stem.substr(std::min(dot + 1, stem.size())),
                .is_tail = is_tail,
                .language = is_script ? VerbLanguage::D : VerbLanguage::Query};
  const bool is_name = is_word(name.verb) && (name.variant.empty() || is_word(name.variant));
  return is_name ? std::optional(name) : std::nullopt;
}

// The files of a folder, by name: what a variant is tried before does not hang on a file system.
Expected<std::vector<fs::path>> files_in(const std::string& folder) {
  std::error_code problem;
  std::vector<fs::path> paths;
  for (fs::directory_iterator file(folder, problem); !problem && file != fs::directory_iterator();
       file.increment(problem)) {
    if (verb_name_of(file->path())) paths.push_back(file->path());
  }
  if (problem) {
    return fail(ErrorCode::NotFound,
                fmt::format("cannot read the verbs in {}: {}", folder, problem.message()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The files of one folder by their verbs; and what is put behind scripts, by verb and variant.
struct Found {
  std::map<std::string, NamedVerb> verbs;
  std::map<std::pair<std::string, std::string>, std::string> tails;
};

Expected<void> read_file(const fs::path& path, const FileName& name, Found& found) {
  VerbText text{.path = path.string(), .variant = name.variant, .language = name.language};
  text.text = CLEW_TRY(verb_content(path));
  if (name.is_tail) {
    found.tails[{name.verb, name.variant}] = std::move(text.text);
    return {};
  }
  NamedVerb& verb = found.verbs[name.verb];
  verb.name = name.verb;
  CLEW_TRY(read_header(verb, text));
  verb.texts.push_back(std::move(text));
  return {};
}

// The first one counts.
void note_problem(NamedVerb& verb, const std::string& name, const Error& error) {
  verb.name = name;
  if (!verb.problem) verb.problem = error;
}

// Variants go before the verb itself.
Expected<void> put_in_order(NamedVerb& verb, Found& found) {
  std::vector<VerbText>& texts = verb.texts;
  for (VerbText& text : texts)
    if (text.language == VerbLanguage::D) text.text_tail = found.tails[{verb.name, text.variant}];
  std::stable_partition(texts.begin(), texts.end(),
                        [](const VerbText& text) { return !text.variant.empty(); });
  const auto main = std::find_if(texts.begin(), texts.end(),
                                 [](const VerbText& text) { return text.variant.empty(); });
  if (main != texts.end()) verb.needs_root = main->needs_root.value_or(false);
  if (main == texts.end() || verb.help.empty()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: error: {}", texts.empty() ? verb.name : texts.back().path,
                            main == texts.end()
                                ? fmt::format("a variant of no verb: there is no {0}.clew or {0}.d",
                                              verb.name)
                                : "the comment in front has no line 'help: …'"));
  }
  return {};
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  return fnmatch(std::string(pattern).c_str(), std::string(text).c_str(), 0) == 0;
}

std::vector<std::string> verb_folders(const std::vector<std::string>& more) {
  std::vector<std::string> folders = {verb_folder()};
  std::error_code problem;
  const std::string own = own_folder("verbs");
  if (!own.empty() && fs::is_directory(own, problem)) folders.push_back(own);
  folders.insert(folders.end(), more.begin(), more.end());
  return folders;
}

namespace {

// What is wrong with a file is so with its verb alone.
Expected<Found> read_folder(const std::string& folder) {
  Found found;
  const std::vector<fs::path> files = CLEW_TRY(files_in(folder));
  for (const fs::path& path : files) {
    const FileName name = verb_name_of(path).value_or(FileName());
    if (const Expected<void> read = read_file(path, name, found); !read)
      note_problem(found.verbs[name.verb], name.verb, read.error());
  }
  for (auto& [name, verb] : found.verbs) {
    if (const Expected<void> ordered = put_in_order(verb, found); !ordered)
      note_problem(verb, name, ordered.error());
  }
  if (found.verbs.size() > kVerbsMax) {
    return fail(ErrorCode::InvalidQuery, fmt::format("{} has {} verbs, and at most {} are read",
                                                     folder, found.verbs.size(), kVerbsMax));
  }
  return found;
}

}  // namespace

Verbs read_verbs(const std::vector<std::string>& folders) {
  std::map<std::string, NamedVerb> all;
  Verbs result;
  for (const std::string& folder : folders) {
    Expected<Found> found = read_folder(folder);
    if (!found) result.problems.push_back({.folder = folder, .error = found.error()});
    if (!found) continue;
    for (auto& [name, verb] : found->verbs)
      all[name] = std::move(verb);
  }
  for (auto& [name, verb] : all)
    result.verbs.push_back(std::move(verb));
  return result;
}

Expected<void> check_choice(const VerbParameter& parameter, const std::string& value) {
  const std::vector<std::string>& choices = parameter.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end())
    return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is none of {}", value, fmt::join(choices, ", ")));
}

namespace {

Expected<std::string> quoted_text(const VerbParameter& parameter) {
  std::string result;
  for (const char c : parameter.value) {
    if (static_cast<unsigned char>(c) < ' ') {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("--{}: a text of one line is expected", parameter.name));
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

Expected<std::string> value_of(const VerbParameter& parameter, VerbLanguage language) {
  switch (parameter.kind) {
    case VerbParameter::Kind::Duration: {
      const uint64_t ns = CLEW_TRY(parse_duration(parameter.value));
      return language == VerbLanguage::D ? std::to_string(ns) : parameter.value;
    }
    case VerbParameter::Kind::Number: {
      const std::string& digits = parameter.value;
      constexpr size_t kDigitsMax = 18;
      const bool is_number = !digits.empty() && digits.size() <= kDigitsMax &&
                             digits.find_first_not_of("0123456789") == std::string::npos;
      if (is_number) return digits;
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("--{}: '{}' is no whole number", parameter.name, digits));
    }
    case VerbParameter::Kind::Text:
      CLEW_TRY(check_choice(parameter, parameter.value));
      return quoted_text(parameter);
    case VerbParameter::Kind::Code:
      return parameter.value;
  }
  return std::string();
}

}  // namespace

Expected<std::string> filled_text(const std::string& text, VerbLanguage language,
                                  const std::vector<VerbParameter>& parameters) {
  std::string result;
  size_t at = 0;
  while (true) {
    const size_t begin = text.find("${", at);
    result.append(text, at, begin == std::string::npos ? begin : begin - at);
    if (begin == std::string::npos) return result;
    const size_t end = text.find('}', begin);
    if (end == std::string::npos) return fail(ErrorCode::InvalidQuery, "a ${ has no }");
    const std::string name = text.substr(begin + 2, end - begin - 2);
    const auto found =
        std::find_if(parameters.begin(), parameters.end(),
                     [&name](const VerbParameter& parameter) { return parameter.name == name; });
    if (found == parameters.end()) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("${{{}}} is no parameter of this verb", name));
    }
    result += CLEW_TRY(value_of(*found, language));
    at = end + 1;
  }
}

}  // namespace clew::cmd
