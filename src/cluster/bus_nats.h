// SPDX-License-Identifier: Apache-2.0
// The bus over NATS (server 2.9 or newer, with JetStream): messages are NATS' own, a log is a
// stream on disk, a key that of a bucket as NATS' KV has them (stream KV_bucket, subject
// $KV.bucket.key). An end reconnects for ever, to any of the servers, and subscribes again.
//
// Threads of libnats only put what comes into a queue and ring; they call nothing of ours else. A
// call waits for its answer at most `timeout`, make_log() and a first put() some times that. A log
// that is not there is known by no answer. libnats ignores SIGPIPE, in the whole process.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cluster/bus.h"

namespace clew::cluster {

struct NatsOptions {
  // nats_address.h. With TLS the certificates of all its servers have the first one's name.
  std::string url;
  std::string name;  // What the server's operator sees.
  // With tls:// only. Files of PEM; an empty ca_file is the system's.
  std::string ca_file{};
  std::string certificate_file{};  // Of this end, where the server wants one, and its key.
  std::string key_file{};
  std::string credentials_file{};  // A .creds file, in place of a user and password in the URL.
  // Inboxes begin so; permissions can give each member its own.
  std::string inbox_prefix = "_INBOX";
  std::optional<size_t> only_server{};  // Of several; each is held to the first one's name.
  int replicas = 1;  // Of the logs and buckets that this end makes: 1, or 3 of a cluster's servers.
  std::chrono::milliseconds timeout{2000};
};

// InvalidQuery: the URL or the inbox_prefix is none. NotFound: a file is not there. Refused: the
// server does not let this end in, is too old, or is not who it should be. Io: nobody answers there
// at present.
Expected<std::unique_ptr<Bus>> connect_nats(const NatsOptions& options);

}  // namespace clew::cluster
