// SPDX-License-Identifier: Apache-2.0
// How long does it take to have the copies of redis-server's functions, made, and from the cache?
// Milliseconds; the first is the baseline.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>

#include "copy/sidecar.h"

namespace clew::copy {
namespace {

constexpr const char* kProgram = "/usr/bin/redis-server";

Sidecar made_of(const target::ModuleImage& image) {
  const auto facts = *Facts::of(image);
  ModuleProof proof = prove_module(*facts);
  ModuleCopy copy = *write_copy(*facts, proof.proved, {}, image.sections().back().end() + 0x10000);
  return {.copy = *check(*facts, proof.proved, {}, std::move(copy)),
          .proved_bytes = proof.proved_bytes,
          .refused_bytes = proof.refused_bytes,
          .refused = std::move(proof.refused)};
}

void made(benchmark::State& state) {
  const auto image = target::ModuleImage::read(kProgram);
  if (!image) return state.SkipWithError("redis-server is not installed");
  for (auto _ : state)
    benchmark::DoNotOptimize(made_of(*image));
}
BENCHMARK(made)->Unit(benchmark::kMillisecond);

void key(benchmark::State& state) {
  const auto image = target::ModuleImage::read(kProgram);
  if (!image) return state.SkipWithError("redis-server is not installed");
  const FactsInput input = *facts_input(*image);
  for (auto _ : state)
    benchmark::DoNotOptimize(sidecar_key(input));
}
BENCHMARK(key)->Unit(benchmark::kMillisecond);

void read_again(benchmark::State& state) {
  const auto image = target::ModuleImage::read(kProgram);
  if (!image) return state.SkipWithError("redis-server is not installed");
  std::string folder = std::filesystem::temp_directory_path() / "sidecars-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no folder");
  const Sidecars sidecars(folder);
  const SidecarKey known = *sidecar_key(*facts_input(*image));
  sidecars.store(known, made_of(*image));
  for (auto _ : state) {
    const auto found = sidecars.find(known);
    if (!found) state.SkipWithError("it was not found");
    benchmark::DoNotOptimize(found);
  }
  state.counters["file_kib"] = static_cast<double>(
      std::filesystem::file_size(std::filesystem::directory_iterator(folder)->path()) >> 10);
  std::filesystem::remove_all(folder);
}
BENCHMARK(read_again)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clew::copy
