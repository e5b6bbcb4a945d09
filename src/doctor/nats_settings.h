// SPDX-License-Identifier: Apache-2.0
// The file that configures a server of NATS, as that reads it: maps `{}`, lists `[]`, values in
// quotes or bare, `#` and `//` comments, `key: value`, `key = value` and `key value`, `$name` for a
// value that stands elsewhere, and `include FILE`. What stands there twice is there twice. The file
// may be anybody's: it is an error, or a tree within limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::doctor {

struct Setting;

struct SettingValue {
  enum class Kind : uint8_t { Text, List, Map };
  Kind kind = Kind::Text;
  std::string text{};               // Text, without quotes.
  bool is_quoted = false;           // Text
  std::vector<SettingValue> items;  // List
  std::vector<Setting> settings;    // Map
  uint32_t line = 0;
  uint32_t file = 0;  // In Settings::files.

  // All of that name, which is in lower case; of maps alone.
  [[nodiscard]] std::vector<const SettingValue*> all(std::string_view name) const;
  // The last one, which the server takes; null: there is none.
  [[nodiscard]] const SettingValue* last(std::string_view name) const;
};

struct Setting {
  std::string name;  // As it is written,
  std::string key;   // and in lower case.
  SettingValue value;
};

struct Settings {
  SettingValue root{};
  std::vector<std::string> files{};
  [[nodiscard]] std::string place(const SettingValue& value) const;
};

// Errors: Io; Limit; InvalidQuery with FILE:LINE.
Expected<Settings> read_nats_settings(const std::string& path);
// The same of a text, which may include nothing.
Expected<Settings> parse_nats_settings(std::string_view text, const std::string& name);

}  // namespace clew::doctor
