// SPDX-License-Identifier: Apache-2.0
// What a join by time costs for an event, and how many bytes it holds of each.
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "stream/temporal_join.h"

namespace clew::stream {
namespace {

using aggregate::Value;

class Count final : public JoinedRows {
 public:
  void joined(std::span<const Value> row, std::span<const Moment>) override {
    benchmark::DoNotOptimize(row.data());
    ++rows;
  }
  uint64_t rows = 0;
};

// One of `held` events on each side has the next one's key; three values of which one is the key,
// or a text of 20 bytes in place of the third.
void pair_up(benchmark::State& state, Side side, bool has_text) {
  const auto held = static_cast<uint64_t>(state.range(0));
  Count count;
  TemporalJoin join({.left_width = 3, .right_width = 3, .within_ns = held, .side = side}, {},
                    count);
  std::vector<Value> row{Value{uint64_t{0}}, Value{int64_t{7}}, Value{int64_t{8}}};
  if (has_text) row[2] = std::string("a text of 20 bytes..");
  std::vector<Value> key(1);
  uint64_t number = 0;
  for (auto _ : state) {
    Budget budget;
    const uint64_t pair = number / 2;
    row[0] = pair;
    key[0] = pair * 0x9E3779B97F4A7C15;
    const Moment moment{.time_ns = static_cast<int64_t>(pair), .number = number};
    if (number++ % 2 == 0) {
      join.take_left(row, {&moment, 1}, key, budget);
    } else {
      join.take_right(row, moment, key, budget);
    }
    size_t most = 1;
    join.pass(moment.time_ns, moment.time_ns, most);
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["rows"] = static_cast<double>(count.rows);
  state.counters["held"] = static_cast<double>(join.held());
  state.counters["bytes_each"] =
      static_cast<double>(join.bytes()) / static_cast<double>(join.held());
}
BENCHMARK_CAPTURE(pair_up, numbers, Side::Either, false)->Arg(1'000)->Arg(100'000)->Arg(900'000);
BENCHMARK_CAPTURE(pair_up, text, Side::Either, true)->Arg(100'000);

// Each event has so many partners.
void multiply(benchmark::State& state) {
  const auto partners = static_cast<uint64_t>(state.range(0));
  Count count;
  TemporalJoin join({.left_width = 3, .right_width = 3, .within_ns = 2 * partners * 100}, {},
                    count);
  const std::vector<Value> row{Value{uint64_t{0}}, Value{int64_t{7}}, Value{int64_t{8}}};
  std::vector<Value> key(1);
  uint64_t number = 0;
  for (auto _ : state) {
    Budget budget;
    key[0] = number / 2 % 100;
    const Moment moment{.time_ns = static_cast<int64_t>(number), .number = number};
    if (number++ % 2 == 0) {
      join.take_left(row, {&moment, 1}, key, budget);
    } else {
      join.take_right(row, moment, key, budget);
    }
    size_t most = 1;
    join.pass(moment.time_ns, moment.time_ns, most);
  }
  state.SetItemsProcessed(static_cast<int64_t>(count.rows));
}
BENCHMARK(multiply)->Arg(10)->Arg(500);

}  // namespace
}  // namespace clew::stream
