// SPDX-License-Identifier: Apache-2.0
// How many instructions does the verifier judge in a second? Bodies of random programs, which have
// every kind of operand, and of many small ones, as queries have. One line of JSON each:
// {"what", "bodies", "instructions", "rates"}, instructions per second.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "isa/random_program.h"
#include "machine.h"
#include "verify/instruction.h"

namespace clew::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kRepetitions = 9;
constexpr std::chrono::milliseconds kRepetitionTime(100);

struct Body {
  std::vector<uint8_t> bytes;
  verify::Policy policy;
};

size_t count_instructions(const std::vector<Body>& bodies) {
  size_t count = 0;
  for (const Body& body : bodies) {
    for (size_t at = 0; at < body.bytes.size(); ++count)
      at += verify::decode(std::span(body.bytes).subspan(at))->length_bytes;
  }
  return count;
}

std::vector<Body> bodies_of(native::Machine& on, uint32_t count, uint32_t steps) {
  std::vector<Body> bodies;
  for (uint64_t seed = 1; bodies.size() < count; ++seed) {
    const auto code = native::translate(isa::random_program({.seed = seed, .steps = steps}),
                                        on.environment(), {});
    if (!code || !on.install(*code)) continue;  // It reads a word that entries lack.
    bodies.push_back({{on.body().begin(), on.body().end()}, on.policy(code->clobbers)});
  }
  return bodies;
}

// Verifies all of them again and again; false when one is refused.
bool measure(const std::string& what, const std::vector<Body>& bodies) {
  const size_t instructions = count_instructions(bodies);
  std::string rates;
  for (unsigned repetition = 0; repetition < kRepetitions; ++repetition) {
    size_t rounds = 0;
    const auto begin = Clock::now();
    do {
      for (const Body& body : bodies) {
        if (!verify::check(body.bytes, body.policy)) return false;
      }
      ++rounds;
    } while (Clock::now() - begin < kRepetitionTime);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    const double rate = static_cast<double>(rounds * instructions) / seconds.count();
    rates += fmt::format("{}{:.0f}", rates.empty() ? "" : ", ", rate);
  }
  fmt::print("{{\"what\": \"{}\", \"bodies\": {}, \"instructions\": {}, \"rates\": [{}]}}\n", what,
             bodies.size(), instructions, rates);
  return true;
}

int run() {
  auto machine = native::Machine::make({});
  if (!machine) return 1;
  const bool measured = measure("large bodies", bodies_of(**machine, 20, 400)) &&
                        measure("small bodies", bodies_of(**machine, 500, 3));
  if (!measured) std::fputs("a body is refused\n", stderr);
  return measured ? 0 : 1;
}

}  // namespace
}  // namespace clew::bench

int main() {
  return clew::bench::run();
}
