// SPDX-License-Identifier: Apache-2.0
// Fuzzes the reader of a NATS server's configuration, and what judges it: an error with its line,
// or a tree within limits of which every value has a place, and findings that can be printed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "doctor/findings.h"
#include "doctor/nats_rules.h"
#include "doctor/nats_settings.h"

namespace {

using clew::doctor::Setting;
using clew::doctor::Settings;
using clew::doctor::SettingValue;

constexpr size_t kDepthMost = 100;  // Of the reader's 64.

size_t check(const Settings& settings, const SettingValue& value, size_t lines, size_t depth) {
  CLEW_ASSERT(depth < kDepthMost);
  CLEW_ASSERT(value.file < settings.files.size());
  CLEW_ASSERT(value.line <= lines);
  CLEW_ASSERT(!settings.place(value).empty());
  size_t values = 1;
  for (const SettingValue& item : value.items)
    values += check(settings, item, lines, depth + 1);
  for (const Setting& setting : value.settings) {
    CLEW_ASSERT(value.last(setting.key) != nullptr);
    values += check(settings, setting.value, lines, depth + 1);
  }
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = clew::doctor::parse_nats_settings(text, "fuzz.conf");
  if (!settings) {
    CLEW_ASSERT(!settings.error().message.empty());
    return 0;
  }
  size_t lines = 1;
  for (const char one : text)
    lines += one == '\n' ? 1U : 0U;
  CLEW_ASSERT(check(*settings, settings->root, lines, 0) >= 1);
  clew::doctor::Findings findings("server");
  clew::doctor::check_nats_settings(*settings, findings);
  CLEW_ASSERT(!clew::doctor::text_of(findings.all()).empty());
  CLEW_ASSERT(!clew::doctor::json_of(findings.all()).empty());
  return 0;
}
