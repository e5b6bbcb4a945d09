// SPDX-License-Identifier: Apache-2.0
// For tests: threads that call functions, without any process. Runs the programs of a lowered plan
// with the interpreter, each thread with its own window, and hands what they leave to the operators
// behind the merge, as a session does.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "abi/context.h"
#include "aggregate/table.h"
#include "answer/names.h"
#include "base/error.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "query/query.h"

namespace clew::answer {

// One program point that a thread passes.
struct Hit {
  bool at_exit = false;
  uint32_t function = 0;  // Index in kFakeFunctions.
  uint64_t time = 0;      // Ticks; a multiple of 1024, so that a few readings do not change the ns.
  uint64_t cpu = 0;
  abi::Context context{};
};

inline constexpr uint32_t kFakeFunctions = 3;
inline constexpr uint64_t kFakeMemoryStart = 0x10000;
inline constexpr uint64_t kFakeMemoryBytes = 4096;

std::string fake_function(uint32_t index);
// The bytes at kFakeMemoryStart: texts and numbers. All else cannot be read.
std::span<const uint8_t> fake_memory();
bool read_fake_memory(std::span<uint8_t> into, uint64_t address);

struct FakeThread {
  std::vector<Hit> hits;
};

// Calls that nest, with random arguments: small and large numbers, addresses of texts, pointers
// that cannot be read.
std::vector<FakeThread> random_threads(uint64_t seed, size_t calls);

class FakeNames final : public Names {
 public:
  std::string function(uint64_t index) override { return fake_function(uint32_t(index)); }
  std::string module(uint64_t) override { return "app"; }
  std::string probe(uint64_t index) override { return "probe " + std::to_string(index); }
  int64_t pid(uint64_t process) override { return static_cast<int64_t>(100 + process); }
  std::string process_name(uint64_t process) override { return "app" + std::to_string(process); }
  std::string thread_name(uint64_t process, uint64_t tid) override {
    return process_name(process) + "/" + std::to_string(tid);
  }
  std::string host() override { return "here"; }
  std::string node_name(uint64_t process) override { return "node" + std::to_string(process); }
  const Owner& owner(query::Field, uint64_t process) override {
    const std::string number = std::to_string(process);
    return owners_[process] = {.container = "box" + number,
                               .unit = "unit" + number,
                               .cgroup = "/group" + number,
                               .user = "user" + number,
                               .uid = static_cast<uint32_t>(1000 + process)};
  }
  std::string symbol(uint64_t address) override { return "app!" + std::to_string(address); }

 private:
  std::map<uint64_t, Owner> owners_;
};

struct FakeAnswer {
  plan::StateForm form = plan::StateForm::Events;
  std::vector<aggregate::Row> rows;
  uint64_t unreadable = 0;    // Hits left out because of memory.
  uint64_t instructions = 0;  // Executed, over all hits.
  uint64_t runs = 0;
  uint64_t passed = 0;  // Shape::Groups with for_events.
};

struct FakeRun {
  uint64_t generation = 0;
};

// The answer of the plan after all threads have run.
Expected<FakeAnswer> answer_of(const plan::Plan& plan, std::span<const FakeThread> threads,
                               const FakeRun& run = {});

}  // namespace clew::answer
