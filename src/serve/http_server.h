// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 by libmicrohttpd, in the caller's one thread: the caller polls descriptor() for as long
// as wait_ms() says, and calls turn(). Requests that wait for a child, and streams that have no
// line, are suspended, and cost nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "serve/api.h"
#include "serve/lines.h"
#include "serve/page.h"

struct MHD_Daemon;
struct MHD_Connection;

namespace clew::serve {

inline constexpr unsigned kConnectionsMax = 64;

class HttpServer {
 public:
  struct Parts {
    Api& api;
    const Lines& lines;
    const Page& page;
    std::string token;
  };
  explicit HttpServer(Parts parts);  // For start().
  // Takes the connections of `listener`, which listens. Errors: the library has said no.
  static Expected<std::unique_ptr<HttpServer>> start(const FileDescriptor& listener, Parts parts);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  [[nodiscard]] int descriptor() const;
  // At most so long; -1: for as long as you like.
  [[nodiscard]] int wait_ms() const;
  void turn();
  // There may be lines that streams have not had.
  void wake_streams();
  // Each second: readers that have left are found by it, and requests that do not come to an end.
  void beat();

 private:
  friend struct Callbacks;
  struct Connection;
  struct Exchange;
  struct Stream;

  void resume(Exchange& exchange);
  void reply_came(uint32_t child, const Reply& reply);

  Parts parts_;
  MHD_Daemon* daemon_ = nullptr;
  std::set<Connection*> connections_;      // All; each frees itself as it is closed.
  std::map<uint32_t, Exchange*> waiting_;  // For a child.
  std::set<Stream*> streams_;
};

}  // namespace clew::serve
