// SPDX-License-Identifier: Apache-2.0
// The D accessors, byte for byte as processes get them, over memory that anybody may have written:
// in the order of what a program does, and while somebody else writes. Each run is a process of its
// own, and its signal is the finding.
#include <algorithm>
#include <atomic>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "blob_copy.h"
#include "hostile_input.h"
#include "hostile_session.h"
#include "runtime/d_blob.h"

namespace clew::accessors {
namespace {

constexpr uint32_t kSecondsMax = 120;
constexpr size_t kInputBytes = 2000;

using Bytes = std::vector<uint8_t>;

Bytes random_input(uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes input(kInputBytes);
  for (uint8_t& byte : input)
    byte = static_cast<uint8_t>(random());
  return input;
}

// The status of a process that does it and ends.
int status_of(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsMax);
    work();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(HostileAccessors, StayInTheirMemoryAndEndWhateverItHolds) {
  constexpr uint64_t kInputs = 400;
  for (uint32_t shape = 0; shape < kShapes; ++shape) {
    const int status = status_of([shape] {
      HostileSession session(shape);
      const BlobCopy code(session);
      for (uint64_t i = 0; i < kInputs; ++i) {
        session.clear();
        run(session, random_input(shape * kInputs + i));
        if (!session.has_paint()) _exit(1);
      }
    });
    EXPECT_EQ(status, 0) << "shape " << shape;
  }
}

// Each word that decides where is read once, or compared as it is used.
TEST(HostileAccessors, StayInTheirMemoryWhileSomebodyElseWritesIt) {
  constexpr uint64_t kInputs = 400;
  for (uint32_t shape = 0; shape < kShapes; ++shape) {
    const int status = status_of([shape] {
      HostileSession session(shape);
      const BlobCopy code(session);
      std::atomic<bool> ends = false;
      std::thread other([&] {
        for (uint64_t i = 0; !ends; ++i)
          write_only(session, random_input(~i));
      });
      for (uint64_t i = 0; i < kInputs; ++i)
        run(session, random_input(shape * kInputs + i));
      ends = true;
      other.join();
      if (!session.has_paint()) _exit(1);
    });
    EXPECT_EQ(status, 0) << "shape " << shape;
  }
}

// Registers that nobody noted: where they point to is not read as the stack.
TEST(HostileAccessors, AForgedStackPointerIsNotRead) {
  constexpr uint32_t kBp = 4;
  constexpr uint32_t kSp = 19;
  constexpr uint64_t kDepthMax = 512;  // The tables may lead anywhere.
  const int status = status_of([] {
    HostileSession session(0);
    const BlobCopy code(session);
    auto* const registers = reinterpret_cast<uint64_t*>(session.window().clock_stack);
    for (const uint64_t address : {uint64_t{0x10}, uint64_t{1} << 63}) {
      session.window().header.registers = 1;
      registers[kBp] = address;
      registers[kSp] = address;
      const auto index =
          static_cast<uint32_t>(abi::MachineAccessor::StackDepth) - abi::kMachineAccessorBase;
      if (session.call(index, {1, 0, 0, 0}) > kDepthMax) _exit(1);
    }
  });
  EXPECT_EQ(status, 0);
}

// It is counted on the page that the target has for that, where the tracer looks.
TEST(HostileAccessors, CodeThatNobodyKnowsIsCounted) {
  constexpr uint32_t kIp = 16;
  const auto is_counted = [] {
    HostileSession session(0);
    const BlobCopy code(session);
    auto* const registers = reinterpret_cast<uint64_t*>(session.window().clock_stack);
    const auto index =
        static_cast<uint32_t>(abi::MachineAccessor::StackDepth) - abi::kMachineAccessorBase;
    for (uint64_t pc = 1; pc != 0; pc <<= 1) {
      session.window().header.registers = 1;
      registers[kIp] = pc;
      (void)session.call(index, {1, 0, 0, 0});
    }
    return session.unknown_code() != 0;
  };
  // Whoever has tables forks, and the child has its own.
  const int status = status_of([&] {
    if (!is_counted()) _exit(1);
    const int of_child = status_of([&] {
      if (!is_counted()) _exit(1);
    });
    if (of_child != 0) _exit(2);
  });
  EXPECT_EQ(status, 0);
}

// What writes to the program, signals it or waits is for the kernel alone.
TEST(HostileAccessors, TheDestructiveOnesHaveNoEntry) {
  using abi::MachineAccessor;
  constexpr uint64_t kThunks = 0x1000;
  constexpr uint64_t kCopy = 0x10000;
  const auto entries = runtime::d_accessor_entries(kThunks, kCopy);
  for (const MachineAccessor one :
       {MachineAccessor::CopyOut, MachineAccessor::Raise, MachineAccessor::Chill}) {
    const auto number = static_cast<uint32_t>(one);
    EXPECT_EQ(entries[number], kThunks);
    EXPECT_FALSE(std::ranges::count(entries, kCopy + runtime::d_accessor_offset(number)));
  }
}

}  // namespace
}  // namespace clew::accessors
