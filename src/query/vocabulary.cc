// SPDX-License-Identifier: Apache-2.0
#include "query/vocabulary.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/error_text.h"
#include "query/diagnostic.h"
#include "query/token.h"
#include "query/vocabulary_file.h"

namespace clew::query {
namespace {

Expected<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(ErrorCode::Io, fmt::format("cannot open {}: {}", path.string(), error_text(errno)));
  }
  std::string text(kVocabularyFileMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kVocabularyFileMaxBytes) {
    return fail(ErrorCode::Limit,
                fmt::format("{} is over {} bytes", path.string(), kVocabularyFileMaxBytes));
  }
  return text;
}

// One file may be named twice, also by two paths.
bool same_definition(const TracepointDefinition& a, const TracepointDefinition& b) {
  const auto same_export = [](const TracepointExport& x, const TracepointExport& y) {
    return x.name == y.name && x.text == y.text;
  };
  const auto same_place = [&](const TracepointPlace& x, const TracepointPlace& y) {
    return x.source == y.source && std::equal(x.exports.begin(), x.exports.end(), y.exports.begin(),
                                              y.exports.end(), same_export);
  };
  return a.name == b.name && a.cause == b.cause &&
         std::equal(a.places.begin(), a.places.end(), b.places.begin(), b.places.end(), same_place);
}

bool same_meaning(const SyntaxOutstanding& a, const SyntaxOutstanding& b) {
  const auto same_name = [](const SyntaxSource& x, const SyntaxSource& y) {
    return x.name == y.name;
  };
  const auto same_key = [](const SyntaxEquals& x, const SyntaxEquals& y) {
    return x.left.expression.text == y.left.expression.text;
  };
  return std::equal(a.opened.begin(), a.opened.end(), b.opened.begin(), b.opened.end(),
                    same_name) &&
         std::equal(a.closed.begin(), a.closed.end(), b.closed.begin(), b.closed.end(),
                    same_name) &&
         std::equal(a.keys.begin(), a.keys.end(), b.keys.begin(), b.keys.end(), same_key);
}

}  // namespace

Expected<void> Vocabulary::load(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) {
    return load_text(path.string(), CLEW_TRY(read_file(path)));
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, code)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  if (code) {
    return fail(ErrorCode::Io, fmt::format("cannot read {}: {}", path.string(), code.message()));
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const std::string text = CLEW_TRY(read_file(file));
    CLEW_TRY(load_text(file.string(), text));
  }
  return {};
}

Expected<void> Vocabulary::load_text(const std::string& name, const std::string& text) {
  const Text source{.name = name, .text = text};
  const Reporter report(source);
  VocabularyFile all = CLEW_TRY(read_vocabulary(source, report));
  for (TracepointDefinition& definition : all.tracepoints)
    CLEW_TRY(add(name, std::move(definition)));
  for (Program& program : all.programs)
    CLEW_TRY(add(name, std::move(program)));
  for (OutstandingDefinition& definition : all.outstandings)
    CLEW_TRY(add(std::move(definition)));
  for (ValueDefinition& value : all.values)
    CLEW_TRY(add(name, std::move(value)));
  return {};
}

Expected<void> Vocabulary::add(const std::string& file, TracepointDefinition definition) {
  const TracepointDefinition* const other = find(definition.name);
  if (other != nullptr && same_definition(*other, definition)) return {};
  if (other != nullptr) {
    return fail(ErrorCode::InvalidQuery, fmt::format("{}: error: tracepoint '{}' is already "
                                                     "defined in {}",
                                                     file, definition.name, other->file));
  }
  tracepoints_.push_back(std::move(definition));
  return {};
}

Expected<void> Vocabulary::add(const std::string& file, Program program) {
  const Program* const other = find_program(program.name);
  if (other != nullptr && other->profile == program.profile) return {};
  if (other != nullptr) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: error: how '{}' hands requests on is already said in {}", file,
                            program.name, other->file));
  }
  programs_.push_back(std::move(program));
  return {};
}

Expected<void> Vocabulary::add(OutstandingDefinition definition) {
  const OutstandingDefinition* const other = outstanding(definition.name);
  const TracepointDefinition* const tracepoint = find(definition.name);
  if (other != nullptr && same_meaning(other->what, definition.what)) return {};
  if (other != nullptr || tracepoint != nullptr) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: error: '{}' is already defined in {}", definition.file,
                            definition.name, other != nullptr ? other->file : tracepoint->file));
  }
  outstandings_.push_back(std::move(definition));
  return {};
}

const OutstandingDefinition* Vocabulary::outstanding(std::string_view name) const {
  const auto found = std::find_if(
      outstandings_.begin(), outstandings_.end(),
      [name](const OutstandingDefinition& each) { return same_word(each.name, name); });
  return found == outstandings_.end() ? nullptr : &*found;
}

// Records may be texts by several definitions of a name; what is called has one of each form.
Expected<void> Vocabulary::add(const std::string& file, ValueDefinition value) {
  for (const ValueDefinition& other : values_) {
    const bool is_same = same_word(other.name, value.name) && other.members == value.members &&
                         other.parameters.size() == value.parameters.size();
    if (!is_same) continue;
    if (other.text == value.text && other.parameters == value.parameters) return {};
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: error: value '{}' is already defined in {}", file, value.name,
                            other.file));
  }
  values_.push_back(std::move(value));
  return {};
}

const ValueDefinition* Vocabulary::find_value(std::string_view name, size_t parameters) const {
  const ValueDefinition* found = nullptr;
  for (const ValueDefinition& value : values_) {
    if (!value.members.empty() || !same_word(value.name, name)) continue;
    if (value.parameters.size() == parameters) return &value;
    found = &value;
  }
  return found;
}

const Program* Vocabulary::find_program(std::string_view name) const {
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [name](const Program& each) { return each.name == name; });
  return found == programs_.end() ? nullptr : &*found;
}

const TracepointDefinition* Vocabulary::find(std::string_view name) const {
  for (const TracepointDefinition& candidate : tracepoints_) {
    if (candidate.name == name) return &candidate;
  }
  for (const TracepointDefinition& candidate : tracepoints_) {
    if (same_word(candidate.name, name)) return &candidate;
  }
  return nullptr;
}

}  // namespace clew::query
