// SPDX-License-Identifier: Apache-2.0
#include "serve/session_request.h"

#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace clew::serve {
namespace {

using output::Json;

constexpr size_t kTargetsMax = 32;

tl::unexpected<Error> not_understood(std::string what) {
  return fail(ErrorCode::InvalidQuery, std::move(what));
}

Expected<std::string> text_member(const Json& object, const char* name) {
  if (!object.contains(name) || !object[name].is_string())
    return not_understood(fmt::format("'{}' is missing, or no text", name));
  return object[name].get<std::string>();
}

Expected<std::string> pid_of(const Json& value) {
  const bool is_pid =
      value.is_number_unsigned() && value.get<uint64_t>() > 0 && value.get<uint64_t>() <= INT32_MAX;
  if (!is_pid) return not_understood("'pid' is the number of a process");
  return fmt::to_string(value.get<uint64_t>());
}

class RequestReader {
 public:
  Expected<SessionRequest> read(const Json& body) {
    if (!body.is_object()) return not_understood("a request is a JSON object");
    request_.language = "query";
    if (body.contains("language")) request_.language = CLEW_TRY(text_member(body, "language"));
    if (request_.language != "query" && request_.language != "d")
      return not_understood("'language' is query or d");
    const std::string text = CLEW_TRY(text_member(body, "text"));
    add("text", text);
    request_.asked = std::make_shared<Json>(
        Json{{"text", text}, {"language", request_.language}, {"targets", Json::array()}});
    if (body.contains("targets")) CLEW_TRY(read_targets(body["targets"]));
    if (body.contains("options")) CLEW_TRY(read_options(body["options"]));
    if (body.contains("at") && body["at"].is_number_unsigned())
      request_.at = body["at"].get<size_t>();
    return std::move(request_);
  }

 private:
  void add(std::string_view word, std::string_view value) {
    request_.words.push_back(fmt::format("{}={}", word, value));
  }

  Expected<void> read_targets(const Json& targets) {
    if (!targets.is_array() || targets.size() > kTargetsMax)
      return not_understood(fmt::format("'targets' is a list of at most {}", kTargetsMax));
    for (const Json& target : targets)
      CLEW_TRY(read_target(target));
    return {};
  }

  Expected<void> read_target(const Json& target) {
    if (!target.is_object() || target.size() != 1)
      return not_understood("a target is an object with one of pid, name, command");
    const std::string& kind = target.begin().key();
    const Json& value = target.begin().value();
    if (kind == "command") return read_command(value);
    if (kind == "pid") {
      add("pid", CLEW_TRY(pid_of(value)));
    } else if (kind == "name") {
      add("name", CLEW_TRY(text_member(target, "name")));
    } else {
      return not_understood("a target is an object with one of pid, name, command");
    }
    (*request_.asked)["targets"].push_back({{kind, value}});
    return {};
  }

  Expected<void> read_command(const Json& words) {
    constexpr size_t kWordsMax = 24;
    if (!words.is_array() || words.empty() || words.size() > kWordsMax)
      return not_understood(fmt::format("'command' is a list of 1 to {} words", kWordsMax));
    request_.has_command = true;
    Json shown = Json::array();
    for (const Json& word : words) {
      if (!word.is_string()) return not_understood("a word of 'command' is a text");
      add("command", word.get<std::string>());
      shown.push_back(word);
    }
    (*request_.asked)["targets"].push_back({{"command", shown}});
    return {};
  }

  Expected<void> read_options(const Json& options) {
    if (!options.is_object()) return not_understood("'options' is an object");
    for (const auto& [name, task_word] : kTexts) {
      if (!options.contains(name)) continue;
      const std::string value = CLEW_TRY(text_member(options, name));
      if (value.empty()) continue;
      add(task_word, value);
      (*request_.asked)["options"][name] = value;
    }
    if (!options.contains("follow")) return {};
    if (!options["follow"].is_boolean()) return not_understood("'follow' is true or false");
    if (!options["follow"].get<bool>()) return {};
    add("follow", "");
    (*request_.asked)["options"]["follow"] = true;
    return {};
  }

  static constexpr std::array<std::pair<const char*, const char*>, 2> kTexts = {
      {{"for", "for"}, {"max_overhead", "max-overhead"}}};
  SessionRequest request_;
};

}  // namespace

Expected<SessionRequest> session_request(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded()) return not_understood("the body is no JSON");
  return RequestReader().read(json);
}

}  // namespace clew::serve
