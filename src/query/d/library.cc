// SPDX-License-Identifier: Apache-2.0
#include "query/d/library.h"

#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "query/d/parse.h"
#include "query/walk.h"

namespace clew::query::d {
namespace {

using Names = std::set<std::string_view>;

bool is_name_byte(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void add_names(std::string_view text, Names& names) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at;
    while (end < text.size() && is_name_byte(text[end]))
      ++end;
    if (end > at) names.insert(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string_view name_at(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && is_name_byte(text[end]))
    ++end;
  return text.substr(begin, end - begin);
}

// What a line of a piece defines: `inline TYPE NAME = …`, `inline TYPE NAME[…] =`, `} NAME;`,
// `typedef TYPE NAME;`.
std::string_view name_defined_by(std::string_view line) {
  if (line.starts_with("} ")) return name_at(line, 2);
  if (!line.starts_with("inline ") && !line.starts_with("typedef ")) return {};
  size_t end = line.find_first_of("=[;");
  if (end == std::string_view::npos) return {};
  while (end > 0 && !is_name_byte(line[end - 1]))
    --end;
  size_t begin = end;
  while (begin > 0 && is_name_byte(line[begin - 1]))
    --begin;
  return line.substr(begin, end - begin);
}

bool defines_any_of(const LibraryPiece& piece, const Names& wanted) {
  std::string_view rest = piece.text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view name = name_defined_by(rest.substr(0, end));
    if (!name.empty() && wanted.count(name) != 0) return true;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return false;
}

bool has_translators(const LibraryPiece& piece) {
  return piece.text.find("\ntranslator ") != std::string_view::npos;
}

// By index in library_pieces(). A piece that is needed may need others.
std::vector<bool> needed_pieces(std::string_view text) {
  const auto pieces = library_pieces();
  std::vector<bool> needed(pieces.size());
  Names wanted;
  add_names(text, wanted);
  const bool has_arguments = wanted.count("args") != 0;
  bool has_grown = true;
  while (has_grown) {
    has_grown = false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool is_wanted =
          defines_any_of(pieces[i], wanted) || (has_arguments && has_translators(pieces[i]));
      if (needed[i] || !is_wanted) continue;
      needed[i] = has_grown = true;
      add_names(pieces[i].text, wanted);
    }
  }
  return needed;
}

void forget_lines(Node& value) {
  visit(value, [](Node& node) { node.line = 0; });
}

void forget_lines(Program& program) {
  for (InlineDefinition& definition : program.inlines) {
    definition.line = 0;
    forget_lines(definition.value);
  }
  for (Translator& translator : program.translators) {
    translator.line = 0;
    for (Translator::Member& member : translator.members) {
      member.line = 0;
      forget_lines(member.value);
    }
  }
}

// Library pieces hold inlines and translators only (and types, which are in the table).
void append(Program&& from, Program& into) {
  for (const auto& [item, index] : from.order) {
    const bool is_inline = item == Program::Item::Inline;
    const size_t shift = is_inline ? into.inlines.size() : into.translators.size();
    into.order.emplace_back(item, static_cast<uint32_t>(index + shift));
  }
  std::move(from.inlines.begin(), from.inlines.end(), std::back_inserter(into.inlines));
  std::move(from.translators.begin(), from.translators.end(), std::back_inserter(into.translators));
}

// A type that stands for "this piece is in the table".
std::string marker_of(const LibraryPiece& piece) {
  return "library " + std::string(piece.name);
}

}  // namespace

Compiled<Program> parse_library(std::string_view text, TypeTable& types) {
  Program library;
  const auto pieces = library_pieces();
  const std::vector<bool> needed = needed_pieces(text);
  CompileOptions options;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string marker = marker_of(pieces[i]);
    if (!needed[i] || types.find_base(marker) != kNoType) continue;
    options.name = std::string(pieces[i].name) + ".d";
    Program piece = CLEW_TRY(parse(pieces[i].text, options, types));
    (void)types.define_typedef(marker, types.void_type());
    forget_lines(piece);
    append(std::move(piece), library);
  }
  return library;
}

}  // namespace clew::query::d
