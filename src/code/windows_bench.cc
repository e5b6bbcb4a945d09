// SPDX-License-Identifier: Apache-2.0
// How long does it take to know where probes can go? Per file: the analysis (once per build-id),
// all entries, and all entries and exits. Unit: milliseconds of processor time for the whole file;
// `functions` gives the scale. Baseline: Zydis alone decoding the same text, without keeping
// anything.
#include <benchmark/benchmark.h>

#include "code/decode.h"
#include "code/image_text.h"
#include "code/windows.h"

namespace clew::code {
namespace {

constexpr const char* kFiles[] = {"/usr/bin/redis-server", "/lib/x86_64-linux-gnu/libc.so.6",
                                  "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"};

std::optional<target::ModuleImage> open(benchmark::State& state) {
  const char* path = kFiles[state.range(0)];
  state.SetLabel(path);
  auto image = target::ModuleImage::read(path);
  if (!image) {
    state.SkipWithError(image.error().message.c_str());
    return std::nullopt;
  }
  state.counters["functions"] = static_cast<double>(image->functions().size());
  return std::move(*image);
}

void decode_with_zydis_alone(benchmark::State& state) {
  const auto image = open(state);
  if (!image) return;
  const auto text = text_of(*image);
  for (auto _ : state) {
    for (const Section& section : text->sections) {
      if (!section.executable) continue;
      for (std::span<const uint8_t> rest = section.bytes; !rest.empty();) {
        const auto decoded = decode_with_zydis(rest);
        benchmark::DoNotOptimize(decoded);
        rest = rest.subspan(decoded ? decoded->length : 1);
      }
    }
  }
}

void analyse_file(benchmark::State& state) {
  const auto image = open(state);
  if (!image) return;
  const auto text = text_of(*image);
  for (auto _ : state) {
    const ModuleCode code = analyse(*text);
    benchmark::DoNotOptimize(&code);
  }
}

void plan_file(benchmark::State& state, bool with_exits) {
  const auto image = open(state);
  if (!image) return;
  const auto text = text_of(*image);
  const ModuleCode code = analyse(*text);
  std::vector<Request> requests;
  for (const target::Function& function : image->functions()) {
    requests.push_back({RequestKind::Entry, function.address});
    if (with_exits) requests.push_back({RequestKind::Exits, function.address});
  }
  for (auto _ : state) {
    const Plan plan = plan_windows(code, requests);
    benchmark::DoNotOptimize(&plan);
  }
}

void plan_entries(benchmark::State& state) {
  plan_file(state, false);
}
void plan_entries_and_exits(benchmark::State& state) {
  plan_file(state, true);
}

BENCHMARK(decode_with_zydis_alone)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(analyse_file)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(plan_entries)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(plan_entries_and_exits)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clew::code
