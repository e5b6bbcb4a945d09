// SPDX-License-Identifier: Apache-2.0
// Any text is a policy or an error that names its place. What was read is within its limits. Text
// beyond ASCII is left to policy_test.cc: toml++ 3.3 asks whether "ä" is a space by a switch that
// calls it unreachable (is_non_ascii_horizontal_whitespace), where the sanitizer ends the program.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "recorder/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace recorder = clew::recorder;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < 0; })) return 0;
  const auto policy = recorder::parse_policy(text, "fuzz.toml");
  if (!policy) {
    CLEW_ASSERT(policy.error().message.starts_with("fuzz.toml:"));
    return 0;
  }
  CLEW_ASSERT(policy->group.empty() || recorder::check_group(policy->group));
  CLEW_ASSERT(!policy->folder.empty() && policy->limits.interval_ns != 0);
  CLEW_ASSERT(policy->limits.files_max.value_or(1) != 0);
  CLEW_ASSERT(policy->limits.same_crash_max.value_or(1) != 0);
  CLEW_ASSERT(policy->conditions.size() <= recorder::kConditionsMax);
  for (const recorder::Condition& one : policy->conditions)
    CLEW_ASSERT(!one.query.empty() && one.place.starts_with("fuzz.toml:"));
  return 0;
}
