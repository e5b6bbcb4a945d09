// SPDX-License-Identifier: Apache-2.0
// Trampolines of installed binaries are right; each of them with one wrong bit is not.
#include "inline/trampoline_check.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "code/image_text.h"
#include "code/kept_instruction.h"
#include "code/windows.h"
#include "target/module_image.h"

namespace clew::inline_ {
namespace {

constexpr const char* kLibrary = "/lib/x86_64-linux-gnu/libc.so.6";
constexpr uint64_t kBias = 0x5555'5555'4000;
constexpr uint64_t kDistance = 64U << 20;  // Of the arena, behind the module.

code::Plan plan_of(const std::string& path,
                   code::LateUprobeDanger danger = code::LateUprobeDanger::Allowed) {
  const auto image = target::ModuleImage::read(path);
  if (!image) return {};
  const auto text = code::text_of(*image);
  if (!text) return {};
  const code::ModuleCode code = code::analyse(*text);
  std::vector<code::Request> requests;
  for (const target::Function& function : image->functions()) {
    requests.push_back({code::RequestKind::Entry, function.address});
    requests.push_back({code::RequestKind::Exits, function.address});
    if (danger == code::LateUprobeDanger::Refused) continue;  // None serves both ways beside it.
    requests.push_back({code::RequestKind::Offset, function.address});
  }
  return plan_windows(code, requests, {}, danger);
}

// One window of a plan as the arena of a process would get it.
struct Built {
  TrampolineRequest request;
  StubEnvironment environment;
  std::vector<BodyShape> bodies;
  Trampoline trampoline;

  [[nodiscard]] bool is_right() const {
    return check_trampoline(request, environment, trampoline.bytes, trampoline.patches).has_value();
  }
  // Whether a byte of the trampoline belongs to a body.
  [[nodiscard]] bool is_body(size_t at) const {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const uint32_t begin = trampoline.body_offsets[i];
      if (at >= begin && at < begin + bodies[i].size_bytes) return true;
    }
    return false;
  }
};

class Trampolines : public testing::Test {
 protected:
  void build(const code::Plan& plan, uint32_t window, Built& built) {
    const std::span<const code::Point> points = plan.points_of(window);
    for (size_t i = 0; i < points.size(); ++i) {
      built.bodies.push_back({.size_bytes = static_cast<uint32_t>(random_() % 40),
                              .clobbers = abi::RegisterSet(random_() & 0xffef),
                              .guarded = (random_() & 1) != 0});
      const bool may_keep = points[i].kind != code::PointKind::Offset && random_() % 4 == 0;
      if (points[i].keeps_flags || may_keep) built.bodies.back().clobbers.add(abi::kSavedFlags);
    }
    built.environment = {.low_address = 0x1000'0000,
                         .session = static_cast<uint32_t>(random_() % 4),
                         .blob_address = kBias + plan.windows.back().address + kDistance,
                         .owner_check = static_cast<OwnerCheck>(random_() % 3),
                         .unreadable_address = 0x1100'0090};
    built.request = {.window = &plan.windows[window],
                     .points = points,
                     .bodies = built.bodies,
                     .load_bias = kBias,
                     .destination = built.environment.blob_address + 0x2000};
    if ((random_() & 3) == 0 && points.front().side == code::Side::Before) {
      built.request.lower_points = 1U << points.front().instruction;
      built.request.lower_probes[points.front().instruction] = built.request.destination - 0x100;
    }
    const code::Window& built_for = plan.windows[window];
    if (built_for.window_class == code::WindowClass::BothWays && (random_() & 1) == 0) {
      const size_t behind = built_for.instructions.size();
      built.request.lower_points |= 1U << behind;
      built.request.lower_probes[behind] = built.request.destination - 0x200;
    }
    auto trampoline = build_trampoline(built.request, built.environment);
    ASSERT_TRUE(trampoline.has_value()) << trampoline.error().message;
    built.trampoline = std::move(*trampoline);
  }

  // One window of each kind.
  void expect_wrong_bits_refused(const code::Plan& plan);

  std::mt19937_64 random_{11};
};

// Forms of what a window has, so that one of each kind is changed bit by bit.
std::string kind_of(const code::Window& window, std::span<const code::Point> points) {
  std::string kind;
  if (window.kept_bytes != 0) {
    const auto kept = code::kept_instruction(std::span(window.original).first(window.kept_bytes));
    kind += std::to_string(std::min(kept->back_bytes, 128)) + ' ';  // lea's distance.
  }
  if (window.window_class == code::WindowClass::BothWays) {
    kind = fmt::format("both ways {} ", window.instructions.front().length);
  }
  for (const code::Displaced& displaced : window.instructions)
    kind += static_cast<char>('a' + static_cast<int>(displaced.form));
  for (const code::Point& point : points) {
    kind += static_cast<char>('0' + static_cast<int>(point.kind));
    kind += static_cast<char>('0' + static_cast<int>(point.side));
    if (point.keeps_flags) kind += 'f';
  }
  return kind;
}

void Trampolines::expect_wrong_bits_refused(const code::Plan& plan) {
  std::map<std::string, uint32_t> kinds;
  for (uint32_t i = 0; i < plan.windows.size(); ++i) {
    if (!plan.points_of(i).empty()) kinds.emplace(kind_of(plan.windows[i], plan.points_of(i)), i);
  }
  ASSERT_GT(kinds.size(), 50U);
  size_t changed = 0;
  for (const auto& [kind, window] : kinds) {
    Built built;
    build(plan, window, built);
    ASSERT_TRUE(built.is_right());
    for (size_t bit = 0; bit < 8 * built.trampoline.bytes.size(); ++bit) {
      if (built.is_body(bit / 8)) continue;
      uint8_t& byte = built.trampoline.bytes[bit / 8];
      const uint8_t before = byte;
      byte ^= static_cast<uint8_t>(1U << bit % 8);
      EXPECT_FALSE(built.is_right()) << kind << ": bit " << bit;
      byte = before;
      ++changed;
    }
  }
  EXPECT_GT(changed, 50'000U);
}

TEST_F(Trampolines, OfInstalledBinariesAreRight) {
  size_t checked = 0;
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/redis-server",
                           "/lib/x86_64-linux-gnu/libstdc++.so.6"}) {
    for (const auto danger : {code::LateUprobeDanger::Allowed, code::LateUprobeDanger::Refused}) {
      const code::Plan plan = plan_of(path, danger);
      for (uint32_t i = 0; i < plan.windows.size(); ++i) {
        if (plan.points_of(i).empty()) continue;
        Built built;
        build(plan, i, built);
        const auto answer = check_trampoline(built.request, built.environment,
                                             built.trampoline.bytes, built.trampoline.patches);
        ASSERT_TRUE(answer.has_value()) << path << ": " << answer.error().message;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 10'000U);
}

TEST_F(Trampolines, WithOneWrongBitAreRefused) {
  expect_wrong_bits_refused(plan_of(kLibrary));
  expect_wrong_bits_refused(plan_of(kLibrary, code::LateUprobeDanger::Refused));
}

// What the window says of its instructions is not what its bytes are.
TEST_F(Trampolines, OfAWrongAnalysisAreRefused) {
  const code::Plan plan = plan_of("/lib/x86_64-linux-gnu/libc.so.6");
  size_t refused = 0;
  for (uint32_t i = 0; i < plan.windows.size(); ++i) {
    code::Plan wrong = {.windows = {plan.windows[i]},
                        .points = {plan.points_of(i).begin(), plan.points_of(i).end()},
                        .refusals = {}};
    for (code::Point& point : wrong.points)
      point.window = 0;
    // (What a tail stands for is not jumped to.)
    const bool has_tail =
        std::any_of(wrong.points.begin(), wrong.points.end(),
                    [](const code::Point& point) { return point.tail.size_bytes != 0; });
    bool has_target = false;
    for (code::Displaced& displaced : wrong.windows[0].instructions) {
      has_target |= displaced.target != 0;
      displaced.target += displaced.target != 0 ? 1 : 0;
    }
    if (!has_target || has_tail || wrong.points.empty()) continue;
    Built built;
    build(wrong, 0, built);
    EXPECT_FALSE(built.is_right());
    ++refused;
  }
  EXPECT_GT(refused, 500U);
}

TEST_F(Trampolines, JumpsThatLeadElsewhereAreRefused) {
  const code::Plan plan = plan_of(kLibrary, code::LateUprobeDanger::Refused);
  for (uint32_t i = 0; i < plan.windows.size(); ++i) {
    const bool is_both = plan.windows[i].window_class == code::WindowClass::BothWays;
    if (plan.points_of(i).empty() || (i >= 500 && !is_both)) continue;
    Built built;
    build(plan, i, built);
    for (code::Patch& patch : built.trampoline.patches) {
      for (unsigned at = 0; at < patch.size_bytes; ++at) {
        patch.replacement[at] ^= 4;
        EXPECT_FALSE(built.is_right());
        patch.replacement[at] ^= 4;
      }
    }
    EXPECT_TRUE(built.is_right());
  }
}

}  // namespace
}  // namespace clew::inline_
