// SPDX-License-Identifier: Apache-2.0
#include "serve/questions.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "serve/completion.h"
#include "serve/diagnostics.h"
#include "serve/session_request.h"

namespace clew::serve {
namespace {

constexpr size_t kFunctionsMax = 5000;

// The objects that a command prints, one a line; at most so many.
Json objects_of(std::string_view lines, size_t most = SIZE_MAX) {
  Json list = Json::array();
  while (!lines.empty() && list.size() < most) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    Json object = Json::parse(lines.substr(0, end), nullptr, false);
    if (object.is_object()) list.push_back(std::move(object));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return list;
}

// Nothing: it has said something.
std::optional<Reply> failure_of(const CommandResult& result) {
  if (result.status == "0" || !result.output.empty()) return std::nullopt;
  if (result.status.starts_with("signal") || result.status == "refused")
    return problem(Status::Unavailable, "this took too long, or there was no room for it");
  const Json said = diagnostics_of("", result.messages);
  const std::string why =
      said.empty() ? "exit status " + result.status : said[0]["message"].get<std::string>();
  return problem(Status::NotFound, why);
}

// {"NAME":[objects]}
Question list_question(std::vector<std::string> task, std::string name) {
  return {std::move(task), [name = std::move(name)](const CommandResult& result) {
            if (auto failed = failure_of(result)) return *failed;
            return json_reply({{name, objects_of(result.output)}});
          }};
}

void add_words(std::vector<std::string>& task, const HttpRequest& request,
               std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const auto value = request.query.find(name);
    if (value != request.query.end() && !value->second.empty())
      task.push_back(fmt::format("{}={}", name, value->second));
  }
}

Asked machine_question(const HttpRequest& request, const ServerFacts& facts) {
  std::vector<std::string> task{"machine"};
  add_words(task, request, {"pid"});
  return Question{std::move(task), [facts](const CommandResult& result) {
                    if (auto failed = failure_of(result)) return *failed;
                    return json_reply({{"clew", facts.version},
                                       {"host", facts.host},
                                       {"checks", objects_of(result.output)},
                                       {"commands_allowed", facts.commands_allowed},
                                       {"user", facts.user}});
                  }};
}

Asked processes_question(const HttpRequest&, const ServerFacts&) {
  return list_question({"processes"}, "processes");
}

Asked traced_question(const HttpRequest&, const ServerFacts&) {
  return list_question({"traced"}, "traced");
}

Asked catalog_question(const HttpRequest& request, const ServerFacts&) {
  std::vector<std::string> task{"functions"};
  add_words(task, request, {"pid", "name", "pattern"});
  return Question{std::move(task), [](const CommandResult& result) {
                    if (auto failed = failure_of(result)) return *failed;
                    Json functions = objects_of(result.output, kFunctionsMax + 1);
                    const bool is_more = functions.size() > kFunctionsMax;
                    if (is_more) functions.erase(kFunctionsMax);
                    return json_reply({{"functions", std::move(functions)},
                                       {"truncated", is_more || result.is_cut}});
                  }};
}

Json example_of(const Json& printed) {
  const std::string name = printed.value("name", "");
  return {{"title", name},
          {"query", printed.value("text", "")},
          {"language", name.ends_with(".d") ? "d" : "query"},
          {"about", printed.value("question", "")}};
}

Asked examples_question(const HttpRequest& request, const ServerFacts&) {
  std::vector<std::string> task{"examples"};
  const auto words = request.query.find("words");
  std::string_view rest = words == request.query.end() ? std::string_view() : words->second;
  constexpr size_t kWordsMax = 16;
  while (!rest.empty() && task.size() <= kWordsMax) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0) task.push_back(fmt::format("word={}", rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Question{std::move(task), [](const CommandResult& result) {
                    Json examples = Json::array();
                    for (const Json& printed : objects_of(result.output))
                      examples.push_back(example_of(printed));
                    return json_reply({{"examples", std::move(examples)}});
                  }};
}

// The words of a request that a task about its text takes.
std::vector<std::string> text_task(const std::string& task, const SessionRequest& wanted) {
  std::vector<std::string> fields{task};
  const bool is_script = wanted.language == "d";
  std::copy_if(wanted.words.begin(), wanted.words.end(), std::back_inserter(fields),
               [&](const std::string& word) {
                 return word.starts_with("text=") || word.starts_with("pid=") ||
                        (word.starts_with("name=") && !is_script);
               });
  return fields;
}

Asked check_question(const SessionRequest& wanted) {
  const std::string text = wanted.asked->at("text").get<std::string>();
  return Question{
      text_task("explain-" + wanted.language, wanted), [text](const CommandResult& result) {
        if (result.status.starts_with("signal") || result.status == "refused")
          return *failure_of({.status = result.status});
        const bool is_right = result.status == "0";
        return json_reply(
            {{"diagnostics", is_right ? Json::array() : diagnostics_of(text, result.messages)}});
      }};
}

Asked explain_question(const SessionRequest& wanted) {
  const std::string text = wanted.asked->at("text").get<std::string>();
  return Question{text_task("explain-" + wanted.language, wanted),
                  [text, is_script = wanted.language == "d"](const CommandResult& result) {
                    const Json raw = is_script ? Json::array({{{"text", result.output}}})
                                               : objects_of(result.output);
                    Json tiers = Json::array();
                    for (const Json& one : raw)
                      if (one.contains("tier")) tiers.push_back(one);
                    Json json = {{"tiers", std::move(tiers)}, {"raw", raw}};
                    if (result.status != "0") {
                      const Json said = diagnostics_of(text, result.messages);
                      json["error"] =
                          said.empty() ? Json("exit status " + result.status) : said[0]["message"];
                    }
                    return json_reply(json);
                  }};
}

Reply completion_reply(std::string_view text, const CompletionPlace& place, const Json& items) {
  const size_t from = utf16_offset(text, place.from);
  const size_t to = utf16_offset(text, place.from + place.typed.size());
  return json_reply({{"from", from}, {"to", to}, {"items", items}});
}

Json process_items(const CompletionPlace& place, const Json& processes) {
  Json items = Json::array();
  for (const Json& process : processes) {
    const std::string name = process.value("comm", "");
    const Json item = {{"label", name},
                       {"kind", "process"},
                       {"detail", process.value("command", "")},
                       {"insert", name + "!"}};
    const bool is_new = std::none_of(items.begin(), items.end(),
                                     [&](const Json& other) { return other["label"] == name; });
    if (name.starts_with(place.typed) && is_new) items.push_back(item);
  }
  return items;
}

Asked complete_question(const SessionRequest& wanted) {
  const std::string text = wanted.asked->at("text").get<std::string>();
  const CompletionPlace place = place_in(text, byte_offset(text, wanted.at));
  if (place.kind != CompletionPlace::Kind::Function)
    return completion_reply(text, place, word_items(place, text));
  const bool is_name = place.typed.find_first_of("*?[") == std::string::npos;
  if (!is_name || place.kinds == 0) return completion_reply(text, place, Json::array());
  std::vector<std::string> task = text_task("functions", wanted);
  std::erase_if(task, [](const std::string& word) { return word.starts_with("text="); });
  if (task.size() == 1) {  // No process is chosen: those that there are.
    return Question{{"processes"}, [text, place](const CommandResult& result) {
                      return completion_reply(text, place,
                                              process_items(place, objects_of(result.output)));
                    }};
  }
  task.push_back(
      fmt::format("pattern={}!{}*", place.module.empty() ? "*" : place.module, place.typed));
  return Question{std::move(task), [text, place](const CommandResult& result) {
                    return completion_reply(text, place, function_items(place, result.output));
                  }};
}

struct GetRow {
  std::string_view path;
  Asked (*ask)(const HttpRequest& request, const ServerFacts& facts);
};
constexpr std::array<GetRow, 5> kGets = {{{"machine", machine_question},
                                          {"processes", processes_question},
                                          {"traced", traced_question},
                                          {"catalog", catalog_question},
                                          {"examples", examples_question}}};

struct PostRow {
  std::string_view path;
  Asked (*ask)(const SessionRequest& wanted);
};
constexpr std::array<PostRow, 3> kPosts = {
    {{"check", check_question}, {"explain", explain_question}, {"complete", complete_question}}};

}  // namespace

Reply wrong_method(std::string_view methods) {
  Reply reply = problem(Status::MethodNotAllowed, fmt::format("this takes {}", methods));
  reply.headers.emplace_back("Allow", methods);
  return reply;
}

std::optional<Asked> question_of(std::string_view what, const HttpRequest& request,
                                 const ServerFacts& facts) {
  for (const GetRow& row : kGets) {
    if (row.path != what) continue;
    return request.method == "GET" ? row.ask(request, facts) : Asked(wrong_method("GET"));
  }
  for (const PostRow& row : kPosts) {
    if (row.path != what) continue;
    if (request.method != "POST") return wrong_method("POST");
    const Expected<SessionRequest> wanted = session_request(request.body);
    return wanted ? row.ask(*wanted) : problem(Status::BadRequest, wanted.error().message);
  }
  return std::nullopt;
}

}  // namespace clew::serve
