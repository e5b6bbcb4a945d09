// SPDX-License-Identifier: Apache-2.0
// Shows a URL in the browser of the desktop that a user sits at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace clew::cmd {

// A file that leads a browser to a URL, for as long as it lives. The URL may hold a secret, and
// command lines can be read by all: so the browser is given the file, which is its user's alone.
class BrowserFile {
 public:
  // Nothing where there is no desktop to be seen (neither DISPLAY nor WAYLAND_DISPLAY), as root,
  // whom browsers refuse, or without room for the file.
  static std::optional<BrowserFile> make(std::string_view url);
  ~BrowserFile();
  BrowserFile(BrowserFile&& other) noexcept;
  BrowserFile& operator=(BrowserFile&&) = delete;
  BrowserFile(const BrowserFile&) = delete;
  BrowserFile& operator=(const BrowserFile&) = delete;

  // By xdg-open(1), which nobody waits for. False where it is not there.
  [[nodiscard]] bool open() const;

 private:
  explicit BrowserFile(std::string folder) : folder_(std::move(folder)) {}
  [[nodiscard]] std::string path() const { return folder_ + "/clew.html"; }

  std::string folder_;  // Empty: moved away.
};

}  // namespace clew::cmd
