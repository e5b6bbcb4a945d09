// SPDX-License-Identifier: Apache-2.0
// Files in TOML that people write, read strictly: a key that nobody knows, or a value of another
// kind, is an error with its place. Every error is "FILE:LINE:COLUMN: error: what is wrong"
// (InvalidQuery); lines and columns count from 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/toml.h"

namespace clew {

class SettingsFile {
 public:
  // `name` stands in errors.
  static Expected<SettingsFile> parse(std::string_view text, const std::string& name);

  [[nodiscard]] const toml::table& all() const { return all_; }

  // Errors: a key that is not `known`, with the nearest one that is.
  [[nodiscard]] Expected<void> check_keys(const toml::table& table,
                                          const std::vector<std::string_view>& known) const;

  // What stands under a key, if anything does; else `value` stays as it is.
  Expected<void> read(const toml::table& table, std::string_view key, std::string& value) const;
  Expected<void> read(const toml::table& table, std::string_view key, bool& value) const;
  // From 1 to `most`.
  Expected<void> read(const toml::table& table, std::string_view key, int64_t most,
                      int64_t& value) const;

  // Of a node that stands under `key`, or in the list there. A text is not empty and has no zero
  // byte.
  [[nodiscard]] Expected<std::string> text_of(std::string_view key, const toml::node& node) const;
  [[nodiscard]] Expected<std::string> element_of(std::string_view key,
                                                 const toml::node& node) const;
  [[nodiscard]] Expected<const toml::array*> list_of(std::string_view key,
                                                     const toml::node& node) const;
  [[nodiscard]] Expected<const toml::table*> table_of(std::string_view key,
                                                      const toml::node& node) const;

  [[nodiscard]] std::string place_text(const toml::source_region& place) const;
  [[nodiscard]] tl::unexpected<Error> fail_at(const toml::source_region& place,
                                              std::string_view message) const;

 private:
  SettingsFile(std::string name, toml::table all) : name_(std::move(name)), all_(std::move(all)) {}

  std::string name_;
  toml::table all_;
};

// The bytes of a file that is open. Errors: Io; Limit: there are more than `bytes_max`.
Expected<std::string> read_settings(int descriptor, const std::string& path, size_t bytes_max);

}  // namespace clew
