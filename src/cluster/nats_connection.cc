// SPDX-License-Identifier: Apache-2.0
#include "cluster/nats_connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "cluster/nats_errors.h"
#include "cluster/nats_greeting.h"
#include "cluster/subject.h"

namespace clew::cluster {

// What libnats' threads reach: each closure that it has is a shared_ptr of its own to this, freed
// by the last callback that can use it.
struct NatsConnection::Shared {
  Arrivals arrivals;

  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, std::optional<NatsReply>> awaited;  // By the number of the request.
  std::set<std::string> asked_subjects;                  // While they are awaited.
  std::set<std::string> refused_subjects;                // Of these.
  std::string pattern;         // Whose refusal subscribe() tells, if there is one.
  std::set<std::string> told;  // Refusals that were complained of: what is sent again and again.
  uint64_t losses = 0;         // Of the connection, so far.
  bool is_new = false;         // The connection: nobody has looked at its server yet.
};

namespace {

constexpr auto kReviveEvery = std::chrono::seconds(2);
constexpr int64_t kReconnectWaitMs = 100;
constexpr int64_t kReconnectJitterMs = 100;
// A server that says nothing for three of these is gone.
constexpr int64_t kPingMs = 5000;
constexpr int kPingsMax = 2;
constexpr size_t kUrlMax = 512;
constexpr size_t kToldMax = 64;
constexpr std::string_view kSystemCertificates = "/etc/ssl/certs/ca-certificates.crt";

std::string random_word() {
  std::array<uint64_t, 2> words{};
  CLEW_ASSERT(getrandom(words.data(), sizeof words, 0) == sizeof words);
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

// libnats' text of the last error of this thread.
std::string last_text() {
  natsStatus status = NATS_OK;
  const char* text = nats_GetLastError(&status);
  return text == nullptr ? "" : text;
}

std::string text_of(natsConnection* connection) {
  const char* text = nullptr;
  (void)natsConnection_GetLastError(connection, &text);
  return text == nullptr ? "" : text;
}

// As the server says it: Permissions Violation for Publish to "a.b"
constexpr std::string_view kOfPublish = "Publish to";
constexpr std::string_view kOfSubscription = "Subscription to";
bool is_refusal(const std::string& text, std::string_view of_what, std::string_view subject) {
  return text.find(fmt::format("{} \"{}\"", of_what, subject)) != std::string::npos;
}

Bytes bytes_of(const natsMsg* message) {
  const auto* data = reinterpret_cast<const std::byte*>(natsMsg_GetData(message));
  const int size = natsMsg_GetDataLength(message);
  return data == nullptr ? Bytes() : Bytes(data, data + size);
}

std::string header_of(natsMsg* message, const char* name) {
  const char* value = nullptr;
  return natsMsgHeader_Get(message, name, &value) == NATS_OK && value != nullptr ? value : "";
}

tl::unexpected<Error> failed(std::string_view what) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", what, without_place(last_text())));
}

using OptionsHandle = std::unique_ptr<natsOptions, decltype(&natsOptions_Destroy)>;
using MessageHandle = std::unique_ptr<natsMsg, decltype(&natsMsg_Destroy)>;

Expected<void> check_file(const std::string& path) {
  if (access(path.c_str(), R_OK) == 0) return {};
  return fail(ErrorCode::NotFound, fmt::format("'{}' cannot be read", path));
}

// libnats looks only when a server asks.
Expected<void> check_credentials(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.find("-----BEGIN USER NKEY SEED-----") != std::string::npos) return {};
  }
  return fail(ErrorCode::Refused,
              fmt::format("'{}' has no credentials of NATS: a file that 'nsc generate creds' makes "
                          "has a user's JWT and nkey",
                          path));
}

Expected<void> set_tls(natsOptions* set, const NatsOptions& options, const NatsAddress& address) {
  const std::string ca_file =
      options.ca_file.empty() ? std::string(kSystemCertificates) : options.ca_file;
  CLEW_TRY(check_file(ca_file));
  natsStatus status = natsOptions_SetSecure(set, true);
  if (status == NATS_OK) status = natsOptions_LoadCATrustedCertificates(set, ca_file.c_str());
  if (status != NATS_OK) {
    return fail(ErrorCode::Refused,
                fmt::format("'{}' has no certificates: {}", ca_file, without_place(last_text())));
  }
  // libnats holds all servers to one name; without it, to none.
  status = natsOptions_SetExpectedHostname(set, address.hosts[0].c_str());
  if (status != NATS_OK) return failed("libnats");
  if (options.certificate_file.empty()) return {};
  CLEW_TRY(check_file(options.certificate_file));
  CLEW_TRY(check_file(options.key_file));
  status = natsOptions_LoadCertificatesChain(set, options.certificate_file.c_str(),
                                             options.key_file.c_str());
  if (status == NATS_OK) return {};
  return fail(ErrorCode::Refused,
              fmt::format("'{}' and '{}' are no certificate and its key: {}",
                          options.certificate_file, options.key_file, without_place(last_text())));
}

Expected<void> set_secrets(natsOptions* set, const NatsOptions& options,
                           const NatsAddress& address) {
  natsStatus status = NATS_OK;
  if (!address.user.empty())
    status = natsOptions_SetUserInfo(set, address.user.c_str(), address.password.c_str());
  if (status == NATS_OK && !address.token.empty())
    status = natsOptions_SetToken(set, address.token.c_str());
  if (status == NATS_OK && !options.credentials_file.empty()) {
    CLEW_TRY(check_file(options.credentials_file));
    CLEW_TRY(check_credentials(options.credentials_file));
    status =
        natsOptions_SetUserCredentialsFromFiles(set, options.credentials_file.c_str(), nullptr);
  }
  if (status == NATS_OK) return {};
  return failed("libnats");
}

Expected<void> set_behaviour(natsOptions* set, const NatsOptions& options,
                             const NatsAddress& address) {
  std::vector<const char*> servers;
  servers.reserve(address.servers.size());
  for (const std::string& server : address.servers)
    servers.push_back(server.c_str());
  const auto timeout_ms = static_cast<int64_t>(options.timeout.count());
  const std::array settings = {
      natsOptions_SetServers(set, servers.data(), static_cast<int>(servers.size())),
      natsOptions_SetName(set, options.name.c_str()),
      natsOptions_SetTimeout(set, timeout_ms),
      natsOptions_SetWriteDeadline(set, timeout_ms),
      natsOptions_SetMaxReconnect(set, -1),
      natsOptions_SetReconnectWait(set, kReconnectWaitMs),
      natsOptions_SetReconnectJitter(set, kReconnectJitterMs, kReconnectJitterMs),
      natsOptions_SetPingInterval(set, kPingMs),
      natsOptions_SetMaxPingsOut(set, kPingsMax),
      // Else what is sent waits a millisecond for more.
      natsOptions_SetSendAsap(set, true),
      // One thread for all subscriptions: it only moves messages.
      natsOptions_UseGlobalMessageDelivery(set, true),
  };
  const bool is_set =
      std::all_of(settings.begin(), settings.end(), [](natsStatus one) { return one == NATS_OK; });
  if (is_set) return {};
  return failed("libnats");
}

}  // namespace

// --- opening and closing
// ---------------------------------------------------------------------------

Expected<std::unique_ptr<NatsConnection>> NatsConnection::open(const NatsOptions& options) {
  CLEW_TRY(check_subject(options.inbox_prefix));
  NatsAddress address = CLEW_TRY(parse_nats_address(options.url));
  if (options.only_server) address.servers = {address.servers.at(*options.only_server)};
  auto connection = std::make_unique<NatsConnection>(options, std::move(address));
  CLEW_TRY(connection->connect());
  CLEW_TRY(connection->check_server());
  return connection;
}

NatsConnection::NatsConnection(NatsOptions options, NatsAddress address)
    : options_(std::move(options)),
      address_(std::move(address)),
      inbox_(fmt::format("{}.{}", options_.inbox_prefix, random_word())),
      answers_(fmt::format("{}.{}.", options_.inbox_prefix, random_word())),
      shared_(std::make_shared<Shared>()),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      either_(epoll_create1(EPOLL_CLOEXEC)) {
  for (const int one : {timer_.get(), shared_->arrivals.descriptor()}) {
    epoll_event event = {.events = EPOLLIN, .data = {.fd = one}};
    (void)epoll_ctl(either_.get(), EPOLL_CTL_ADD, one, &event);
  }
}

NatsConnection::~NatsConnection() {
  disconnect();
}

Expected<void> NatsConnection::connect() {
  natsOptions* made = nullptr;
  if (natsOptions_Create(&made) != NATS_OK) return failed("libnats");
  const OptionsHandle set(made, &natsOptions_Destroy);
  CLEW_TRY(set_behaviour(made, options_, address_));
  if (address_.is_tls) CLEW_TRY(set_tls(made, options_, address_));
  CLEW_TRY(set_secrets(made, options_, address_));
  auto closure = std::make_unique<std::shared_ptr<Shared>>(shared_);
  (void)natsOptions_SetErrorHandler(made, on_error, closure.get());
  (void)natsOptions_SetDisconnectedCB(made, on_disconnected, closure.get());
  (void)natsOptions_SetReconnectedCB(made, on_reconnected, closure.get());
  (void)natsOptions_SetClosedCB(made, on_closed, closure.get());
  const natsStatus status = natsConnection_Connect(&connection_, made);
  if (status != NATS_OK) {
    connection_ = nullptr;
    return tl::unexpected(connection_error(status, last_text(), options_, address_));
  }
  (void)closure.release();  // on_closed frees it.
  if (natsConnection_HasHeaderSupport(connection_) != NATS_OK) {
    CLEW_TRY(check_server());
    return fail(ErrorCode::Refused,
                fmt::format("{} is too old: NATS 2.9 or newer is needed", address_.shown()));
  }
  inbox_subscription_ = CLEW_TRY(listen(inbox_, {}));
  answers_subscription_ = CLEW_TRY(listen(answers_ + "*", {}));
  return {};
}

// Which version it is, libnats keeps to itself. With TLS it is not asked: a connection that ends
// before the handshake is an error in the server's log. Whoever makes a log there learns it, too.
Expected<void> NatsConnection::check_server() const {
  std::array<char, kUrlMax> url{};
  const bool is_known =
      natsConnection_GetConnectedUrl(connection_, url.data(), url.size()) == NATS_OK;
  if (address_.is_tls || !is_known) return {};
  const auto greeting = greet_nats(url.data(), url.data(), options_.timeout);
  if (!greeting) return {};  // It has answered libnats.
  return check_version(*greeting, url.data());
}

// Behind a loss another server may be there: one that was set back.
void NatsConnection::look_at_server() {
  {
    const std::lock_guard lock(shared_->mutex);
    if (!std::exchange(shared_->is_new, false)) return;
  }
  if (const auto checked = check_server(); !checked)
    shared_->arrivals.complain(checked.error().message);
}

void NatsConnection::disconnect() {
  for (auto& [pattern, subscription] : subscriptions_)
    natsSubscription_Destroy(std::exchange(subscription.handle, nullptr));
  natsSubscription_Destroy(std::exchange(inbox_subscription_, nullptr));
  natsSubscription_Destroy(std::exchange(answers_subscription_, nullptr));
  natsConnection_Destroy(std::exchange(connection_, nullptr));
}

Arrivals& NatsConnection::arrivals() {
  return shared_->arrivals;
}

bool NatsConnection::is_connected() const {
  return connection_ != nullptr && natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED;
}

uint64_t NatsConnection::dropped() const {
  uint64_t all = shared_->arrivals.dropped();
  for (const auto& [pattern, subscription] : subscriptions_) {
    int64_t by_libnats = 0;
    if (natsSubscription_GetDropped(subscription.handle, &by_libnats) == NATS_OK)
      all += static_cast<uint64_t>(by_libnats);
  }
  return all;
}

void NatsConnection::revive() {
  if (connection_ != nullptr && !natsConnection_IsClosed(connection_)) return look_at_server();
  uint64_t expirations = 0;
  (void)read(timer_.get(), &expirations, sizeof expirations);
  const itimerspec later = {.it_interval = {},
                            .it_value = {.tv_sec = kReviveEvery.count(), .tv_nsec = 0}};
  (void)timerfd_settime(timer_.get(), 0, &later, nullptr);
  const auto now = std::chrono::steady_clock::now();
  if (now - revived_ < kReviveEvery) return;
  revived_ = now;
  disconnect();
  auto connected = connect();
  for (auto& [pattern, subscription] : subscriptions_) {
    if (!connected) break;
    auto handle = listen(pattern, subscription.group);
    if (handle) subscription.handle = *handle;
    if (handle) continue;
    if (handle.error().code == ErrorCode::Refused) {
      shared_->arrivals.complain(handle.error().message);
    } else {
      connected = tl::unexpected(handle.error());
    }
  }
  shared_->arrivals.ring();
  if (!connected) {
    disconnect();
    return;
  }
  const itimerspec never = {};
  (void)timerfd_settime(timer_.get(), 0, &never, nullptr);
  const std::lock_guard lock(shared_->mutex);
  shared_->is_new = true;
}

// --- messages
// --------------------------------------------------------------------------------------

Expected<void> NatsConnection::publish(std::string_view subject, std::span<const std::byte> bytes,
                                       std::string_view reply) {
  if (!is_connected())
    return {};  // libnats would keep it for later, when it says nothing any more.
  auto sent = send({.subject = std::string(subject), .bytes = bytes}, std::string(reply));
  if (!sent && sent.error().code == ErrorCode::Limit) return sent;
  return {};
}

Expected<void> NatsConnection::subscribe(std::string_view pattern, std::string_view group) {
  if (pattern == inbox_ || subscriptions_.find(pattern) != subscriptions_.end()) return {};
  const std::string name(pattern);
  natsSubscription* handle = nullptr;  // Given up by libnats: revive() listens.
  const bool is_given_up = connection_ == nullptr || natsConnection_IsClosed(connection_);
  if (!is_given_up) handle = CLEW_TRY(listen(name, std::string(group)));
  subscriptions_.emplace(name, Subscription{.group = std::string(group), .handle = handle});
  return {};
}

Expected<void> NatsConnection::unsubscribe(std::string_view pattern) {
  const auto found = subscriptions_.find(pattern);
  if (found == subscriptions_.end())
    return fail(ErrorCode::NotFound, "this end has not subscribed to that");
  natsSubscription_Destroy(found->second.handle);
  subscriptions_.erase(found);
  return {};
}

// Returns when the server has it, or the connection is lost: it has it then with the next one.
Expected<natsSubscription*> NatsConnection::listen(const std::string& pattern,
                                                   const std::string& group) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->pattern = pattern;
  }
  auto closure = std::make_unique<std::shared_ptr<Shared>>(shared_);
  const natsMsgHandler handler = pattern == answers_ + "*" ? on_reply : on_message;
  natsSubscription* handle = nullptr;
  const natsStatus status =
      group.empty()
          ? natsConnection_Subscribe(&handle, connection_, pattern.c_str(), handler, closure.get())
          : natsConnection_QueueSubscribe(&handle, connection_, pattern.c_str(), group.c_str(),
                                          handler, closure.get());
  if (status != NATS_OK) return failed("it could not be subscribed");
  (void)natsSubscription_SetOnCompleteCB(handle, on_complete, closure.release());
  const bool is_flushed =
      is_connected() && natsConnection_FlushTimeout(
                            connection_, static_cast<int64_t>(options_.timeout.count())) == NATS_OK;
  // A refusal comes before the answer to a flush; its handler, which runs behind it, is waited for,
  // as it takes the text of the latest refusal for that of its own.
  const bool is_refused = is_flushed && is_refusal(text_of(connection_), kOfSubscription, pattern);
  {
    std::unique_lock lock(shared_->mutex);
    const auto is_handled = [&] { return shared_->pattern.empty(); };
    if (is_refused) (void)shared_->changed.wait_for(lock, options_.timeout, is_handled);
    shared_->pattern.clear();
  }
  if (!is_refused) return handle;
  natsSubscription_Destroy(handle);
  const bool is_own = pattern == inbox_ || pattern == answers_ + "*";
  return fail(ErrorCode::Refused,
              not_permitted("subscribe to", is_own ? options_.inbox_prefix + ".>" : pattern));
}

Expected<void> NatsConnection::send(const NatsRequest& request, const std::string& reply) {
  natsMsg* made = nullptr;
  const char* const to = reply.empty() ? nullptr : reply.c_str();
  if (natsMsg_Create(&made, request.subject.c_str(), to,
                     reinterpret_cast<const char*>(request.bytes.data()),
                     static_cast<int>(request.bytes.size())) != NATS_OK)
    return failed("libnats");
  const MessageHandle message(made, &natsMsg_Destroy);
  size_t size = request.bytes.size();
  for (const auto& [name, value] : request.headers) {
    constexpr size_t kAround = 64;  // "NATS/1.0", colons, ends of lines.
    size += name.size() + value.size() + kAround;
    if (natsMsgHeader_Set(made, name.c_str(), value.c_str()) != NATS_OK) return failed("libnats");
  }
  const int64_t most = natsConnection_GetMaxPayload(connection_);
  if (most > 0 && size > static_cast<size_t>(most)) {
    return fail(ErrorCode::Limit,
                fmt::format("a message of {} bytes is too large for {}, which takes {}", size,
                            address_.shown(), most));
  }
  if (natsConnection_PublishMsg(connection_, made) == NATS_OK) return {};
  return failed("the bus is not reached at present");
}

// --- requests
// --------------------------------------------------------------------------------------

Expected<std::vector<NatsReply>> NatsConnection::ask(std::span<const NatsRequest> requests,
                                                     std::chrono::milliseconds timeout) {
  if (!is_connected()) return fail(ErrorCode::Io, "the bus is not reached at present");
  const uint64_t first = asked_;
  asked_ += requests.size();
  std::unique_lock lock(shared_->mutex);
  shared_->awaited.clear();  // What was given up.
  shared_->asked_subjects.clear();
  shared_->refused_subjects.clear();
  for (size_t i = 0; i < requests.size(); ++i) {
    shared_->awaited[first + i] = std::nullopt;
    shared_->asked_subjects.insert(requests[i].subject);
  }
  const uint64_t losses = shared_->losses;
  lock.unlock();
  for (size_t i = 0; i < requests.size(); ++i)
    CLEW_TRY(send(requests[i], answers_ + std::to_string(first + i)));

  lock.lock();
  const auto are_all_there = [&] {
    return std::all_of(shared_->awaited.begin(), shared_->awaited.end(),
                       [](const auto& one) { return one.second.has_value(); });
  };
  const auto is_over = [&] {
    return !shared_->refused_subjects.empty() || shared_->losses != losses || are_all_there();
  };
  (void)shared_->changed.wait_for(lock, timeout, is_over);
  shared_->asked_subjects.clear();
  if (are_all_there()) {
    std::vector<NatsReply> replies;
    for (auto& [number, reply] : shared_->awaited)
      replies.push_back(std::move(*reply));
    return replies;
  }
  if (!shared_->refused_subjects.empty()) {
    return fail(ErrorCode::Refused,
                not_permitted("publish to", *shared_->refused_subjects.begin()));
  }
  if (shared_->losses != losses) return fail(ErrorCode::Io, "the connection to the bus was lost");
  return fail(ErrorCode::Io, fmt::format("no answer of the bus within {} ms", timeout.count()));
}

// --- in libnats' threads
// ---------------------------------------------------------------------------

void NatsConnection::on_message(natsConnection*, natsSubscription*, natsMsg* message,
                                void* closure) {
  const MessageHandle owned(message, &natsMsg_Destroy);
  // Others than ours, such as a server's own ($JS.EVENT…), match `>` too, and are no subjects of a
  // bus.
  const std::string subject = natsMsg_GetSubject(message);
  if (!check_subject(subject)) return;
  const char* const reply = natsMsg_GetReply(message);
  const bool has_reply = reply != nullptr && check_subject(reply);
  (*static_cast<std::shared_ptr<Shared>*>(closure))
      ->arrivals.put(
          {.subject = subject, .reply = has_reply ? reply : "", .bytes = bytes_of(message)});
}

void NatsConnection::on_reply(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
  const MessageHandle owned(message, &natsMsg_Destroy);
  const std::string_view subject = natsMsg_GetSubject(message);
  const std::string_view digits = subject.substr(subject.rfind('.') + 1);
  uint64_t number = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), number);
  NatsReply reply = {.status = header_of(message, "Status"),
                     .sequence = header_of(message, "Nats-Sequence"),
                     .subject = header_of(message, "Nats-Subject"),
                     .bytes = bytes_of(message)};
  Shared& shared = **static_cast<std::shared_ptr<Shared>*>(closure);
  const std::lock_guard lock(shared.mutex);
  const auto awaited = shared.awaited.find(number);
  if (awaited == shared.awaited.end() || awaited->second) return;
  awaited->second = std::move(reply);
  shared.changed.notify_one();
}

void NatsConnection::on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                              void* closure) {
  Shared& shared = **static_cast<std::shared_ptr<Shared>*>(closure);
  std::string text = text_of(connection);
  if (status == NATS_NOT_PERMITTED) {
    const std::lock_guard lock(shared.mutex);
    const auto asked = std::find_if(
        shared.asked_subjects.begin(), shared.asked_subjects.end(),
        [&](const std::string& subject) { return is_refusal(text, kOfPublish, subject); });
    const bool is_asked = asked != shared.asked_subjects.end();
    const bool is_pattern =
        !shared.pattern.empty() && is_refusal(text, kOfSubscription, shared.pattern);
    if (is_asked) shared.refused_subjects.insert(*asked);
    if (is_pattern) shared.pattern.clear();
    shared.changed.notify_one();
    if (is_asked || is_pattern) return;
    text = not_permitted(text);
    const bool is_known = shared.told.size() >= kToldMax || !shared.told.insert(text).second;
    if (is_known) return;
  }
  if (status == NATS_SLOW_CONSUMER) text = "messages come faster than they are taken";
  shared.arrivals.complain(text.empty() ? fmt::format("libnats: {}", natsStatus_GetText(status))
                                        : std::move(text));
}

void NatsConnection::on_disconnected(natsConnection*, void* closure) {
  Shared& shared = **static_cast<std::shared_ptr<Shared>*>(closure);
  {
    const std::lock_guard lock(shared.mutex);
    ++shared.losses;
    shared.changed.notify_one();
  }
  shared.arrivals.ring();
}

void NatsConnection::on_reconnected(natsConnection*, void* closure) {
  Shared& shared = **static_cast<std::shared_ptr<Shared>*>(closure);
  {
    const std::lock_guard lock(shared.mutex);
    shared.told.clear();  // The server may have other lists by now.
    shared.is_new = true;
  }
  shared.arrivals.ring();
}

void NatsConnection::on_closed(natsConnection* connection, void* closure) {
  on_disconnected(connection, closure);
  on_complete(closure);
}

void NatsConnection::on_complete(void* closure) {
  const std::unique_ptr<std::shared_ptr<Shared>> owned(
      static_cast<std::shared_ptr<Shared>*>(closure));
}

}  // namespace clew::cluster
