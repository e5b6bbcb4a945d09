// SPDX-License-Identifier: Apache-2.0
// For tests of this folder only: a victim process with a line protocol, and a small session that
// puts counters at its functions without the compiler stages.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "code/module_code.h"
#include "inline/attachment.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::inline_::testing_ {

// Starts the program and ends it with the object.
class Victim {
 public:
  explicit Victim(const std::string& path);
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;
  ~Victim();

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Sends one line and returns the answer's first line, without the newline.
  std::string ask(const std::string& line);
  long ask_number(const std::string& line);
  void send(const std::string& line);
  std::string read_line();
  // Closes stdin and waits: the status of waitpid.
  int finish();

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

// What of the process must be the same before and after a session.
struct Footprint {
  std::vector<std::string> mappings;  // Lines of /proc/PID/maps, without those that may grow.
  size_t descriptors = 0;
  size_t threads = 0;
  std::string signals;  // The mask lines of /proc/PID/status.
  bool operator==(const Footprint&) const = default;
};
Footprint footprint_of(pid_t pid);
std::ostream& operator<<(std::ostream& out, const Footprint& footprint);
// Differences between the process's text and its files, as addresses.
std::vector<uint64_t> changed_text(pid_t pid);

// One module of a process with its analysis.
struct Module {
  Module(target::ModuleImage i, uint64_t bias) : image(std::move(i)), load_bias(bias) {}

  target::ModuleImage image;
  code::ModuleCode code;
  uint64_t load_bias;
  std::vector<target::Mapping> text;  // ModuleRequest::text.

  [[nodiscard]] uint64_t address_of(std::string_view function) const;
};
std::unique_ptr<Module> module_of(pid_t pid, std::string_view path_part);

struct CounterOptions {
  bool guarded = false;      // The body loads, adds and stores, under the busy word.
  uint32_t first_cell = 0;   // Point i of a plan counts in cell first_cell + i.
  bool shared_cell = false;  // All points count in first_cell.
};

// Puts a counter at every point of the plan.
Expected<InstallReport> install_counters(Attachment& attachment, const Module& module,
                                         const code::Plan& plan,
                                         const CounterOptions& options = {});

// The sum over all threads of a counter.
uint64_t cell(const Attachment& attachment, uint32_t index);
// The same of the loss counters of the region's header: byte offset.
uint64_t header_word(const Attachment& attachment, uint32_t offset);

OpenOptions small_options();

// A session on one victim with counters at functions: requests by name.
code::Plan plan_of(const Module& module,
                   const std::vector<std::pair<code::RequestKind, std::string>>& wanted,
                   const Attachment& attachment);

}  // namespace clew::inline_::testing_
