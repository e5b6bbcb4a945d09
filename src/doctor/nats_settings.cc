// SPDX-License-Identifier: Apache-2.0
#include "doctor/nats_settings.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::doctor {
namespace {

constexpr size_t kSettingsBytesMax = size_t{1} << 20;
constexpr size_t kValuesMax = 200'000;
constexpr size_t kDepthMax = 64;
constexpr size_t kFilesMax = 32;

char lower(char one) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(one)));
}

Expected<std::string> text_of_file(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  const bool is_file = file.valid() && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (!is_file) {
    return fail(ErrorCode::Io,
                fmt::format("{}: {}", path, file.valid() ? "is no file" : error_text(errno)));
  }
  std::string text(kSettingsBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kSettingsBytesMax) {
    return fail(ErrorCode::Limit,
                fmt::format("{} has more than {} bytes", path, kSettingsBytesMax));
  }
  text.resize(size);
  return text;
}

// What all files of one configuration share.
struct Reading {
  Settings settings{};
  size_t values = 0;
  size_t bytes = 0;
  bool may_include = false;
};

// Of one file.
class SettingsReader {
 public:
  SettingsReader(Reading& all, std::string_view text, uint32_t file, size_t depth)
      : all_(all), text_(text), file_(file), depth_(depth) {}

  // Up to the end of the file.
  Expected<void> read_all(SettingValue& map) {
    CLEW_TRY(read_map(map, '\0'));
    return {};
  }

 private:
  [[nodiscard]] tl::unexpected<Error> fail_here(std::string_view what) const {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}:{}: error: {}", all_.settings.files[file_], line_, what));
  }
  [[nodiscard]] bool is_over() const { return at_ >= text_.size(); }
  [[nodiscard]] char here() const { return is_over() ? '\0' : text_[at_]; }
  [[nodiscard]] bool is_comment() const { return here() == '#' || text_.substr(at_, 2) == "//"; }
  void step() {
    if (here() == '\n') ++line_;
    ++at_;
  }

  // Blanks, ends of lines, comments, and what stands between two settings.
  void skip(std::string_view beside) {
    while (!is_over()) {
      if (is_comment()) {
        while (!is_over() && here() != '\n')
          step();
      } else if (std::isspace(static_cast<unsigned char>(here())) != 0 ||
                 beside.find(here()) != std::string_view::npos) {
        step();
      } else {
        return;
      }
    }
  }

  Expected<void> read_map(SettingValue& map, char close) {
    map.kind = SettingValue::Kind::Map;
    map.line = line_;
    map.file = file_;
    if (depth_ > kDepthMax) return fail_here("maps within maps are too many");
    while (true) {
      skip(",;");
      if (is_over() && close == '\0') return {};
      if (is_over()) return fail_here("a '{' has no '}'");
      if (here() == close) {
        step();
        return {};
      }
      CLEW_TRY(read_setting(map));
    }
  }

  Expected<void> read_setting(SettingValue& map) {
    const bool is_quoted = here() == '"' || here() == '\'';
    const std::string name = is_quoted ? CLEW_TRY(quoted()) : bare(":={}[],;\"'");
    if (name.empty()) return fail_here(fmt::format("a setting begins with '{}'", shown(here())));
    skip(name == "include" ? "" : ":=");
    if (name == "include" && !is_quoted) return include(map);
    Setting setting{.name = name, .key = name, .value = {}};
    std::transform(name.begin(), name.end(), setting.key.begin(), lower);
    CLEW_TRY(read_value(setting.value));
    map.settings.push_back(std::move(setting));
    return {};
  }

  Expected<void> read_value(SettingValue& value) {
    if (++all_.values > kValuesMax) return fail_here("it has too many values");
    value.line = line_;
    value.file = file_;
    if (here() == '{') {
      step();
      ++depth_;
      CLEW_TRY(read_map(value, '}'));
      --depth_;
      return {};
    }
    if (here() == '[') return read_list(value);
    if (here() == '(') return read_block(value);
    value.is_quoted = here() == '"' || here() == '\'';
    value.text = value.is_quoted ? CLEW_TRY(quoted()) : bare("{}[],;");
    if (value.text.empty() && !value.is_quoted) return fail_here("a value is missing");
    return {};
  }

  Expected<void> read_list(SettingValue& value) {
    value.kind = SettingValue::Kind::List;
    step();
    if (++depth_ > kDepthMax) return fail_here("lists within lists are too many");
    while (true) {
      skip(",");
      if (is_over()) return fail_here("a '[' has no ']'");
      if (here() == ']') break;
      CLEW_TRY(read_value(value.items.emplace_back()));
    }
    step();
    --depth_;
    return {};
  }

  // ( … ), of several lines.
  Expected<void> read_block(SettingValue& value) {
    step();
    value.is_quoted = true;
    while (!is_over() && here() != ')') {
      value.text += here();
      step();
    }
    if (is_over()) return fail_here("a '(' has no ')'");
    step();
    return {};
  }

  Expected<std::string> quoted() {
    const char quote = here();
    step();
    std::string text;
    while (!is_over() && here() != quote && here() != '\n') {
      if (here() == '\\' && quote == '"') step();
      text += here();
      step();
    }
    if (here() != quote || is_over()) return fail_here("a text has no end");
    step();
    return text;
  }

  // Up to a blank or one of `ends`.
  std::string bare(std::string_view ends) {
    std::string text;
    while (!is_over() && std::isspace(static_cast<unsigned char>(here())) == 0 &&
           ends.find(here()) == std::string_view::npos && (here() != '#' || !text.empty())) {
      text += here();
      step();
    }
    return text;
  }

  Expected<void> include(SettingValue& map) {
    const bool is_quoted = here() == '"' || here() == '\'';
    const std::string name = is_quoted ? CLEW_TRY(quoted()) : bare(",;");
    if (!all_.may_include) return fail_here("it includes another file");
    if (all_.settings.files.size() >= kFilesMax || depth_ >= kDepthMax)
      return fail_here("it includes too many files");
    const std::filesystem::path from(all_.settings.files[file_]);
    const std::string path = (from.parent_path() / name).string();
    const std::string text = CLEW_TRY(text_of_file(path));
    all_.bytes += text.size();
    if (all_.bytes > kSettingsBytesMax) return fail_here("it is too large with what it includes");
    all_.settings.files.push_back(path);
    SettingsReader reader(all_, text, static_cast<uint32_t>(all_.settings.files.size() - 1),
                          depth_ + 1);
    SettingValue included;
    CLEW_TRY(reader.read_all(included));
    for (Setting& setting : included.settings)
      map.settings.push_back(std::move(setting));
    return {};
  }

  static char shown(char one) { return one < ' ' || one > '~' ? '?' : one; }

  Reading& all_;
  std::string_view text_;
  uint32_t file_;
  size_t depth_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

// Puts values in the place of their names: of the nearest map that has one.
class References {
 public:
  explicit References(size_t& values) : values_(values) {}

  Expected<void> resolve(SettingValue& value) {
    if (value.kind == SettingValue::Kind::Text) return resolve_text(value);
    ++depth_;
    for (SettingValue& item : value.items)
      CLEW_TRY(resolve(item));
    const bool is_map = value.kind == SettingValue::Kind::Map;
    if (is_map) scopes_.push_back(&value);
    for (Setting& setting : value.settings)
      CLEW_TRY(resolve(setting.value));
    if (is_map) scopes_.pop_back();
    --depth_;
    return {};
  }

 private:
  Expected<void> resolve_text(SettingValue& value) {
    const bool is_name = !value.is_quoted && value.text.size() > 1 && value.text[0] == '$' &&
                         !value.text.starts_with("$2a$");
    if (!is_name) return {};
    const std::string name = value.text.substr(1);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto& settings = (*scope)->settings;
      const auto found =
          std::find_if(settings.rbegin(), settings.rend(),
                       [&name](const Setting& setting) { return setting.name == name; });
      // One that stands for itself is none.
      if (found == settings.rend() || &found->value == &value) continue;
      return put(found->value, value);
    }
    return {};  // Of the environment: what it is there, only the server knows.
  }

  // `from` may be around `value`.
  Expected<void> put(const SettingValue& from, SettingValue& value) {
    values_ += size_of(from);
    if (values_ > kValuesMax)
      return fail(ErrorCode::Limit, "values that stand for others are too many");
    if (++depth_ + depth_of(from) > kDepthMax)
      return fail(ErrorCode::InvalidQuery, "values that stand for one another have no end");
    SettingValue copy = from;
    value = std::move(copy);
    CLEW_TRY(resolve(value));
    --depth_;
    return {};
  }

  static size_t size_of(const SettingValue& value) {
    size_t size = 1;
    for (const SettingValue& item : value.items)
      size += size_of(item);
    for (const Setting& setting : value.settings)
      size += size_of(setting.value);
    return size;
  }
  static size_t depth_of(const SettingValue& value) {
    size_t depth = 0;
    for (const SettingValue& item : value.items)
      depth = std::max(depth, depth_of(item) + 1);
    for (const Setting& setting : value.settings)
      depth = std::max(depth, depth_of(setting.value) + 1);
    return depth;
  }

  size_t& values_;
  std::vector<SettingValue*> scopes_;
  size_t depth_ = 0;  // Of the value, and of those that it stands for.
};

Expected<Settings> read_settings(std::string_view text, const std::string& name, bool may_include) {
  Reading all{.bytes = text.size(), .may_include = may_include};
  all.settings.files.push_back(name);
  CLEW_TRY(SettingsReader(all, text, 0, 0).read_all(all.settings.root));
  CLEW_TRY(References(all.values).resolve(all.settings.root));
  return std::move(all.settings);
}

}  // namespace

std::vector<const SettingValue*> SettingValue::all(std::string_view name) const {
  std::vector<const SettingValue*> found;
  for (const Setting& setting : settings) {
    if (setting.key == name) found.push_back(&setting.value);
  }
  return found;
}

const SettingValue* SettingValue::last(std::string_view name) const {
  const auto found = all(name);
  return found.empty() ? nullptr : found.back();
}

std::string Settings::place(const SettingValue& value) const {
  return fmt::format("{}:{}", files[value.file], value.line);
}

Expected<Settings> read_nats_settings(const std::string& path) {
  const std::string text = CLEW_TRY(text_of_file(path));
  return read_settings(text, path, true);
}

Expected<Settings> parse_nats_settings(std::string_view text, const std::string& name) {
  return read_settings(text, name, false);
}

}  // namespace clew::doctor
