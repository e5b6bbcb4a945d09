// SPDX-License-Identifier: Apache-2.0
#include "doctor/findings.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace clew::doctor {
namespace {

std::string_view mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return "ok";
    case Verdict::Note:
      return "note";
    case Verdict::Problem:
      return "PROBLEM";
  }
  return "";
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return "ok";
    case Verdict::Note:
      return "note";
    case Verdict::Problem:
      return "problem";
  }
  return "";
}

void Findings::add(std::string_view check, Verdict verdict, Trouble trouble) {
  all_.push_back({.about = about_,
                  .check = std::string(check),
                  .verdict = verdict,
                  .detail = std::move(trouble.detail),
                  .refused = std::move(trouble.refused),
                  .remedy = std::move(trouble.remedy)});
}

void Findings::ok(std::string_view check, std::string detail) {
  add(check, Verdict::Ok, {.detail = std::move(detail)});
}

void Findings::note(std::string_view check, Trouble trouble) {
  add(check, Verdict::Note, std::move(trouble));
}

void Findings::problem(std::string_view check, Trouble trouble) {
  add(check, Verdict::Problem, std::move(trouble));
}

const Finding* Findings::find(std::string_view check) const {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const Finding& finding) { return finding.check == check; });
  return found == all_.end() ? nullptr : &*found;
}

uint32_t Findings::problems() const {
  return static_cast<uint32_t>(std::count_if(all_.begin(), all_.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::Problem;
  }));
}

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  std::string_view about;
  for (const Finding& finding : findings) {
    if (finding.about != about) text += fmt::format("{}\n", finding.about);
    about = finding.about;
    text +=
        fmt::format("  {:<8} {:<18} {}\n", mark(finding.verdict), finding.check, finding.detail);
    if (!finding.refused.empty()) text += fmt::format("{:30}refused: {}\n", "", finding.refused);
    if (!finding.remedy.empty()) text += fmt::format("{:30}to do: {}\n", "", finding.remedy);
  }
  return text;
}

std::string json_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    nlohmann::json line = {{"about", finding.about},
                           {"check", finding.check},
                           {"verdict", std::string(name(finding.verdict))},
                           {"detail", finding.detail}};
    if (!finding.refused.empty()) line["refused"] = finding.refused;
    if (!finding.remedy.empty()) line["to_do"] = finding.remedy;
    text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return text;
}

}  // namespace clew::doctor
