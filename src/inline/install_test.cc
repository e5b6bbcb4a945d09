// SPDX-License-Identifier: Apache-2.0
// What runs in the process is what was verified, in the stub that was made for it.
#include <array>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "inline/attachment.h"
#include "inline/attachment_state.h"
#include "inline/text_image.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::changed_text;
using testing_::Module;
using testing_::module_of;
using testing_::plan_of;
using testing_::small_options;
using testing_::Victim;

// A trampoline in the process's arena and a body for it: add qword gs:[the first cell], 1.
class Installed : public testing::Test {
 protected:
  static constexpr BodyShape kShape = {.size_bytes = 10, .clobbers = {}, .guarded = false};

  void SetUp() override {
    auto attachment = Attachment::open(victim_.pid(), small_options());
    ASSERT_TRUE(attachment) << attachment.error().message;
    attachment_.emplace(std::move(*attachment));
    plan_ = plan_of(*module_, {{code::RequestKind::Entry, "work"}}, *attachment_);
    ASSERT_EQ(plan_.points.size(), 1U);
  }

  Layout lay_out(const BodyShape& shape = kShape) {
    const ModuleRequest request = {
        .plan = &plan_, .load_bias = module_->load_bias, .bodies = {&shape, 1}};
    auto layout = attachment_->lay_out({&request, 1});
    EXPECT_TRUE(layout);
    return std::move(*layout);
  }

  Body body_at(const BodyPlace& place, abi::RegisterSet clobbers = {}) {
    const Geometry& geometry = attachment_->geometry();
    std::vector<uint8_t> bytes = {0x65, 0x48, 0x83, 0x04, 0x25, 0, 0, 0, 0, 1};
    const uint32_t cell = geometry.window_address + abi::kFrameEnd;
    for (unsigned i = 0; i < 4; ++i)
      bytes[5 + i] = static_cast<uint8_t>(cell >> (8 * i));
    auto code = verify::check(bytes, {.address = place.address,
                                      .window_address = geometry.window_address,
                                      .window_size_log2 = 12,
                                      .slot_address = geometry.slot_address,
                                      .clobbers = clobbers});
    EXPECT_TRUE(code) << code.error().message;
    return {0, 0, std::move(*code)};
  }

  std::vector<uint8_t> seen(const verify::VerifiedCode& code) {
    std::vector<uint8_t> bytes(code.bytes().size());
    EXPECT_TRUE(target::read_memory(victim_.pid(), code.address(), bytes));
    return bytes;
  }

  // The process maps something else over the page.
  void cover(uint64_t address) {
    auto target = StoppedTarget::stop(victim_.pid(), std::chrono::milliseconds(2000));
    ASSERT_TRUE(target) << target.error().message;
    const auto mapped = target->checked_call(
        "mmap", {.number = SYS_mmap,
                 .arguments = {address & ~uint64_t{4095}, 4096, PROT_READ | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, ~uint64_t{0}, 0}});
    ASSERT_TRUE(mapped) << mapped.error().message;
    target->resume();
  }

  Victim victim_{CLEW_COUNTER_VICTIM};
  std::unique_ptr<Module> module_ = module_of(victim_.pid(), "counter_victim");
  std::optional<Attachment> attachment_;
  code::Plan plan_;
};

TEST_F(Installed, TheProcessHoldsTheVerifiedBytesAndCannotWriteThem) {
  Layout layout = lay_out();
  const Body body = body_at(*layout.place(0, 0));
  ASSERT_TRUE(attachment_->install(std::move(layout), {&body, 1}));
  EXPECT_THAT(seen(body.code), testing::ElementsAreArray(body.code.bytes()));
  const auto maps = target::read_memory_map(victim_.pid());
  ASSERT_TRUE(maps);
  bool found = false;
  for (const target::Mapping& mapping : *maps) {
    EXPECT_FALSE(mapping.writable && mapping.executable) << mapping.path;
    if (!mapping.contains(body.code.address())) continue;
    found = true;
    EXPECT_TRUE(mapping.executable && !mapping.writable);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(victim_.ask_number("calls 1000"), 1000);
  EXPECT_EQ(testing_::cell(*attachment_, 0), 1000U);
}

TEST_F(Installed, CodeThatTheProcessDoesNotSeeIsNotJumpedTo) {
  Layout layout = lay_out();
  const Body body = body_at(*layout.place(0, 0));
  cover(body.code.address());
  const auto report = attachment_->install(std::move(layout), {&body, 1});
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, testing::HasSubstr("other code than its arena"));
  EXPECT_TRUE(changed_text(victim_.pid()).empty());
  EXPECT_EQ(victim_.ask_number("calls 1000"), 1000);
}

// A stub that was made for another body would run into padding, or restore too little.
TEST_F(Installed, ABodyEndsWhereItsStubGoesOn) {
  Layout layout = lay_out({.size_bytes = 11, .clobbers = {}, .guarded = false});
  const Body body = body_at(*layout.place(0, 0));
  EXPECT_DEATH((void)attachment_->install(std::move(layout), {&body, 1}), "size_bytes");
}

TEST_F(Installed, ABodyWritesOnlyWhatItsStubSaves) {
  Layout layout = lay_out();
  const Body body = body_at(*layout.place(0, 0), abi::RegisterSet(1));
  EXPECT_DEATH((void)attachment_->install(std::move(layout), {&body, 1}), "clobbers");
}

// A uprobe that comes or goes while the process is stopped.
TEST_F(Installed, WhatOthersWriteBesideAChangeStays) {
  constexpr std::array<uint8_t, 1> kTrap = {0xcc};
  const uint64_t changed = module_->address_of("work") + module_->load_bias;
  const uint64_t others = module_->address_of("choose") + module_->load_bias;
  ASSERT_EQ(changed / 4096, others / 4096);
  auto target = stop_target(victim_.pid(), std::chrono::seconds(5));
  ASSERT_TRUE(target) << target.error().message;
  const TextImage::Range range = {changed, 5};
  TextImage text({&range, 1});
  text.load(*target);
  ASSERT_TRUE(target->write(others, kTrap));
  text.change(changed, std::array<uint8_t, 5>{0xe9, 1, 2, 3, 4});
  EXPECT_TRUE(text.equals(changed, std::array<uint8_t, 5>{0xe9, 1, 2, 3, 4}));
  ASSERT_TRUE(text.flush(*target));
  std::array<uint8_t, 1> now{};
  ASSERT_TRUE(target->read(others, now));
  EXPECT_EQ(now, kTrap);
  ASSERT_TRUE(target->read(changed, now));
  EXPECT_EQ(now[0], 0xe9);
}

// At the first byte of what is changed.
TEST_F(Installed, ATrapThatComesWhileTheTextIsPreparedStays) {
  constexpr std::array<uint8_t, 5> kBytes = {0xa9, 1, 2, 3, 4};
  const uint64_t changed = module_->address_of("work") + module_->load_bias;
  auto target = stop_target(victim_.pid(), std::chrono::seconds(5));
  ASSERT_TRUE(target) << target.error().message;
  const TextImage::Range range = {changed, kBytes.size()};
  TextImage text({&range, 1});
  text.load(*target);
  std::array<uint8_t, 5> file{};
  ASSERT_TRUE(target->read(changed, file));
  text.change_but_traps(changed, file, kBytes);
  ASSERT_TRUE(target->write(changed, std::array<uint8_t, 1>{0xcc}));
  ASSERT_TRUE(text.flush(*target));
  std::array<uint8_t, 5> now{};
  ASSERT_TRUE(target->read(changed, now));
  EXPECT_EQ(now, (std::array<uint8_t, 5>{0xcc, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace clew::inline_
