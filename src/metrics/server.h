// SPDX-License-Identifier: Apache-2.0
// Where Prometheus fetches metrics: GET /metrics at an address. What it gets is made by the thread
// that owns this, which waits for descriptor().
#pragma once

#include <memory>
#include <string>

#include "base/error.h"

namespace clew::metrics {

class Server {
  class Http;

 public:
  // HOST:PORT; port 0 is one that is free. InvalidQuery: it is no address. NotFound: no machine is
  // called so, or it is not this one. Io: it cannot be had.
  static Expected<std::unique_ptr<Server>> start(const std::string& address);
  explicit Server(std::unique_ptr<Http> http);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Readable while somebody waits for answer().
  [[nodiscard]] int descriptor() const;
  // http://HOST:PORT/metrics
  [[nodiscard]] std::string url() const;
  // To all that wait.
  void answer(const std::string& text);
  // What everybody gets from now on, without waiting for an answer().
  void show(std::string text);

 private:
  std::unique_ptr<Http> http_;
};

}  // namespace clew::metrics
