// SPDX-License-Identifier: Apache-2.0
#include "kernel/trace_events.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "kernel/glob.h"

namespace clew::kernel {
namespace {

// What is in front of `end`, which is taken away with it; everything when it does not occur.
std::string_view take_until(std::string_view& text, std::string_view end) {
  const size_t at = text.find(end);
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  return front;
}

std::optional<uint32_t> number_behind(std::string_view line, std::string_view word) {
  const size_t at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = line.substr(at + word.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// "const char __user * *const" -> "char **"
std::string plain_type(std::string_view text) {
  std::string stars;
  std::string result;
  while (!text.empty()) {
    std::string_view word = take_until(text, " ");
    while (!word.empty() && word.back() == '*') {
      stars += '*';
      word.remove_suffix(1);
    }
    while (!word.empty() && word.front() == '*') {
      stars += '*';
      word.remove_prefix(1);
    }
    const bool says_nothing =
        word.empty() || word == "const" || word == "volatile" || word == "__user";
    if (says_nothing) continue;
    if (!result.empty()) result += ' ';
    result += word;
  }
  return stars.empty() ? result : result + ' ' + stars;
}

// "char prev_comm[16]", "__data_loc char[] name", "const char * filename"
void read_declaration(std::string_view text, TraceField& field) {
  if (text.starts_with("__data_loc ") || text.starts_with("__rel_loc ")) {
    field.is_elsewhere = true;
    field.is_relative = take_until(text, " ") == "__rel_loc";
  }
  const size_t name = text.find_last_of(" *");
  std::string_view declared = name == std::string_view::npos ? text : text.substr(name + 1);
  std::string_view type = name == std::string_view::npos ? "" : text.substr(0, name + 1);
  if (declared.ends_with(']')) {
    std::string_view rest = declared;
    declared = take_until(rest, "[");
    field.count = number_behind(rest, "").value_or(0);
  }
  while (!type.empty() && type.back() == ' ')
    type.remove_suffix(1);
  if (type.ends_with("[]")) type.remove_suffix(2);
  field.name = declared;
  field.type = plain_type(type);
}

Expected<TraceField> parse_field(std::string_view line) {
  const auto offset = number_behind(line, "offset:");
  const auto size = number_behind(line, "size:");
  const auto sign = number_behind(line, "signed:");
  if (!offset || !size || !sign) {
    return fail(ErrorCode::Io, fmt::format("a field of a trace event cannot be read: {}", line));
  }
  TraceField field;
  field.offset_bytes = *offset;
  field.size_bytes = *size;
  field.is_signed = *sign != 0;
  std::string_view declaration = line.substr(line.find("field:") + 6);
  read_declaration(take_until(declaration, ";"), field);
  if (field.count == 0 && line.find('[') != std::string_view::npos && !field.is_elsewhere) {
    field.count = 1;  // Its size is a constant of the kernel's, by name.
  }
  return field;
}

}  // namespace

Expected<TraceFormat> parse_trace_format(std::string_view text) {
  TraceFormat format;
  bool has_id = false;
  while (!text.empty()) {
    const std::string_view line = take_until(text, "\n");
    if (line.starts_with("ID:")) {
      format.id = number_behind(line, "ID: ").value_or(0);
      has_id = format.id != 0;
    }
    if (line.starts_with("print fmt:")) break;
    if (line.find("field:") == std::string_view::npos) continue;
    TraceField field = CLEW_TRY(parse_field(line));
    if (!field.name.starts_with("common_")) format.fields.push_back(std::move(field));
  }
  if (!has_id) return fail(ErrorCode::Io, "a trace event has no number");
  return format;
}

Expected<const Tracefs*> TraceEvents::files() {
  if (!files_) files_.emplace(Tracefs::open());
  if (!*files_) return tl::unexpected(files_->error());
  return &**files_;
}

Expected<const std::vector<std::string>*> TraceEvents::names() {
  if (!names_) {
    const Tracefs* tracefs = CLEW_TRY(files());
    const std::string text = CLEW_TRY(tracefs->read("available_events"));
    std::vector<std::string> names;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view line = take_until(rest, "\n");
      if (line.find(':') != std::string_view::npos) names.emplace_back(line);
    }
    names_ = std::move(names);
  }
  return &*names_;
}

Expected<std::vector<std::string>> TraceEvents::match(std::string_view pattern) {
  const Glob glob(pattern);
  std::vector<std::string> found;
  for (const std::string& name : *CLEW_TRY(names())) {
    if (glob.matches(name)) found.push_back(name);
  }
  return found;
}

Expected<TraceFormat> TraceEvents::format(std::string_view name) {
  std::string_view rest = name;
  const std::string_view group = take_until(rest, ":");
  const Tracefs* tracefs = CLEW_TRY(files());
  const std::string text = CLEW_TRY(tracefs->read(fmt::format("events/{}/{}/format", group, rest)));
  return parse_trace_format(text);
}

}  // namespace clew::kernel
