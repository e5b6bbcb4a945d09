// SPDX-License-Identifier: Apache-2.0
#include "cluster/bus_local.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cluster/arrivals.h"
#include "cluster/local_log.h"
#include "cluster/subject.h"

namespace clew::cluster {
namespace {

bool is_in(const std::vector<std::string>& patterns, std::string_view subject) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& one) { return is_match(one, subject); });
}

Bytes copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

// One lock for all: what is done under it is short. An end's arrivals have their own, taken behind
// this one or alone.
class LocalState {
 public:
  struct Route {
    std::string pattern;
    std::string group;
    Arrivals* to;
  };

  void add(Arrivals* end) {
    const std::lock_guard lock(mutex_);
    ends_.insert(end);
  }
  void remove(Arrivals* end) {
    const std::lock_guard lock(mutex_);
    ends_.erase(end);
  }
  uint64_t next_number() {
    const std::lock_guard lock(mutex_);
    return ++number_;
  }

  [[nodiscard]] bool is_reachable() const {
    const std::lock_guard lock(mutex_);
    return is_reachable_;
  }
  void set_reachable(bool is_reachable) {
    const std::lock_guard lock(mutex_);
    is_reachable_ = is_reachable;
    for (Arrivals* end : ends_)
      end->ring();
  }

  void subscribe(Route route) {
    const std::lock_guard lock(mutex_);
    std::vector<Route>& routes =
        has_wildcards(route.pattern) ? by_pattern_ : by_subject_[route.pattern];
    routes.push_back(std::move(route));
  }
  void unsubscribe(std::string_view pattern, Arrivals* end) {
    const std::lock_guard lock(mutex_);
    const auto is_it = [&](const Route& route) {
      return route.to == end && route.pattern == pattern;
    };
    std::erase_if(by_pattern_, is_it);
    const auto exact = by_subject_.find(std::string(pattern));
    if (exact == by_subject_.end()) return;
    std::erase_if(exact->second, is_it);
    if (exact->second.empty()) by_subject_.erase(exact);
  }

  void publish(const Message& message) {
    const std::lock_guard lock(mutex_);
    if (!is_reachable_) return;
    LocalLog* log = log_of(message.subject);
    if (log != nullptr) (void)log->append(message.subject, {}, message.bytes);
    deliver(message);
  }
  Expected<uint64_t> append(const Message& message, std::string_view id) {
    const std::lock_guard lock(mutex_);
    CLEW_TRY(check_reachable());
    deliver(message);
    LocalLog* log = log_of(message.subject);
    if (log == nullptr)
      return fail(ErrorCode::Io, fmt::format("no log keeps '{}' at present", message.subject));
    if (is_log_full_)
      return fail(ErrorCode::Limit, fmt::format("'{}': no space is left", message.subject));
    return log->append(message.subject, id, message.bytes);
  }

  Expected<void> make_log(std::string_view name, std::string_view pattern, uint64_t most_bytes) {
    const std::lock_guard lock(mutex_);
    CLEW_TRY(check_reachable());
    for (auto& [other, log] : logs_) {
      if (other == name && log.pattern() == pattern) {
        log.set_most_bytes(most_bytes);
        return {};
      }
      if (other == name || do_overlap(log.pattern(), pattern)) {
        return fail(ErrorCode::Refused, fmt::format("log '{}' keeps '{}', so '{}' cannot keep '{}'",
                                                    other, log.pattern(), name, pattern));
      }
    }
    logs_.emplace(name,
                  LocalLog(std::string(name), std::string(pattern), most_bytes, ++logs_made_));
    return {};
  }
  // What `use` gives of the log.
  template <typename Use>
  auto with_log(std::string_view name, const Use& use, ErrorCode if_absent = ErrorCode::Io)
      -> Expected<decltype(use(std::declval<LocalLog&>()))> {
    const std::lock_guard lock(mutex_);
    CLEW_TRY(check_reachable());
    const auto found = logs_.find(name);
    if (found == logs_.end())
      return fail(if_absent, fmt::format("there is no log '{}' at present", name));
    return use(found->second);
  }

  void set_log_full(bool is_full) {
    const std::lock_guard lock(mutex_);
    is_log_full_ = is_full;
  }

  void lose_disk() {
    const std::lock_guard lock(mutex_);
    logs_.clear();
    buckets_.clear();
  }

  void lose_end(uint64_t entries, bool knows_ids) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, log] : logs_)
      log.lose_end(entries, knows_ids);
    for (auto& [name, keys] : buckets_)
      keys.lose_end(entries);
  }

  Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) {
    const std::lock_guard lock(mutex_);
    CLEW_TRY(check_reachable());
    const auto found = buckets_.find(bucket);
    if (found == buckets_.end()) return std::optional<Revised>();
    return found->second.get(key);
  }
  Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                         std::span<const std::byte> bytes, uint64_t revision) {
    const std::lock_guard lock(mutex_);
    CLEW_TRY(check_reachable());
    return buckets_[std::string(bucket)].put(key, bytes, revision);
  }

 private:
  [[nodiscard]] Expected<void> check_reachable() const {
    if (is_reachable_) return {};
    return fail(ErrorCode::Io, "the bus is not reached at present");
  }

  LocalLog* log_of(std::string_view subject) {
    for (auto& [name, log] : logs_)
      if (is_match(log.pattern(), subject)) return &log;
    return nullptr;
  }

  void deliver(const Message& message) {
    std::map<std::string_view, std::vector<Arrivals*>> groups;
    const auto offer = [&](const Route& route) {
      if (route.group.empty()) {
        route.to->put(message);
      } else {
        groups[route.group].push_back(route.to);
      }
    };
    const auto exact = by_subject_.find(message.subject);
    if (exact != by_subject_.end())
      std::for_each(exact->second.begin(), exact->second.end(), offer);
    for (const Route& route : by_pattern_)
      if (is_match(route.pattern, message.subject)) offer(route);
    for (const auto& [group, members] : groups)
      members[turn_++ % members.size()]->put(message);
  }

  mutable std::mutex mutex_;
  bool is_reachable_ = true;
  uint64_t number_ = 0;
  uint64_t turn_ = 0;  // Whose it is within groups.
  std::set<Arrivals*> ends_;
  std::unordered_map<std::string, std::vector<Route>>
      by_subject_;  // The patterns without wildcards.
  std::vector<Route> by_pattern_;
  std::map<std::string, LocalLog, std::less<>> logs_;
  uint64_t logs_made_ = 0;
  bool is_log_full_ = false;
  std::map<std::string, LocalKeys, std::less<>> buckets_;
};

namespace {

class LocalEnd final : public Bus {
 public:
  LocalEnd(std::shared_ptr<LocalState> state, Permissions permissions)
      : state_(std::move(state)),
        permissions_(std::move(permissions)),
        inbox_(fmt::format("_INBOX.{}", state_->next_number())) {
    state_->add(&arrivals_);
    state_->subscribe({.pattern = inbox_, .group = {}, .to = &arrivals_});
  }
  ~LocalEnd() override {
    for (const std::string& pattern : patterns_)
      state_->unsubscribe(pattern, &arrivals_);
    state_->unsubscribe(inbox_, &arrivals_);
    state_->remove(&arrivals_);
  }

  [[nodiscard]] int descriptor() const override { return arrivals_.descriptor(); }
  [[nodiscard]] bool is_connected() const override { return state_->is_reachable(); }
  std::vector<std::string> take_complaints() override { return arrivals_.take_complaints(); }
  [[nodiscard]] uint64_t dropped() const override { return arrivals_.dropped(); }
  std::optional<Message> next() override { return arrivals_.next(); }
  [[nodiscard]] std::string inbox() const override { return inbox_; }

  Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                         std::string_view reply) override {
    CLEW_TRY(check_subject(subject));
    if (!reply.empty()) CLEW_TRY(check_subject(reply));
    CLEW_TRY(check_size(bytes));
    if (!may_publish(subject)) {  // As with a server, which says so later.
      arrivals_.complain(fmt::format("this end may not publish to '{}'", subject));
      return {};
    }
    state_->publish({std::string(subject), std::string(reply), copy_of(bytes)});
    return {};
  }

  Expected<void> subscribe(std::string_view pattern, std::string_view group) override {
    CLEW_TRY(check_pattern(pattern));
    if (!group.empty()) CLEW_TRY(check_name(group));
    if (!is_in(permissions_.subscribe, pattern))
      return fail(ErrorCode::Refused, fmt::format("this end may not subscribe to '{}'", pattern));
    if (pattern == inbox_ || !patterns_.emplace(pattern).second) return {};
    state_->subscribe({std::string(pattern), std::string(group), &arrivals_});
    return {};
  }
  Expected<void> unsubscribe(std::string_view pattern) override {
    const auto found = patterns_.find(pattern);
    if (found == patterns_.end())
      return fail(ErrorCode::NotFound, "this end has not subscribed to that");
    patterns_.erase(found);
    state_->unsubscribe(pattern, &arrivals_);
    return {};
  }

  Expected<void> make_log(std::string_view log, std::string_view pattern,
                          uint64_t most_bytes) override {
    CLEW_TRY(check_name(log));
    CLEW_TRY(check_pattern(pattern));
    return state_->make_log(log, pattern, most_bytes);
  }
  Expected<uint64_t> append(std::string_view subject, std::string_view id,
                            std::span<const std::byte> bytes) override {
    CLEW_TRY(check_subject(subject));
    CLEW_TRY(check_id(id));
    CLEW_TRY(check_size(bytes));
    if (!may_publish(subject))
      return fail(ErrorCode::Refused, fmt::format("this end may not append to '{}'", subject));
    return state_->append({std::string(subject), {}, copy_of(bytes)}, id);
  }
  Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) override {
    CLEW_TRY(check_name(log));
    return state_->with_log(log, [&](LocalLog& found) { return found.read(after, most); });
  }
  Expected<LogEnds> ends(std::string_view log) override {
    CLEW_TRY(check_name(log));
    return state_->with_log(
        log, [](const LocalLog& found) { return found.ends(); }, ErrorCode::NotFound);
  }
  Expected<void> forget(std::string_view log, uint64_t up_to) override {
    CLEW_TRY(check_name(log));
    CLEW_TRY(state_->with_log(log, [&](LocalLog& found) {
      found.forget(up_to);
      return true;
    }));
    return {};
  }

  Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) override {
    CLEW_TRY(check_name(bucket));
    CLEW_TRY(check_subject(key));
    return state_->get(bucket, key);
  }
  Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                         std::span<const std::byte> bytes, uint64_t revision) override {
    CLEW_TRY(check_name(bucket));
    CLEW_TRY(check_subject(key));
    CLEW_TRY(check_size(bytes));
    return state_->put(bucket, key, bytes, revision);
  }

 private:
  [[nodiscard]] bool may_publish(std::string_view subject) const {
    return is_in(permissions_.publish, subject);
  }

  std::shared_ptr<LocalState> state_;  // An end may outlive the hub.
  Permissions permissions_;
  std::string inbox_;
  Arrivals arrivals_;
  std::set<std::string, std::less<>> patterns_;
};

}  // namespace

LocalHub::LocalHub() : state_(std::make_shared<LocalState>()) {}
LocalHub::~LocalHub() = default;

std::unique_ptr<Bus> LocalHub::connect(Permissions permissions) {
  return std::make_unique<LocalEnd>(state_, std::move(permissions));
}

void LocalHub::lose_disk() {
  state_->lose_disk();
}

void LocalHub::lose_end(uint64_t entries, bool knows_ids) {
  state_->lose_end(entries, knows_ids);
}

void LocalHub::set_log_full(bool is_full) {
  state_->set_log_full(is_full);
}

void LocalHub::set_reachable(bool is_reachable) {
  state_->set_reachable(is_reachable);
}

}  // namespace clew::cluster
