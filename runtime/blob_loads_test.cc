// SPDX-License-Identifier: Apache-2.0
// Memory that is read by loads that cannot fault. Here the load is a function of the test, which
// asks the kernel: what the accessors make of it must be what they make of the kernel's own
// answers. The real one is in tests/kernel_machine/loads.
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/arena.h"
#include "runtime/blob_testing.h"

namespace {
volatile uint64_t loads = 0;  // The compiler does not see who counts.
}  // namespace

extern "C" {
// As the load of the vDSO: the address in rdi, the word in rax, the carry flag says "no". All other
// registers but rsi and rdx keep their values.
void clew_test_load();
__attribute__((used)) bool clew_test_load_word(uint64_t address, uint64_t* word) {
  loads = loads + 1;
  EXPECT_EQ(address % 8, 0U);
  iovec local = {word, sizeof *word};
  iovec remote = {reinterpret_cast<void*>(address), sizeof *word};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof *word;
}
}

asm(R"(
        .text
        .globl clew_test_load
clew_test_load:
        push %rcx
        push %r8
        push %r9
        push %r10
        push %r11
        push %rbp
        mov %rsp, %rbp
        sub $16, %rsp
        and $-16, %rsp
        mov %rsp, %rsi
        call clew_test_load_word
        mov (%rsp), %rcx
        cmp $1, %al
        mov %rcx, %rax
        mov $0x11, %edi
        mov $0x22, %esi
        mov $0x33, %edx
        leave
        pop %r11
        pop %r10
        pop %r9
        pop %r8
        pop %rcx
        ret
        .previous
)");

namespace clew::runtime {
namespace {

constexpr uint64_t kTo = 512;  // In the region.
constexpr size_t kToBytes = 128;

class Loads : public RuntimeBlob {
 protected:
  void SetUp() override {
    RuntimeBlob::SetUp();
    ASSERT_TRUE(stub(StubCall::Claim));
    pages_ = map_at(0, 8192, MAP_PRIVATE);
    ASSERT_NE(pages_, nullptr);
    ASSERT_EQ(mprotect(pages_ + 4096, 4096, PROT_NONE), 0);
  }
  void TearDown() override {
    munmap(pages_, 8192);
    RuntimeBlob::TearDown();
  }

  struct Answer {
    uint64_t result = 0;
    std::array<uint8_t, kToBytes> bytes{};
    bool operator==(const Answer&) const = default;
  };
  Answer ask(Accessor accessor, uint64_t size, uint64_t from) {
    Answer answer;
    std::memset(own_region() + kTo, 0xEE, kToBytes);
    answer.result = access(accessor, kTo, size, from);
    std::memcpy(answer.bytes.data(), own_region() + kTo, kToBytes);
    EXPECT_TRUE(kept_);
    return answer;
  }
  Answer by_kernel(Accessor accessor, uint64_t size, uint64_t from) {
    header().load_address = 0;
    header().system_calls_allowed = 1;
    return ask(accessor, size, from);
  }
  // Where a system call would be refused.
  Answer by_loads(Accessor accessor, uint64_t size, uint64_t from) {
    header().load_address = reinterpret_cast<uint64_t>(&clew_test_load);
    header().system_calls_allowed = 0;
    return ask(accessor, size, from);
  }

  uint8_t* pages_ = nullptr;
};

TEST_F(Loads, OfAnyPlaceAndSizeGiveWhatTheKernelGives) {
  std::mt19937_64 random(16);
  for (int round = 0; round < 20'000; ++round) {
    for (int i = 4096 - 256; i < 4096; ++i)
      pages_[i] = random() % 32 == 0 ? 0 : static_cast<uint8_t>(random());
    const uint64_t from = reinterpret_cast<uint64_t>(pages_) + 4096 - 192 + random() % 256;
    const uint64_t size = random() % 100;
    for (const Accessor accessor : {Accessor::TryRead, Accessor::TryReadString}) {
      const Answer wanted = by_kernel(accessor, size, from);
      ASSERT_EQ(by_loads(accessor, size, from), wanted) << size << " bytes at ..." << from % 4096;
    }
  }
}

TEST_F(Loads, OfWhatIsNoMemoryGiveNothing) {
  for (const uint64_t address : {uint64_t{0}, uint64_t{1} << 63, 0xFFFF'8000'0000'0000,
                                 ~uint64_t{0}, reinterpret_cast<uint64_t>(pages_) + 4096}) {
    const Answer read = by_loads(Accessor::TryRead, 8, address);
    EXPECT_EQ(read.result, 0U);
    EXPECT_EQ(read.bytes[0], 0U);
    EXPECT_EQ(by_loads(Accessor::TryReadString, 8, address).result, ~uint64_t{0});
  }
}

TEST_F(Loads, AreAsFewAsThereAreWords) {
  std::memset(pages_, 'x', 64);
  pages_[20] = 0;
  const auto address = reinterpret_cast<uint64_t>(pages_);
  const auto loads_of = [&](Accessor accessor, uint64_t size, uint64_t from) {
    const uint64_t before = loads;
    (void)by_loads(accessor, size, from);
    return loads - before;
  };
  EXPECT_EQ(loads_of(Accessor::TryRead, 8, address), 1U);
  EXPECT_EQ(loads_of(Accessor::TryRead, 8, address + 4), 2U);
  EXPECT_EQ(loads_of(Accessor::TryRead, 64, address), 8U);
  EXPECT_EQ(loads_of(Accessor::TryReadString, 64, address), 3U);  // Up to the word with the zero.
  EXPECT_EQ(loads_of(Accessor::TryReadString, 64, address + 20), 1U);
}

// The kernel reads there: a load would make the stack grow.
TEST_F(Loads, AreNotMadeBelowTheFirstThreadsStack) {
  std::memset(pages_, 'x', 8);
  const auto address = reinterpret_cast<uint64_t>(pages_);
  const auto is_loaded = [&](uint64_t low, uint64_t high, uint64_t from) {
    header().stack_low = low;
    header().stack_high = high;
    const uint64_t before = loads;
    const uint64_t result = by_loads(Accessor::TryRead, 8, from).result;
    const bool by_load = loads != before;
    EXPECT_EQ(result, by_load ? 1U : 0U);
    return by_load;
  };
  const auto own = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const uint64_t above = (own + 64) & ~uint64_t{7};
  // The pages are in the stack of another thread.
  EXPECT_FALSE(is_loaded(address - 4096, address + 4096, address));
  EXPECT_FALSE(is_loaded(address - 4096, address + 4, address));
  EXPECT_FALSE(is_loaded(address + 4, address + 4096, address));
  EXPECT_TRUE(is_loaded(address - 4096, address, address));
  EXPECT_TRUE(is_loaded(address + 8, address + 4096, address));
  // The stack is this thread's.
  EXPECT_TRUE(is_loaded(own - 65536, own + 65536, above));
  EXPECT_FALSE(is_loaded(own - 65536, own + 65536, own - 32768));
}

}  // namespace
}  // namespace clew::runtime
