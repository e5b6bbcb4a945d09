// SPDX-License-Identifier: Apache-2.0
// A connection to NATS servers: what the bus over NATS needs of libnats, with its threads kept off.
// Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nats/nats.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "cluster/arrivals.h"
#include "cluster/bus.h"
#include "cluster/bus_nats.h"
#include "cluster/nats_address.h"

namespace clew::cluster {

struct NatsRequest {
  std::string subject;
  std::span<const std::byte> bytes;
  std::vector<std::pair<std::string, std::string>> headers{};
};

struct NatsReply {
  std::string status{};  // "404" and the like; empty: it is what was asked for.
  std::string sequence{};
  std::string subject{};  // Where the entry was published, for one of a stream.
  Bytes bytes{};
};

class NatsConnection {
 public:
  static Expected<std::unique_ptr<NatsConnection>> open(const NatsOptions& options);
  NatsConnection(NatsOptions options, NatsAddress address);  // For open(): not connected yet.
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  [[nodiscard]] Arrivals& arrivals();
  // Readable when something has arrived or revive() is to be called.
  [[nodiscard]] int descriptor() const { return either_.get(); }
  [[nodiscard]] const std::string& inbox() const { return inbox_; }
  [[nodiscard]] bool is_connected() const;
  [[nodiscard]] uint64_t dropped() const;
  // libnats gives a connection up when its server refuses it twice; then this opens another one, at
  // most once in some seconds.
  void revive();

  Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                         std::string_view reply);
  Expected<void> subscribe(std::string_view pattern, std::string_view group);
  Expected<void> unsubscribe(std::string_view pattern);

  // All replies in the order of the requests. Refused: this end may not ask that. Io: no answer.
  Expected<std::vector<NatsReply>> ask(std::span<const NatsRequest> requests,
                                       std::chrono::milliseconds timeout);

 private:
  struct Shared;
  struct Subscription {
    std::string group;
    natsSubscription* handle;
  };

  Expected<void> connect();
  [[nodiscard]] Expected<void> check_server() const;
  void look_at_server();
  void disconnect();
  Expected<natsSubscription*> listen(const std::string& pattern, const std::string& group);
  Expected<void> send(const NatsRequest& request, const std::string& reply);

  static void on_message(natsConnection*, natsSubscription*, natsMsg* message, void* closure);
  static void on_reply(natsConnection*, natsSubscription*, natsMsg* message, void* closure);
  static void on_error(natsConnection* connection, natsSubscription*, natsStatus, void* closure);
  static void on_disconnected(natsConnection*, void* closure);
  static void on_reconnected(natsConnection*, void* closure);
  static void on_closed(natsConnection* connection, void* closure);
  static void on_complete(void* closure);

  const NatsOptions options_;
  const NatsAddress address_;
  std::string inbox_;
  std::string answers_;             // In front of the number of a request.
  std::shared_ptr<Shared> shared_;  // With libnats' threads, which may come late.
  natsConnection* connection_ = nullptr;
  natsSubscription* inbox_subscription_ = nullptr;
  natsSubscription* answers_subscription_ = nullptr;
  std::map<std::string, Subscription, std::less<>> subscriptions_;
  uint64_t asked_ = 0;
  std::chrono::steady_clock::time_point revived_{};
  FileDescriptor timer_;   // When to revive() next.
  FileDescriptor either_;  // An epoll set of that and the arrivals.
};

}  // namespace clew::cluster
