// SPDX-License-Identifier: Apache-2.0
#include "cmd/open_browser.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/run_program.h"

namespace clew::cmd {
namespace {

bool has_desktop() {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return value != nullptr && *value != '\0';
  };
  return geteuid() != 0 && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"));
}

}  // namespace

std::optional<BrowserFile> BrowserFile::make(std::string_view url) {
  if (!has_desktop()) return std::nullopt;
  std::string folder = "/tmp/clew-ui-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return std::nullopt;
  BrowserFile made(std::move(folder));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(made.path().c_str(), "wxe"),
                                                   std::fclose);
  if (!file) return std::nullopt;
  fmt::print(file.get(), "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={}\">\n",
             url);
  return made;
}

BrowserFile::BrowserFile(BrowserFile&& other) noexcept
    : folder_(std::exchange(other.folder_, std::string())) {}

BrowserFile::~BrowserFile() {
  if (folder_.empty()) return;
  (void)unlink(path().c_str());
  (void)rmdir(folder_.c_str());
}

bool BrowserFile::open() const {
  const auto ended = run_program({"setsid", "--fork", "xdg-open", path()}, "");
  return ended && ended->succeeded;
}

}  // namespace clew::cmd
