// SPDX-License-Identifier: Apache-2.0
// What a message costs on each bus: to its own end and to 10,000 of them, to a log and out of it;
// and to write and read a partial. Time per message; those over NATS need nats-server, one server
// on this machine with its files in /tmp.
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "cluster/bus_local.h"
#include "cluster/bus_world.h"
#include "cluster/chunks.h"
#include "cluster/message.h"
#include "cluster/message_examples.h"

namespace clew::cluster {
namespace {

constexpr uint64_t kBenchLogBytes = uint64_t{4} << 30;
constexpr size_t kPayload = 1 << 10;

// The bus of that kind with a log, or nothing.
struct Place {
  explicit Place(const char* kind) : world(make_world(kind)) {
    if (world == nullptr) return;
    if (auto connected = world->connect()) end = std::move(*connected);
    if (end != nullptr && !end->make_log("bench", "bench.>", kBenchLogBytes)) end = nullptr;
  }
  std::unique_ptr<BusWorld> world;
  std::unique_ptr<Bus> end;
};

void to_itself(benchmark::State& state, const char* kind) {
  const Place place(kind);
  if (place.end == nullptr || !place.end->subscribe("a")) return state.SkipWithError("no such bus");
  const Bytes bytes(kPayload);
  for (auto _ : state) {
    (void)place.end->publish("a", bytes);
    benchmark::DoNotOptimize(next_message(*place.end));
  }
}
BENCHMARK_CAPTURE(to_itself, local, "local");
BENCHMARK_CAPTURE(to_itself, nats, "nats");

void to_all(benchmark::State& state) {
  constexpr size_t kEnds = 10'000;
  LocalHub hub;
  std::vector<std::unique_ptr<Bus>> ends;
  for (size_t i = 0; i < kEnds; ++i) {
    ends.push_back(hub.connect());
    if (ends.back()->descriptor() < 0)
      return state.SkipWithError("too few descriptors (ulimit -n)");
    (void)ends.back()->subscribe("ctl.all");
    (void)ends.back()->subscribe(fmt::format("ctl.{}", i));
  }
  const Bytes bytes(2 * kPayload);
  for (auto _ : state) {
    (void)ends[0]->publish("ctl.all", bytes);
    for (const auto& end : ends)
      while (auto message = end->next())
        benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kEnds));
}
BENCHMARK(to_all);

void append_one(benchmark::State& state, const char* kind) {
  const Place place(kind);
  if (place.end == nullptr) return state.SkipWithError("no such bus");
  const Bytes bytes(kPayload);
  uint64_t id = 0;
  for (auto _ : state)
    if (!place.end->append("bench.a", std::to_string(id++), bytes)) state.SkipWithError("refused");
}
BENCHMARK_CAPTURE(append_one, local, "local");
BENCHMARK_CAPTURE(append_one, nats, "nats");

// Of a log with `range` entries, from its begin again and again.
void read_all(benchmark::State& state, const char* kind) {
  const Place place(kind);
  if (place.end == nullptr) return state.SkipWithError("no such bus");
  const Bytes bytes(kPayload);
  for (int64_t i = 0; i < state.range(0); ++i)
    (void)place.end->append("bench.a", {}, bytes);
  for (auto _ : state) {
    uint64_t last = 0;
    while (true) {
      const auto some = place.end->read("bench", last, 1000);
      if (!some || some->empty()) break;
      last = some->back().sequence;
    }
    if (last == 0) state.SkipWithError("nothing was read");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(read_all, local, "local")->Arg(10'000);
BENCHMARK_CAPTURE(read_all, nats, "nats")->Arg(10'000);

void partial_to_bytes_and_back(benchmark::State& state) {
  Partial partial = example_partial();
  partial.table = split(Bytes(static_cast<size_t>(state.range(0))))->front();
  for (auto _ : state) {
    const Bytes bytes = to_bytes(partial);
    benchmark::DoNotOptimize(read_as<Partial>(bytes));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(partial_to_bytes_and_back)->Arg(1 << 10)->Arg(512 << 10);

}  // namespace
}  // namespace clew::cluster
