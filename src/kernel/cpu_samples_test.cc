// SPDX-License-Identifier: Apache-2.0
#include "kernel/cpu_samples.h"

#include <chrono>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint8_t> bytes_of(std::vector<uint64_t> words) {
  std::vector<uint8_t> bytes(words.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

constexpr uint64_t kThreadSeven = (uint64_t{8} << 32) | 7;  // pid 7, tid 8

TEST(CpuSamples, ASampleHasWhatTheStackHeld) {
  CpuSample sample;
  std::vector<uint64_t> words;
  ASSERT_TRUE(
      parse_cpu_sample(bytes_of({0x1234, kThreadSeven, 99, 24, 1, 2, 3, 16}), sample, words));
  EXPECT_EQ(sample.pid, 7);
  EXPECT_EQ(sample.address, 0x1234U);
  EXPECT_EQ(sample.time_ns, 99);
  EXPECT_THAT(sample.stack, ElementsAre(1, 2));
}

TEST(CpuSamples, AThreadOfTheKernelHasNoStack) {
  CpuSample sample;
  std::vector<uint64_t> words;
  ASSERT_TRUE(parse_cpu_sample(bytes_of({0x1234, kThreadSeven, 99, 0}), sample, words));
  EXPECT_THAT(sample.stack, IsEmpty());
}

TEST(CpuSamples, BytesThatAreNoSampleAreNone) {
  CpuSample sample;
  std::vector<uint64_t> words;
  EXPECT_FALSE(parse_cpu_sample(bytes_of({0x1234, kThreadSeven, 99}), sample, words));
  EXPECT_FALSE(parse_cpu_sample(bytes_of({0x1234, kThreadSeven, 99, 24, 1, 2, 3}), sample, words));
  EXPECT_FALSE(
      parse_cpu_sample(bytes_of({0x1234, kThreadSeven, 99, UINT64_MAX - 8, 1, 2}), sample, words));
  ASSERT_TRUE(
      parse_cpu_sample(bytes_of({0x1234, kThreadSeven, 99, 8, 1, UINT64_MAX}), sample, words));
  EXPECT_THAT(sample.stack, ElementsAre(1));
}

TEST(CpuSamples, WhatRunsIsSeen) {
  auto samples = CpuSamples::open(997);
  if (!samples) GTEST_SKIP() << samples.error().message;
  uint64_t mine = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (mine < 20 && std::chrono::steady_clock::now() < until) {
    samples->read([&](const CpuSample& sample) {
      if (sample.pid == getpid() && sample.is_user) ++mine;
    });
  }
  EXPECT_GE(mine, 20U);
}

}  // namespace
}  // namespace clew::kernel
