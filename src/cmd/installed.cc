// SPDX-License-Identifier: Apache-2.0
#include "cmd/installed.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace clew::cmd {
namespace {

struct Installed {
  const char* variable;
  const char* name;  // Below PREFIX/share.
  const char* built;
};
constexpr Installed kVocabulary = {"CLEW_VOCABULARY", "clew/vocabulary", CLEW_VOCABULARY_DIRECTORY};
constexpr Installed kExtensions = {"CLEW_EXTENSIONS", "clew/extensions", CLEW_EXTENSION_DIRECTORY};
constexpr Installed kVerbs = {"CLEW_VERBS", "clew/verbs", CLEW_VERB_DIRECTORY};
constexpr Installed kExamples = {"CLEW_EXAMPLES", "doc/clew/examples", CLEW_EXAMPLE_DIRECTORY};

std::string folder_of(const Installed& what) {
  const char* named = std::getenv(what.variable);  // NOLINT(concurrency-mt-unsafe)
  if (named != nullptr && *named != '\0') return named;
  std::error_code problem;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  const std::filesystem::path beside = self.parent_path().parent_path() / "share" / what.name;
  if (!problem && std::filesystem::is_directory(beside, problem)) return beside.string();
  return what.built;
}

}  // namespace

std::string vocabulary_folder() {
  return folder_of(kVocabulary);
}

std::string extension_folder() {
  return folder_of(kExtensions);
}

std::string verb_folder() {
  return folder_of(kVerbs);
}

std::string example_folder() {
  return folder_of(kExamples);
}

std::string own_folder(const std::string& name) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home == nullptr || *home == '\0') return {};
  return std::string(home) + "/.config/clew/" + name;
}

}  // namespace clew::cmd
