// SPDX-License-Identifier: Apache-2.0
// clew examples: the queries and scripts that come with Clew, found by words, with the command line
// that runs each.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/console.h"
#include "cmd/installed.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"

namespace clew::cmd {
namespace {

namespace fs = std::filesystem;

struct Example {
  std::string name;  // Below the folder: "kernel/switches.clew".
  std::string path;
  std::string question{};
  std::vector<std::string> commands{};
  std::string text{};
  std::string lower{};  // Name and text, for a search that does not count case.
};

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// What a line of the first comment says; nothing where the comment is over.
std::optional<std::string> said_in(std::string_view line) {
  for (const std::string_view mark : {"#!", "//", "/*", " */", " *"}) {
    if (!line.starts_with(mark)) continue;
    if (mark == "#!" || mark == " */") return "";
    std::string said(line.substr(mark.size()));
    if (const size_t end = said.find("*/"); end != std::string::npos) said.resize(end);
    const size_t first = said.find_first_not_of(" \t");
    return first == std::string::npos ? std::string() : said.substr(first);
  }
  return std::nullopt;
}

// As an example writes its command, with the file where it is.
std::string command_here(std::string command, const Example& example) {
  const std::string file = fs::path(example.path).filename().string();
  replace_all(command, "examples/" + example.name, example.path);
  if (command.find(example.path) == std::string::npos) replace_all(command, file, example.path);
  std::replace(command.begin(), command.end(), '\t', ' ');
  return command;
}

void take_comment(Example& example) {
  std::string_view rest = example.text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const auto said = said_in(rest.substr(0, end));
    if (!said) return;
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (said->starts_with("clew ")) {
      example.commands.push_back(command_here(*said, example));
    } else if (example.commands.empty() && !said->empty() && !said->starts_with("SPDX")) {
      example.question += (example.question.empty() ? "" : " ") + *said;
    }
  }
}

Expected<std::vector<Example>> read_examples(const std::string& folder) {
  std::vector<Example> examples;
  std::error_code problem;
  for (fs::recursive_directory_iterator file(folder, problem);
       !problem && file != fs::recursive_directory_iterator(); file.increment(problem)) {
    const std::string extension = file->path().extension().string();
    if (extension != ".clew" && extension != ".d") continue;
    Example example{.name = fs::relative(file->path(), folder).string(),
                    .path = file->path().string()};
    std::ifstream content(file->path(), std::ios::binary);
    example.text = {std::istreambuf_iterator<char>(content), {}};
    example.lower = lower_case(example.name + "\n" + example.text);
    take_comment(example);
    examples.push_back(std::move(example));
  }
  if (problem) {
    return fail(ErrorCode::NotFound,
                fmt::format("cannot read the examples in {}: {}", folder, problem.message()));
  }
  std::sort(examples.begin(), examples.end(),
            [](const Example& a, const Example& b) { return a.name < b.name; });
  return examples;
}

// How well it fits: 0 not at all, else the more, the better. A name says most, a question more than
// the text.
unsigned fit_of(const Example& example, const std::vector<std::string>& words) {
  const std::string name = lower_case(example.name);
  const std::string question = lower_case(example.question);
  unsigned fit = 1;
  for (const std::string& word : words) {
    if (example.lower.find(word) == std::string::npos) return 0;
    if (question.find(word) != std::string::npos) fit += 2;
    if (name.find(word) != std::string::npos) fit += 3;
  }
  return fit;
}

struct ExampleArguments {
  std::vector<std::string> words;
  bool show = false;
  bool json = false;
};

void print_example(const Example& example, const ExampleArguments& arguments) {
  if (arguments.json) {
    const nlohmann::json object = {{"name", example.name},
                                   {"file", example.path},
                                   {"question", example.question},
                                   {"commands", example.commands},
                                   {"text", example.text}};
    fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  if (arguments.show) return fmt::print("{}\n", example.text);
  fmt::print("{}\n  {}\n", example.name, example.question);
  for (const std::string& command : example.commands)
    fmt::print("    {}\n", command);
}

Expected<void> find_examples(const ExampleArguments& arguments) {
  std::vector<std::string> words;
  words.reserve(arguments.words.size());
  for (const std::string& word : arguments.words)
    words.push_back(lower_case(word));
  const std::vector<Example> examples = CLEW_TRY(read_examples(example_folder()));
  std::vector<std::pair<unsigned, const Example*>> found;
  for (const Example& example : examples) {
    const unsigned fit = fit_of(example, words);
    if (fit > 0) found.emplace_back(fit, &example);
  }
  if (found.empty()) {
    return fail(ErrorCode::NotFound,
                fmt::format("none of the {} examples has {}'{}'; fewer or shorter words find more",
                            examples.size(), words.size() > 1 ? "all of " : "",
                            fmt::join(arguments.words, "', '")));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [fit, example] : found)
    print_example(*example, arguments);
  return {};
}

}  // namespace

int examples_verb(int argument_count, const char* const* arguments) {
  CLI::App app{"Finds queries and scripts to start from, and says how to run each.",
               "clew examples"};
  ExampleArguments parsed;
  app.add_option("words", parsed.words, "those whose name or text has all of these; all otherwise");
  auto* const show = app.add_flag("--show", parsed.show, "print their texts");
  app.add_flag("--json", parsed.json, "one JSON object a line")->excludes(show);
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const Expected<void> done = find_examples(parsed);
  return done ? kExitAnswered : report(done.error());
}

}  // namespace clew::cmd
