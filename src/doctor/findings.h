// SPDX-License-Identifier: Apache-2.0
// What `clew doctor` found, and how it is printed: text for people, or one JSON object a line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clew::doctor {

enum class Verdict : uint8_t {
  Ok,
  Note,     // Something cannot be asked, or is asked in another way.
  Problem,  // Nothing can be traced before it is mended.
};

struct Finding {
  std::string about = {};  // "machine", or "process 12".
  std::string check = {};  // A stable name: programs and users' scripts read it.
  Verdict verdict = Verdict::Ok;
  std::string detail = {};   // What is.
  std::string refused = {};  // What Clew will not do because of it; empty = nothing.
  std::string remedy = {};   // What to do about it; empty = nothing can be done, or need be.
};

// Findings about one thing, in the order in which they were made.
class Findings {
 public:
  explicit Findings(std::string about) : about_(std::move(about)) {}

  void ok(std::string_view check, std::string detail);
  struct Trouble {
    std::string detail;
    std::string refused = {};
    std::string remedy = {};
  };
  void note(std::string_view check, Trouble trouble);
  void problem(std::string_view check, Trouble trouble);

  [[nodiscard]] const std::vector<Finding>& all() const { return all_; }
  // Null when nobody looked at that.
  [[nodiscard]] const Finding* find(std::string_view check) const;
  [[nodiscard]] uint32_t problems() const;

 private:
  void add(std::string_view check, Verdict verdict, Trouble trouble);

  std::string about_;
  std::vector<Finding> all_;
};

std::string_view name(Verdict verdict);
std::string text_of(const std::vector<Finding>& findings);
std::string json_of(const std::vector<Finding>& findings);

}  // namespace clew::doctor
