// SPDX-License-Identifier: Apache-2.0
// What baggage costs at depth 10 and fan-out 10: a branch, its join, packing and unpacking. Goals
// (issue 18): branch 120 ns, join 250, pack into First 80, unpack 100. Time per operation, without
// that of copying the baggage that it is done to, which `copy` measures.
#include <array>
#include <vector>

#include <benchmark/benchmark.h>

#include "causal/authenticate.h"
#include "causal/baggage.h"
#include "causal/causal_testing.h"

namespace clew::causal {
namespace {

constexpr int kDepth = 10;
constexpr int kFanOut = 10;

enum class Load : uint8_t {
  Sets,            // No query has sums.
  SetsWithStamps,  // Another one has, elsewhere.
  OneSum,          // A sum that the last of the ten packs.
  SumEverywhere,   // One that each of the ten packs: eleven instances.
};

void pack_load(TestRequest& request, Baggage& branch, Load load, bool is_last) {
  request.pack(branch, kFirstBag, 42, "shopd");
  request.pack(branch, kRecentBag, 42, "shopd");
  const bool adds = load == Load::SumEverywhere || (load == Load::OneSum && is_last);
  if (adds) request.add(branch, kSumBag, 1, "k");
}

// Branches below each other; each has made `kFanOut` of them, and goes on in the third.
Baggage deep_branch(TestRequest& request, Load load) {
  Baggage branch = request.root;
  for (int depth = 0; depth < kDepth; ++depth) {
    pack_load(request, branch, load, false);
    std::vector<Baggage> children;
    for (int i = 0; i < kFanOut; ++i)
      children.push_back(branch.branch(request.faults));
    branch = children[2];
  }
  pack_load(request, branch, load, true);
  CLEW_ASSERT(!branch.contents().emits_sums);
  return branch;
}

Load load_of(const benchmark::State& state) {
  return static_cast<Load>(state.range(0));
}

void copy(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  const Baggage baggage = deep_branch(request, load_of(state));
  for (auto _ : state) {
    Baggage copy = baggage;
    benchmark::DoNotOptimize(copy);
  }
  state.counters["bytes"] = static_cast<double>(baggage.size_bytes());
}

// Ten of them, of a branch that has packed before the first one.
void branch(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  const Baggage baggage = deep_branch(request, load_of(state));
  for (auto _ : state) {
    Baggage parent = baggage;
    for (int i = 0; i < kFanOut; ++i) {
      Baggage child = parent.branch(request.faults);
      benchmark::DoNotOptimize(child);
    }
  }
  state.SetItemsProcessed(state.iterations() * kFanOut);
  state.counters["bytes"] = static_cast<double>(baggage.size_bytes());
}

// Ten that have packed, and come back in the order in which they were made.
void join(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  Baggage parent = deep_branch(request, load_of(state));
  std::vector<Baggage> children;
  for (int i = 0; i < kFanOut; ++i) {
    children.push_back(parent.branch(request.faults));
    pack_load(request, children.back(), load_of(state), true);
    children.back() = children.back().hand_over(request.faults);
  }
  Faults faults;
  for (auto _ : state) {
    Baggage joined = parent;
    for (const Baggage& child : children)
      joined.receive(child, faults);
    benchmark::DoNotOptimize(joined);
  }
  CLEW_ASSERT(faults == Faults());
  state.SetItemsProcessed(state.iterations() * kFanOut);
}

void pack_first(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  Baggage baggage = deep_branch(request, load_of(state));
  const std::string fields = fields_of(42, "shopd");
  for (auto _ : state)
    benchmark::DoNotOptimize(baggage.pack(kFirstBag, 1, as_bytes_of(fields), request.faults));
}

void pack_most_recent(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  Baggage baggage = deep_branch(request, load_of(state));
  const std::string fields = fields_of(42, "shopd");
  for (auto _ : state)
    benchmark::DoNotOptimize(baggage.pack(kRecentBag, 1, as_bytes_of(fields), request.faults));
}

void add_to_a_sum(benchmark::State& state) {
  TestRequest request;
  Baggage baggage = deep_branch(request, Load::SumEverywhere);
  for (auto _ : state)
    benchmark::DoNotOptimize(request.add(baggage, kSumBag, 1, "k"));
}

void unpack_first(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  const Baggage baggage = deep_branch(request, load_of(state));
  for (auto _ : state) {
    TupleReader tuples;
    Tuple tuple;
    benchmark::DoNotOptimize(baggage.unpack(kFirstBag.name, tuples));
    benchmark::DoNotOptimize(tuples.next(tuple));
    ByteReader reader(tuple.fields);
    benchmark::DoNotOptimize(take_number(reader));
    benchmark::DoNotOptimize(take_text(reader));
  }
}

void unpack_a_sum(benchmark::State& state) {
  TestRequest request;
  const Baggage baggage = deep_branch(request, Load::SumEverywhere);
  for (auto _ : state) {
    Groups value;
    benchmark::DoNotOptimize(baggage.unpack(kSumBag.name, value));
    benchmark::DoNotOptimize(value);
  }
}

void write_and_read(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  const Baggage baggage = deep_branch(request, load_of(state));
  std::array<std::byte, kBaggageBytesMax> room;
  Baggage read;
  for (auto _ : state) {
    const size_t size = write_wire(baggage, 0, room);
    benchmark::DoNotOptimize(read_wire(std::span(room).first(size), read));
  }
}

void seal_and_open(benchmark::State& state) {
  TestRequest request(load_of(state) != Load::Sets);
  const Baggage baggage = deep_branch(request, load_of(state));
  Keys keys;
  CLEW_ASSERT(keys.add({.tenant = 1, .epoch = 1, .secret = {}}).has_value());
  std::array<std::byte, kSealedBytesMax> room;
  Refusals refusals{};
  Baggage read;
  for (auto _ : state) {
    const size_t size = seal(baggage, keys, 1, room).value_or(0);
    const Receiver receiver{.tenant = 1, .now_s = 0};
    CLEW_ASSERT(open(std::span(room).first(size), keys, receiver, read, refusals) == Refusal::None);
  }
}

// Of each load.
BENCHMARK(copy)->DenseRange(0, 3);
BENCHMARK(branch)->DenseRange(0, 3);
BENCHMARK(join)->DenseRange(0, 3);
BENCHMARK(pack_first)->DenseRange(0, 3);
BENCHMARK(pack_most_recent)->DenseRange(0, 3);
BENCHMARK(add_to_a_sum);
BENCHMARK(unpack_first)->DenseRange(0, 3);
BENCHMARK(unpack_a_sum);
BENCHMARK(write_and_read)->DenseRange(0, 3);
BENCHMARK(seal_and_open)->DenseRange(0, 3);

}  // namespace
}  // namespace clew::causal
