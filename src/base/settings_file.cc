// SPDX-License-Identifier: Apache-2.0
#include "base/settings_file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/nearest.h"

namespace clew {
namespace {

const std::string* text_in(const toml::node& node) {
  const toml::value<std::string>* const value = node.as_string();
  const bool is_text =
      value != nullptr && !value->get().empty() && value->get().find('\0') == std::string::npos;
  return is_text ? &value->get() : nullptr;
}

}  // namespace

std::string toml_problem(const toml::parse_error& error) {
  std::string message(error.description());
  if (!message.empty())
    message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
  return message;
}

Expected<SettingsFile> SettingsFile::parse(std::string_view text, const std::string& name) {
  toml::parse_result parsed = toml::parse(text, name);
  if (parsed) return SettingsFile(name, std::move(parsed).table());
  const SettingsFile none(name, {});
  return none.fail_at(parsed.error().source(), toml_problem(parsed.error()));
}

Expected<void> SettingsFile::check_keys(const toml::table& table,
                                        const std::vector<std::string_view>& known) const {
  for (const auto& [key, node] : table) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    const std::string nearest = nearest_name(key.str(), known);
    return fail_at(key.source(), fmt::format("unknown key '{}'{}", key.str(),
                                             nearest.empty() ? fmt::format("; there are {}",
                                                                           fmt::join(known, ", "))
                                                             : did_you_mean(nearest)));
  }
  return {};
}

Expected<void> SettingsFile::read(const toml::table& table, std::string_view key,
                                  std::string& value) const {
  if (const toml::node* const node = table.get(key)) value = CLEW_TRY(text_of(key, *node));
  return {};
}

Expected<void> SettingsFile::read(const toml::table& table, std::string_view key,
                                  bool& value) const {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return {};
  const toml::value<bool>* const given = node->as_boolean();
  if (given == nullptr) return fail_at(node->source(), fmt::format("'{}' is true or false", key));
  value = given->get();
  return {};
}

Expected<void> SettingsFile::read(const toml::table& table, std::string_view key, int64_t most,
                                  int64_t& value) const {
  const toml::node* const node = table.get(key);
  if (node == nullptr) return {};
  const toml::value<int64_t>* const given = node->as_integer();
  if (given == nullptr || given->get() < 1 || given->get() > most)
    return fail_at(node->source(), fmt::format("'{}' is a whole number from 1 to {}", key, most));
  value = given->get();
  return {};
}

Expected<std::string> SettingsFile::text_of(std::string_view key, const toml::node& node) const {
  if (const std::string* const text = text_in(node)) return *text;
  return fail_at(node.source(), fmt::format("'{}' is a non-empty string", key));
}

Expected<std::string> SettingsFile::element_of(std::string_view key, const toml::node& node) const {
  if (const std::string* const text = text_in(node)) return *text;
  return fail_at(node.source(), fmt::format("'{}' is a list of non-empty strings", key));
}

Expected<const toml::array*> SettingsFile::list_of(std::string_view key,
                                                   const toml::node& node) const {
  if (const toml::array* const list = node.as_array()) return list;
  return fail_at(node.source(), fmt::format("'{}' is a list", key));
}

Expected<const toml::table*> SettingsFile::table_of(std::string_view key,
                                                    const toml::node& node) const {
  if (const toml::table* const table = node.as_table()) return table;
  return fail_at(node.source(), fmt::format("expected [{}], a table", key));
}

std::string SettingsFile::place_text(const toml::source_region& place) const {
  return fmt::format("{}:{}:{}", name_, place.begin.line, place.begin.column);
}

tl::unexpected<Error> SettingsFile::fail_at(const toml::source_region& place,
                                            std::string_view message) const {
  return fail(ErrorCode::InvalidQuery, fmt::format("{}: error: {}", place_text(place), message));
}

Expected<std::string> read_settings(int descriptor, const std::string& path, size_t bytes_max) {
  std::string text(bytes_max + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > bytes_max)
    return fail(ErrorCode::Limit, fmt::format("{} has more than {} bytes", path, bytes_max));
  text.resize(size);
  return text;
}

}  // namespace clew
