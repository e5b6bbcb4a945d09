// SPDX-License-Identifier: Apache-2.0
// How long does it take to know a module? Milliseconds per file: cold (no cache), and from the
// cache. The requirement is 150 ms for redis-server and libc together. CLEW_BENCH_MODULE names one
// more file (a large debug binary); its peak memory is in the counter rss_mb.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include "target/catalog.h"
#include "target/module_image.h"

namespace clew::target {
namespace {

const std::vector<std::string> kRedisAndLibc = {"/usr/bin/redis-server",
                                                "/lib/x86_64-linux-gnu/libc.so.6"};

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void read_files(benchmark::State& state, const std::vector<std::string>& paths,
                const ReadOptions& options) {
  size_t functions = 0;
  for (auto _ : state) {
    functions = 0;
    for (const std::string& path : paths) {
      const auto image = ModuleImage::read(path, options);
      if (!image) return state.SkipWithError(image.error().message.c_str());
      functions += image->functions().size();
    }
  }
  state.counters["functions"] = static_cast<double>(functions);
  state.counters["rss_mb"] = peak_memory_mb();
}

void redis_and_libc_cold(benchmark::State& state) {
  read_files(state, kRedisAndLibc, {});
}
BENCHMARK(redis_and_libc_cold)->Unit(benchmark::kMillisecond);

ReadOptions cached_options() {
  ReadOptions options;
  options.cache_directory = std::filesystem::temp_directory_path() / "clew-target-bench";
  options.cache_from_bytes = 0;
  return options;
}

void redis_and_libc_cached(benchmark::State& state) {
  read_files(state, kRedisAndLibc, cached_options());
}
BENCHMARK(redis_and_libc_cached)->Unit(benchmark::kMillisecond);

void libstdcxx_cold(benchmark::State& state) {
  read_files(state, {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}, {});
}
BENCHMARK(libstdcxx_cold)->Unit(benchmark::kMillisecond);

void own_process_all_functions(benchmark::State& state) {
  size_t found = 0;
  for (auto _ : state) {
    auto catalog = Catalog::of_process(getpid());
    if (!catalog) return state.SkipWithError(catalog.error().message.c_str());
    const auto matches = catalog->find("*");
    found = matches ? matches->size() : 0;
  }
  state.counters["functions"] = static_cast<double>(found);
}
BENCHMARK(own_process_all_functions)->Unit(benchmark::kMillisecond);

void named_module(benchmark::State& state, const ReadOptions& options) {
  const char* path = std::getenv("CLEW_BENCH_MODULE");
  if (path == nullptr) return state.SkipWithError("CLEW_BENCH_MODULE is not set");
  read_files(state, {path}, options);
}
void named_module_cold(benchmark::State& state) {
  named_module(state, {});
}
BENCHMARK(named_module_cold)->Unit(benchmark::kMillisecond);
void named_module_cached(benchmark::State& state) {
  named_module(state, cached_options());
}
BENCHMARK(named_module_cached)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clew::target
