// SPDX-License-Identifier: Apache-2.0
// What does a firing in a process cost, in ns, net of an empty stub's? Baseline: the same clause as
// a uprobe (bench/), 250 ns and up.
#include <benchmark/benchmark.h>

#include "d_machine.h"

namespace clew::process {
namespace {

using plan::d::FiringPoint;

struct Prepared {
  DScript script;
  std::unique_ptr<DMachine> machine;
};

Prepared prepare(std::string_view text) {
  engine::Extensions extensions =
      *engine::Extensions::load({}, {CLEW_EXTENSION_DIRECTORY}, {"D", query::d::is_d_function});
  Prepared p{std::move(*DScript::compile(text, &extensions)), nullptr};
  p.machine = std::move(*DMachine::make(p.script.programs()));
  return p;
}

void call(const InstalledFiring& firing) {
  asm volatile("call *%0" : : "r"(firing.stub_address) : "memory", "cc");
}

void run_clause(benchmark::State& state, std::string_view text) {
  const Prepared p = prepare(text);
  p.machine->use_extensions(p.script.generated);
  const InstalledFiring firing = *p.machine->install({}, p.script.clauses);
  abi::RegionHeader& ring = p.machine->region();
  for (auto _ : state) {
    call(firing);
    ring.ring_tail = ring.ring_head;
  }
  state.counters["code_bytes"] = firing.code_bytes;
  state.counters["instructions"] = firing.instructions;
  state.counters["made_us"] = static_cast<double>(firing.made_ns) / 1000;
}

void empty(benchmark::State& state) {
  run_clause(state, "a:b:c:entry /0/ { @ = count(); }");
}
void count(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { @ = count(); }");
}
void count_by_function(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { @[probefunc] = count(); }");
}
void count_by_argument(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { @[arg0] = count(); }");
}
void quantize(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { @ = quantize(arg0); }");
}
void print_integer(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { printf(\"%d\", arg0); }");
}
void count_by_stack(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { @[ustack()] = count(); }");
}
void read_string(benchmark::State& state) {
  run_clause(state, "a:b:c:entry { @[execname] = count(); }");
}

// Functions in C: the thread's variables are looked after, and code runs.
void function_in_c(benchmark::State& state) {
  run_clause(state, "a:b:c:entry /exponential_average(arg0, 8) < 0/ { @ = count(); }");
}
void sketch(benchmark::State& state) {
  run_clause(state, "a:b:c:entry /sketch_count(arg0) == 0/ { @ = count(); }");
}

void entry_and_return(benchmark::State& state) {
  const Prepared p = prepare(
      "a:b:c:entry { self->ts = timestamp; }"
      "a:b:c:return /self->ts/ { @ = quantize(timestamp - self->ts); self->ts = 0; }");
  const InstalledFiring entry = *p.machine->install({}, {0});
  const InstalledFiring exit = *p.machine->install({.point = FiringPoint::Return}, {1});
  for (auto _ : state) {
    call(entry);
    call(exit);
  }
  state.counters["made_us"] = static_cast<double>(entry.made_ns + exit.made_ns) / 1000;
}

BENCHMARK(empty);
BENCHMARK(count);
BENCHMARK(count_by_function);
BENCHMARK(count_by_argument);
BENCHMARK(quantize);
BENCHMARK(print_integer);
BENCHMARK(entry_and_return);
BENCHMARK(count_by_stack);
BENCHMARK(read_string);
BENCHMARK(function_in_c);
BENCHMARK(sketch);

}  // namespace
}  // namespace clew::process
