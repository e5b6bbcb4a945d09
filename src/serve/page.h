// SPDX-License-Identifier: Apache-2.0
// The files of the page: those of web/dist, which are part of this program (page_files.S.in), or of
// a folder while the page is being written.
#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "serve/http_message.h"

namespace clew::serve {

class Page {
 public:
  static Page built_in();
  // Errors: there is no index.html.
  static Expected<Page> of_folder(const std::string& folder);

  [[nodiscard]] Reply answer(const HttpRequest& request) const;

 private:
  struct File {
    std::shared_ptr<const std::string> bytes;
    std::string tag;
    bool is_gzipped;
  };
  void add(std::string name, std::string bytes, bool is_gzipped);

  std::map<std::string, File> files_;
};

}  // namespace clew::serve
