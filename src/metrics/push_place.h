// SPDX-License-Identifier: Apache-2.0
// Where OTLP is pushed to: an URL, and headers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace clew::metrics {

struct PushPlace {
  std::string server{};  // http://HOST:PORT
  std::string path{};    // /v1/metrics
  std::vector<std::pair<std::string, std::string>> headers{};

  [[nodiscard]] std::string shown() const { return server + path; }
};

// http:// or https://, HOST, perhaps :PORT (4318) and a path, behind which /v1/metrics stands.
// Headers are NAME=VALUE, or NAME=@FILE: a secret in a file is seen by nobody who lists processes.
// `environment`: what OTEL_EXPORTER_OTLP_HEADERS has: NAME=VALUE, separated by commas, with %XX;
// `headers` win. InvalidQuery: it is none; NotFound: such a file. Errors have no values.
Expected<PushPlace> parse_push_place(const std::string& url,
                                     const std::vector<std::string>& headers,
                                     const std::string& environment = "");

}  // namespace clew::metrics
