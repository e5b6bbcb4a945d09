// SPDX-License-Identifier: Apache-2.0
#include "ledger/places.h"

#include <array>
#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

namespace clew::ledger {
namespace {

constexpr const char* kFolderOfRoot = "/var/log/clew";

// An absolute path; empty where none is said, or where we have more rights than who runs us.
std::string path_of(const char* variable) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
  const char* const path = secure_getenv(variable);
  return path != nullptr && *path == '/' ? path : "";
}

std::string home() {
  std::string home = path_of("HOME");
  if (!home.empty()) return home;
  std::array<char, 16384> room{};
  passwd entry{};
  passwd* found = nullptr;
  const int status = getpwuid_r(geteuid(), &entry, room.data(), room.size(), &found);
  return status == 0 && found != nullptr && found->pw_dir != nullptr ? found->pw_dir : "";
}

std::string folder() {
  if (geteuid() == 0) return kFolderOfRoot;
  std::string own = path_of("CLEW_SESSIONS");
  if (!own.empty()) return own;
  const std::string state = path_of("XDG_STATE_HOME");
  if (!state.empty()) return state + "/clew";
  const std::string at_home = home();
  return at_home.empty() ? "" : at_home + "/.local/state/clew";
}

}  // namespace

Places places_here() {
  return {.folder = folder()};
}

}  // namespace clew::ledger
