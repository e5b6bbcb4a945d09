// SPDX-License-Identifier: Apache-2.0
#include "kernel/cpu_samples.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include <unistd.h>

namespace clew::kernel {
namespace {

constexpr size_t kSampleDataBytes = size_t{1} << 16;  // Of each CPU: 110 samples, half a second.
constexpr uint32_t kStackBytes = 512;
constexpr uint64_t kClockSecondNs = 1'000'000'000;

// perf_event_open(2), PERF_RECORD_SAMPLE, as `sample_type` asks for it:
//
//   ip u64 · pid u32 · tid u32 · time u64 · size u64 · stack[size] · [dyn_size u64, unless size is
//   0]
struct SampleHead {
  uint64_t address;
  uint32_t pid;
  uint32_t tid;
  uint64_t time_ns;
  uint64_t stack_bytes;
};
static_assert(sizeof(SampleHead) == 32);

perf_event_attr clock_attributes(uint32_t hz) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  attributes.sample_period = kClockSecondNs / hz;
  attributes.sample_type =
      PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_STACK_USER;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.sample_stack_user = kStackBytes;
  attributes.exclude_idle = 1;
  // Nobody is woken: who reads comes by often enough.
  attributes.watermark = 1;
  attributes.wakeup_watermark = kSampleDataBytes;
  return attributes;
}

}  // namespace

bool parse_cpu_sample(std::span<const uint8_t> body, CpuSample& sample,
                      std::vector<uint64_t>& words) {
  SampleHead head{};
  if (body.size() < sizeof head) return false;
  std::memcpy(&head, body.data(), sizeof head);
  const std::span<const uint8_t> rest = body.subspan(sizeof head);
  uint64_t filled = 0;
  if (head.stack_bytes != 0) {
    if (head.stack_bytes > rest.size() || rest.size() - head.stack_bytes < sizeof filled)
      return false;
    std::memcpy(&filled, rest.data() + head.stack_bytes, sizeof filled);
  }
  words.resize(std::min(filled, head.stack_bytes) / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), rest.data(), words.size() * sizeof(uint64_t));
  sample.pid = static_cast<pid_t>(head.pid);
  sample.address = head.address;
  sample.time_ns = static_cast<int64_t>(head.time_ns);
  sample.stack = words;
  return true;
}

Expected<CpuSamples> CpuSamples::open(uint32_t hz) {
  CpuSamples samples;
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto buffer = PerfBuffer::open(clock_attributes(hz), cpu, kSampleDataBytes, "clock");
    if (!buffer && buffer.error().code == ErrorCode::NotFound) continue;  // It is offline.
    if (!buffer) return tl::unexpected(buffer.error());
    samples.buffers_.push_back(std::move(*buffer));
  }
  return samples;
}

void CpuSamples::read(const std::function<void(const CpuSample&)>& take) {
  std::vector<uint64_t> words;
  const auto look = [&](const perf_event_header& header, std::span<const uint8_t> body) {
    if (header.type == PERF_RECORD_LOST) {
      // Its words: an id, and how many.
      uint64_t count = 0;
      if (body.size() >= 2 * sizeof count)
        std::memcpy(&count, body.data() + sizeof count, sizeof count);
      lost_ += count;
      return;
    }
    CpuSample sample;
    if (header.type != PERF_RECORD_SAMPLE || !parse_cpu_sample(body, sample, words)) return;
    sample.is_user = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    take(sample);
  };
  for (const PerfBuffer& buffer : buffers_)
    (void)buffer.read(look);
}

}  // namespace clew::kernel
