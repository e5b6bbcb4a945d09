// SPDX-License-Identifier: Apache-2.0
#include "live/victim.h"

#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

namespace clew::live {

std::string victim_path(const std::string& name) {
  return CLEW_VICTIMS "/" + name;
}

Victim::Victim(const std::string& name) : child_(ChildOptions{.arguments = {victim_path(name)}}) {
  if (child_.read_line() != "ready") throw std::runtime_error("victim " + name + " did not start");
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
