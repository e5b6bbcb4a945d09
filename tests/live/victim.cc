// SPDX-License-Identifier: Apache-2.0
#include "live/victim.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

namespace clew::live {

std::string victim_path(const std::string& name) {
  return CLEW_VICTIMS "/" + name;
}

Victim::Victim(const std::string& name)
    : Victim({.arguments = {victim_path(name)}}, Place::Started) {}

Victim::Victim(const ChildOptions& options, Place place) : child_(options), pid_(child_.pid()) {
  if (child_.read_line() != "ready") {
    throw std::runtime_error(options.arguments.back() +
                             " did not start: " + child_.wait_for_end().error);
  }
  if (place == Place::ItsChild) pid_ = only_child_of(pid_);
}

pid_t only_child_of(pid_t pid) {
  const std::string name = std::to_string(pid);
  std::ifstream file("/proc/" + name + "/task/" + name + "/children");
  pid_t child = -1;
  return file >> child ? child : -1;
}

Numbers Victim::answer() {
  Numbers numbers;
  for (;;) {
    const std::optional<std::string> line = child_.read_line();
    if (!line) throw std::runtime_error("the victim ended: " + child_.wait_for_end().error);
    if (*line == "end") return numbers;
    std::istringstream words(*line);
    std::string name;
    uint64_t value = 0;
    words >> name >> value;
    numbers[name] = value;
  }
}

Numbers Victim::ask(const std::string& command) {
  tell(command);
  return answer();
}

uint64_t Victim::run(uint64_t rounds) {
  const Numbers numbers = ask("run " + std::to_string(rounds));
  EXPECT_EQ(numbers.at("errors"), 0U) << "the victim's own checks failed";
  return numbers.at("result");
}

uint64_t untraced_result(const std::string& name, uint64_t rounds) {
  return Victim(name).run(rounds);
}

Numbers difference(const Numbers& before, const Numbers& after) {
  Numbers result;
  for (const auto& [name, value] : after) {
    const auto old = before.find(name);
    result[name] = value - (old == before.end() ? 0 : old->second);
  }
  return result;
}

}  // namespace clew::live
