// SPDX-License-Identifier: Apache-2.0
#include "target/dwarf_lines.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/file_name.h"
#include "base/nearest.h"

namespace clew::target {

namespace {

constexpr size_t kAddressesMax = 100'000;

std::optional<SourceLine> source_of(Dwarf_Line* row) {
  const char* path = dwarf_linesrc(row, nullptr, nullptr);
  int line = 0;
  int column = 0;
  if (path == nullptr || dwarf_lineno(row, &line) != 0 || line <= 0) return std::nullopt;
  (void)dwarf_linecol(row, &column);
  return SourceLine{.file = path,
                    .line = static_cast<uint32_t>(line),
                    .column = static_cast<uint32_t>(std::max(column, 0))};
}

bool is_statement(Dwarf_Line* row) {
  bool begins = false;
  bool ends_sequence = false;
  return dwarf_linebeginstatement(row, &begins) == 0 && begins &&
         dwarf_lineendsequence(row, &ends_sequence) == 0 && !ends_sequence;
}

// By the last part of the name alone; true when the header does not tell.
bool may_name_file(Dwarf_Die& unit, const LineSections& sections, std::string_view file) {
  const std::string_view wanted = file_name_of(file);
  const auto offset = die_unsigned(unit, DW_AT_stmt_list);
  if (!offset) return false;
  bool found = false;
  const bool is_read = for_each_line_file(sections, *offset, [&](std::string_view name) {
    found = name == wanted;
    return !found;
  });
  return found || !is_read;
}

}  // namespace

bool path_ends_with(std::string_view path, std::string_view wanted) {
  if (wanted.starts_with("./")) wanted.remove_prefix(2);
  if (!path.ends_with(wanted)) return false;
  return path.size() == wanted.size() || wanted.starts_with('/') ||
         path[path.size() - wanted.size() - 1] == '/';
}

// What is being looked for, and the best that was found: rows of the nearest line that has any.
struct LineTable::Search {
  std::string_view file;
  uint32_t line = 0;
  bool file_seen = false;
  uint32_t best_line = UINT32_MAX;
  std::vector<LineAddress> found;
  std::unordered_map<const char*, bool> file_matches;  // By libdw's pointer: one for each file.

  bool matches(const char* path) {
    const auto [known, is_new] = file_matches.emplace(path, false);
    if (is_new) known->second = path_ends_with(path, file);
    return known->second;
  }
};

bool LineTable::is_code(uint64_t address) const {
  return std::any_of(code_.begin(), code_.end(),
                     [&](const AddressRange& range) { return range.contains(address); });
}

void LineTable::search_unit(Dwarf_Die& unit, const LineSections& sections, Search& search) {
  if (!may_name_file(unit, sections, search.file)) return;
  Dwarf_Lines* rows = nullptr;
  size_t row_count = 0;
  if (dwarf_getsrclines(&unit, &rows, &row_count) != 0) return;
  for (size_t i = 0; i < row_count; ++i) {
    Dwarf_Line* row = dwarf_onesrcline(rows, i);
    if (row != nullptr) add_row(row, search);
  }
}

void LineTable::add_row(Dwarf_Line* row, Search& search) {
  const char* path = dwarf_linesrc(row, nullptr, nullptr);
  int line = 0;
  Dwarf_Addr address = 0;
  if (path == nullptr || !search.matches(path) || dwarf_lineno(row, &line) != 0) return;
  search.file_seen = true;
  const auto number = static_cast<uint32_t>(std::max(line, 0));
  const bool usable = number >= search.line && number <= search.line + kLineSearchMax &&
                      number <= search.best_line && is_statement(row) &&
                      dwarf_lineaddr(row, &address) == 0 && is_code(address);
  if (!usable || search.found.size() >= kAddressesMax) return;
  if (number < search.best_line) {
    search.best_line = number;
    search.found.clear();
  }
  auto source = source_of(row);
  if (source) search.found.push_back({.address = address, .source = std::move(*source)});
}

// A line's code is often in several pieces; a hit is one visit to the line, so the first piece of
// each copy stands for it.
std::vector<LineAddress> LineTable::one_per_scope(std::vector<LineAddress> found) {
  std::sort(found.begin(), found.end(),
            [](const LineAddress& a, const LineAddress& b) { return a.address < b.address; });
  std::vector<LineAddress> result;
  std::unordered_set<uint64_t> scopes;
  for (LineAddress& candidate : found) {
    const uint64_t scope = functions_.scope_at(candidate.address);
    const bool is_new = scope == 0 ? result.empty() || result.back().address != candidate.address
                                   : scopes.insert(scope).second;
    if (is_new) result.push_back(std::move(candidate));
  }
  return result;
}

std::string LineTable::nearest_file(std::string_view wanted) {
  std::set<std::string> names;
  const LineSections sections = file_.line_sections();
  for (DwarfUnit& unit : file_.units()) {
    const auto offset = die_unsigned(unit.die, DW_AT_stmt_list);
    if (!offset) continue;
    (void)for_each_line_file(sections, *offset, [&](std::string_view name) {
      names.emplace(name);
      return names.size() < kAddressesMax;
    });
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return nearest_name(file_name_of(wanted), candidates);
}

Expected<std::vector<LineAddress>> LineTable::find(std::string_view file, uint32_t line) {
  Search search{.file = file, .line = line, .found = {}, .file_matches = {}};
  const auto units = file_.units();
  const LineSections sections = file_.line_sections();
  for (DwarfUnit& unit : units) {
    search_unit(unit.die, sections, search);
  }
  if (!search.file_seen) {
    const std::string near = nearest_file(file);
    return fail(ErrorCode::NotFound,
                fmt::format("no source file '{}'{}", file, did_you_mean(near)));
  }
  if (search.found.empty()) {
    return fail(ErrorCode::InvalidQuery, fmt::format("no code at {}:{} or in the {} lines after it",
                                                     file, line, kLineSearchMax));
  }
  return one_per_scope(std::move(search.found));
}

std::optional<SourceLine> LineTable::at(uint64_t address) {
  DwarfUnit* unit = file_.unit_at(address);
  if (unit == nullptr) return std::nullopt;
  Dwarf_Line* row = dwarf_getsrc_die(&unit->die, address);
  return row == nullptr ? std::nullopt : source_of(row);
}

}  // namespace clew::target
